"""An index kept in a directory ranks like one built anew, whatever happened to its process."""

import asyncio
import json
import logging
import os
import random
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import durable_worker
import pytest
from dict_store import DictStore
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore
from warm_python import started_script

from langgraft._core.errors import InputError, SettingsError, StorePathError
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid, Ranker, TermOverlap
from langgraft.memory.stores import RankedStore, ReadOnlyStore, index_directory

NAMESPACE = ("bank", "one")
TEXTS = st.lists(st.sampled_from(["red", "blue", "key", "1", "x"]), max_size=6).map(" ".join)
RANKERS: list[Ranker] = [
    BM25(),
    TermOverlap(ties="newest"),
    Dense("hashing:16"),
    MMR(Hybrid((BM25(), Dense("hashing:16")), pool=3)),
]
NAMESPACES = st.sampled_from([NAMESPACE, ("bank",), ("bank", "two")])
Step: TypeAlias = tuple[str, Any, Any, Any]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMESPACES, st.sampled_from("abcdefgh"), st.none() | TEXTS),
        st.tuples(st.just("search"), NAMESPACES, TEXTS, st.none()),
        st.tuples(st.sampled_from(["close", "crash"]), st.none(), st.none(), st.none()),
    ),
    max_size=40,
)


@pytest.fixture(autouse=True)
def _save_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_directory, "LEAST_UNSAVED", 2)


@pytest.fixture
def folders() -> Iterator[Callable[[], Path]]:
    """Name folders that do not exist yet."""
    with tempfile.TemporaryDirectory() as root:
        numbers = iter(range(10**6))
        yield lambda: Path(root) / str(next(numbers))


def _ranking(
    store: BaseStore, prefix: tuple[str, ...], query: str, where: dict[str, Any] | None = None
) -> list[Any]:
    found = store.search(prefix, query=query, limit=50, filter=where)
    return [(item.namespace, item.key, item.score) for item in found]


def _crashed(directory: Path, copy: Path) -> Path:
    """Return what a process that is gone at this moment leaves in its directory."""
    return Path(shutil.copytree(directory, copy))


@settings(max_examples=40)  # each waits for the disk some dozen times
@given(steps=STEPS, ranker=st.sampled_from(RANKERS))
def test_ranking_when_reopened_at_any_moment_then_is_that_of_a_fresh_build(
    steps: list[Step], ranker: Ranker
) -> None:
    """Writes, searches, closings and crashes in any order leave nothing behind but speed."""
    with tempfile.TemporaryDirectory() as root:
        store, places = InMemoryStore(), iter(range(100))
        directory = Path(root) / "first"
        ranked = RankedStore(store, ranker, directory=directory)
        for kind, namespace, what, text in steps:
            if kind == "write":
                ranked.batch([PutOp(namespace, what, text and {"text": text})])
            elif kind == "search" and what:
                where: dict[str, Any] | None = {"text": {"$ne": what}} if len(what) % 2 else None
                expected = _ranking(RankedStore(store, ranker), namespace, what, where)
                assert _ranking(ranked, namespace, what, where) == expected
            elif kind in ("close", "crash"):
                if kind == "close":
                    ranked.close()
                else:
                    directory = _crashed(directory, Path(root) / str(next(places)))
                ranked = RankedStore(store, ranker, directory=directory)
        for query in ("red", "blue key 1"):
            for prefix, red in product(((), ("bank",), NAMESPACE), (None, {"text": "red"})):
                expected = _ranking(RankedStore(store, ranker), prefix, query, red)
                assert _ranking(ranked, prefix, query, red) == expected


PLAIN: dict[str, Any] = {"field": "text", "heed_index": False}
"""Records as a bank has them: nothing is kept of what puts say."""


def _filled(store: BaseStore, directory: Path, **settings: Any) -> RankedStore:
    ranked = RankedStore(store, BM25(), **settings, directory=directory)
    for i in range(30):
        ranked.put(NAMESPACE, f"k{i}", {"text": f"red ball {i % 7} of {i}"})
    return ranked


