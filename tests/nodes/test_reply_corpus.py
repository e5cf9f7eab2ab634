"""Replies as real chat models write them: what each becomes, read alone and by the agent.

They stand in `replies.yaml`, by form, and what holds of one form is one test.
"""

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from toy_world import Corridors, RuleModel

from langgraft import TrajectoryMemory
from langgraft._core.errors import ActionFormatError
from langgraft.environments import BabyAI
from langgraft.environments.text import TextWorldFactory
from langgraft.graphs import build_react_agent
from langgraft.nodes.replies import reply_text
from langgraft.nodes.state import StepState
from langgraft.nodes.text_world import parse_reply

ENTRIES = 300
FORMS = 10
BETWEEN = "Thought: so\nAction: dawdle"
LAST = "Thought: there\nAction: walk"


@dataclass(frozen=True, slots=True)
class Entry:
    """A reply, and what it becomes: an action, or a refusal."""

    reply: str
    action: str = ""
    thought: str | None = None
    """`None` where it does not matter."""
    refused: str = ""
    gone: str = ""
    """What nobody is to see again."""


def _corpus() -> dict[str, list[Entry]]:
    text = Path(__file__).with_name("replies.yaml").read_text(encoding="utf-8")
    return {form: [Entry(**each) for each in held] for form, held in yaml.safe_load(text).items()}


CORPUS = _corpus()
OF_EACH_FORM = pytest.mark.parametrize("form", CORPUS)
BABYAI = ("turn left", "turn right", "move forward", "toggle", "check available actions")
"""What can be done in BabyAI wherever one stands, but for `toggle`, which it may refuse."""


def _read(entry: Entry) -> Entry:
    """Return what a reply is read as, in the terms of the corpus."""
    try:
        reply = parse_reply(reply_text(AIMessage(entry.reply)))
    except ActionFormatError as error:
        refused = entry.refused if entry.refused and entry.refused in str(error) else str(error)
        return Entry(entry.reply, refused=refused, gone=entry.gone)
    thought = None if entry.thought is None else reply.thought
    return Entry(entry.reply, reply.action, thought, gone=entry.gone)


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of an agent that was given replies."""

    steps: list[StepState]
    prompts: list[str]
    """What the model was sent, and at the end what was filed."""


def _played(replies: list[str], worlds: TextWorldFactory, task: str) -> Episode:
    """Let an agent play that gives these replies, and file what it did."""
    given = iter(replies)
    model = RuleModel(rule=lambda _: next(given))
    memory = TrajectoryMemory(InMemoryStore())
    agent = build_react_agent(model, environment=worlds, memory=memory, max_rounds=len(replies))
    steps = agent.invoke({"task_id": task, "episode_id": "e"})["steps"][1:]
    sent = ["\n".join(message.text for message in messages) for messages in model.seen]
    return Episode(steps, [*sent, memory.content().items["e/trajectory"].text])


def test_corpus_when_counted_holds_many_replies_of_many_forms_each_once() -> None:
    """An entry says what its reply becomes, and one of both."""
    entries = [entry for held in CORPUS.values() for entry in held]
    assert len(CORPUS) >= FORMS
    assert len(entries) >= ENTRIES
    assert len({entry.reply for entry in entries}) == len(entries)
    assert [entry for entry in entries if bool(entry.action) == bool(entry.refused)] == []
    assert [entry for entry in entries if entry.gone not in entry.reply] == []


@OF_EACH_FORM
def test_reply_when_read_becomes_what_an_engineer_would_read_in_it(form: str) -> None:
    """One action is read whatever stands around it; none, or several, says so."""
    entries = CORPUS[form]
    assert [_read(entry) for entry in entries] == entries


def test_reply_when_hostile_and_long_is_read_at_once() -> None:
    """No reply has a pattern tried from each of its places anew."""
    begun = time.process_time()
    for repeated in (
        "\t",
        "*",
        "1. ",
        "**a ",
        "`a",
        "Action ",
        "\n",
        "<s> ",
        "<think>",
        " [Action",
    ):
        with suppress(ActionFormatError):
            parse_reply(reply_text(AIMessage(f"Action: {repeated * 20_000}")))
        with suppress(ActionFormatError):
            parse_reply(reply_text(AIMessage(f"{repeated * 20_000}Action")))
    assert time.process_time() - begun < 60


@OF_EACH_FORM
def test_agent_when_given_a_reply_takes_its_action_and_shows_nothing_else_again(form: str) -> None:
    """The world gets the action alone; reasoning and made-up observations reach no later prompt."""
    entries = CORPUS[form]
    replies = [each for entry in entries for each in (entry.reply, BETWEEN)]
    episode = _played([*replies, LAST], Corridors(), "toy/corridor/1")
    for entry, step in zip(entries, episode.steps[::2], strict=False):
        assert (entry, step["action"], step["valid"]) == (entry, entry.action, bool(entry.action))
        answer = f"At 0 after {entry.action}." if entry.action else entry.refused
        assert answer in step["observation"], entry
        assert entry.thought in (None, step["thought"]), entry
        shown = [text for text in episode.prompts if entry.gone and entry.gone in text]
        assert shown == [], entry
    assert [step["action"] for step in episode.steps[1::2]] == ["dawdle"] * len(entries)
    assert episode.steps[-1]["observation"] == "At 1 after walk."


def test_babyai_when_given_its_replies_takes_them_all() -> None:
    """The world itself knows what it gets as its own."""
    entries = [each for held in CORPUS.values() for each in held if each.action in BABYAI]
    assert {entry.action for entry in entries} == set(BABYAI)
    replies = [entry.reply for entry in entries]
    episode = _played(replies, BabyAI(), "babyai/find_obj/17")
    for entry, step in zip(entries, episode.steps, strict=True):
        assert step["action"] == entry.action, entry
        if entry.action != "toggle":
            assert "not recognized" not in step["observation"], entry
