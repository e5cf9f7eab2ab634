"""What is built is what is in the repository."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

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
    for arguments in (["-c", code], ["-m", "langgraft", "preview", "demo", "--json"]):
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout
    found = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(tmp_path))


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
