"""Memory that is opened before a process forks, as with gunicorn's preload, Celery and `multiprocessing`."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any

import forked_app
import pytest
from chroma_server import chroma_server, own_port
from langgraph.store.memory import InMemoryStore

from langgraft import Banks, open_memory
from langgraft._core import forks
from langgraft._core.errors import ForkError
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore
from langgraft.memory.stores.sqlite import SQLiteFileStore

APP = Path(forked_app.__file__)
TURNS = 200


def played(store: str, kind: str, turns: int) -> tuple[str, int]:
    """Play turns in a pool of forked workers and in the parent; return what failed, and the parent's."""
    command = [sys.executable, str(APP), store, kind, str(turns)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    failed, own = json.loads(done.stdout)
    assert "not filed" not in done.stderr
    return failed, own


def names(store: str, kind: str) -> Counter[str]:
    """Return how often each turn is in memory."""
    return Counter(
        word for text in forked_app.texts(store, kind) for word in re.findall(r"wifi (\w+)", text)
    )


def expected(*series: tuple[str, range]) -> Counter[str]:
    """Return that each turn is in memory once."""
    return Counter(["first", *(f"{letter}{n}" for letter, numbers in series for n in numbers)])


@pytest.mark.parametrize(
    ("kind", "turns"),
    [
        ("with_middleware", TURNS),
        ("in_background", 40),
        ("with_banks", 40),
        ("in_chain", 40),
        ("by_tools", 40),
    ],
)
def test_fork_pool_when_sqlite_memory_was_opened_before_then_each_turn_is_filed_once(
    kind: str, turns: int, tmp_path: Path
) -> None:
    """Workers and the parent file at the same time, and nothing is lost or filed twice."""
    store = f"sqlite:{tmp_path / 'memory.sqlite'}"
    failed, own = played(store, kind, turns)
    assert not failed
    assert names(store, kind) == expected(("w", range(turns)), ("p", range(1, own)))


@pytest.mark.parametrize("kind", sorted(forked_app.KINDS))
def test_fork_pool_when_embedded_chroma_was_opened_before_then_first_call_says_what_to_do(
    kind: str, tmp_path: Path
) -> None:
    """The first call in a worker raises one error that names the fork; the parent goes on filing."""
    store = f"chroma:{tmp_path / 'memory'}"
    failed, own = played(store, kind, TURNS)
    assert failed.startswith(
        f"ForkError: the Chroma database {tmp_path / 'memory'} was opened before"
    )
    assert "worker_process_init" in failed
    assert names(store, kind) == expected(("p", range(1, own)))


def test_fork_pool_when_a_chroma_server_was_connected_before_then_workers_connect_again(
    tmp_path: Path,
) -> None:
    """Each worker has a connection of its own, and files what it is asked."""
    with chroma_server(tmp_path / "served") as url:
        code = (
            "import sys, forked_app\n"
            "from multiprocessing import get_context\n"
            "forked_app.play = forked_app.with_middleware(sys.argv[1])\n"
            "forked_app.play('first')\n"
            "with get_context('fork').Pool(1) as pool: pool.map(forked_app.play_one, range(10))\n"
            "forked_app.play('p1')\n"
        )
        command = [sys.executable, "-c", code, url]
        subprocess.run(command, cwd=APP.parent, check=True)
        assert names(url, "with_middleware") == expected(("w", range(10)), ("p", range(1, 2)))


@contextmanager
def gunicorn(store: str, folder: Path) -> Iterator[Callable[[str], str]]:
    """Serve the application by two preloaded workers; give what asks it for a turn."""
    with own_port() as port:
        options = ["--preload", "--workers=2", f"--bind=127.0.0.1:{port}", "--reuse-port"]
        process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", *options, "--no-control-socket", "forked_app:app"],
            env={**os.environ, "FORKED_APP_STORE": store, "HOME": str(folder)},
            cwd=APP.parent,
            stderr=subprocess.DEVNULL,
        )

        def ask(name: str) -> str:
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}") as answer:
                        return str(answer.read().decode())
                except OSError:  # it does not listen yet
                    assert process.poll() is None
                    time.sleep(0.05)

        try:
            yield ask
        finally:
            process.terminate()
            process.wait()


