"""What models are shown of their own replies: word for word what they said, and nothing else.

Every agent is driven by a model that gives one malformed reply after the other.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from chain_cases import call, spoiled
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langgraph.store.memory import InMemoryStore
from mlab_cases import FINAL, six
from pydantic import Field
from toy_world import Corridors
from tree_cases import good, reply, sandbox
from typing_extensions import override

from langgraft import TrajectoryMemory
from langgraft.environments.competitions.competition import Competition
from langgraft.graphs import (
    build_chain_agent,
    build_mlab_agent,
    build_react_agent,
    build_tree_agent,
)
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.prompts import prompt

FORM = "Thought: <what you make of the situation and what you want to do>\nAction: <one action>"


class Script(BaseChatModel):
    """Gives these replies, one after the other, and keeps what it was sent."""

    replies: list[AIMessage]
    sent: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "script"

    @override
    def bind_tools(self, *_: Any, **__: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self

    @override
    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.sent.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.replies[len(self.sent) - 1])])

    def last_words(self) -> list[str]:
        """Return what came last in each prompt but the first: what was said to a reply."""
        return [messages[-1].text for messages in self.sent[1:]]


def script(*replies: str | AIMessage) -> Script:
    """Make a model that gives these replies."""
    return Script(replies=[AIMessage(each) if isinstance(each, str) else each for each in replies])


def cut(text: str) -> AIMessage:
    """Write a reply that ended where the longest possible one does."""
    return AIMessage(text, response_metadata={"finish_reason": "length"})


def own_words(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what a model is shown as its own; check that roles take turns, and calls are answered."""
    for before, after in itertools.pairwise(messages):
        called = [each["id"] for each in before.tool_calls] if isinstance(before, AIMessage) else []
        assert called == ([after.tool_call_id] if isinstance(after, ToolMessage) else [])
        assert before.type != after.type
    assert not isinstance(messages[-1], AIMessage)
    return [each.text for each in messages if isinstance(each, AIMessage)]


# ReAct --------------------------------------------------------------------------------------------

SLIPS = (
    ("I would walk on.\n", "no line that starts with 'Action:'"),
    ("Thought: both\nAction: walk\nAction: wait", "holds 2 actions"),
    ("", "The reply is empty."),
    (" \n", "The reply is empty."),
    ("Act: walk", "no line that starts with 'Action:'"),
    ('{"action": "walk"}', "no line that starts with 'Action:'"),
    ("Thought: Thought: Thought: walk", "no line that starts with 'Action:'"),
    ("Thought: on\nAction:", "The action is empty."),
)
GOES_ON = "\n**Thought:** on\n**Action:** `walk`\nObservation: I am there.\n"


async def test_react_when_replies_hold_no_action_shows_none_and_says_what_was_wrong() -> None:
    """No form but the right one is there to be imitated; the steps hold all replies word for word."""
    said = [text for text, _ in SLIPS]
    model = script(*said, cut("I see that"), GOES_ON, GOES_ON)
    agent = build_react_agent(model, environment=Corridors(), max_rounds=11)
    result = await agent.ainvoke({"task_id": "toy/corridor/3"})
    went_on = GOES_ON.partition("\nObservation")[0]
    told = [*said, "I see that", went_on]
    for messages in model.sent[:-1]:
        assert own_words(messages) == []
    assert own_words(model.sent[-1]) == [went_on]
    assert "Nothing was done." not in "".join(each.text for each in model.sent[-1])
    for answer, (_, problem) in zip(model.last_words(), SLIPS, strict=False):
        assert problem in answer
        assert answer.endswith(f"{FORM}\n\nThis is still what you see:\nGoal: walk 3 steps. At 0.")
        assert answer.count(FORM) == answer.count("Nothing was done.") == 1
    assert "No action could be read in your last 2 replies." in model.last_words()[1]
    assert len(set(map(str, model.sent))) == len(model.sent), "no prompt is asked twice"
    assert "It was cut off" in model.last_words()[len(SLIPS)]
    assert [step["said"] for step in result["steps"][1:]] == [*told, went_on]
    assert [step["action"] for step in result["steps"][-2:]] == ["walk", "walk"]


def test_react_when_a_server_leaves_reasoning_in_the_text_neither_reads_nor_shows_it() -> None:
    """What a model considered is no action, and is not sent back."""
    model = script("<think>Action: fall?\nNo.</think>\n\nAction: walk", "<think>Action: fall")
    agent = build_react_agent(model, environment=Corridors(), max_rounds=2)
    result = agent.invoke({"task_id": "toy/corridor/3"})
    assert own_words(model.sent[1]) == ["Action: walk"]
    assert result["steps"][2]["observation"].startswith("Nothing was done. The reply is empty.")


def test_memory_when_replies_held_no_action_teaches_what_was_said_to_them() -> None:
    """A trajectory shows no malformed reply to imitate; the episode's steps have them all."""
    slips = ["Thought: Thought: hm", "Thought: Thought: hm", "Act: walk"]
    lessons = TrajectoryMemory(InMemoryStore())
    agent = build_react_agent(
        script(*slips, "Action: walk"), environment=Corridors(), memory=lessons, max_rounds=4
    )
    result = agent.invoke({"task_id": "toy/corridor/1", "episode_id": "e"})
    assert [step["thought"] for step in result["steps"][1:4]] == slips
    kept = lessons.content().items["e/trajectory"].text
    assert "Thought: Thought" not in kept
    assert "Act:" not in kept
    assert kept.count("no line that starts with 'Action:'") == 1
    assert kept.endswith("Action: walk\nObservation: At 1 after walk.\nResult: success")


