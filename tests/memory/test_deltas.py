"""Deltas: what folding them means, and what they refuse."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_cases import items, make_item, names, texts

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    MemoryDelta,
    Remove,
    SetState,
    change_from_json,
    fold,
)

values: st.SearchStrategy[JSON] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)


@st.composite
def histories(draw: st.DrawFn) -> list[MemoryDelta]:
    """Draw deltas that fit: only what is there is removed or annotated."""
    present: set[str] = set()
    deltas: list[MemoryDelta] = []
    for _ in range(draw(st.integers(0, 6))):
        changes: list[Change] = []
        for _ in range(draw(st.integers(0, 3))):
            kinds = ["add", "state"] + (["remove", "annotate"] if present else [])
            kind = draw(st.sampled_from(kinds))
            if kind == "add":
                item = draw(items(names.filter(lambda name: name not in present)))
                present.add(item.id)
                changes.append(Add(item))
            elif kind == "state":
                changes.append(SetState(draw(texts), draw(values)))
            else:
                identity = draw(st.sampled_from(sorted(present)))
                if kind == "remove":
                    present.remove(identity)
                    changes.append(Remove(identity, draw(texts)))
                else:
                    notes = draw(st.dictionaries(texts, values, max_size=2))
                    changes.append(Annotate(identity, notes))
        deltas.append(MemoryDelta(tuple(changes)))
    return deltas


@given(histories(), st.integers(0, 6))
def test_fold_when_deltas_went_through_json_or_in_two_parts_gives_the_same_bytes(
    deltas: list[MemoryDelta], cut: int
) -> None:
    """A log can be written, read and folded from any point on."""
    whole = fold(deltas)
    logged = [json.loads(canonical_json(delta.to_json())) for delta in deltas]
    again = fold(MemoryDelta.from_json(delta) for delta in logged)
    in_parts = fold(deltas[cut:], fold(deltas[:cut]))
    assert whole.to_bytes() == again.to_bytes() == in_parts.to_bytes()
    assert whole.digest == again.digest == in_parts.digest


@given(histories())
def test_fold_when_given_a_start_leaves_it_as_it_was(deltas: list[MemoryDelta]) -> None:
    """Folding on works on a copy."""
    start = fold([MemoryDelta((Add(make_item("start")), Annotate("start", {"uses": 1})))])
    before = start.to_bytes()
    fold([*deltas, MemoryDelta((Annotate("start", {"uses": 2}), SetState("a", 1)))], start)
    assert start.to_bytes() == before


def test_fold_when_changes_follow_each_other_applies_them_in_order() -> None:
    """Notes are merged, `None` erases, and a removed item takes its notes along."""
    content = fold(
        [
            MemoryDelta((Add(make_item("a")), Add(make_item("b")), SetState("n", 1))),
            MemoryDelta((Annotate("a", {"votes": 2, "tier": "long"}), SetState("n", 2))),
            MemoryDelta((Annotate("a", {"votes": 3, "tier": None}), Annotate("b", {"uses": 1}))),
            MemoryDelta((Remove("b", "zero votes"), SetState("n", None), Add(make_item("b")))),
        ]
    )
    assert list(content.items) == ["a", "b"]
    assert content.notes == {"a": {"votes": 3}}
    assert content.state == {}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (Add(make_item("a")), "item 'a' is added to a bank that already holds it"),
        (Remove("x", ""), "item 'x' is removed in a bank that does not hold it"),
        (Annotate("x", {}), "item 'x' is annotated in a bank that does not hold it"),
    ],
)
def test_fold_when_a_change_does_not_fit_says_so(change: Change, said: str) -> None:
    """A log that contradicts itself is refused, not patched."""
    with pytest.raises(InputError, match=said):
        fold([MemoryDelta((Add(make_item("a")),)), MemoryDelta((change,))])


@pytest.mark.parametrize(
    "value",
    [
        None,
        "add",
        [],
        {},
        {"op": "vote", "id": "a"},
        {"op": "add"},
        {"op": "add", "item": "a"},
        {"op": "add", "item": {"id": "a"}},
        {"op": "remove", "id": 5, "reason": ""},
        {"op": "remove", "id": "a"},
        {"op": "remove", "id": "a", "reason": "", "more": 1},
        {"op": "annotate", "id": "a", "notes": "ab"},
        {"op": "annotate", "id": "a", "notes": [["votes", 1]]},
        {"op": "set_state", "key": "a"},
        {"op": "set_state", "key": None, "value": 1},
    ],
)
def test_change_when_it_does_not_read_as_one_is_refused(value: Any) -> None:
    """Nothing is guessed from a damaged log."""
    with pytest.raises(InputError):
        change_from_json(value)


@pytest.mark.parametrize("value", [None, {"op": "remove"}, "[]"])
def test_delta_when_it_is_no_list_is_refused(value: Any) -> None:
    """A delta is a list of changes."""
    with pytest.raises(InputError, match="list of changes"):
        MemoryDelta.from_json(value)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800", object()])
def test_change_when_it_cannot_be_logged_is_refused_when_made(value: Any) -> None:
    """What the log could not hold never reaches the store."""
    with pytest.raises(InputError, match="cannot be written as JSON"):
        Annotate("a", {"note": value})
    with pytest.raises(InputError, match="cannot be written as JSON"):
        SetState("a", value)


def test_change_when_its_maker_goes_on_to_fill_a_list_stays_as_it_was() -> None:
    """A change is what it was when it was made."""
    seen: list[JSON] = [1]
    changes: list[Change] = [SetState("seen", seen), Annotate("a", {"seen": seen})]
    before = [change.to_json() for change in changes]
    seen.append(2)
    assert [change.to_json() for change in changes] == before
    assert SetState("pair", (1, 2)) == SetState("pair", [1, 2])


def test_content_when_built_in_another_order_has_the_same_bytes() -> None:
    """Bytes tell what a bank holds, not how it came about."""
    first = BankContent(items={"a": make_item("a"), "b": make_item("b")}, state={"x": 1, "y": 2})
    second = BankContent(items={"b": make_item("b"), "a": make_item("a")}, state={"y": 2, "x": 1})
    assert first == second
    assert first.to_bytes() == second.to_bytes()
    assert first.digest == second.digest != BankContent().digest


def test_delta_when_empty_is_false_and_deltas_add_up() -> None:
    """Deltas behave as the lists they are."""
    one, two = MemoryDelta((SetState("a", 1),)), MemoryDelta((SetState("a", 2),))
    assert not MemoryDelta()
    assert list(one + two) == [*one, *two]


@pytest.mark.parametrize("wrong", [make_item(), "add", {"op": "add"}, None])
def test_delta_when_it_holds_what_is_no_change_is_refused(wrong: Any) -> None:
    """A bare item, which would be lost without a word, cannot pass for its addition."""
    with pytest.raises(InputError, match=r"not a memory change: .*give Add"):
        MemoryDelta((wrong,))
