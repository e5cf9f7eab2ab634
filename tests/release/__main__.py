"""Try what is to be released: `make bare`, `make compat`, `make audit`."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
BARE_USE = Path(__file__).with_name("bare_use.py")
PYTHONS = ("3.11", "3.12", "3.13")
ENDS = {"floors": "lowest-direct", "newest": "highest"}
TEST_TOOLS = ("pytest", "pytest-asyncio", "pytest-timeout", "hypothesis", "langchain-tests")
# What meets LangGraph and LangChain: middleware, nodes, chains, tools, agents, stores and providers.
NARROW = (
    *("tests/nodes/test_middleware.py", "tests/nodes/test_middleware_nodes.py"),
    *("tests/nodes/test_chains.py", "tests/nodes/test_tools.py", "tests/nodes/test_structured.py"),
    *("tests/graphs/test_react.py", "tests/memory/test_banks.py", "tests/memory/test_recall.py"),
    *("tests/memory/stores/test_chroma_opening.py", "tests/memory/stores/test_named_stores.py"),
)
# Of langgraft: conditions of a bare environment are not those of the checkout.
CLEAN = {
    name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}
}


def main() -> int:
    """Do what was asked; return 0 if it holds."""
    parser = argparse.ArgumentParser(prog="release", description=__doc__)
    todo = parser.add_subparsers(dest="todo", required=True)
    bare = todo.add_parser("bare", help="install the wheel alone, use it, and list what it brings")
    bare.add_argument("dist", type=Path, help="folder of one wheel; the list is written beside it")
    todo.add_parser("compat", help="narrow tests with the oldest and the newest dependencies")
    todo.add_parser(
        "audit", help="known vulnerabilities of what is installed, as pip-audit knows them"
    )
    agree = todo.add_parser("agree", help="version, changelog and citation say the same as a tag")
    agree.add_argument("tag")
    chosen, more = parser.parse_known_args()
    if chosen.todo == "agree":
        return agrees(chosen.tag)
    if chosen.todo == "bare":
        return try_bare(chosen.dist)
    return try_ends() if chosen.todo == "compat" else check_vulnerabilities(more)


def agrees(tag: str) -> int:
    """Return 0 if what names the version names that of a tag, and the changelog dates it."""
    version = f'"{tag.removeprefix("v")}"'
    heading = rf"^## \[{re.escape(tag.removeprefix('v'))}\] - \d{{4}}-\d\d-\d\d$"
    wanted = {
        "src/langgraft/__init__.py": rf"^__version__ = {re.escape(version)}$",
        "CITATION.cff": rf"^version: {re.escape(version)}$",
        "CHANGELOG.md": heading,
    }
    wrong = [
        name
        for name, line in wanted.items()
        if not re.search(line, (REPOSITORY / name).read_text("utf-8"), re.MULTILINE)
    ]
    for name in wrong:
        say(f"{name} does not name {tag}")
    return int(bool(wrong) or not tag.startswith("v"))


def try_bare(dist: Path) -> int:
    """Install the wheel into an empty environment of each Python there is, and use its core."""
    (wheel,) = dist.resolve().glob("*.whl")
    found = {version: python for version in PYTHONS if (python := find_python(version))}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="langgraft-bare-") as place:
        for version, python in found.items():
            home = environment(Path(place, version), python)
            install(home, str(wheel))
            failed += call([str(home), str(BARE_USE)], Path(place)).returncode != 0
            if version == next(iter(found)):
                write_bill(home, wheel)
    if missing := [version for version in PYTHONS if version not in found]:
        say(f"not tried, as there is no such interpreter here: Python {', '.join(missing)}")
    return int(failed > 0 or not found)


def write_bill(home: Path, wheel: Path) -> None:
    """Write what the wheel brings with it, as CycloneDX does, beside the wheel."""
    bill = wheel.with_name(f"{wheel.name.removesuffix('.whl')}.cdx.json")
    tool = [tool_path("cyclonedx-py"), "environment", str(home), "--output-reproducible"]
    call([*tool, "--of", "JSON", "-o", str(bill)], REPOSITORY, check=True)
    told = json.loads(bill.read_text("utf-8"))
    own = next(each for each in told["components"] if each["name"] == "langgraft")
    told["components"].remove(own)
    del own["externalReferences"]  # where the wheel lay on this machine
    told["metadata"]["component"] = own  # what the list is about
    bill.write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", "utf-8")
    say(f"{bill.name}: {len(told['components'])} components")


def try_ends() -> int:
    """Run narrow tests on the oldest dependencies that are allowed, and on the newest."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="langgraft-compat-") as place:
        for name, resolution in ENDS.items():
            home = environment(Path(place, name), sys.executable)
            package = f"{REPOSITORY}[bench,mle,postgres]"  # `tests/conftest.py` wants these extras
            install(home, "-e", package, "--resolution", resolution)
            install(home, *TEST_TOOLS)  # whatever fits what is there
            say(f"{name}: {', '.join(versions(home, 'langgraph', 'langchain-core', 'langchain'))}")
            tests = [str(home), "-m", "pytest", "-q", "-p", "no:cacheprovider", *NARROW]
            failed += (
                call([*tests, "-m", "not (kill or matrix or docker)"], REPOSITORY).returncode != 0
            )
    return int(failed > 0)


