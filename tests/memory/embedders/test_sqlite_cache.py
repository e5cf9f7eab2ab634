"""Vectors in a file."""

import pickle
import random
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from table_embeddings import TableEmbeddings

from langgraft._core.errors import InfrastructureError, InputError
from langgraft.memory.embedders import SQLiteVectors, make_embedder
from langgraft.memory.embedders.cached import VectorKey


def _by_length(text: str) -> list[float]:
    return [float(len(text)), 0.1]


def _key(text: str) -> VectorKey:
    return ("embedder", "document", text)


def test_vectors_when_reopened_then_nobody_is_asked_again(tmp_path: Path) -> None:
    """Another embedder with the same fingerprint, in another run, finds all bits unchanged."""
    first, second = (TableEmbeddings(_by_length) for _ in range(2))
    wrote = make_embedder(first, cache=SQLiteVectors(tmp_path / "v.db"))
    expected = wrote.embed_documents(["a", "bb"]), wrote.embed_query("a")
    reads = make_embedder(second, cache=SQLiteVectors(str(tmp_path / "v.db")))
    assert (reads.embed_documents(["a", "bb"]), reads.embed_query("a")) == expected
    assert second.calls == []
    other = make_embedder(second, fingerprint="another", cache=SQLiteVectors(tmp_path / "v.db"))
    other.embed_query("a")
    assert second.calls == [("embed_query", ["a"])]


async def test_vectors_when_asked_asynchronously_then_file_serves_too(tmp_path: Path) -> None:
    """The asynchronous path reads and writes the same file."""
    table = TableEmbeddings(_by_length)
    for _ in range(2):
        embedder = make_embedder(table, cache=SQLiteVectors(tmp_path / "v.db"))
        assert len(await embedder.aembed_documents(["a", "bb"])) == 2
    assert table.calls == [("aembed_documents", ["a", "bb"])]


def test_file_when_it_is_something_else_then_one_error_says_so(tmp_path: Path) -> None:
    """Text, a torn header and another program's database are refused and left alone."""
    (tmp_path / "text").write_text("hello " * 300)
    with sqlite3.connect(tmp_path / "foreign") as connection:
        connection.execute("CREATE TABLE vectors (a)")
    connection.close()
    SQLiteVectors(tmp_path / "torn").put({_key("a"): np.zeros(50_000, np.float32)})
    with (tmp_path / "torn").open("r+b") as file:
        file.truncate(5000)
    for name in ("text", "foreign", "torn"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(InputError, match=rf"{name}: .*give another path, or delete the file"):
            SQLiteVectors(tmp_path / name).get([_key("a")])
        assert (tmp_path / name).read_bytes() == before


def test_file_when_a_vector_is_torn_then_error_names_it(tmp_path: Path) -> None:
    """Bytes that are no float32 numbers are not taken for a vector."""
    SQLiteVectors(tmp_path / "v.db").put({_key("a"): np.ones(3, np.float32)})
    with sqlite3.connect(tmp_path / "v.db") as connection:
        connection.execute("UPDATE vectors SET vector = x'010203'")
    connection.close()
    with pytest.raises(InputError, match=r"'document', 'a'\) has 3 bytes"):
        SQLiteVectors(tmp_path / "v.db").get([_key("a")])


def test_file_when_it_cannot_be_there_then_is_refused(tmp_path: Path) -> None:
    """A file in the folder's place, or a folder in the file's, is an error of the input."""
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "v.db", tmp_path):
        with pytest.raises(InputError, match="cannot be used"):
            SQLiteVectors(path)


def test_file_when_it_is_closed_or_sent_elsewhere_then_opens_again(tmp_path: Path) -> None:
    """Closing loses nothing, and a pickled cache is the same file."""
    cache = SQLiteVectors(tmp_path / "v.db")
    cache.put({_key("a"): np.ones(3, np.float32)})
    cache.close()
    for again in (cache, pickle.loads(pickle.dumps(cache))):
        assert list(again.get([_key("a"), _key("b")])) == [_key("a")]


def test_writing_when_the_disk_is_full_then_none_is_kept(tmp_path: Path) -> None:
    """A batch goes in as a whole, or can be tried again."""
    cache = SQLiteVectors(tmp_path / "v.db")
    assert cache._file._connection is not None
    cache._file._connection.execute("PRAGMA max_page_count = 8")
    large = {_key("a"): np.ones(3, np.float32), _key("b"): np.ones(50_000, np.float32)}
    with pytest.raises(InfrastructureError, match=r"v\.db: .* cannot be used: .*full"):
        cache.put(large)
    assert cache.get([_key("a")]) == {}
    cache.close()
    cache.put(large)
    assert len(cache.get(list(large))) == 2


def test_file_when_threads_share_it_then_every_vector_is_right(tmp_path: Path) -> None:
    """Eight threads on two caches of one file write and read the same and different keys."""
    caches = [SQLiteVectors(tmp_path / "v.db") for _ in range(2)]

    def work(worker: int) -> None:
        draw = random.Random(worker)
        cache = caches[worker % 2]
        for _ in range(20):
            number = draw.randrange(30)
            vector = np.full(8, number, np.float32)
            cache.put({_key(str(number)): vector})
            assert np.array_equal(cache.get([_key(str(number))])[_key(str(number))], vector)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


_WRITER = """
import sys
import numpy as np
from langgraft.memory.embedders import SQLiteVectors
cache = SQLiteVectors(sys.argv[1])
for i in range(int(sys.argv[3])):
    cache.put({("e", "document", f"{sys.argv[2]}-{i}"): np.full(16, i, np.float32)})
    print(i, flush=True)
"""


def _writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", _WRITER, str(path), name, str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_file_when_processes_share_it_then_nothing_is_lost(tmp_path: Path) -> None:
    """Two processes create the file and write at once; all of both is there."""
    writers = [_writer(tmp_path / "v.db", name, 40) for name in "ab"]
    assert [writer.communicate()[0].count("\n") for writer in writers] == [40, 40]
    keys: list[VectorKey] = [("e", "document", f"{n}-{i}") for n in "ab" for i in range(40)]
    assert len(SQLiteVectors(tmp_path / "v.db").get(keys)) == 80


@pytest.mark.kill
def test_file_when_a_writer_is_killed_then_all_it_acknowledged_is_there(tmp_path: Path) -> None:
    """A kill -9 in the midst of writing loses nothing that `put` had returned from."""
    writer = _writer(tmp_path / "v.db", "a", 100_000)
    assert writer.stdout is not None
    acknowledged = [int(writer.stdout.readline()) for _ in range(25)]
    writer.send_signal(signal.SIGKILL)
    acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line]
    writer.wait()
    writer.stdout.close()
    keys: list[VectorKey] = [("e", "document", f"a-{i}") for i in acknowledged]
    found = SQLiteVectors(tmp_path / "v.db").get(keys)
    assert all(np.array_equal(found[key], np.full(16, i)) for i, key in enumerate(keys))
