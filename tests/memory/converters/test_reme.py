"""ReMe's released libraries: taken as they are, by every provider there is."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking

from langgraft._core.canonical import JSON
from langgraft._core.errors import BankFormatError
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.converters import REME, REME_FORMS, FieldSource, convert_jsonl
from langgraft.memory.model import Add, MemoryItem, Remove, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider

LIBRARIES: Final = {
    "appworld": 193,
    "bfcl_v3": 474,
    "research_plan": 295,
    "research_tips": 1392,
}
BOTH: Final = ("appworld", "research_plan")
"""One in either spelling: one that most banks have room for, one that half of the providers prune."""
SETTINGS: dict[str, dict[str, JSON]] = {"coding": {"tasks": "all"}}
"""What a provider needs to search items of no task."""
SUCCESSES = ("recency", "self_examples")
"""Baselines that recall what succeeded, which ReMe's entries do not say."""
SUCCEEDED = REME.model_copy(update={"success": FieldSource(constant=True)})


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, data_dir: Path) -> Path:
    """Return one of the four files, or skip."""
    path = data_dir / "reme" / f"{request.param}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is absent; LANGGRAFT_DATA names the folder with reme/*.jsonl")
    return path


def found(memory: MemoryProvider[Any], item: MemoryItem) -> list[str]:
    """List what memory recalls in the situation that an item is for."""
    context = asking(episode_index=0, domain=item.source_domain)
    return [each.id for each in memory.provide(item.retrieval_key, context).items]


def test_library_when_converted_loses_no_entry_and_no_word(library: Path) -> None:
    """Texts and situations are verbatim, in both spellings; ids and dates are theirs."""
    rows = [json.loads(line) for line in library.read_text(encoding="utf-8").split("\n") if line]
    items = convert_jsonl(library, REME)
    assert len(items) == len(rows) == LIBRARIES[library.stem]
    for number, (row, item) in enumerate(zip(rows, items, strict=True)):
        identity = row.get("memory_id") or row["experience_id"]
        assert (item.id, item.order_index) == (identity, number)
        assert (item.text, item.key) == (row["content"], row["when_to_use"])
        assert item.metadata["author"] == row["metadata"]["author"]
        assert item.metadata.get("score") == row["score"]
        assert item.source_domain == row["workspace_id"]
        assert (item.success, item.episode_id, item.task_id) == (None, "", None)


@pytest.mark.parametrize(
    ("library", "provider"),
    [
        *((library, "insight") for library in LIBRARIES),
        *(
            pytest.param(library, name, marks=pytest.mark.matrix)
            for library in BOTH
            for name in PROVIDERS
            if name != "insight"
        ),
    ],
    indirect=["library"],
)
def test_library_when_imported_is_searchable_and_exported_as_it_was(
    library: Path, provider: str, tmp_path: Path
) -> None:
    """Within a provider's capacity byte for byte; beyond it the delta shows what was pruned."""
    path, again, twice = (tmp_path / name for name in ("in", "out", "twice"))
    items = convert_jsonl(library, SUCCEEDED if provider in SUCCESSES else REME)
    write_items(path, items)
    settings = SETTINGS.get(provider, {})
    memory = make_provider(provider, InMemoryStore(), settings=settings)
    delta = memory.import_items(path)
    assert fold([delta]).to_bytes() == memory.content().to_bytes()
    changes = Counter(type(change) for change in delta)
    assert changes[Add] == len(items)
    assert memory.export_items(again) == len(items) - changes[Remove] > 0
    kept = read_items(again)
    assert set(kept) <= set(items)
    if not changes[Remove]:
        assert again.read_bytes() == path.read_bytes()
    if provider != "none":
        assert found(memory, kept[-1])
    fresh = make_provider(provider, InMemoryStore(), settings=settings)
    fresh.import_items(again)
    fresh.export_items(twice)
    assert twice.read_bytes() == again.read_bytes()


