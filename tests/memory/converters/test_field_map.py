"""Field maps and the rows they read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import BankFormatError, SettingsError
from langgraft.memory.converters import FieldMap, FieldSource, convert_jsonl

PLAIN: dict[str, Any] = {
    "id": ["name", "old.name"],
    "text": "body",
    "key": {"paths": ["situation"], "required": True},
    "type": {"constant": "other"},
    "source_domain": {"paths": ["origin.domain"], "constant": "unknown"},
    "episode_id": {"constant": ""},
    "success": "ok",
    "task_id": "task",
    "metadata": ["origin.author", "score"],
}
MAP = FieldMap.from_settings(PLAIN)
ROW: dict[str, Any] = {
    "name": "r1",
    "body": "do it",
    "situation": "when asked",
    "ok": True,
    "origin": {"domain": "code", "author": "ada"},
    "score": 0.5,
}


def rows(path: Path, *listed: Any) -> Path:
    """Write rows as others would."""
    path.write_text("".join(json.dumps(row) + "\n" for row in listed))
    return path


def refusal(path: Path) -> BankFormatError:
    """Return how a file is refused: in one printable line."""
    with pytest.raises(BankFormatError) as caught:
        convert_jsonl(path, MAP)
    assert str(caught.value).isprintable()
    return caught.value


def test_row_when_converted_has_each_field_from_where_the_map_says(tmp_path: Path) -> None:
    """Paths within objects, alternatives, constants, and the row's place."""
    other = {**ROW, "name": None, "old": {"name": "r2"}, "origin": {}, "task": "t", "more": [1]}
    first, second = convert_jsonl(rows(tmp_path / "file", ROW, other), MAP)
    assert first.to_json() == {
        "id": "r1",
        "text": "do it",
        "key": "when asked",
        "type": "other",
        "source_domain": "code",
        "episode_id": "",
        "success": True,
        "order_index": 0,
        "metadata": {"author": "ada", "score": 0.5},
    }
    assert (second.id, second.order_index, second.task_id) == ("r2", 1, "t")
    assert second.source_domain == "unknown"
    assert second.metadata == {"score": 0.5}


@given(text=st.text(st.characters(exclude_categories=["Cs"])), ascii_only=st.booleans())
def test_text_when_converted_is_the_same_whatever_it_holds(text: str, ascii_only: bool) -> None:
    """Verbatim: no stripping, no normalizing."""
    line = json.dumps({**ROW, "body": text, "situation": text}, ensure_ascii=ascii_only)
    item = MAP.item(json.loads(line), 0)
    assert (item.text, item.key) == (text, text)


WRONG_ROWS: list[tuple[dict[str, Any], str]] = [
    ({"body": 5}, "field 'body' must be a text to be text (got 5)"),
    ({"body": ["do it"]}, "field 'body' must be a text to be text"),
    ({"body": None}, "field 'body' is missing, which text comes from"),
    ({"name": None}, "field 'name' or 'old.name' is missing, which id comes from"),
    ({"name": ""}, "id: string should have at least 1 character (got ''); id comes from 'name'"),
    ({"name": 7}, "field 'name' must be a text to be id (got 7)"),
    ({"situation": None}, "field 'situation' is missing, which key comes from"),
    ({"situation": {}}, "field 'situation' must be a text to be key"),
    ({"ok": "yes"}, "field 'ok' must be true or false to be success (got 'yes')"),
    ({"ok": 1}, "field 'ok' must be true or false to be success (got 1)"),
    ({"task": 3}, "field 'task' must be a text to be task_id"),
    ({"score": [1]}, "field 'score' must be a text or true or false or a number to be"),
    ({"origin": {"author": {"first": "ada"}}}, "field 'origin.author' must be a text"),
    ({"body": "\ud800"}, "surrogates not allowed"),
]