def test_reopening_when_nothing_is_wrong_then_reads_only_what_it_returns(tmp_path: Path) -> None:
    """No record is listed; after a crash those written since the last save are read again."""
    store, others = DictStore(), {"text": {"$ne": "red ball 3 of 3"}}
    ranked = _filled(store, tmp_path / "a", **PLAIN)
    expected = _ranking(ranked, NAMESPACE, "ball 3")
    assert _ranking(ranked, NAMESPACE, "ball 3", others) == expected[1:]
    ranked.close()
    store.log.clear()
    with RankedStore(store, BM25(), **PLAIN, directory=tmp_path / "a") as again:
        assert _ranking(again, NAMESPACE, "ball 3") == expected
        again.put(NAMESPACE, "k3", {"text": "blue"})
        again.delete(NAMESPACE, "k10")
        assert {hit[1] for hit in expected[1:]} - {"k10"} == {
            hit[1] for hit in _ranking(again, NAMESPACE, "ball 3", others)
        }
        left = _crashed(tmp_path / "a", tmp_path / "b")
    with RankedStore(store, BM25(), **PLAIN, directory=left) as again:
        assert _ranking(again, NAMESPACE, "ball 3") != expected
        assert _ranking(again, NAMESPACE, "blue")[0][1] == "k3"
    asked = [op for batch in store.log for op in batch]
    assert not any(isinstance(op, SearchOp) for op in asked)


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_reopening_when_a_file_is_damaged_then_index_is_built_anew(
    folders: Callable[[], Path], damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No damage to any file changes a ranking or reaches the user; it is logged."""
    caplog.set_level(logging.INFO)
    store, directory = InMemoryStore(), folders()
    ranked = _filled(store, directory)
    expected = _ranking(ranked, NAMESPACE, "ball 3")
    ranked.close()
    with RankedStore(store, BM25(), directory=directory) as again:
        again.put(NAMESPACE, "k3", {"text": "red ball 3 of 3"})
        left = _crashed(directory, folders())
    files = [path.relative_to(left) for path in left.rglob("*") if path.is_file()]
    assert len(files) > 10
    for name in files:
        if name.name == "lock" or not (left / name).stat().st_size:
            continue
        broken = _crashed(left, folders())
        data = (broken / name).read_bytes()
        middle = len(data) // 2
        if damage == "gone":
            (broken / name).unlink()
        elif damage == "cut":
            (broken / name).write_bytes(data[:-1])
        else:
            flipped = bytes([data[middle] ^ 1])
            (broken / name).write_bytes(data[:middle] + flipped + data[middle + 1 :])
        caplog.clear()
        with RankedStore(store, BM25(), directory=broken) as again:
            assert _ranking(again, NAMESPACE, "ball 3") == expected
        assert "built anew" in caplog.text, name


@pytest.mark.parametrize("damaged", [False, True])
def test_reopening_when_checksums_are_those_of_an_older_version_then_holds_them_against_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, *, damaged: bool
) -> None:
    """A manifest that names no kind of checksum has CRC-32."""
    caplog.set_level(logging.INFO)
    store = InMemoryStore()
    ranked = _filled(store, tmp_path)
    expected = _ranking(ranked, NAMESPACE, "ball 3")
    ranked.close()
    for manifest in tmp_path.rglob("manifest"):
        body = json.loads(manifest.read_text().partition(" ")[2])
        index = manifest.parent / "index"
        del body["checksum"]
        body["files"] = {
            name: [(index / name).stat().st_size, zlib.crc32((index / name).read_bytes())]
            for name in body["files"]
        }
        text = json.dumps(body)
        manifest.write_text(f"{zlib.crc32(text.encode()):08x} {text}\n")
        if damaged:
            blob = next(index.rglob("texts.bin"))
            blob.write_bytes(blob.read_bytes()[::-1])
    with RankedStore(store, BM25(), directory=tmp_path) as again:
        assert _ranking(again, NAMESPACE, "ball 3") == expected
    assert ("built anew" in caplog.text) == damaged


@pytest.mark.parametrize(
    "changed",
    [{"ranker": BM25(k1=0.9)}, {"ranker": TermOverlap()}, {"order_field": "n"}, {"field": "t"}],
)
def test_reopening_when_settings_differ_then_index_is_built_anew(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    """An index of another ranker or another field is never mistaken for one's own."""
    store = InMemoryStore()
    _filled(store, tmp_path).close()
    ranker = changed.pop("ranker", BM25())
    fresh = RankedStore(store, ranker, **changed)
    with RankedStore(store, ranker, directory=tmp_path, **changed) as again:
        assert _ranking(again, NAMESPACE, "ball 3") == _ranking(fresh, NAMESPACE, "ball 3")


def test_reopening_when_an_older_save_was_left_behind_then_it_is_never_used(
    tmp_path: Path,
) -> None:
    """A crash between two saves leaves both; the older lacks what was written since."""
    store = InMemoryStore()
    ranked = _filled(store, tmp_path / "a")
    ranked.search(NAMESPACE, query="red")
    old = next(path for path in (tmp_path / "a").iterdir() if path.is_dir())
    kept = shutil.copytree(old, tmp_path / "kept")
    for i in range(30):
        ranked.put(NAMESPACE, f"k{i}", {"text": "blue"})
    ranked.search(NAMESPACE, query="red")
    ranked.close()
    new = next(path for path in (tmp_path / "a").iterdir() if path.is_dir())
    assert new.name != old.name
    shutil.copytree(kept, old)
    shutil.copytree(kept, old.with_suffix(".part"))
    (new / "manifest").write_text("torn")
    with RankedStore(store, BM25(), directory=tmp_path / "a") as again:
        assert _ranking(again, NAMESPACE, "red") == []
        assert len(_ranking(again, NAMESPACE, "blue")) == 30


def test_directory_when_open_already_then_a_second_store_is_refused(tmp_path: Path) -> None:
    """One owner at a time, in this process as in another; closing hands it on."""
    ranked = _filled(InMemoryStore(), tmp_path)
    with pytest.raises(StorePathError, match="directory of a store that is open"):
        RankedStore(InMemoryStore(), BM25(), directory=tmp_path)
    ranked.close()
    ranked.close()
    RankedStore(InMemoryStore(), BM25(), directory=tmp_path).close()
    (tmp_path / "file").touch()
    with pytest.raises(StorePathError, match="cannot be used as an index directory"):
        RankedStore(InMemoryStore(), BM25(), directory=tmp_path / "file")


def test_store_when_closed_then_refuses_writes_and_still_answers(tmp_path: Path) -> None:
    """What nobody would note must not be written; a store without a directory may go on."""
    store = InMemoryStore()
    ranked = _filled(store, tmp_path)
    ranked.close()
    with pytest.raises(InputError, match="was closed"):
        ranked.put(NAMESPACE, "new", {"text": "red"})
    assert store.get(NAMESPACE, "new") is None
    assert len(_ranking(ranked, NAMESPACE, "red")) == 30
    plain = RankedStore(store, BM25())
    plain.close()
    plain.put(NAMESPACE, "new", {"text": "red"})


def test_directory_when_closed_is_left_to_its_next_owner(tmp_path: Path) -> None:
    """What was saved is neither read nor deleted by a store that closed it, and no file is shut."""
    store = InMemoryStore()
    with _filled(store, tmp_path) as ranked:
        ranked.search(NAMESPACE, query="red")
    with RankedStore(store, BM25(), directory=tmp_path, max_indexes=1) as first:
        first.search(NAMESPACE, query="red")
    with RankedStore(store, BM25(), directory=tmp_path) as second:
        second.put(NAMESPACE, "new", {"text": "red new"})
        first.search(("bank",), query="red")  # drops the other index
        assert [key for _, key, _ in _ranking(first, NAMESPACE, "new")] == ["new"]
        saved = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        first.refresh()
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == saved


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("ranker", RANKERS)
def test_indexes_when_many_are_small_hold_no_files_open(ranker: Ranker, tmp_path: Path) -> None:
    """A process may have about a thousand files; a store may have more prefixes."""
    store, before = InMemoryStore(), _open_files()
    for _ in range(2):
        with RankedStore(store, ranker, directory=tmp_path) as ranked:
            for n in range(5):
                ranked.put(("user", str(n)), "k", {"text": "red"})
                assert _ranking(ranked, ("user", str(n)), "red")
            assert _open_files() <= before + 1  # the lock


def test_directory_when_the_index_cannot_be_saved_then_is_refused(tmp_path: Path) -> None:
    """A ranker of one's own needs `save` and `load`; without a directory it needs neither."""

    class Plain:
        def index(self) -> Any:
            return object()  # it is asked only whether it can be kept

        def describe(self) -> dict[str, Any]:
            return {"ranker": "plain"}

    with pytest.raises(SettingsError, match=r"'plain'.*cannot be kept"):
        RankedStore(InMemoryStore(), Plain(), directory=tmp_path)


def test_refresh_when_records_were_written_past_the_store_then_saved_indexes_go(
    tmp_path: Path,
) -> None:
    """What is refreshed does not come back with the next opening."""
    store = InMemoryStore()
    with _filled(store, tmp_path) as ranked:
        ranked.search(NAMESPACE, query="red")
        store.put(NAMESPACE, "past", {"text": "red past"})
        ranked.refresh()
    with RankedStore(store, BM25(), directory=tmp_path) as again:
        assert [key for _, key, _ in _ranking(again, NAMESPACE, "past")] == ["past"]


def test_frozen_store_when_its_index_was_saved_then_uses_it(tmp_path: Path) -> None:
    """A bank trained with a directory is evaluated with it."""
    store = DictStore()
    with _filled(store, tmp_path) as ranked:
        expected = _ranking(ranked, NAMESPACE, "ball 3")
    store.log.clear()
    with RankedStore(ReadOnlyStore(store), BM25(), directory=tmp_path) as again:
        assert _ranking(again, NAMESPACE, "ball 3") == expected
    assert not any(isinstance(op, SearchOp) for batch in store.log for op in batch)


@pytest.mark.parametrize("call", ["fsync", "write"])
def test_write_when_the_disk_fails_then_goes_on_without_the_saved_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A journal that cannot be written costs the index on disk, not the user's record."""
    store = InMemoryStore()
    ranked = _filled(store, tmp_path / "a")
    ranked.search(NAMESPACE, query="red")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    real = getattr(os, call)
    monkeypatch.setattr(index_directory.os, call, full)  # type: ignore[attr-defined]
    if call == "fsync":  # deleting the saved index has to reach the disk as well
        monkeypatch.setattr(index_directory, "sync", lambda path: None)
    ranked.put(NAMESPACE, "new", {"text": "red new"})
    monkeypatch.setattr(index_directory.os, call, real)  # type: ignore[attr-defined]
    left = _crashed(tmp_path / "a", tmp_path / "b")
    with RankedStore(store, BM25(), directory=left) as again:
        assert [key for _, key, _ in _ranking(again, NAMESPACE, "new")] == ["new"]


class _SlowStore(InMemoryStore):
    """A store whose writes wait."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        listed = list(ops)
        if any(isinstance(op, PutOp) for op in listed):
            self.begun.set()
            await self.go_on.wait()
        return super().batch(listed)


async def test_write_when_an_index_is_saved_in_the_middle_of_it_then_is_not_missed(
    tmp_path: Path,
) -> None:
    """A record that was on its way while the index was saved is read again after a crash."""
    store = _SlowStore()
    ranked = _filled(store, tmp_path / "a")
    write = asyncio.create_task(ranked.aput(NAMESPACE, "k1", {"text": "late"}))
    await store.begun.wait()
    assert _ranking(ranked, NAMESPACE, "late") == []
    assert any(path.is_dir() for path in (tmp_path / "a").iterdir()), "the index was saved"
    store.go_on.set()
    await write
    left = _crashed(tmp_path / "a", tmp_path / "b")
    with RankedStore(store, BM25(), directory=left) as again:
        assert [key for _, key, _ in _ranking(again, NAMESPACE, "late")] == ["k1"]


@pytest.mark.kill
def test_store_when_its_process_is_killed_then_reopens_with_all_it_acknowledged(
    tmp_path: Path,
) -> None:
    """Killed at ten arbitrary moments, the index is at once what building it anew gives."""
    draw = random.Random(7)
    worker = Path(durable_worker.__file__)
    acknowledged: dict[str, Any] = {}
    for seed in range(10):
        with started_script(worker, tmp_path, seed) as process:
            for _ in range(draw.randrange(30, 250)):
                key, value = json.loads(process.stdout.readline())
                acknowledged[key] = value
            process.kill()
            for line in process.stdout:
                if line.endswith("\n"):
                    key, value = json.loads(line)
                    acknowledged[key] = value
        store, ranked = durable_worker.opened(tmp_path)
        fresh = RankedStore(store, BM25())
        for word in durable_worker.WORDS:
            mine = _ranking(ranked, durable_worker.NAMESPACE, word)
            assert mine == _ranking(fresh, durable_worker.NAMESPACE, word)
        # The write that was on its way when the process ended may have reached the store, and stays.
        key, value = _last_write(tmp_path)
        acknowledged[key] = value
        for key, value in acknowledged.items():
            item = ranked.get(durable_worker.NAMESPACE, key)
            assert (item and item.value) == value
        ranked.close()
        store.close()


def _last_write(folder: Path) -> tuple[str, Any]:
    lines = (folder / "log").read_text().splitlines(keepends=True)
    _, key, value = json.loads([line for line in lines if line.endswith("\n")][-1])
    return key, value
