"""Files of langmem, mem0, Letta, ReasoningBank, ReMe and AGENTS.md: read, written, and what is lost."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking

from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory.bank_format import write_items
from langgraft.memory.converters import FORMS, detect_form, read_foreign, write_foreign
from langgraft.memory.converters.foreign import Loss
from langgraft.memory.model import MemoryItem
from langgraft.memory.providers import SimpleRAG, SimpleRAGSettings

HERE: Final = Path(__file__).parent / "files"
DOCS: Final = Path(__file__).parents[3] / "docs" / "coming-from-elsewhere.md"
FILES: Final = {
    "langmem": "langmem.json",
    "mem0": "mem0.json",
    "letta": "letta.af",
    "reasoning_bank": "reasoning_bank.jsonl",
    "agents_md": "AGENTS.md",
    "reme": "reme.jsonl",
}
LOST: Final[dict[str, dict[str, int]]] = {
    "langmem": {},
    "mem0": {"next": 1},
    "letta": {
        "agents[].agent_type": 1,
        "agents[].block_ids": 2,
        "agents[].id": 1,
        "agents[].in_context_message_ids": 1,
        "agents[].messages of role system": 1,
        "agents[].name": 1,
        "agents[].system": 1,
        "agents[].tool_ids": 1,
        "metadata": 1,
        "passage.embedding": 1,
        "tools": 1,
    },
    "reasoning_bank": {},
    "agents_md": {"comments": 1, "front matter": 1},
    "reme": {"metadata.freq": 1, "metadata.tags": 1},
}
OPEN: Final = ("langmem", "mem0", "letta", "reasoning_bank")
"""Forms in which anybody may write fields of their own."""


def fields_of(item: MemoryItem) -> dict[str, Any]:
    """Return all that an item holds, field by field."""
    values: dict[str, Any] = item.to_json()
    values |= {f"metadata.{name}": value for name, value in values.pop("metadata", {}).items()}
    return {name: value for name, value in values.items() if value is not None}


def differing(old: MemoryItem, new: MemoryItem) -> set[str]:
    """Name the fields in which two items are not the same."""
    one, other = fields_of(old), fields_of(new)
    return {
        name
        for name in {*one, *other}
        if (name in one) != (name in other) or json.dumps(one[name]) != json.dumps(other[name])
    }


def check_report(
    items: Sequence[MemoryItem], again: Sequence[MemoryItem], losses: Sequence[Loss]
) -> None:
    """Hold a report to what came back: it names every field that differs, and how often."""
    missing = sum(loss.count for loss in losses if loss.field == "the whole item")
    assert len(again) == len(items) - missing
    if missing:
        return
    counted: dict[str, int] = {}
    by_id = {new.id: new for new in again}  # who loses its place in the order comes elsewhere
    for old, beside in zip(items, again, strict=True):
        for name in differing(old, by_id.get(old.id, beside)):
            counted[name] = counted.get(name, 0) + 1
    told: dict[str, int] = {}
    for loss in losses:
        told[loss.field] = told.get(loss.field, 0) + loss.count
    assert told == counted


@pytest.mark.parametrize("form", FORMS)
def test_file_when_read_gives_its_texts_and_names_what_is_not_kept(form: str) -> None:
    """Each memory of the file is an item; all else is counted where it stood."""
    read = read_foreign(HERE / FILES[form], form)
    assert {loss.field: loss.count for loss in read.losses} == LOST[form]
    texts = [item.text for item in read.items]
    expected = {
        "langmem": "Bob wants answers in one sentence.",
        "mem0": "ada works at the harbor office",
        "letta": "The crane at berth two was replaced in January.",
        "reasoning_bank": "# Sort by price\nOpen the sorting menu before reading prices.",
        "agents_md": "Never edit `dist/`:\n- it is written by the release\n- changes are lost",
        "reme": "Open every page before you answer.",
    }
    assert expected[form] in texts
    assert [item.order_index for item in read.items] == list(range(len(texts)))


@pytest.mark.parametrize("form", FORMS)
def test_file_when_its_form_is_not_told_is_recognized(form: str) -> None:
    """By what only that form has."""
    assert detect_form(HERE / FILES[form]) == form


@pytest.mark.parametrize("target", FORMS)
@pytest.mark.parametrize("source", FORMS)
def test_items_when_taken_to_another_form_and_back_differ_where_the_report_says(
    source: str, target: str, tmp_path: Path
) -> None:
    """A field is the same, or is named; within one form nothing is lost at all."""
    items = read_foreign(HERE / FILES[source], source).items
    losses = write_foreign(tmp_path / "file", items, target)
    again = read_foreign(tmp_path / "file", target).items
    check_report(items, again, losses)
    if source == target:
        assert losses == ()
    if target in OPEN:
        assert losses == ()


def test_relations_when_written_by_mem0s_form_are_relations_again(tmp_path: Path) -> None:
    """The graph of an export is neither lost nor turned into memories."""
    items = read_foreign(HERE / FILES["mem0"], "mem0").items
    write_foreign(tmp_path / "file", items, "mem0")
    written = json.loads((tmp_path / "file").read_bytes())
    original = json.loads((HERE / FILES["mem0"]).read_bytes())
    assert written["relations"] == original["relations"]
    for row, was in zip(written["results"], original["results"], strict=True):
        assert row == {name: value for name, value in was.items() if value is not None}


def test_agent_file_when_written_is_what_letta_reads() -> None:
    """Blocks are named by the agent that holds them, and all lists of an agent file are there."""
    data, _ = FORMS["letta"].write(read_foreign(HERE / FILES["mem0"], "mem0").items)
    document = json.loads(data)
    lists = {"agents", "groups", "blocks", "files", "sources", "tools", "mcp_servers"}
    assert lists <= set(document)
    assert document["agents"][0]["block_ids"] == [block["id"] for block in document["blocks"]]
    assert [block["id"] for block in document["blocks"]] == ["block-0", "block-1", "block-2"]
    assert all(block["label"] and block["value"] for block in document["blocks"])


# Items of any kind --------------------------------------------------------------------------

TEXTS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
USED: Final = (
    *("content", "hash", "metadata", "part", "kind", "metadata.hash", "title", "description"),
    *("query", "status", "memory_items", "langgraft_type", "langgraft_metadata", "tags", "text"),
    *("value", "key", "id", "domain", "namespace", "source", "a:json", "a", "created_at", "role"),
    *("metadata.part", "embedding", "content:json", "relationship", "target", "label"),
)
"""Names that forms use themselves."""
NAMES: Final = TEXTS | st.sampled_from(USED)
SCALARS: Final = st.one_of(
    TEXTS,
    st.integers(-9, 9),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["relation", "passage", "message", "task", "[]", '{"a":1}', '[1, "x"]']),
)


@st.composite
def banks(draw: st.DrawFn) -> list[MemoryItem]:
    """Draw the items of a bank, with names and values that forms use themselves."""
    order = 0
    items: list[MemoryItem] = []
    for number in range(draw(st.integers(0, 3))):
        order += draw(st.integers(0, 2))
        items.append(
            MemoryItem(
                id=draw(st.sampled_from([f"i{number}", f"block-{number}"])),
                text=draw(TEXTS | st.sampled_from(["# T\nD\nx", "- a\n\n  b", "```\n# x\n```"])),
                type=draw(st.sampled_from(["other", "strategic"])),
                source_domain=draw(
                    st.sampled_from(["mem0", "a/b", "a//b", "a.b", "letta", "x\ny"])
                ),
                episode_id=draw(st.sampled_from(["", "e1"])),
                success=draw(st.sampled_from([None, True, False])),
                order_index=order,
                task_id=draw(st.none() | TEXTS),
                key=draw(st.none() | TEXTS),
                metadata=draw(st.dictionaries(NAMES, SCALARS, max_size=3)),
            )
        )
        order += 1
    return items


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40, deadline=None)
@given(items=banks())
def test_any_items_when_written_and_read_differ_where_the_report_says(
    form: str, tmp_path_factory: pytest.TempPathFactory, items: list[MemoryItem]
) -> None:
    """And a form that lets anybody write holds every field of an item that is not metadata."""
    path = tmp_path_factory.getbasetemp() / f"{form}.file"
    losses = write_foreign(path, items, form)
    again = read_foreign(path, form).items
    check_report(items, again, losses)
    if form in OPEN and not any(item.metadata.get("part") == "message" for item in items):
        assert all(loss.field.startswith("metadata.") for loss in losses)


@pytest.mark.parametrize(("text", "role"), [("", "user"), ("x", "tool"), ("x", 1)])
def test_message_when_letta_would_not_remember_it_is_kept_as_a_block(
    text: str, role: str | int, tmp_path: Path
) -> None:
    """A message without a text, or of neither user nor assistant, loses only that it was one."""
    item = MemoryItem(
        id="i0",
        text=text,
        type="other",
        source_domain="letta",
        episode_id="",
        success=None,
        order_index=0,
        metadata={"part": "message", "role": role},
    )
    losses = write_foreign(tmp_path / "a.af", [item], "letta")
    assert [loss.field for loss in losses] == ["metadata.part"]
    (again,) = read_foreign(tmp_path / "a.af", "letta").items
    assert (again.text, again.metadata) == (text, {"role": role})


# Recall -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_bank_when_taken_elsewhere_and_back_recalls_the_same(form: str, tmp_path: Path) -> None:
    """The ten best by BM25 are the same, in the same order, wherever texts and keys are kept."""
    words = ["berth", "crane", "harbor", "invoice", "kettle", "listing"]
    words += ["night", "page", "price", "total", "train", "window"]
    items = [
        MemoryItem(
            id=f"i{number}",
            text=" ".join(words[(number * step) % 12] for step in range(1, 3 + number % 5)),
            type="other",
            source_domain="office",
            episode_id="e",
            success=True,
            order_index=number,
            key=None if form == "agents_md" or number % 3 else f"when {words[number % 12]}",
        )
        for number in range(60)
    ]
    write_foreign(tmp_path / "file", items, form)
    again = read_foreign(tmp_path / "file", form).items
    for query in (*words, "crane at the harbor", "price on every page", "night train"):
        assert recalled(again, query, tmp_path) == recalled(items, query, tmp_path)


def recalled(items: Sequence[MemoryItem], query: str, folder: Path) -> list[str]:
    """List the texts of the ten best items."""
    write_items(folder / "bank.jsonl", items)
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(top_k=10, ranker="bm25"))
    memory.import_items(folder / "bank.jsonl")
    return [item.text for item in memory.provide(query, asking(domain="office")).items]


# Files that nobody should trust -------------------------------------------------------------

DEEP: Final = "[" * 500 + "]" * 500
REFUSED: Final = {
    "torn": ("mem0", '{"results": [{"id": "m", "memory": "x"', "not JSON"),
    "deep": (
        "mem0",
        f'{{"results": [{{"id": "m", "memory": "x", "a": {DEEP}}}]}}',
        "nested more than 100",
    ),
    "twice": ("mem0", '[{"id": "m", "id": "n", "memory": "x"}]', "field 'id' stands twice"),
    "no number": ("mem0", '[{"id": "m", "memory": "x", "score": NaN}]', "NaN is not JSON"),
    "too large a number": ("mem0", '[{"id": "m", "memory": "x", "score": 1e999}]', "[0]: "),
    "no list": ("mem0", '{"a": 1}', "no list of memories"),
    "no object": ("mem0", '{"results": [{"memory": "x"}, 7]}', "results[1]: expected an object"),
    "no text": ("mem0", '{"results": [{"id": "m"}]}', "results[0]: field 'memory' is missing"),
    "text of numbers": ("mem0", '[{"id": "m", "memory": 7}]', "[0]: text: "),
    "value of no fields": ("langmem", '[{"namespace": ["a"], "key": "k", "value": 7}]', "'value'"),
    "block of nothing": (
        "letta",
        '{"core_memory": [{}]}',
        "agents[0].core_memory[0]: field 'value'",
    ),
    "no agents": ("letta", '{"agents": 7}', "agents: expected a list"),
    "lines": ("reasoning_bank", '{"content": "a"}\n{"content"}\n', "line 2: not JSON"),
    "no UTF-8": ("agents_md", "- \udcff", "not UTF-8"),
    "surrogate": ("mem0", '[{"id": "m", "memory": "\\ud800"}]', "[0]: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_file_when_it_is_damaged_is_refused_whole_with_its_place(case: str, tmp_path: Path) -> None:
    """One line names the file and where in it."""
    form, text, said = REFUSED[case]
    path = tmp_path / "file"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BankFormatError) as refused:
        read_foreign(path, form)
    assert said in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


KNOWN: Final = (
    *USED,
    *("agents", "blocks", "messages", "passages", "core_memory", "results", "relations"),
    *("memory", "items", "metadata_", "success", "unique_id", "memory_id", "archival_memory"),
)
PIECES: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KNOWN), inner, max_size=5)
    ),
    max_leaves=10,
)
ROWS: Final = st.lists(
    st.builds(
        lambda row, texts: {**row, **texts},
        st.dictionaries(st.sampled_from(KNOWN), PIECES, max_size=5),
        st.dictionaries(st.sampled_from(["memory", "content", "value", "text", "key"]), TEXTS),
    ),
    max_size=3,
)
JSON_VALUES: Final = st.one_of(
    PIECES,
    ROWS,
    st.dictionaries(st.sampled_from(KNOWN), ROWS, max_size=3),
    st.builds(
        lambda agents: {"agents": agents}, st.lists(st.dictionaries(st.sampled_from(KNOWN), ROWS))
    ),
)
"""Documents of names that forms know, anywhere."""


@settings(max_examples=40, deadline=None)
@given(document=JSON_VALUES)
def test_any_document_is_read_or_refused_and_never_fails_otherwise(
    tmp_path_factory: pytest.TempPathFactory, document: object
) -> None:
    """What another wrote may be anything; what was read can be written, and again."""
    path = tmp_path_factory.getbasetemp() / "any"
    for form in FORMS:
        path.write_text(json.dumps(document), encoding="utf-8")
        try:
            read = read_foreign(path, form)
        except BankFormatError:
            continue
        losses = write_foreign(path, read.items, form)
        check_report(read.items, read_foreign(path, form).items, losses)


def test_file_when_nobody_can_tell_its_form_is_not_guessed_at(tmp_path: Path) -> None:
    """It is said what it could be."""
    path = tmp_path / "file.json"
    path.write_text('[{"memory": "a", "namespace": ["n"], "key": "k", "value": {}}]')
    with pytest.raises(BankFormatError, match="it could be langmem or mem0; say which"):
        detect_form(path)
    with pytest.raises(InputError, match="no form is called"):
        read_foreign(path, "zep")


# The docs -----------------------------------------------------------------------------------

FULL: Final = MemoryItem(
    id="i7",
    text="Open every page before you answer.\n\nThen add up.",
    type="operational",
    source_domain="office/mail",
    episode_id="e1",
    success=True,
    order_index=7,
    task_id="t1",
    key="A listing has several pages.",
    metadata={"user_id": "ada", "tags:json": '["paging"]'},
    sources=("user:ada",),
)


def test_table_in_the_docs_says_what_each_form_holds(tmp_path: Path) -> None:
    """Written by writing an item that has everything, and reading it again."""
    reports: dict[str, dict[str, str]] = {}
    for form in FORMS:
        losses = write_foreign(tmp_path / "file", [FULL], form)
        reports[form] = {loss.field: loss.how for loss in losses}
    names = sorted(FORMS)
    lines = [f"| field | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for field in fields_of(FULL):
        cells = [reports[name].get(field, "kept") for name in names]
        lines.append(f"| `{field}` | {' | '.join(cells)} |")
    assert "\n".join(lines) in DOCS.read_text(encoding="utf-8"), "\n".join(lines)