def test_gunicorn_when_preloaded_with_sqlite_then_both_workers_file_each_turn_once(
    tmp_path: Path,
) -> None:
    """A memory file opened in the master serves two workers, 200 turns, none lost and none twice."""
    store = f"sqlite:{tmp_path / 'memory.sqlite'}"
    with gunicorn(store, tmp_path) as ask, ThreadPoolExecutor(4) as clients:
        workers = set(clients.map(ask, [f"w{number}" for number in range(TURNS)]))
    assert all(worker.isdecimal() for worker in workers), workers
    assert names(store, "with_middleware") == expected(("w", range(TURNS)))


def test_gunicorn_when_preloaded_with_embedded_chroma_then_every_turn_raises_and_workers_end(
    tmp_path: Path,
) -> None:
    """No request hangs, and neither does the end of a worker."""
    with (
        gunicorn(f"chroma:{tmp_path / 'memory'}", tmp_path) as ask,
        ThreadPoolExecutor(4) as clients,
    ):
        said = set(clients.map(ask, [f"w{number}" for number in range(TURNS)]))
    assert all(each.startswith("ForkError: the Chroma database") for each in said)


def forked(work: Callable[[], Any]) -> str:
    """Do something in a forked child, and return what it returns or raises as a text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = "nothing"
        with suppress(BaseException):
            try:
                said = str(work())
            except BaseException as error:  # noqa: BLE001
                said = f"{type(error).__name__}: {error}"
            os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_lock_when_another_thread_held_it_at_the_fork_then_it_is_free_in_the_child() -> None:
    """A child has no such thread, so it would wait for ever."""
    lock = forks.renewed(Lock())
    with ThreadPoolExecutor(1) as other:
        other.submit(lock.acquire).result()
        assert forked(lambda: lock.acquire(timeout=0)) == "True"
        assert lock.locked()


def test_stores_when_used_asynchronously_before_the_fork_then_their_threads_are_renewed(
    tmp_path: Path,
) -> None:
    """A pool whose threads stayed in the parent would never answer."""
    with SQLiteFileStore(tmp_path / "memory.sqlite") as store, Banks(store, max_open=1) as banks:

        async def use(name: str) -> str:
            await store.aput(("a",), name, {"text": name})
            for user in ("ada", "bob"):  # the first is closed by a thread
                await banks[user].acontent()
            banks._closing.submit(str).result()
            return ",".join(sorted(item.key for item in await store.asearch(("a",))))

        assert asyncio.run(use("k")) == "k"
        assert forked(lambda: asyncio.run(use("l"))) == "k,l"


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_index_when_a_thread_was_changing_it_at_the_fork_then_the_child_builds_it_again() -> None:
    """Half of a change would give wrong results."""
    store = RankedStore(InMemoryStore(), BM25())
    store.put(("a",), "k", {"text": "red door"})
    assert store.search(("a",), query="door")
    corpora = store.corpora
    assert forked(lambda: corpora.has(("a",))) == "True"
    with ThreadPoolExecutor(1) as other:
        other.submit(corpora._lock.acquire).result()
        assert forked(lambda: corpora.has(("a",))) == "False"
        assert forked(lambda: [item.key for item in store.search(("a",), query="door")]) == "['k']"
        corpora._lock.release()


def test_index_directory_when_inherited_then_a_write_is_refused_and_the_parent_keeps_it(
    tmp_path: Path,
) -> None:
    """The directory has one owner: a second one would make its saved indexes wrong."""
    with RankedStore(InMemoryStore(), BM25(), directory=tmp_path / "indexes") as store:
        store.put(("a",), "k", {"text": "red door"})
        said = forked(lambda: store.put(("a",), "l", {"text": "blue door"}))
        assert said.startswith(f"ForkError: the index directory {tmp_path / 'indexes'}")
        store.put(("a",), "m", {"text": "green door"})
        assert len(store.search(("a",), query="door")) == 2


def locks_of(path: Path) -> set[int]:
    """Return the processes that have locks on a file, as Linux tells them."""
    end = f":{path.stat().st_ino}"
    lines = (line.split() for line in Path("/proc/locks").read_text("ascii").splitlines())
    return {int(words[4]) for words in lines if words[5].endswith(end)}


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="needs Linux")
def test_sqlite_file_when_used_by_parent_and_child_then_each_has_locks_of_its_own(
    tmp_path: Path,
) -> None:
    """SQLite takes no lock in a child that inherits a connection; then others may delete its log."""
    path = tmp_path / "memory.sqlite"
    with SQLiteFileStore(path) as store:
        store.put(("a",), "k", {"text": "x"})
        assert locks_of(path) == {os.getpid()}

        def child() -> bool:
            store.put(("a",), "k2", {"text": "y"})
            return os.getpid() in locks_of(path)

        assert forked(child) == "True"
        assert len(store.search(("a",))) == 2


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_sqlite_file_when_a_thread_writes_for_longer_than_a_fork_waits_then_the_child_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child neither hangs nor uses locks that it has not; the parent's transaction is kept."""
    monkeypatch.setattr("langgraft._core.sqlite_file._PATIENCE_SECONDS", 0.01)
    with SQLiteFileStore(tmp_path / "memory.sqlite") as store:
        begun, ended = threading.Event(), threading.Event()

        def write() -> None:
            with store._file.transaction(write=True):
                begun.set()
                ended.wait()

        thread = threading.Thread(target=write)
        thread.start()
        begun.wait()
        said = forked(lambda: store.get(("a",), "k"))
        ended.set()
        thread.join()
        assert said.startswith("ForkError")
        assert "fork while no thread uses it" in said
        store.put(("a",), "k", {"text": "x"})
        assert store.get(("a",), "k")


