"""Items: what they accept, and how they travel as JSON."""

import json

import pytest
from hypothesis import given
from memory_cases import items, make_item
from pydantic import ValidationError

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.model import MemoryItem


@given(items())
def test_item_when_written_and_read_back_is_equal_and_the_same_bytes(item: MemoryItem) -> None:
    """Any item survives JSON unchanged."""
    written = canonical_json(item.to_json())
    again = MemoryItem.from_json(json.loads(written))
    assert again == item
    assert canonical_json(again.to_json()) == written


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"text": None}, "text: input should be a valid string (got None)"),
        ({"type": "Strategic"}, "'strategic'"),
        ({"success": "yes"}, "success: input should be a valid boolean (got 'yes')"),
        ({"success": 1}, "success"),
        ({"order_index": -1}, "order_index"),
        ({"order_index": True}, "order_index"),
        ({"order_index": "3"}, "order_index"),
        ({"id": ""}, "id"),
        ({"source_domain": ""}, "source_domain"),
        ({"metadata": {"a": [1]}}, "metadata"),
        ({"metadata": {"a": float("nan")}}, "metadata"),
        ({"metadata": {"a": "\ud800"}}, "metadata"),
        ({"text": "\ud800"}, "text"),
        ({"votes": 3}, "votes: extra inputs are not permitted (got 3)"),
        ({"\ud800\n": 3}, "'\\ud800\\n'"),
    ],
)
def test_item_when_a_field_is_wrong_is_refused_in_one_printable_line(
    fields: dict[str, object], said: str
) -> None:
    """The message names the field and what it got, and can be printed anywhere."""
    with pytest.raises(InputError) as caught:
        MemoryItem.from_json({**make_item().to_json(), **fields})  # type: ignore[dict-item]
    message = str(caught.value)
    assert said in message
    assert len(message.encode().splitlines()) == 1


def test_item_when_fields_are_missing_names_them_all() -> None:
    """One message lists everything that is missing."""
    with pytest.raises(InputError, match="type: field required; source_domain: field required"):
        MemoryItem.from_json({"id": "i", "text": "t", "episode_id": "", "success": True})


@pytest.mark.parametrize("value", [5, "text", None, ["id"]])
def test_item_when_it_is_no_object_is_refused(value: object) -> None:
    """Whatever JSON holds in its place, the error is ours."""
    with pytest.raises(InputError, match="dictionary"):
        MemoryItem.from_json(value)  # type: ignore[arg-type]


def test_item_when_changed_refuses() -> None:
    """Items are frozen."""
    with pytest.raises(ValidationError, match="frozen"):
        make_item().text = "other"  # type: ignore[misc]


def test_retrieval_key_when_there_is_none_is_the_text() -> None:
    """An item without a key is retrieved by its text; an empty key is a key."""
    assert make_item(text="t").retrieval_key == "t"
    assert make_item(text="t", key="").retrieval_key == ""
    assert make_item(text="t", key="k").retrieval_key == "k"


def test_json_when_optional_fields_hold_nothing_leaves_them_out() -> None:
    """The canonical form has one way to say nothing."""
    assert set(make_item().to_json()) == {
        "id",
        "text",
        "type",
        "source_domain",
        "episode_id",
        "success",
        "order_index",
    }
