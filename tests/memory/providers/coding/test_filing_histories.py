"""What is filed, replaced, proven, credited and judged, in any order, and what is left of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langgraft import CodingMemory, CodingSettings, Episode, ErrorRecord, Outcome, RecallContext
from langgraft.memory.model import MemoryDelta, MemoryItem, Question, Verdict, fold

TASK = "melanoma"

records = st.builds(
    ErrorRecord,
    st.sampled_from(["pandas", "general"]),
    st.sampled_from(["KeyError: 'sex'", "?!"]),
    st.sampled_from(["", "Fill the column.", "Drop the column.", "pip install pandas"]),
    verified=st.booleans(),
)
"""Few errors and fixes, so that most meet their like."""


def answers(asked: Sequence[Question]) -> st.SearchStrategy[list[Verdict]]:
    """Draw what a judge says: of each question something, nothing, or about what is not there."""
    said = [
        st.none()
        | st.builds(
            Verdict,
            st.just(question.id),
            st.sampled_from(["add", "none", "no such"]),
            st.sampled_from(
                [None, "e9/error-7", *cast("dict[str, Any]", question.shows["neighbours"])]
            ),
        )
        for question in asked
    ]
    return st.tuples(*said).map(lambda given: [verdict for verdict in given if verdict])


def live(
    memory: CodingMemory, number: int, errors: list[ErrorRecord], draw: Callable[[Any], Any]
) -> list[MemoryDelta]:
    """Play an episode: recall, judge, file, and do the upkeep."""
    name = f"e{number}"
    context = RecallContext(
        domain="mle/x", task_id=TASK, episode_id=name, stage="debug", observation="KeyError: 'sex'"
    )
    receipt = memory.provide("", context).receipt
    resolved = draw(st.lists(st.sampled_from([f"e{n}" for n in range(number + 1)]), max_size=2))
    outcome = Outcome(draw(st.sampled_from([True, False, None])))
    episode = Episode(
        name, "mle/x", TASK, "", (), outcome,
        errors=tuple(errors), recalls=(receipt,), resolves=tuple(resolved),
    )  # fmt: skip
    judged = replace(episode, verdicts=tuple(draw(answers(memory.questions(episode)))))
    return [memory.file(judged)]


@given(history=st.lists(st.lists(records, max_size=4), max_size=6), data=st.data())
def test_history_when_fixes_replace_each_other_folds_and_counts_every_record(
    history: list[list[ErrorRecord]], data: st.DataObject
) -> None:
    """The bank is the fold, each record is counted once, and nothing is proven without a fix."""
    memory = CodingMemory(InMemoryStore(), settings=CodingSettings(credit=True))
    log: list[MemoryDelta] = []
    for number, errors in enumerate(history):
        log += live(memory, number, errors, data.draw)
        assert fold(log).to_bytes() == memory.content().to_bytes()
    content = memory.content()
    kept: list[tuple[MemoryItem, Mapping[str, Any]]] = [
        (item, content.notes.get(name, {})) for name, item in content.items.items()
    ]
    assert sum(notes.get("seen", 1) for _, notes in kept) == sum(map(len, history))
    assert all(item.metadata["fix"] for item, notes in kept if notes.get("verified"))
    assert len({item.order_index for item, _ in kept}) == len(kept)
