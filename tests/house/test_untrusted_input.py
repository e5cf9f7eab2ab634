"""What users and models supply is read as data: nothing turns it into code, but for the places listed here."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("memory", "environments", "nodes", "graphs", "benchmarks", "src/langgraft")
# Attacks on the sandbox, run inside it, and read by nothing else.
HOSTILE = "environments/sandboxes/hostile/programs/"

CALLS = {
    *("eval", "exec", "compile", "__import__", "builtins.eval", "builtins.exec"),
    *("os.system", "os.popen", "runpy.run_path", "runpy.run_module"),
    *("subprocess.getoutput", "subprocess.getstatusoutput"),
}
METHODS = {
    *("exec_module", "create_subprocess_shell", "read_pickle", "to_pickle", "sympify"),
    *("parse_expr", "set_unsafe", "unsafe_load", "full_load", "unsafe_load_all", "full_load_all"),
}
MODULES = {
    *("pickle", "_pickle", "cPickle", "marshal", "shelve", "dbm", "code", "codeop", "runpy"),
    *("cloudpickle", "dill", "joblib", "jsonpickle", "torch"),
}
PROCESSES = {"Popen", "run", "call", "check_call", "check_output"}
SAFE_LOADERS = {"yaml.SafeLoader", "yaml.CSafeLoader", "_Yaml"}
"""`_Yaml` is a safe loader: `test_loader_of_yaml_is_a_safe_one`."""

# (file, what): why it is no door for what a user or a model supplies.
ALLOWED = {
    ("environments/sandboxes/inside/kernel.py", "compile"): "a cell of the kernel, in the sandbox",
    ("environments/sandboxes/inside/kernel.py", "eval"): "a cell of the kernel, in the sandbox",
    ("environments/sandboxes/places.py", "compile"): "our own supervisor, which is to start sooner",
    ("environments/sandboxes/places.py", "import marshal"): "writes it down; reads nothing",
    ("environments/sandboxes/inside/launcher.py", "compile"): "the program, in the sandbox",
    ("environments/sandboxes/inside/launcher.py", "exec"): "the program, in the sandbox",
    ("environments/problems/code_harness.py", "compile"): "a solution, in the sandbox",
    ("environments/problems/code_harness.py", "exec"): "a solution and its tests, in the sandbox",
    ("nodes/workbench/job_program.py", "a shell"): "an agent's own command, in the sandbox",
    ("nodes/workbench/performing.py", "a shell"): "an agent's own command, in the sandbox",
    (
        "environments/alfworld/engine.py",
        "eval",
    ): "TextWorld's own expressions, of grammars that `check_rules` knows by digest",
    (
        "environments/statebench/release.py",
        "exec_module",
    ): "the benchmark's package, from the user's own copy",
    (
        "benchmarks/harness/processes.py",
        "import pickle",
    ): "asks whether a plan can be sent to a process of ours; nothing is loaded from a file",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield our modules: place and syntax tree."""
    for room in ROOMS:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            place = path.relative_to(REPOSITORY).as_posix()
            if not place.startswith(HOSTILE):
                yield place, ast.parse(path.read_text("utf-8"))


def doors(tree: ast.Module) -> Iterator[str]:
    """Yield what in a module may turn data into code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            named = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            named = []
        yield from (f"import {name}" for name in named if name.partition(".")[0] in MODULES)
        yield from (f"import {name}" for name in named if name in CALLS)
        if isinstance(node, ast.Call):
            yield from _called(node)


def _called(call: ast.Call) -> Iterator[str]:
    name = _dotted(call.func)
    last = name.rpartition(".")[2]
    given = {each.arg: each.value for each in call.keywords}
    if name in CALLS:
        yield name
    elif last in METHODS:
        yield last
    elif name in {"yaml.load", "yaml.load_all"}:
        loader = given.get("Loader", call.args[1] if len(call.args) > 1 else None)
        if loader is None or _dotted(loader) not in SAFE_LOADERS:
            yield name
    elif name in {"np.load", "numpy.load"} and not _is_false(given.get("allow_pickle")):
        yield "np.load of pickles"
    elif not _is_false(given.get("pickle_fallback")):
        yield "pickle_fallback"
    if last in PROCESSES and not _is_false(given.get("shell")):
        yield "a shell"
    if call.args and isinstance(call.args[0], ast.List | ast.Tuple):
        words = [e.value for e in call.args[0].elts[:2] if isinstance(e, ast.Constant)]
        if words[:1] in (["sh"], ["bash"]) and words[1:2] == ["-c"]:
            yield "a shell"


def _dotted(node: ast.expr) -> str:
    """Return `a.b` of a name; of any other expression what follows its last dot."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _is_false(node: ast.expr | None) -> bool:
    """Whether an argument is left out, or `False` as it stands."""
    return node is None or (isinstance(node, ast.Constant) and node.value is False)


def test_code_when_read_turns_nothing_of_others_into_code() -> None:
    """No pickle, eval, exec, unsafe YAML or shell is anywhere but where a reason says why."""
    found = {(place, door) for place, tree in sources() for door in doors(tree)}
    assert found == set(ALLOWED)


@pytest.mark.parametrize(
    ("code", "door"),
    [
        ("import pickle", "import pickle"),
        ("from pickle import loads", "import pickle"),
        ("from os import system", "import os.system"),
        ("eval(text)", "eval"),
        ("yaml.load(text)", "yaml.load"),
        ("yaml.load(text, Loader=yaml.Loader)", "yaml.load"),
        ("yaml.load(text, yaml.UnsafeLoader)", "yaml.load"),
        ("yaml.full_load(text)", "full_load"),
        ("np.load(path, allow_pickle=True)", "np.load of pickles"),
        ("np.load(path, allow_pickle=wanted)", "np.load of pickles"),
        ("subprocess.run(line, shell=True)", "a shell"),
        ("subprocess.run(['sh', '-c', line])", "a shell"),
        ("Popen(['bash', '-c', line])", "a shell"),
        ("JsonPlusSerializer(pickle_fallback=True)", "pickle_fallback"),
        ("pd.read_pickle(path)", "read_pickle"),
        ("sympy.sympify(text)", "sympify"),
        ("import torch", "import torch"),
    ],
)
def test_door_when_it_stands_in_code_is_found(code: str, door: str) -> None:
    """The test above would see it."""
    assert door in set(doors(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        "re.compile(text)",
        "model.eval()",
        "yaml.safe_load(text)",
        "np.load(path, allow_pickle=False)",
        "subprocess.run(['git', 'log'])",
        "json.loads(text)",
    ],
)
def test_call_when_it_is_harmless_is_no_door(code: str) -> None:
    """And would not cry wolf."""
    assert not set(doors(ast.parse(code)))


def test_loader_of_yaml_is_a_safe_one() -> None:
    """What reads plans makes no objects of what tags ask for."""
    import yaml  # noqa: PLC0415

    from langgraft._core.untrusted import _Yaml, load_yaml  # noqa: PLC0415

    assert _Yaml in {getattr(yaml, "CSafeLoader", None), yaml.SafeLoader}
    with pytest.raises(ValueError, match="tag"):
        load_yaml("!!python/object/apply:os.system ['true']")