def check_vulnerabilities(arguments: Sequence[str]) -> int:
    """Ask pip-audit about the installed packages; where nobody answers, say so and go on."""
    with tempfile.TemporaryDirectory() as place:
        one = Path(place, "one.txt")
        one.write_text(f"pydantic=={metadata.version('pydantic')}\n")
        reachable, why = audited(["--no-deps", "--disable-pip", "-r", str(one)])
    if not reachable or any("skip_reason" in each for each in reachable):
        say(f"NOT AUDITED: the service that knows vulnerabilities cannot be reached{why}")
        return 0
    found, why = audited(["--local", "--skip-editable", *arguments])
    if not found:
        say(f"NOT AUDITED: the service broke off{why}")
        return 0
    skipped = [each["name"] for each in found if "skip_reason" in each]
    weak = [each for each in found if each.get("vulns")]
    for each in weak:
        for known in each["vulns"]:
            mended = ", ".join(known["fix_versions"]) or "no version yet"
            say(f"{each['name']} {each['version']}: {known['id']}, mended in {mended}")
    say(
        f"{len(found) - len(skipped)} packages audited, {len(weak)} with known vulnerabilities;"
        f" {len(skipped)} unknown to the service{': ' if skipped else ''}{', '.join(skipped)}"
    )
    return int(bool(weak))


def audited(arguments: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return what pip-audit found, a mapping a package, or nothing and why."""
    command = [tool_path("pip-audit"), "-f", "json", "--progress-spinner", "off", "--timeout", "20"]
    here = {**os.environ, "PIPAPI_PYTHON_LOCATION": sys.executable}  # not where the tools are
    told = [*command, *arguments]
    done = subprocess.run(told, capture_output=True, text=True, check=False, env=here)
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        return [], f": {(done.stderr.strip().splitlines() or ['it said nothing'])[-1]:.200}"
    return found, ""


def find_python(version: str) -> str | None:
    """Return an interpreter of a version that works: on the path, or pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    beside = [str(path / "bin" / "python") for path in sorted(pyenv.glob(f"{version}.*"))]
    for name in filter(None, [shutil.which(f"python{version}"), *beside]):
        ask = [name, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False, env=CLEAN)
        if done.stdout.strip() == version:
            return name
    return None


def environment(home: Path, python: str) -> Path:
    """Make an empty virtual environment, and return its interpreter."""
    call(
        [tool_path("uv"), "venv", "--quiet", "--python", python, str(home)], REPOSITORY, check=True
    )
    return home / "bin" / "python"


def install(home: Path, *what: str) -> None:
    """Install into an environment."""
    command = [tool_path("uv"), "pip", "install", "--quiet", "--python", str(home), *what]
    call(command, REPOSITORY, check=True)


def versions(home: Path, *names: str) -> list[str]:
    """Return the versions of packages in an environment."""
    code = f"from importlib.metadata import version\nfor n in {names!r}: print(n, version(n))"
    done = subprocess.run([str(home), "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def tool_path(name: str) -> str:
    """Return a program of the group `release`: beside this interpreter, or on the path."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        sys.exit(f"there is no {name} here: install the dependency group `release`")
    return found


def call(
    command: list[str], folder: Path, *, check: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Run a program whose output is shown."""
    return subprocess.run(command, cwd=folder, env=CLEAN, check=check)


def say(line: str) -> None:
    """Tell something, in order with what programs print."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
