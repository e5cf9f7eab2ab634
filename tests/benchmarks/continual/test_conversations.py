"""Conversations of a continual study, beside what the model was really sent and said."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.benchmarks.continual.conversations import conversations_of, said_in
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness import PlanLog, prepare, run_plan
from langgraft.benchmarks.harness.conversations import (
    Conversation,
    Message,
    PlayedEpisode,
    Recalled,
)
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.memory.model import BLOCK_START, MemoryDelta, strip_block
from langgraft.nodes.state import StepState
from langgraft.nodes.text_world import render_messages

pytestmark = pytest.mark.matrix  # whole studies

STUDY = ContinualStudy()
PLAN = ContinualPlan.model_validate(
    {
        "conditions": [
            {"name": "raw", "provider": "trajectory", "settings": {"top_k": 1}},
            {
                "name": "step",
                "provider": "insight",
                "settings": {"granularity": "individual", "top_k": 3, "requery_interval": 2},
            },
            {"name": "recency", "provider": "recency"},
        ],
        "controls": [{"control": kind, "of": "step"} for kind in ("random", "placebo", "shuffled")],
        "train_items": 4,
        "test_items": 3,
        "runs": 1,
        "baseline_runs": 1,
        "rerun": False,
        "sequences": ["A>B"],
    }
)

Told = tuple[tuple[str, str], ...]
ROLES = {"human": "user", "ai": "assistant"}


def told(messages: Sequence[BaseMessage]) -> Told:
    """Return messages as roles and texts."""
    return tuple((ROLES.get(each.type, each.type), each.text) for each in messages)


class Recorder(BaseCallbackHandler):
    """Keeps what a model was sent."""

    def __init__(self) -> None:
        self.sent: Counter[Told] = Counter()

    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        """Keep it."""
        for each in messages:
            self.sent[told(each)] += 1


@dataclass
class Played:
    """A study that was played, and what its models were sent, by run."""

    log: PlanLog
    sent: Mapping[str, Recorder]

    def episodes(self) -> list[PlayedEpisode]:
        """Return all episodes of the log."""
        return list(STUDY.episodes(PLAN, self.log))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """Play the plan once."""
    out = tmp_path_factory.mktemp("study") / "out"
    sent: dict[str, Recorder] = {}

    def model_for(plan: ContinualPlan, run: RunSpec) -> BaseChatModel:
        model = STUDY.simulated_model(plan, run)
        model.callbacks = [sent.setdefault(run.name, Recorder())]
        return model

    outcome = asyncio.run(run_plan(prepare(STUDY, PLAN), out, model_for=model_for))
    assert outcome.complete
    return Played(PlanLog(out), sent)


def requests(conversation: Conversation) -> list[Told]:
    """Return what a model was sent before each reply that is to be learned from."""
    plain = tuple((each.role, each.content) for each in conversation.messages)
    return [plain[:n] for n, each in enumerate(conversation.messages) if each.learned]


def test_conversations_when_read_back_are_what_the_model_was_sent(played: Played) -> None:
    """Every reply of every episode, train and evaluate, with its controls and where memory was asked
    again: byte for byte what came before it.
    """  # noqa: D205
    asked_again = blocks = 0
    found: dict[str, Counter[Told]] = {name: Counter() for name in played.sent}
    for each in played.episodes():
        made = each.conversations(True)
        asked_again += len(made) > 1
        blocks += BLOCK_START in made[0].messages[1].content
        for conversation in made:
            found[each.run].update(requests(conversation))
    acting = {
        name: Counter({told: n for told, n in each.sent.items() if told[0][0] == "system"})
        for name, each in played.sent.items()
    }
    for name, sent in found.items():
        assert sent.total() > 0
        assert sent == acting[name]
    assert asked_again > 0
    assert blocks > 0


def test_conversations_without_memory_are_those_with_it_less_the_block(played: Played) -> None:
    """One conversation an episode, with no trace of memory."""
    for each in played.episodes():
        (bare,) = each.conversations(False)
        assert not any(BLOCK_START in message.content for message in bare.messages)
        for made in each.conversations(True):
            plain = [strip_block(m.content) for m in made.messages]
            assert plain == [m.content for m in bare.messages[: len(plain)]]


def test_recalled_items_when_of_a_placebo_are_what_it_showed(played: Played) -> None:
    """Its filler, and not the text of the items in the bank."""
    shown = [
        recalled
        for each in played.episodes()
        if each.condition == "step+placebo"
        for recalled in each.recalled()
        if recalled.items
    ]
    assert shown
    for recalled in shown:
        for item in recalled.items:
            assert str(item["text"]) in recalled.text


@dataclass
class Altered:
    """A log that tells something else than it does."""

    log: PlanLog
    manifest_with: Mapping[str, JSON] | None = None
    tokens: int = 0

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs."""
        return self.log.runs

    @property
    def manifest(self) -> Mapping[str, JSON]:
        """The manifest, with other fingerprints."""
        prints: Any = self.log.manifest["fingerprints"]
        return {"fingerprints": {**prints, **(self.manifest_with or {})}}

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return results whose receipts tell of some tokens more."""
        found: list[Any] = self.log.results(name)
        return [
            {
                **each,
                "recalls": [{**r, "tokens": r["tokens"] + self.tokens} for r in each["recalls"]],
            }
            for each in found
        ]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the deltas."""
        return self.log.deltas(name)


