"""What is built is what is in the repository."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import langgraft

pytestmark = pytest.mark.matrix  # wheels

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("memory", "environments", "nodes", "graphs", "benchmarks")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a wheel and an sdist of this checkout."""
    out = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(REPOSITORY)],
        check=True,
        capture_output=True,
    )
    return out


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    """Return a `site-packages` of the wheel and what it requires without an extra, by links."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    (own,) = folder.glob("*.dist-info")
    for each in required(Distribution.at(own)).values():
        for top in {file.parts[0] for file in each.files or () if file.parts[0] != ".."}:
            link, place = folder / top, Path(str(each.locate_file(top)))
            if place.exists() and not link.exists():
                link.symlink_to(place)
    return folder


def required(root: Distribution) -> dict[str, Distribution]:
    """Return the installed distributions that one requires, directly or not, by name."""
    found: dict[str, Distribution] = {}
    waiting = [(root, frozenset({""}))]
    while waiting:
        one, extras = waiting.pop()
        for line in one.requires or ():
            wanted = Requirement(line)
            if wanted.marker and not any(wanted.marker.evaluate({"extra": e}) for e in extras):
                continue
            key = f"{wanted.name}{sorted(wanted.extras)}"
            if key not in found:
                found[key] = distribution(wanted.name)
                waiting.append((found[key], frozenset({"", *wanted.extras})))
    return found


def wheel_names(built: Path) -> set[str]:
    """List the package's files in the wheel."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        return {name for name in wheel.namelist() if ".dist-info/" not in name}


def tracked(folder: str) -> set[str]:
    """List the files git would keep in a folder of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_wheel_when_built_holds_the_rooms_and_nothing_else(built: Path) -> None:
    """Every file of a room is in the wheel, under the one name `langgraft`."""
    expected = {f"langgraft/{name}" for room in ROOMS for name in tracked(room)}
    face = {name.removeprefix("src/") for name in tracked("src/langgraft")}
    expected |= {name for name in face if name.removeprefix("langgraft/") not in ROOMS}
    assert wheel_names(built) == expected


def test_wheel_when_unpacked_elsewhere_works(built: Path, tmp_path: Path) -> None:
    """The wheel alone is importable, with prompts, plans and the command line."""
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path)
    code = "import langgraft; print(langgraft.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    commands = (["-c", code], ["-m", "langgraft", "preview", "demo", "--json"])
    found, previewed = (
        subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for arguments in commands
    )
    assert found.startswith(str(tmp_path))
    assert previewed


def test_wheel_when_its_requirements_alone_are_there_gives_an_agent_memory(
    core: Path, tmp_path: Path
) -> None:
    """The core needs no extra: `make bare` says so with real installations, on each Python."""
    environment = {**os.environ, "PYTHONPATH": str(core), "PYTHONNOUSERSITE": "1"}
    program = REPOSITORY / "tests" / "release" / "bare_use.py"
    done = subprocess.run(
        [sys.executable, "-S", str(program)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"langgraft {langgraft.__version__} on Python")


def test_wheel_when_built_elsewhere_and_later_is_the_same_bytes(
    built: Path, tmp_path: Path
) -> None:
    """Who builds a tag again can compare: neither place, dates nor rights of the files matter.

    Nor whether the wheel is made of the sdist, as `build` does, or beside it.
    """
    copy = tmp_path / "elsewhere"
    for name in [*tracked("."), ".gitignore"]:
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, target, follow_symlinks=False)
        if not target.is_symlink():
            os.utime(target, (1e9, 1e9))
            target.chmod(0o600 | (REPOSITORY / name).stat().st_mode & 0o100)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--directory", "out"],
        cwd=copy,
        check=True,
        capture_output=True,
    )
    for ending in ("*.whl", "*.tar.gz"):
        one, other = next(built.glob(ending)), next((copy / "out").glob(ending))
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes()


def test_version_when_a_release_is_named_is_the_same_everywhere(built: Path) -> None:
    """Package, wheel, citation and the newest heading of the changelog name one version."""
    version = langgraft.__version__
    assert next(built.glob("*.whl")).name.split("-")[1] == version
    cited = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    headings = re.findall(
        r"^## \[(\d\S*)\] - (\d{4}-\d\d-\d\d)$",
        (REPOSITORY / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )
    assert headings[0] == (cited["version"], cited["date-released"]) == (version, headings[0][1])


def test_workflows_when_read_call_what_the_makefile_and_the_checkout_have() -> None:
    """A step that runs a target or a program of ours names one that is there."""
    targets = set(
        re.findall(r"^([a-z-]+):.*##", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    )
    called = set()
    for path in (REPOSITORY / ".github" / "workflows").glob("*.yml"):
        jobs = yaml.safe_load(path.read_text())["jobs"]
        steps = [step for job in jobs.values() for step in job["steps"]]
        assert all("permissions" in job for job in [yaml.safe_load(path.read_text())])
        for step in steps:
            called |= set(re.findall(r"\bmake ([a-z-]+)", step.get("run", "")))
    assert {"bare", "compat", "audit", "release-check"} <= called <= targets
    publish = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "publish.yml").read_text())
    upload = publish["jobs"]["publish"]
    assert upload["permissions"] == {"id-token": "write"}  # trusted publishing: no token is kept
    assert "secrets." not in (REPOSITORY / ".github" / "workflows" / "publish.yml").read_text()


def test_sdist_when_built_holds_sources_tests_and_docs(built: Path) -> None:
    """The source distribution can be tested by who repackages it."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    for name in (
        "pyproject.toml",
        "LICENSE",
        "README.md",
        "memory/provider.py",
        "tests/conftest.py",
    ):
        assert name in names


def test_checkout_when_looked_at_links_every_room() -> None:
    """Editable installs find the rooms through committed links."""
    for room in ROOMS:
        link = REPOSITORY / "src" / "langgraft" / room
        assert link.is_symlink()
        assert link.resolve() == REPOSITORY / room
