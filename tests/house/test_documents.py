"""What the documents show works."""

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from alfworld_cases import HOW_TO_GET_IT, PRESENT, needs_alfworld
from chroma_server import chroma_server
from postgres_server import Schemas
from warm_python import TESTING, ran, run_code, started

from langgraft.benchmarks.studies import shipped_plans
from langgraft.memory import item_schema

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "CONTRIBUTING.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
TUTORIALS = sorted((REPOSITORY / "docs" / "tutorials").glob("*-*.md"))
NAMED = re.compile(r"# (\w+\.(?:py|yaml))\n")
GUIDE = REPOSITORY / "docs" / "your-own-provider.md"
WORLD_GUIDE = REPOSITORY / "docs" / "your-own-world.md"


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    fenced = rf"^```{language}\n(.*?)^```"
    return re.findall(fenced, page.read_text(), re.MULTILINE | re.DOTALL)


def save_files(page: Path, folder: Path) -> None:
    """Write the blocks of a page that begin with the name of a file: `# my_memory.py`."""
    for code in (*blocks(page, "python"), *blocks(page, "yaml")):
        if named := NAMED.match(code):
            (folder / named[1]).write_text(code)


# Lessons are pasted whole, below.
BLOCKS = [
    pytest.param(page, code, id=f"{page.name}-{number}")
    for page in PAGES
    if page not in TUTORIALS
    for number, code in enumerate(blocks(page, "python"))
]
# Their fences say what they need: ```python docker
DOCKER_BLOCKS = [
    pytest.param(page, code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python docker"))
]
ALFWORLD_BLOCKS = [
    pytest.param(page, code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python alfworld"))
]
STATEBENCH_BLOCKS = [
    pytest.param(page, code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(blocks(page, "python statebench"))
]
# They are told where the server is: in DATABASE_URL, and in CHROMA_URL.
POSTGRES_BLOCKS, CHROMA_BLOCKS = (
    [
        pytest.param(page, code, id=f"{page.name}-{number}")
        for page in PAGES
        for number, code in enumerate(blocks(page, f"python {server}"))
    ]
    for server in ("postgres", "chroma")
)
# Those that `test_examples.py` runs and looks at are run there alone.
EXAMPLES = sorted(
    path
    for path in (REPOSITORY / "examples").glob("*.py")
    if path.stem
    not in {
        *("ablation_in_ci", "fastapi_users", "own_environment"),
        *("support_agent", "transplant_memory"),
    }
)


def beside(code: str, folder: Path) -> str:
    """Return code that writes to a folder of the test where a page has a temporary one."""
    return code.replace("/tmp/", f"{folder}/")


def langgraft(folder: Path, *arguments: str) -> str:
    """Run a command in a folder as `python -m langgraft` does; return what it printed.

    Reports have no figures: those of studies that were played are drawn in other tests.
    """
    done = ran(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("page", "code"), BLOCKS)
def test_code_of_a_page_when_pasted_runs(page: Path, code: str, tmp_path: Path) -> None:
    """Every Python block stands on its own, beside the files that its page names."""
    save_files(page, tmp_path)
    run_code(beside(code, tmp_path), tmp_path)


@pytest.mark.parametrize(("page", "code"), DOCKER_BLOCKS)
def test_code_of_a_page_when_it_needs_docker_runs_there(
    page: Path, code: str, tmp_path: Path, docker_image: str
) -> None:
    """Blocks that need an engine run where there is one."""
    run_code(beside(code, tmp_path), tmp_path)


@needs_alfworld
@pytest.mark.parametrize(("page", "code"), ALFWORLD_BLOCKS)
def test_code_of_a_page_when_it_needs_alfworld_runs_there(
    page: Path, code: str, tmp_path: Path
) -> None:
    """Blocks that play ALFWorld run where its engine is installed."""
    run_code(beside(code, tmp_path), tmp_path)


def told(variable: str, value: str, code: str) -> str:
    """Return code that runs with a variable of the environment."""
    return f"import os\nos.environ[{variable!r}] = {value!r}\n{code}"


@pytest.mark.parametrize(("page", "code"), STATEBENCH_BLOCKS)
def test_code_of_a_page_when_it_needs_statebench_runs_on_its_data(
    page: Path, code: str, tmp_path: Path, data_dir: Path
) -> None:
    """Blocks that read the benchmark run where there is a copy, which is unpacked for the test."""
    if not (data_dir / "statebench").is_dir():
        pytest.skip("LANGGRAFT_DATA has no folder `statebench`")
    placed = told("LANGGRAFT_DATA", str(data_dir), beside(code, tmp_path))
    run_code(told("XDG_CACHE_HOME", str(tmp_path), placed), tmp_path)


@pytest.mark.parametrize(("page", "code"), POSTGRES_BLOCKS)
def test_code_of_a_page_when_it_needs_postgresql_runs_there(
    page: Path, code: str, tmp_path: Path, postgres: Schemas
) -> None:
    """Blocks that use PostgreSQL run against a server, each in an empty database."""
    save_files(page, tmp_path)
    run_code(told("DATABASE_URL", postgres.new(), code), tmp_path)


@pytest.mark.matrix  # a server for each
@pytest.mark.parametrize(("page", "code"), CHROMA_BLOCKS)
def test_code_of_a_page_when_it_needs_a_chroma_server_runs_there(
    page: Path, code: str, tmp_path: Path
) -> None:
    """Blocks that use a Chroma server run against one."""
    save_files(page, tmp_path)
    with chroma_server() as url:
        run_code(told("CHROMA_URL", url, code), tmp_path)


def commands(session: str) -> list[list[str]]:
    """Return the arguments of the `langgraft` commands of a session, `$` before each."""
    return [
        shlex.split(line)[1:] for line in re.findall(r"^\$ (langgraft .*)$", session, re.MULTILINE)
    ]


@contextmanager
def serving(arguments: list[str], folder: Path) -> Iterator[str]:
    """Serve simulated models as a page says, on a free port; yield the port."""
    free = ["0" if each == "8000" else each for each in arguments]
    with started(*free, "--json", folder=folder) as server:
        yield re.findall(r":(\d+)/v1", server.stdout.readline())[0]
        server.terminate()
        server.stdout.read()


@pytest.mark.matrix
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_tutorial_when_pasted_in_order_works(page: Path, tmp_path: Path) -> None:
    """Blocks and commands of a lesson work one after another in one folder, which was empty."""
    fenced = r"^```(python|console)\n(.*?)^```"
    save_files(page, tmp_path)
    with ExitStack() as served:
        port = "8000"
        for language, code in re.findall(fenced, page.read_text(), re.MULTILINE | re.DOTALL):
            if language == "python":
                run_code(code, tmp_path)
            for arguments in commands(code):
                if arguments[0] == "serve-simulated":
                    port = served.enter_context(serving(arguments, tmp_path))
                else:
                    there = [each.replace(":8000/", f":{port}/") for each in arguments]
                    langgraft(tmp_path, *there)


def test_provider_of_the_guide_when_counted_has_thirty_lines() -> None:
    """The guide keeps the promise of its title."""
    code = blocks(GUIDE, "python")[0]
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 30


@pytest.mark.matrix  # a contract suite
def test_provider_of_the_guide_when_held_to_the_suite_passes(tmp_path: Path) -> None:
    """Its test, as shown, runs every case and needs no plugin of pytest."""
    save_files(GUIDE, tmp_path)
    given = ["-q", "-p", "no:asyncio", "test_my_memory.py"]
    said = run_code(TESTING.format(arguments=given), tmp_path)
    (passed,) = re.findall(r"^(\d+) passed in", said, re.MULTILINE)
    assert int(passed) >= 40


def test_graph_of_the_guide_when_run_recalls_what_it_did(tmp_path: Path) -> None:
    """What one turn did is at hand in the next that is like it."""
    save_files(GUIDE, tmp_path)
    said = run_code(blocks(GUIDE, "python")[2], tmp_path)
    assert "The office wifi is down: Restart the router." in said


def test_plan_of_the_guide_when_run_finds_the_provider(tmp_path: Path) -> None:
    """A module beside the plan is found when it runs, and its settings are checked first."""
    save_files(GUIDE, tmp_path)
    said = langgraft(tmp_path, "preview", "playbook.yaml")
    assert "playbook" in said
    plan = tmp_path / "playbook.yaml"
    plan.write_text(plan.read_text().replace("top_k", "topk"))
    with pytest.raises(AssertionError, match="topk"):
        langgraft(tmp_path, "run", "playbook.yaml", "--out", "runs", "--limit", "1")


@pytest.mark.parametrize(
    "code",
    [blocks(WORLD_GUIDE, "python")[0], (REPOSITORY / "examples/scienceworld_world.py").read_text()],
    ids=["guide", "example"],
)
def test_world_outside_the_package_when_counted_has_at_most_eighty_lines(code: str) -> None:
    """A world of one's own, and a published one, are as short as the guide says."""
    assert len([line for line in code.splitlines() if line.strip()]) <= 80


@pytest.mark.matrix  # a whole study
def test_plan_of_the_world_guide_when_run_is_a_study_with_controls_and_report(
    tmp_path: Path,
) -> None:
    """The world beside the plan is found when it runs, and not imported by a preview."""
    save_files(WORLD_GUIDE, tmp_path)
    said = langgraft(tmp_path, "preview", "levers.yaml")
    assert "running it imports levers:Levers, which was not looked at" in said
    said = langgraft(tmp_path, "run", "levers.yaml", "--out", "runs", "--limit", "2")
    assert "raw+random" in said
    assert "raw+placebo" in said
    assert "levers/gate" in (tmp_path / "runs" / "report" / "index.html").read_text()
    langgraft(tmp_path, "verify", "runs")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_example_when_run_ends_well(path: Path, tmp_path: Path) -> None:
    """Examples run as they are, where what they need is there."""
    if path.name == "play_alfworld.py" and not PRESENT:
        pytest.skip(HOW_TO_GET_IT)
    if path.name == "scienceworld_world.py" and not (find_spec("scienceworld") and which("java")):
        # It needs a package and a Java runtime that langgraft does not: then it is only read.
        compile(path.read_text(), path.name, "exec")
        return
    run_code(path.read_text(), tmp_path, path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_when_followed_lead_somewhere(page: Path) -> None:
    """Links to files of the repository are not broken."""
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_a_page_names_when_looked_for_are_there(page: Path) -> None:
    """Paths in backticks that begin with a folder of the repository exist."""
    folders = {path.name for path in REPOSITORY.iterdir() if path.is_dir()}
    for name in re.findall(r"`([\w./-]+/[\w./-]*)`", page.read_text()):
        if name.split("/")[0] in folders - {"runs"}:
            assert (REPOSITORY / name).exists(), name


def test_pages_when_they_name_plans_name_those_that_ship() -> None:
    """Plan names in the commands exist; what has a dot is a file of the reader's."""
    text = "".join(page.read_text() for page in PAGES)
    named = re.findall(r"^(?:\$ )?langgraft (?:run|preview) ([\w-]+)(?=\s)", text, re.MULTILINE)
    assert set(named) <= set(shipped_plans())
    assert len(named) >= 10


def test_schema_of_a_memory_item_when_published_is_the_one_in_force() -> None:
    """`docs/memory-item.schema.json` is what `item_schema()` returns."""
    published = json.loads((REPOSITORY / "docs" / "memory-item.schema.json").read_text())
    assert published == item_schema()
