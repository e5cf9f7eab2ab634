"""Whatever order the wrapped store lists records in, every document can be found."""

import asyncio

import pytest
from paging_stores import PagingStore, fill, shuffling

from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore, ReadOnlyStore

NAMESPACE = ("bank",)


def _missing(ranked: RankedStore, keys: list[str]) -> list[str]:
    found = {item.key for item in ranked.search(NAMESPACE, query="common", limit=10**6)}
    return [key for key in keys if key not in found]


@pytest.mark.parametrize("frozen", [False, True], ids=["growing", "frozen"])
@pytest.mark.parametrize("cap", [None, 200], ids=["no cap", "cap 200"])
def test_search_when_the_store_shuffles_ties_finds_every_document(
    cap: int | None, *, frozen: bool
) -> None:
    """No document is lost at the edge of a page, and its score is that of the whole corpus."""
    store = PagingStore(shuffling(1), cap=cap)
    keys = list(fill(store, NAMESPACE, 2500))
    ranked = RankedStore(
        ReadOnlyStore(store) if frozen else store, BM25(), field="text", heed_index=False
    )
    (best,) = ranked.search(NAMESPACE, query="k01234", limit=1)
    plain = PagingStore()
    fill(plain, NAMESPACE, 2500)
    (expected,) = RankedStore(plain, BM25(), field="text").search(
        NAMESPACE, query="k01234", limit=1
    )
    assert _missing(ranked, keys) == []
    assert best.key == "k01234"
    assert best.score == pytest.approx(expected.score, abs=1e-5)


@pytest.mark.parametrize("cap", [None, 30], ids=["no cap", "cap 30"])
def test_build_when_a_shuffling_store_is_written_meanwhile_then_old_and_new_are_found(
    cap: int | None,
) -> None:
    """Passes that a write went through do not count; the next quiet ones do."""
    store = PagingStore(shuffling(2), cap=cap)
    keys = list(fill(store, NAMESPACE, 400))
    ranked = RankedStore(store, BM25(), field="text", heed_index=False)

    def write() -> None:
        turn = len(store.asked)
        if turn <= 20 and turn % 2:
            ranked.put(NAMESPACE, f"new{turn}", {"text": "common"})
            ranked.delete(NAMESPACE, keys.pop())

    store.after = write
    ranked.search(NAMESPACE, query="common", limit=1)
    new = {f"new{turn}" for turn in range(1, min(20, len(store.asked)) + 1, 2)}
    found = {item.key for item in ranked.search(NAMESPACE, query="common", limit=1000)}
    assert found == {*keys, *new}


@pytest.mark.parametrize("cap", [None, 30], ids=["no cap", "cap 30"])
def test_build_when_a_stable_store_is_written_after_every_page_then_all_are_found(
    cap: int | None,
) -> None:
    """A writer that never rests keeps no search from its answer."""
    store = PagingStore(cap=cap)
    keys = list(fill(store, NAMESPACE, 400))
    ranked = RankedStore(store, BM25(), field="text", heed_index=False)

    def write() -> None:
        turn = len(store.asked)
        ranked.delete(NAMESPACE, keys.pop(turn * 37 % len(keys)))

    store.after = write
    ranked.search(NAMESPACE, query="common", limit=1)
    assert {item.key for item in ranked.search(NAMESPACE, query="common", limit=1000)} == set(keys)


async def test_build_when_a_write_was_cancelled_then_capped_pages_are_still_read() -> None:
    """A write that may take effect any time does not keep a capped store from being searched."""
    store = PagingStore(cap=30)
    keys = list(fill(store, NAMESPACE, 400))
    ranked = RankedStore(store, BM25(), field="text", heed_index=False)
    hanging = asyncio.Event()

    async def never(_: object) -> None:
        await hanging.wait()

    store.abatch = never  # type: ignore[assignment,method-assign]
    write = asyncio.create_task(ranked.aput(NAMESPACE, keys[0], {"text": "common"}))
    await asyncio.sleep(0)
    write.cancel()
    with pytest.raises(asyncio.CancelledError):
        await write
    assert _missing(ranked, keys) == []
