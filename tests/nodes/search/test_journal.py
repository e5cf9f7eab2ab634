"""A search as a chain of records: read back as it was, or refused with what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.model import MemoryDelta, SetState
from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
from langgraft.nodes.search.journal import JournalNode, append_record, read_search


class Counting(MemoryArtifacts):
    """Counts what is read."""

    reads = 0

    @override
    def read(self, reference: str) -> bytes:
        self.reads += 1
        return super().read(reference)


def node(step: int, parent: int | None = None, **fields: Any) -> JournalNode:
    """Make a program, which failed unless it is said otherwise."""
    plain = {"plan": f"plan {step}", "code": "pass", "is_buggy": True}
    parent_id = None if parent is None else f"{parent:03d}"
    return JournalNode(step=step, id=f"{step:03d}", parent_id=parent_id, **{**plain, **fields})


def chain(artifacts: Artifacts, *nodes: JournalNode, previous: str = "") -> str:
    """Write programs one after another."""
    for each in nodes:
        previous = append_record(artifacts, previous, each)
    return previous


def copy(artifacts: MemoryArtifacts) -> MemoryArtifacts:
    """Return the same contents, of which nothing was read yet."""
    other = MemoryArtifacts()
    other._contents.update(artifacts._contents)
    return other


def test_search_when_written_and_read_in_another_process_is_the_same(tmp_path: Path) -> None:
    """Texts, submissions and changes of memory; names of run and task are the reader's."""
    writing = FolderArtifacts(tmp_path)
    full = node(
        1,
        0,
        is_buggy=False,
        metric=0.25,
        output="1\0\n" * 1000,
        reasons=("none",),
        receipt={"id": "r", "scores": [0.5]},
        submission="valid",
    )
    file = writing.keep(b"id,y\n1,2\n")
    delta = MemoryDelta((SetState("a", [1, "é"]),))
    first = append_record(writing, "", node(0), deltas=[delta, delta])
    last = append_record(writing, first, full, submission=file, deltas=[delta])
    search = read_search(FolderArtifacts(tmp_path), last, run="r", task="t")
    assert search == read_search(writing, last, run="r", task="t")
    assert search.nodes == (node(0), full)
    assert search.deltas == (delta,) * 3
    assert (search.submission("000"), search.submission(full)) == ("", file)
    assert (search.journal.run, search.journal.task, search.journal.nodes) == (
        "r",
        "t",
        search.nodes,
    )


def test_search_when_it_has_no_program_yet_is_empty() -> None:
    """Its reference is empty too."""
    assert read_search(MemoryArtifacts(), "").nodes == ()


def test_record_when_written_twice_is_one_content() -> None:
    """A step that is done again after a crash leads to the same search."""
    artifacts = MemoryArtifacts()
    first = chain(artifacts, node(0))
    assert chain(artifacts, node(1, 0), previous=first) == chain(
        artifacts, node(1, 0), previous=first
    )
    assert len(artifacts) == 2
    record = json.loads(artifacts.read(first))
    assert artifacts.read(first) == canonical_json(record).encode()
    assert sorted(record) == ["deltas", "node", "previous", "submission"]


def test_search_when_read_at_each_step_reads_each_record_once() -> None:
    """Within a process nothing is read that was written; resumed, everything once."""
    artifacts = Counting()
    heads = [chain(artifacts, node(0))]
    for step in range(1, 50):
        heads.append(chain(artifacts, node(step), previous=heads[-1]))
        assert len(read_search(artifacts, heads[-1]).nodes) == step + 1
    assert artifacts.reads == 0
    resumed = Counting()
    resumed._contents.update(artifacts._contents)
    for step, head in enumerate(heads):
        assert len(read_search(resumed, head).nodes) == step + 1
    assert resumed.reads == 50
    assert len(read_search(resumed, heads[3]).nodes) == 4, "an older one can be read still"


def test_text_when_no_file_can_hold_it_is_mended_as_replies_are() -> None:
    """Halves of surrogate pairs become question marks everywhere; NUL stays."""
    artifacts = MemoryArtifacts()
    odd = node(0, plan="a\ud800b", output="\udfff\0", error={"k": ["\ud83d"]})
    last = chain(artifacts, odd)
    for reading in (artifacts, copy(artifacts)):
        (read,) = read_search(reading, last).nodes
        assert (read.plan, read.output, read.error) == ("a?b", "?\0", {"k": ["?"]})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (node(0).model_copy(update={"id": "b"}), "does not come after step 1"),
        (node(1, 0).model_copy(update={"id": "000"}), "has a node with this id already"),
        (node(2, 7), "names the parent '007', which the search does not have"),
        (node(2, is_buggy=False, metric=float("inf")), r"node '002' \(step 2\) cannot be written"),
    ],
)
def test_program_when_it_does_not_fit_the_search_is_refused(
    wrong: JournalNode, message: str
) -> None:
    """Nothing is kept of it."""
    artifacts = MemoryArtifacts()
    last = chain(artifacts, node(0), node(1))
    with pytest.raises(InputError, match=message):
        append_record(artifacts, last, wrong)
    assert len(artifacts) == 2


def test_search_when_a_record_is_missing_or_damaged_names_it(tmp_path: Path) -> None:
    """How far back it stands, and its file."""
    writing = FolderArtifacts(tmp_path)
    first = chain(writing, node(0))
    last = chain(writing, node(1), node(2), previous=first)
    path = tmp_path / first[:2] / first[2:]
    path.write_bytes(b"{}")
    with pytest.raises(InputError, match=rf"record {first[:12]}, 2 before its last: .*damaged"):
        read_search(FolderArtifacts(tmp_path), last)
    path.unlink()
    with pytest.raises(InputError, match=r"2 before its last: .*nothing is kept as"):
        read_search(FolderArtifacts(tmp_path), last)


@pytest.mark.parametrize(
    "content",
    [
        b"print('a program')",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"node":{},"submission":"","deltas":[],"previous":""}',
        *(
            b'{"node":{"step":0,"id":"0","plan":"","code":"","is_buggy":true},' + rest
            for rest in (
                b'"submission":"../x","deltas":[],"previous":""}',
                b'"submission":"","deltas":[[{"op":"destroy"}]],"previous":""}',
                b'"submission":"","deltas":[],"previous":null}',
            )
        ),
    ],
)
def test_reference_when_it_leads_to_no_record_is_refused(content: bytes) -> None:
    """A submission, a program, or a file made by hand."""
    artifacts = MemoryArtifacts()
    with pytest.raises(InputError, match="the search's record"):
        read_search(artifacts, artifacts.keep(content))


def test_artifacts_when_they_cannot_be_remembered_are_read_all_the_same() -> None:
    """A user's own class may have no hash."""

    class Unhashable(Counting):
        __hash__ = None  # type: ignore[assignment]

    artifacts = Unhashable()
    last = chain(artifacts, node(0), node(1))
    assert len(read_search(artifacts, last).nodes) == 2
    assert artifacts.reads > 0