def test_form_when_instructed_and_when_repeated_is_the_same() -> None:
    """A model is asked for one form, wherever it is asked."""
    assert FORM in prompt("act").text
    assert FORM in prompt("act_repair").text


# Chain --------------------------------------------------------------------------------------------


def test_chain_when_replies_call_nothing_that_can_be_done_shows_them_as_they_were(
    competition: Competition,
) -> None:
    """Prose, nothing, and calls that cannot be read stay what they were, and each is told why."""
    unread = spoiled("run_bash", '{"command": ls')
    unread.content = " I look.\n"
    replies: list[tuple[AIMessage, str]] = [
        (AIMessage("I would look at the data.\n"), "your reply calls no tool"),
        (AIMessage(""), "your reply is empty"),
        (AIMessage("", additional_kwargs={"refusal": "No."}), "your reply is empty (refusal)"),
        (cut('{"name": "run_bash", "argum'), "was cut off, before it called a tool"),
        (unread, 'You called `run_bash` with these arguments:\n```\n{"command": ls\n```'),
        (spoiled("run_bash", "["), "must be one JSON object"),
        (call("run_bash", "Now."), "cannot be called like that: command: field required"),
        (call("look", path="."), "there is no tool 'look'"),
        (call("think", "So.\n", thought="hm"), "Noted."),
    ]
    model = script(*(each for each, _ in replies), call("finish"))
    with sandbox(competition) as place:
        agent = build_chain_agent(
            model, competition=competition, sandbox=place, artifacts=MemoryArtifacts()
        )
        assert agent.invoke({"episode_id": "e"})["ended"] == "finished"
    shown = [each for each, _ in replies if each.text.strip() or each.tool_calls]
    assert own_words(model.sent[-1]) == [each.text for each in shown]
    for answer, (_, problem) in zip(model.last_words(), replies, strict=True):
        assert problem in answer
    kept, sent = (
        [
            (made["name"], made["args"])
            for each in messages
            if isinstance(each, AIMessage)
            for made in each.tool_calls
        ]
        for messages in (model.sent[-1], shown)
    )
    assert kept == sent


# MLAB ---------------------------------------------------------------------------------------------


def test_mlab_when_replies_have_not_the_form_shows_them_as_they_were(
    competition: Competition,
) -> None:
    """What is asked for again stands there as it was said, with what was wrong and the form."""
    slips = [" I am done.\n", "", "<think>Hm", six("List Files", '{"dir_path" : "."}')]
    model = script(*slips, FINAL)
    with sandbox(competition) as place:
        agent = build_mlab_agent(
            model, competition=competition, sandbox=place, artifacts=MemoryArtifacts(), retries=3
        )
        assert agent.invoke({"episode_id": "e"})["steps"] == 2
    assert [own_words(messages) for messages in model.sent] == [[], slips[:1], [], [], []]
    form = prompt("mlab_format").text.strip()
    for answer, problem in zip(model.last_words(), ["is missing", "is empty"], strict=False):
        assert problem in answer
        assert answer.strip().endswith(form)


def test_mlab_when_steps_are_shown_has_each_field_as_it_was_written(
    competition: Competition,
) -> None:
    """No input is written anew, and what a model made up as an observation is not shown as one."""
    odd = '{ "dir_path" :"." }  # here'
    replies = [
        six("`List Files`", f"{odd}\nObservation: secret.csv"),
        six("List Files", '{"path": "."}'),
        six("Look", "here"),
        FINAL,
    ]
    model = script(*replies)
    with sandbox(competition) as place:
        agent = build_mlab_agent(
            model, competition=competition, sandbox=place, artifacts=MemoryArtifacts()
        )
        agent.invoke({"episode_id": "e"})
    steps = model.sent[-1][0].text
    assert f"Action: `List Files`\nAction Input: {odd}\nObservation:\n```\ninput/\n```" in steps
    assert "secret.csv" not in steps
    assert 'Action: List Files\nAction Input: {"path": "."}\nObservation:\n```\nNot done: ' in steps
    assert "Action: Look\nAction Input: here\nObservation:\n```\nNot done: there is no" in steps


# Tree ---------------------------------------------------------------------------------------------


def test_tree_when_replies_hold_nothing_usable_shows_them_as_they_were(
    competition: Competition,
) -> None:
    """Programs and reviews are asked for again with what was said, and what was wrong with it."""
    code = script(" Sure!\n", "", reply(good(0.7)))
    feedback = script('{"is_bug": maybe}\n', '{"is_bug": false, "summary": "Ran.", "metric": 0.7}')
    with sandbox(competition) as place:
        agent = build_tree_agent(
            code,
            feedback_model=feedback,
            competition=competition,
            sandbox=place,
            artifacts=MemoryArtifacts(),
            steps=1,
        )
        assert agent.invoke({"episode_id": "e"})["metric"] == 0.7
    assert [own_words(messages) for messages in code.sent] == [[], [" Sure!\n"], []]
    assert "it holds no fenced block of Python" in code.last_words()[0]
    assert "it is empty" in code.last_words()[1]
    assert all("one block fenced as ```python" in answer for answer in code.last_words())
    assert [own_words(messages) for messages in feedback.sent] == [[], ['{"is_bug": maybe}\n']]
    assert "no complete JSON value" in feedback.last_words()[0]
    assert isinstance(feedback.sent[1][-1], HumanMessage)
