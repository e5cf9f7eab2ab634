"""What all tests share."""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import docker_engine
import hypothesis
import postgres_server
import pytest
from chroma_server import chroma_server

if TYPE_CHECKING:
    from langgraft.environments.statebench import StateBench

# A deadline would make tests fail where a machine is busy, or first loads a library.
# Every run draws other examples: what 25 do not find today, those of the next runs do. In CI they are
# the same each time: what fails there is what was changed, and fails for everybody.
hypothesis.settings.register_profile(
    "unhurried", deadline=None, max_examples=25, derandomize="CI" in os.environ
)
hypothesis.settings.load_profile("unhurried")

REPOSITORY = Path(__file__).resolve().parent.parent
MEMORY = Path("/dev/shm")
ENOUGH = 4_000_000_000


def pytest_configure(config: pytest.Config) -> None:
    """Put temporary files into memory, and let files be shared out in the order of their names.

    Stores and journals wait for the disk at every write; files in memory outlive `kill -9` as well.
    Where `TMPDIR` is set, or memory is short, files go where they would.

    pytest-xdist would begin with the files of most tests: one of one slow test came last, and the
    other processes waited for it. By name the last ones are of `nodes`, which are quick.
    """
    if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ENOUGH:
        folder = tempfile.mkdtemp(prefix="tests-", dir=MEMORY)
        Path(folder).chmod(0o1777)  # servers that tests start are other users
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        config.add_cleanup(partial(shutil.rmtree, folder, ignore_errors=True))
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    # What is imported and collected stays: looking through it again and again takes a fifth as long.
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what runs in Docker or Chromium: whatever asks for the image, or the browser.

    What is killed again and again takes longest, and comes first, then whatever else `make test` leaves
    out: at the end others would wait for it.
    """
    for item in items:
        asked = getattr(item, "fixturenames", ())
        for fixture, mark in (("docker_image", "docker"), ("browser", "browser")):
            if fixture in asked:
                item.add_marker(mark)
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    marks = {mark.name for mark in item.iter_markers()}
    return 0 if "kill" in marks else 1 if marks & {"browser", "docker", "matrix"} else 2


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave what is there for good, all tests and what they import, out of garbage collections."""
    gc.freeze()
    gc.enable()
    # Tests make many objects and few cycles: look for these a twentieth as often.
    gc.set_threshold(14_000, 10, 10)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real data, or skip."""
    path = Path(os.environ.get("LANGGRAFT_DATA", REPOSITORY.parent / "shared" / "data"))
    if not path.is_dir():
        pytest.skip(f"no real data at {path}: set LANGGRAFT_DATA to the folder that holds it")
    return path


@pytest.fixture(scope="session")
def statebench(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> "StateBench":
    """Return STATE-Bench, unpacked for these tests alone, or skip."""
    from langgraft.environments.statebench import load  # noqa: PLC0415  (few tests need it)

    path = data_dir / "statebench"
    if not path.is_dir():
        pytest.skip("LANGGRAFT_DATA has no folder `statebench`")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        return load(path)


@pytest.fixture(scope="session")
def postgres_uri() -> Iterator[str]:
    """Return the URI of a PostgreSQL server, or skip."""
    if not postgres_server.available():
        pytest.skip(postgres_server.HOW_TO_GET_IT)
    with postgres_server.running_server() as uri:
        yield uri


@pytest.fixture
def postgres(postgres_uri: str) -> Iterator[postgres_server.Schemas]:
    """Return what opens stores in PostgreSQL that do not see each other."""
    schemas = postgres_server.Schemas(postgres_uri)
    yield schemas
    schemas.close()


@pytest.fixture(scope="session")
def chroma_url() -> Iterator[str]:
    """Address of a running Chroma server; use a collection of your own."""
    with chroma_server() as url:
        yield url


@pytest.fixture(scope="session")
def docker_image() -> str:
    """Return the tag of an image with the ML stack, or skip where there is no engine or image."""
    image, absent = docker_engine.image_or_reason()
    if image is None:
        if os.environ.get("LANGGRAFT_REQUIRE_DOCKER") == "1":
            pytest.fail(absent)
        pytest.skip(absent)
    return image


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures out of reports: drawing takes three quarters of the time of writing one.

    For tests of words and tables; figures are drawn where they are tested, and for logs that
    are hostile, incomplete, tiny, or of a study that was played.
    """
    monkeypatch.setattr("langgraft.benchmarks.continual.figures.draw", lambda _: {})
    monkeypatch.setattr("langgraft.benchmarks.mle.figures.draw", lambda *_: {})


@pytest.fixture(autouse=True)
def _quiet_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep tracing off and keys out, whatever the developer's shell has."""
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