@pytest.mark.parametrize(
    ("changed", "what"),
    [({"prompts": {"act": "0" * 64}}, "the prompt 'act'"), ({"world": "0" * 64}, "the world of")],
)
def test_conversations_when_prompt_or_world_has_changed_are_refused(
    played: Played, changed: dict[str, JSON], what: str
) -> None:
    """What the agent saw is not made up; trajectories need neither."""
    each = next(iter(STUDY.episodes(PLAN, Altered(played.log, changed))))
    with pytest.raises(InputError, match=f"{what}.* is not what the run was started with"):
        each.conversations(False)
    assert each.trajectory(with_memory=True)["steps"]


def test_block_when_the_receipt_differs_is_refused(played: Played) -> None:
    """An answer that is not the one logged is no block; without memory nothing is asked."""
    log = Altered(played.log, tokens=1)
    each = next(
        e for e in STUDY.episodes(PLAN, log) if e.condition == "raw" and e.split == "evaluate"
    )
    with pytest.raises(
        InputError, match=r"recalled at step 0 cannot .*its receipt differs.*--without-memory"
    ):
        each.conversations(True)
    assert each.conversations(False)


# Episodes that nobody played ------------------------------------------------------------------

TEXTS = st.text("ab \n", max_size=4)
STEPS = st.lists(st.tuples(TEXTS, st.sampled_from(["", "go", "take"]), st.text("xy", min_size=1)))


def recalled(step: int, text: str) -> Recalled:
    """Return a recall of nothing in particular."""
    return Recalled(step, "q", text, (), ())


@given(STEPS, st.sets(st.integers(0, 8)), st.booleans(), st.data())
def test_conversations_of_any_episode_are_what_the_agent_would_be_sent(
    turns: list[tuple[str, str, str]], asked: set[int], last: bool, data: st.DataObject
) -> None:
    """Whatever held no action, and whenever memory was asked again: each reply with an action is
    learned once, after just what `think` would have sent.
    """  # noqa: D205
    steps = [("", "", "start"), *turns]
    taken = sum(bool(action) for _, action, _ in turns)
    moments = sorted(step for step in asked if step < taken) or [0]
    moments[0] = 0
    blocks = {step: data.draw(st.sampled_from(["", "one\n", "two\n"])) for step in moments}
    shown_then = [recalled(*each) for each in blocks.items()]
    made = conversations_of("rules", shown_then, steps, last=last)
    found = [
        (request, message.content)
        for each in made
        for request, message in zip(
            requests(each), [m for m in each.messages if m.learned], strict=True
        )
    ]
    states = [
        StepState(said=said_in(t, a) if n else "", thought=t, action=a, observation=o, valid=True)
        for n, (t, a, o) in enumerate(steps)
        if a or not n
    ]
    expected = []
    for n, reply in enumerate(states[1:], start=1):
        asked_at = max(m for m in moments if m < n)
        shown = render_messages("rules", blocks[asked_at], states[:n], last=last and asked_at > 0)
        expected.append((told(shown), reply["said"]))
    assert found == expected


def test_reply_without_an_action_is_in_no_conversation() -> None:
    """The agent was not shown it, once it had taken an action."""
    steps = [("", "", "seen"), ("I wonder", "", "Nothing was done."), ("now", "go", "there")]
    (made,) = conversations_of("rules", [], steps)
    assert made.messages == (
        Message("system", "rules"),
        Message("user", "seen"),
        Message("assistant", "Thought: now\nAction: go", learned=True),
    )


def test_memory_when_asked_again_with_the_same_answer_is_one_conversation() -> None:
    """Where nothing changed for the agent, nothing is told twice."""
    steps = [("", "", "seen"), *[("", "go", "there")] * 4]
    again = [recalled(0, "one\n"), recalled(2, "one\n")]
    assert len(conversations_of("rules", again, steps, last=False)) == 1
    other = [recalled(0, "one\n"), recalled(2, "two\n")]
    first, *ends = conversations_of("rules", other, steps)
    assert [len(each.messages) for each in (first, *ends)] == [5, 7, 9]
    assert [sum(m.learned for m in each.messages) for each in ends] == [1, 1]
    first, second = conversations_of("rules", other, steps, last=False)
    assert [m.learned for m in first.messages if m.role == "assistant"] == [True, True]
    assert [m.learned for m in second.messages if m.role == "assistant"] == [
        False,
        False,
        True,
        True,
    ]
