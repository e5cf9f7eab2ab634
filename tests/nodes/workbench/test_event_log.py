"""A run's log: read back as it was written, in any process, or refused with what is wrong."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from langgraft._core.errors import InputError
from langgraft.memory.model import MemoryDelta, SetState
from langgraft.nodes.artifacts import FolderArtifacts, MemoryArtifacts
from langgraft.nodes.workbench.log import (
    DIAGNOSIS,
    RECALL,
    RECOVERY,
    Action,
    Event,
    Observation,
    append_events,
    log_lines,
    read_log,
    steps_of,
)

ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


class Counting(MemoryArtifacts):
    """Counts what is read."""

    reads = 0

    @override
    def read(self, reference: str) -> bytes:
        self.reads += 1
        return super().read(reference)


def did(number: int, name: str = "run_python", **fields: Any) -> Action:
    """Return an action of the agent."""
    return Action(**{"id": number, "source": "agent", "name": name, **fields})


def saw(number: int, **fields: Any) -> Observation:
    """Return what was observed of the action before."""
    return Observation(**{"id": number, "cause": number - 1, "text": "", **fields})


def noted(number: int, name: str, **arguments: Any) -> Action:
    """Return an event around the agent."""
    return Action(id=number, source="environment", name=name, arguments=arguments)


@settings(max_examples=50)
@given(st.lists(st.dictionaries(st.text(max_size=3), ANY_JSON, max_size=2), max_size=4))
def test_log_when_written_event_by_event_then_it_reads_as_canonical_lines(
    given_arguments: list[dict[str, Any]],
) -> None:
    """Whatever a model wrote as arguments: what a log cannot hold is replaced once and for all."""
    artifacts, reference = MemoryArtifacts(), ""
    for number, arguments in enumerate(given_arguments):
        reference = append_events(artifacts, reference, [did(number, arguments=arguments)])
    again = MemoryArtifacts()
    again._contents.update(artifacts._contents)
    log = read_log(again, reference)
    assert log == read_log(artifacts, reference)
    lines = log_lines(log).split("\n")[:-1]
    assert [json.loads(line)["id"] for line in lines] == list(range(len(given_arguments)))
    rewritten = ""
    for event in log.events:
        rewritten = append_events(artifacts, rewritten, [event])
    assert rewritten == reference


def test_log_when_arguments_are_nested_beyond_reason_then_they_are_cut() -> None:
    """A hundred thousand brackets are no reason to end."""
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    reference = append_events(artifacts := MemoryArtifacts(), "", [did(0, arguments={"a": deep})])
    assert "nested too deeply" in log_lines(read_log(artifacts, reference))


def test_log_when_a_number_is_longer_than_python_writes_then_a_word_stands_for_it() -> None:
    """Some readers of JSON give numbers of any length, true ones of usual length stay."""
    given = {"line": 10**5000, "lines": [1, -(10**5000)], "true": True, "big": 2**64}
    reference = append_events(artifacts := MemoryArtifacts(), "", [did(0, arguments=given)])
    (event,) = read_log(artifacts, reference).events
    assert isinstance(event, Action)
    word = "(a number too long)"
    assert event.arguments == {"line": word, "lines": [1, word], "true": True, "big": 2**64}


def test_log_when_it_grows_then_each_record_is_read_once() -> None:
    """In this process, through the same artifacts, however often it is asked for."""
    artifacts, reference = Counting(), ""
    for number in range(0, 40, 2):
        reference = append_events(artifacts, reference, [did(number), saw(number + 1)])
        assert len(read_log(artifacts, reference).events) == number + 2
    assert artifacts.reads == 0
    other = Counting()
    other._contents.update(artifacts._contents)
    read_log(other, reference)
    read_log(other, append_events(other, reference, [did(40)]))
    assert other.reads == 20


def test_log_when_many_runs_grow_side_by_side_then_none_is_read_again() -> None:
    """A run that is slow keeps its place among runs that are quick."""
    artifacts = Counting()
    heads = [""] * 12
    for number in range(3):
        for run in range(len(heads)):
            for place in [number] if run == 0 else range(4 * number, 4 * number + 4):
                event = did(place, arguments={"run": run})
                heads[run] = append_events(artifacts, heads[run], [event])
    assert artifacts.reads == 0


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([did(1)], "event 1 cannot follow: the log goes on with event 0"),
        ([did(0), did(0)], "goes on with event 1"),
        ([did(0), saw(1, cause=1)], "event 1 names event 1 as its cause"),
    ],
)
def test_append_when_events_do_not_follow_then_they_are_refused(
    events: list[Any], problem: str
) -> None:
    """An id is a place in the log, and causes come first."""
    artifacts = MemoryArtifacts()
    with pytest.raises(InputError, match=problem):
        append_events(artifacts, "", events)
    assert not len(artifacts)


def test_log_when_a_record_is_damaged_or_missing_then_it_says_which(tmp_path: Any) -> None:
    """And what a record is not."""
    artifacts = FolderArtifacts(tmp_path)
    first = append_events(artifacts, "", [did(0)])
    last = append_events(artifacts, first, [saw(1)])
    other = artifacts.keep(b'{"deltas":[],"events":[{"id":"x"}],"previous":""}')
    with pytest.raises(InputError, match=r"the run's record .* 0: unable to extract"):
        read_log(artifacts, other)
    with pytest.raises(InputError, match="no record of a run"):
        read_log(artifacts, artifacts.keep(b"[1]"))
    (tmp_path / first[:2] / first[2:]).write_bytes(b"{")
    with pytest.raises(InputError, match=f"{first[:12]}, 1 before its last: .* damaged"):
        read_log(FolderArtifacts(tmp_path), last)


def test_deltas_when_records_hold_them_then_a_log_has_all_in_order() -> None:
    """Records without events may hold some."""
    artifacts = MemoryArtifacts()
    one, two = (MemoryDelta((SetState("a", value),)) for value in (1, 2))
    reference = append_events(artifacts, "", [did(0)], deltas=[one])
    reference = append_events(artifacts, reference, [], deltas=[two, one])
    assert read_log(artifacts, reference).deltas == (one, two, one)


def test_steps_when_a_log_has_attempts_then_each_step_knows_its_own() -> None:
    """Steps count the agent's actions alone; memory and diagnoses belong to them."""
    events: list[Event] = [
        noted(0, RECALL, text="mind the gap", kinds=["code"]),
        did(1, arguments={"code": "1/0"}, thought="Divide."),
        saw(2, failed=True, executed=True, exception="ZeroDivisionError", program="1/0"),
        noted(3, DIAGNOSIS, error={"error": "zero"}).model_copy(update={"cause": 1}),
        noted(4, RECOVERY, rule="x", first_hidden=1),
        did(5, name="message", arguments={"text": "Hm."}),
        did(6, name="edit_file", arguments={"path": "a", "command": "view"}),
    ]
    artifacts = MemoryArtifacts()
    first, second, third = steps_of(read_log(artifacts, append_events(artifacts, "", events)))
    assert (first.step, first.command, first.thought, first.attempt) == (0, "1/0", "Divide.", 0)
    assert (first.recalled, first.recalled_kinds) == ("mind the gap", ("code",))
    assert (first.failed, first.exc_type, first.error) == (
        True,
        "ZeroDivisionError",
        {"error": "zero"},
    )
    assert (second.step, second.command, second.attempt, second.recalled) == (1, "Hm.", 1, "")
    assert third.command == '{"command":"view","path":"a"}'
