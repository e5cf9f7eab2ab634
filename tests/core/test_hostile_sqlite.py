"""SQLite files that somebody made to harm whoever opens them are refused before anything in them runs."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hostile_sqlite import KINDS, bytes_of
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from memory_command import ran_here, refusal

from langgraft._core.errors import InputError, LanggraftError
from langgraft.benchmarks.harness.budget import CallBudget
from langgraft.benchmarks.harness.cache import Request, ResponseCache
from langgraft.environments.sandboxes.cached import ExecutionCache
from langgraft.environments.sandboxes.sandbox import ExecutionResult
from langgraft.memory import Banks, Episode, MemoryProvider, Outcome, open_memory
from langgraft.memory.embedders import SQLiteVectors
from langgraft.memory.embedders.cached import VectorKey
from langgraft.memory.stores import SQLiteFileStore
from langgraft.memory.stores.sqlite import _FILE

_KEY: VectorKey = ("embedder", "document", "text")


def _memory(path: Path) -> None:
    with open_memory(path) as memory:
        _use(memory)


def _banks(path: Path) -> None:
    with SQLiteFileStore(path) as store, Banks(store, "trajectory") as banks:
        _use(banks["ada"])


def _use(memory: MemoryProvider[Any]) -> None:
    memory.content()
    memory.file(Episode("e1", "door", "t1", "open the door", (), Outcome(success=True)))


def _responses(path: Path) -> None:
    with ResponseCache(path) as cache:
        cache.stats()
        cache.put("k", '[{"text": "a", "info": null}]', Request("r", "m", "p").packed())


def _vectors(path: Path) -> None:
    cache = SQLiteVectors(path)
    try:
        cache.get([_KEY])
        cache.put({_KEY: np.ones(3, np.float32)})
    finally:
        cache.close()


def _executions(path: Path) -> None:
    cache = ExecutionCache(path)
    try:
        cache.get("k")
        cache.keep("k", ExecutionResult(0, "", "", 0.0))
    finally:
        cache.close()


def _spent(path: Path) -> None:
    budget = CallBudget(path=path)
    try:
        budget.settle(0, 5)
    finally:
        budget.close()


Use = Callable[[Path], None]
USES: dict[str, Use] = {
    "open_memory": _memory,
    "Banks": _banks,
    "responses": _responses,
    "vectors": _vectors,
    "executions": _executions,
    "spent": _spent,
}
_NO_SUCH = {("no rowids", each) for each in USES if each not in ("open_memory", "Banks")} | {
    ("a strange collation", "spent"),
    ("a large blob for text", "vectors"),
    ("an index of another table", "vectors"),
    ("an index of another table", "spent"),
    ("an index of another table", "executions"),
}
"""What is wrong with no file of that kind."""


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one ordinary file of each kind."""
    folder = tmp_path_factory.mktemp("ordinary")
    for name, use in USES.items():
        use(folder / name)
        with closing(sqlite3.connect(folder / name)) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def hostile(ours: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    """Makes one of them hostile, and gives its path."""

    def make(use: str, kind: str) -> Path:
        path = tmp_path / "file.sqlite"
        shutil.copyfile(ours / use, path)
        KINDS[kind](path)
        return path

    return make


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("use", USES)
def test_hostile_file_when_it_is_opened_then_one_error_names_it_and_nothing_changes(
    hostile: Callable[[str, str], Path], use: str, kind: str
) -> None:
    """Each is refused in one line before anything in it runs, and stays as it was."""
    if (kind, use) in _NO_SUCH:
        return
    path = hostile(use, kind)
    before = bytes_of(path)
    with pytest.raises(InputError) as refused:
        USES[use](path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 1000
    assert bytes_of(path) == before


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_store_when_a_command_reads_it_then_is_refused_in_one_line(
    hostile: Callable[[str, str], Path], kind: str
) -> None:
    """`memory show` ends with exit code 2 and one line."""
    path = hostile("open_memory", kind)
    before = bytes_of(path)
    refusal("show", "--store", f"sqlite:{path}", "--provider", "trajectory")
    assert bytes_of(path) == before


@pytest.mark.parametrize("kind", [each for each in KINDS if (each, "responses") not in _NO_SUCH])
def test_hostile_cache_when_a_command_reads_it_then_is_refused_in_one_line(
    hostile: Callable[[str, str], Path], kind: str
) -> None:
    """`cache stats` ends with exit code 2 and one line."""
    done = ran_here("cache", "stats", hostile("responses", kind))
    assert done.returncode == 2
    assert done.stderr.startswith("langgraft: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "value", ["x'00ff'", "17", "CAST(x'ff80' AS TEXT)", "'[1]'", "'{}'", "'{'", "'{\"item\": 3}'"]
)
@pytest.mark.parametrize("padded", [False, True])
def test_record_when_its_value_is_none_of_a_bank_then_reading_it_is_one_error(
    tmp_path: Path, value: str, padded: bool
) -> None:
    """Values of another type or form are refused, also in a file too large to be checked whole."""
    path = tmp_path / "memory.sqlite"
    _memory(path)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"UPDATE records SET value = {value} WHERE key LIKE '_item/%'")
        if padded:
            padding = json.dumps({"text": "a" * 9_000_000})
            file.execute("INSERT INTO records VALUES ('\"x\"', 'x', ?, 1, 1, 1)", (padding,))
    with pytest.raises(InputError) as refused, open_memory(path) as memory:
        memory.content()
    assert "\n" not in str(refused.value)


def test_store_when_it_has_an_earlier_layout_then_opens_with_what_it_lacked(tmp_path: Path) -> None:
    """Files of versions before are used as they are, and get the tables that they lack."""
    path = tmp_path / "memory.sqlite"
    with closing(sqlite3.connect(path)) as file:
        file.executescript(_FILE.earlier[0])
        file.execute("INSERT INTO log VALUES ('name', 0, 0)")
        file.execute(f"PRAGMA application_id = {_FILE.application}")
        file.execute(f"PRAGMA user_version = {_FILE.version}")
        file.commit()
    for _ in range(2):
        with SQLiteFileStore(path) as store:
            store.put(("ada",), "a", {"text": "x"})
            store.delete(("ada",), "a")
            store.forget_deleted(("ada",))
            assert store.changes(("ada",), ["name", 0]).addresses is None


def test_chroma_when_its_database_has_a_trigger_then_is_refused(tmp_path: Path) -> None:
    """Chroma's tables only keep what is written to them; its own full-text index is known."""
    for _ in range(2):
        with open_memory(f"chroma:{tmp_path}") as memory:
            _use(memory)
    database = tmp_path / "chroma.sqlite3"
    with closing(sqlite3.connect(database)) as file, file:
        file.execute("CREATE TABLE copies (a)")
        file.execute(
            "CREATE TRIGGER t AFTER INSERT ON embeddings BEGIN INSERT INTO copies VALUES (1); END"
        )
    before = database.read_bytes()
    with pytest.raises(LanggraftError, match="trigger 't'"):
        open_memory(f"chroma:{tmp_path}")
    assert refusal("show", "--store", f"chroma:{tmp_path}", "--provider", "trajectory")
    assert database.read_bytes() == before


def test_checkpoints_when_a_trigger_copies_them_then_erasing_is_refused(tmp_path: Path) -> None:
    """A file of checkpoints is used only if its tables do nothing but keep them; others may be there."""
    path = tmp_path / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        saver.put(config, empty_checkpoint(), {}, {})
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE mine (a CHECK (a > 0))")
    command = (
        "memory",
        "erase",
        "--episode",
        "e1",
        "--mention",
        "secret",
        "--checkpoints",
        path,
        "--ledger",
        tmp_path / "ledger",
    )
    assert ran_here(*command).returncode == 0
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(
            "CREATE TRIGGER t AFTER DELETE ON writes BEGIN INSERT INTO mine VALUES (1); END"
        )
    done = ran_here(*command)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "trigger 't'" in done.stderr