def test_chroma_folder_when_the_parent_had_it_open_then_the_child_may_not_open_it(
    tmp_path: Path,
) -> None:
    """Chroma keeps a closed folder's locks, and a child that wrote to it would hang."""
    code = (
        "import sys\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_forks import forked\n"
        "from langgraft import open_memory\n"
        "with open_memory(sys.argv[1]): pass\n"
        "print(forked(lambda: open_memory(sys.argv[1])))\n"
    )
    command = [
        sys.executable,
        "-c",
        code,
        f"chroma:{tmp_path / 'memory'}",
        str(Path(__file__).parent),
    ]
    done = subprocess.run(command, cwd=APP.parent, capture_output=True, text=True, check=True)
    assert "was opened before this process was forked" in done.stdout


@pytest.mark.parametrize("kind", ["chroma", "sqlite"])
def test_exit_when_memory_was_not_closed_then_nothing_is_printed_and_all_is_kept(
    kind: str, tmp_path: Path
) -> None:
    """Memory is closed before Python shuts down, while files can still be written."""
    store = f"{kind}:{tmp_path / 'memory'}"
    code = (
        "import sys, forked_app\n"
        "turn = forked_app.with_middleware(sys.argv[1])\n"
        "for number in range(120): turn(f'w{number}')\n"
    )
    command = [sys.executable, "-c", code, store]
    done = subprocess.run(command, cwd=APP.parent, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    with open_memory(store) as memory:
        assert len(memory.content().items) == 120
    saved = tmp_path / ("memory.indexes" if kind == "sqlite" else "memory/langgraft-indexes")
    assert any(saved.iterdir())


def test_fork_error_when_raised_then_it_is_a_settings_error_that_says_what_to_do() -> None:
    """Whoever catches what is set up wrongly catches it too."""
    error = forks.fork_error("the file", "do that")
    assert isinstance(error, ForkError)
    assert str(error).startswith("the file was opened before this process was forked")
    assert str(error).endswith("or do that")