def test_library_when_its_last_line_is_torn_is_refused_with_its_number(
    library: Path, tmp_path: Path
) -> None:
    """Whatever half of a line is left."""
    data = library.read_bytes()
    last = data[:-1].rindex(b"\n") + 1
    for end in (last + 1, (last + len(data)) // 2, len(data) - 2):
        (tmp_path / "torn").write_bytes(data[:end])
        with pytest.raises(BankFormatError, match="torn") as caught:
            convert_jsonl(tmp_path / "torn", REME)
        assert caught.value.row == LIBRARIES[library.stem]


SPELLINGS: list[dict[str, Any]] = [
    {
        "workspace_id": "w",
        "memory_id": "m1",
        "memory_type": "task",
        "when_to_use": "when 中文",
        "content": " as it is \n",
        "score": 0.0,
        "time_created": "2025-07-24 21:15:17",
        "author": "a",
        "metadata": {"author": "b", "extra_info": {"confidence": 0.9, "tags": ["x"]}},
    },
    {
        "workspace_id": "w",
        "experience_id": "m1",
        "experience_type": "task",
        "when_to_use": "when 中文",
        "content": " as it is \n",
        "score": None,
        "metadata": {"author": "a", "created_time": "2025-07-24 21:15:17", "extra_info": None},
    },
]


def test_entry_when_spelled_either_way_is_the_same_item_but_for_what_one_lacks() -> None:
    """Both spellings of an entry, where no data is at hand."""
    new, old = (REME.item(row, 0) for row in SPELLINGS)
    assert new.metadata == {
        "memory_type": "task",
        "score": 0.0,
        "author": "a",
        "created": "2025-07-24 21:15:17",
        "confidence": 0.9,
    }
    assert old.metadata == {
        name: new.metadata[name] for name in ("memory_type", "author", "created")
    }
    assert new.model_copy(update={"metadata": {}}) == old.model_copy(update={"metadata": {}})
    assert (new.text, new.key) == (" as it is \n", "when 中文")


def as_vector(row: dict[str, Any]) -> dict[str, Any]:
    """Write an entry as ReMe's vector stores do."""
    new = "memory_id" in row
    names = ("memory_type", "score", "time_created", "time_modified", "author", "metadata")
    inside = {name: row[name] for name in names if name in row}
    content = {"content" if new else "experience_content": row["content"]}
    if not new:
        inside["experience_type"] = row["experience_type"]
    return {
        "unique_id": row["memory_id"] if new else row["experience_id"],
        "workspace_id": row["workspace_id"],
        "content": row["when_to_use"],
        "vector": [0.5] * 64,
        "metadata": inside | content,
    }


@pytest.mark.parametrize("row", SPELLINGS)
def test_entry_when_it_comes_from_a_vector_store_is_the_item_of_the_library(
    row: dict[str, Any], tmp_path: Path
) -> None:
    """Found by when it helps, recalled as what to do; both forms may stand in one file."""
    path = tmp_path / "store.jsonl"
    lines = [json.dumps(each) for each in (as_vector(row), row | {"memory_id": "m2"})]
    path.write_text("\n".join(lines), encoding="utf-8")
    vector, plain = convert_jsonl(path, REME_FORMS)
    assert vector == REME.item(row, 0)
    assert plain.id == "m2"


def test_library_when_written_as_vectors_converts_to_the_same_items(
    library: Path, tmp_path: Path
) -> None:
    """Every entry of the released libraries, as its vector store would keep it."""
    rows = [json.loads(line) for line in library.read_text(encoding="utf-8").split("\n") if line]
    path = tmp_path / "store.jsonl"
    path.write_text("\n".join(json.dumps(as_vector(row)) for row in rows), encoding="utf-8")
    assert convert_jsonl(path, REME_FORMS) == convert_jsonl(library, REME_FORMS)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (
            b'{"id":"a","text":"b"}',
            "not in a form that is known: none of 'memory_id'.*'id', 'text'",
        ),
        (b'{"unique_id":"a","content":"b","metadata":{}}', "field 'metadata.content' or"),
        (b'[{"memory_id":"a"}]', "expected an object, got list"),
        (b"PK\x03\x04", "this is a bundle"),
    ],
)
def test_file_when_in_another_form_is_told_so(data: bytes, said: str, tmp_path: Path) -> None:
    """Before any field is missed; a form that is known then tells what it lacks."""
    path = tmp_path / "other.jsonl"
    path.write_bytes(data)
    with pytest.raises(BankFormatError, match=said):
        convert_jsonl(path, REME_FORMS)