@pytest.mark.parametrize(("change", "said"), WRONG_ROWS, ids=str)
def test_row_when_a_field_is_missing_or_of_a_wrong_kind_is_refused_by_both_names(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """The row, the field as the file calls it, and what it was to become."""
    error = refusal(rows(tmp_path / "file", ROW, {**ROW, "name": "r2", **change}))
    assert error.row == 2
    assert said in str(error)


GOOD = json.dumps(ROW).encode()
DAMAGED: dict[str, tuple[bytes, int, str]] = {
    "torn": (GOOD + b"\n" + GOOD[:-5], 2, "the last line is not ended: it may be torn"),
    "not JSON": (GOOD + b"\n{]\n" + GOOD, 2, "not JSON"),
    "a list": (b"[]\n", 1, "expected an object, got list"),
    "NaN": (GOOD.replace(b"0.5", b"NaN") + b"\n", 1, "NaN is not JSON"),
    "empty line": (GOOD + b"\n\n", 2, "the line is empty"),
    "byte-order mark": (b"\xef\xbb\xbf" + GOOD, 1, "byte-order mark"),
    "UTF-16": (GOOD.decode().encode("utf-16"), 1, "not UTF-8"),
    "a field twice": (b'{"body":"x",' + GOOD[1:], 1, "field 'body' stands twice"),
    "an id twice": (
        GOOD + b"\n" + GOOD,
        2,
        "id 'r1' ('name' or 'old.name') is already used in row 1",
    ),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_file_when_damaged_is_refused_at_the_row(tmp_path: Path, damage: str) -> None:
    """Nothing of a file is taken that is not whole."""
    content, row, said = DAMAGED[damage]
    (tmp_path / "file").write_bytes(content)
    error = refusal(tmp_path / "file")
    assert error.row == row
    assert said in str(error)


@given(st.integers(0, 2 * len(GOOD) + 1))
def test_file_when_cut_anywhere_gives_whole_rows_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, end: int
) -> None:
    """A complete last line counts, ended or not; half of one refuses the file."""
    path = tmp_path_factory.mktemp("cut") / "file"
    path.write_bytes((GOOD + b"\n" + GOOD.replace(b"r1", b"r2") + b"\n")[:end])
    whole = {0: 0, len(GOOD): 1, len(GOOD) + 1: 1, 2 * len(GOOD) + 1: 2}
    if end in whole:
        assert len(convert_jsonl(path, MAP)) == whole[end]
    else:
        assert refusal(path).row == 1 + (end > len(GOOD))


def test_lines_when_others_ended_them_are_read(tmp_path: Path) -> None:
    """CR LF between lines, and nothing after the last."""
    (tmp_path / "file").write_bytes(GOOD + b"\r\n" + GOOD.replace(b"r1", b"r2"))
    assert [item.id for item in convert_jsonl(tmp_path / "file", MAP)] == ["r1", "r2"]


WRONG_MAPS: list[tuple[dict[str, Any], str]] = [
    ({"id": None}, "id: "),
    ({"id": 5}, "id: "),
    ({"id": {}}, "id: a source has paths, a constant, or both"),
    ({"id": "a..b"}, "id: a path is names joined by periods"),
    ({"id": {"path": "x"}}, "id.path: "),
    ({"order_index": "n"}, "order_index: "),
    ({"metadata": ["a.x", "b.x"]}, "metadata: two paths end in the same name"),
    ({"metadata": {"x": {"constant": float("nan")}}}, "metadata.x: "),
]


@pytest.mark.parametrize(("change", "said"), WRONG_MAPS, ids=str)
def test_map_when_it_cannot_be_used_is_refused_with_the_field(
    change: dict[str, Any], said: str
) -> None:
    """Before any file is opened."""
    with pytest.raises(SettingsError, match=r"^field map: ") as caught:
        FieldMap.from_settings({**PLAIN, **change})
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_map_when_a_field_is_left_out_names_it() -> None:
    """What an item must have, a map must say."""
    with pytest.raises(SettingsError, match="text: field required; type: field required"):
        FieldMap.from_settings({"id": "x", "source_domain": "x", "episode_id": "x", "success": "x"})


def test_source_when_shown_names_its_paths() -> None:
    """As it stands in messages."""
    assert str(FieldSource(paths=("a", "b.c"))) == "'a' or 'b.c'"
    assert str(FieldSource(constant="x")) == "a constant"
