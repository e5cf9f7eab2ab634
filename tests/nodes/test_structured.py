"""Asking a chat model for a value: reading, checking, correcting."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel, TypeAdapter
from toy_world import RuleModel

from langgraft._core.canonical import canonical_json
from langgraft.memory.model import BLOCK_END, BLOCK_START
from langgraft.memory.recall import render_block
from langgraft.nodes.dialogue import NO_MODEL, arun_dialogue, run_dialogue
from langgraft.nodes.replies import cleaned, json_values
from langgraft.nodes.structured import (
    MOST_PROBLEMS,
    PROBLEM_LENGTH,
    Answer,
    Read,
    asking,
    listed,
    read_reply,
    typed,
)


class Fruit(BaseModel):
    """What is asked for."""

    name: str
    weight: float = 0.0


GOOD = '{"name": "fig", "weight": 1.5}'
FIG = Fruit(name="fig", weight=1.5)
QUESTION = [HumanMessage("Name a fruit.")]


def scripted(*replies: str) -> FakeListChatModel:
    """Make a model that gives these replies, one after the other."""
    return FakeListChatModel(responses=list(replies))


def recording(*replies: str) -> RuleModel:
    """Make a model that gives these replies and keeps what it was sent."""
    left = iter(replies)
    return RuleModel(rule=lambda _: next(left))


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"Here it is:\n```\n{GOOD}\n```\nEnjoy!",
        f"I weighed [1] and {{2}}. So: {GOOD} as in [3]",
        f'<think>{{"name": "plum"}} is too sour</think>{GOOD}',
        '{"name": "fig", "weight": "1.5", "color": "blue"}',
        '{"name": " fig\n", "weight": 1.5}',
    ],
)
def test_reply_when_it_holds_the_value_is_read_whatever_stands_around_it(reply: str) -> None:
    """Prose, fences and thoughts around the JSON do not matter; the conclusion counts."""
    assert run_dialogue(asking(QUESTION, typed(Fruit)), scripted(reply)) == Answer(FIG, (), 1)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "no complete JSON value"),
        ("a fig", "no complete JSON value"),
        ('{"name": "fi', "no complete JSON value"),
        ('[{"name": "fig"}, {"name": "pl', "no complete JSON value"),
        ('{"weight": 2}', "`name`: Field required"),
        ('{"name": "fig", "weight": "heavy"}', "`weight`: Input should be a valid number"),
        ('{"name": "fig", "weight": NaN}', "not finite"),
        ('{"name": "fig", "weight": -Infinity}', "not finite"),
        ('{"name": "fig", "weight": 1e999}', "not finite"),
        ('{"name": "fig", "weight": 1' + "0" * 5000 + "}", "not finite"),
        ("[" * 100_000, "nested too deeply"),
        ('{"name":' * 100_000, "nested too deeply"),
        ('["[' * 100_000, "no complete JSON value"),
        ("[" * 900 + "1," * 50_000, "no complete JSON value"),
        ("null", "expected a JSON object"),
        ("[1]", "expected a JSON object"),
    ],
)
def test_reply_when_it_holds_no_such_value_is_refused_and_says_why(
    reply: str, problem: str
) -> None:
    """Garbage, cut-off JSON and hostile numbers and nesting are problems, never exceptions."""
    answer = read_reply(reply, typed(Fruit))
    assert answer.value is None
    assert problem in answer.why


@pytest.mark.parametrize("bad", [" a fig\n", '{"weight": 2}'])
async def test_ask_when_the_first_reply_is_bad_then_it_is_sent_back_once(bad: str) -> None:
    """The model sees its reply and what was wrong, and what it says then counts."""
    model = recording(bad, GOOD)
    assert run_dialogue(asking(QUESTION, typed(Fruit)), model) == Answer(FIG, (), 2)
    first, second = model.seen
    assert first == QUESTION
    assert second[:1] == QUESTION
    assert isinstance(second[1], AIMessage)
    assert second[1].text == bad
    assert "corrected" in second[2].text
    assert read_reply(bad, typed(Fruit)).problems[0] in second[2].text
    assert await arun_dialogue(asking(QUESTION, typed(Fruit)), recording(bad, GOOD)) == Answer(
        FIG, (), 2
    )


@pytest.mark.parametrize("empty", ["", " \n", "<think>A fig? No"])
def test_ask_when_the_first_reply_is_empty_then_nothing_is_said_for_the_model(empty: str) -> None:
    """What was wrong follows the question, as one turn: providers refuse empty replies."""
    model = recording(empty, GOOD)
    assert run_dialogue(asking(QUESTION, typed(Fruit)), model) == Answer(FIG, (), 2)
    (again,) = model.seen[1]
    assert isinstance(again, HumanMessage)
    assert again.text.startswith(f"{QUESTION[0].text}\n\nYour last reply cannot be used")


async def test_ask_when_both_replies_are_bad_then_there_is_no_value_and_no_third_call() -> None:
    """One correction is asked for, and the last problems are told."""
    model = recording("a fig", '{"weight": 2}', GOOD)
    answer = run_dialogue(asking(QUESTION, typed(Fruit)), model)
    assert answer == Answer(None, ("`name`: Field required",), 2)
    assert len(model.seen) == 2
    assert (
        await arun_dialogue(asking(QUESTION, typed(Fruit)), scripted("a fig", '{"weight": 2}'))
        == answer
    )


async def test_ask_when_there_is_no_model_then_the_answer_says_so() -> None:
    """Without a model nothing is called and nothing made up."""
    assert run_dialogue(asking(QUESTION, typed(Fruit)), None) == Answer(None, (NO_MODEL,), 0)
    assert await arun_dialogue(asking(QUESTION, typed(Fruit)), None) == Answer(None, (NO_MODEL,), 0)


async def test_ask_when_the_model_fails_then_the_failure_is_not_taken_for_an_answer() -> None:
    """A model that cannot be reached has not answered badly; its error goes to the caller."""

    def broken(_: Any) -> str:
        raise OSError("no route")

    with pytest.raises(OSError, match="no route"):
        run_dialogue(asking(QUESTION, typed(Fruit)), RuleModel(rule=broken))
    with pytest.raises(OSError, match="no route"):
        await arun_dialogue(asking(QUESTION, typed(Fruit)), RuleModel(rule=broken))
    with pytest.raises((StopIteration, RuntimeError)):
        run_dialogue(asking(QUESTION, typed(Fruit)), GenericFakeChatModel(messages=iter([])))


def test_list_when_some_entries_are_bad_then_the_others_are_kept_after_one_correction() -> None:
    """Bad entries are told and dropped; a correction that is worse does not lose the good ones."""
    partly = f'[{GOOD}, {{"weight": 1}}, 5]'
    answer = run_dialogue(asking(QUESTION, listed(Fruit)), scripted(partly, partly))
    assert (answer.value, answer.calls) == ([FIG], 2)
    assert [problem[:8] for problem in answer.problems] == ["entry 2:", "entry 3:"]
    assert run_dialogue(asking(QUESTION, listed(Fruit)), scripted(partly, "sorry")).value == [FIG]
    assert run_dialogue(asking(QUESTION, listed(Fruit)), scripted(partly, f"[{GOOD}]")) == Answer(
        [FIG], (), 2
    )


def test_list_when_nothing_is_in_it_or_nothing_in_it_is_good() -> None:
    """An empty list is an answer, a list of nothing but bad entries is none."""
    assert read_reply("There is none: []", listed(Fruit)) == Answer([], (), 1)
    assert read_reply("[1, 2]", listed(Fruit)).value is None
    assert read_reply('"fig"', listed(Fruit)).why == "expected a JSON list, got a text"


def test_list_when_an_object_is_in_its_place_is_the_one_it_holds_or_of_it_alone() -> None:
    """Models put a list under a name, leave its brackets out, or write JSON lines."""
    for reply in (GOOD, f"[{GOOD}]", f'{{"fruit": [{GOOD}]}}', f"{GOOD}\nAnd that is all."):
        assert read_reply(reply, listed(Fruit)) == read_reply(f"[{GOOD}]", listed(Fruit))
    assert read_reply(f"{GOOD}\n{GOOD}", listed(Fruit)).value == [Fruit(**json.loads(GOOD))] * 2
    assert read_reply(f'{{"a": [], "b": [{GOOD}]}}', listed(Fruit)).value is None
    assert read_reply(f"[{GOOD}] and x[]", listed(Fruit)).value == [FIG]


def test_list_when_an_entry_does_not_fit_those_before_it_then_it_is_left_out() -> None:
    """What may follow depends on what was kept."""

    def once(number: int, kept: Any) -> str:
        return f"{number} again" if number in kept else ""

    answer = read_reply("[1, 2, 1, 3, 2]", listed(int, once))
    assert answer == Answer([1, 2, 3], ("entry 3: 1 again", "entry 5: 2 again"), 1)


def test_value_when_it_is_not_acceptable_then_it_is_refused() -> None:
    """A value of the right type may still be the wrong one."""
    read = typed(TypeAdapter(int), lambda number: "" if number > 0 else "must be positive")
    assert run_dialogue(asking(QUESTION, read), scripted("-1", "7")) == Answer(7, (), 2)
    assert run_dialogue(asking(QUESTION, read), scripted("-1", "-1")).problems == (
        "must be positive",
    )


def test_problems_when_there_are_many_or_long_ones_are_cut() -> None:
    """A reply that is wrong throughout does not become a prompt without end."""
    answer = read_reply(json.dumps([{"x" * 9999: 1}] * 99), listed(Fruit))
    assert len(answer.problems) <= MOST_PROBLEMS
    assert all(len(problem) <= PROBLEM_LENGTH for problem in answer.problems)


def test_value_when_it_quotes_memory_or_half_a_character_is_cleaned() -> None:
    """Recalled blocks and lone surrogates reach nothing that is kept."""
    reply = json.dumps({"name": f"{render_block(['old'])}fig \ud83d", "\ud83d": [{"a": "\ud83d"}]})
    (value,) = json_values(reply)
    assert cleaned(value) == {"name": "fig ?", "?": [{"a": "?"}]}


QUOTED = render_block([f"an old one: {GOOD}", f"```json\n{GOOD}\n```"])
NEW = '{"name": "plum", "weight": 2.0}'


@pytest.mark.parametrize(
    "reply",
    [f"{NEW}\nI was told:\n{QUOTED}", f"{QUOTED}{NEW}", f"{NEW}\n{BLOCK_START}\n- {GOOD}, {{"],
)
def test_reply_when_it_quotes_memory_is_not_mistaken_for_what_memory_says(reply: str) -> None:
    """A value in a recalled block, fenced or cut off with it, is nobody's answer."""
    assert read_reply(reply, typed(Fruit)).value == Fruit(name="plum", weight=2.0)
    assert read_reply(reply.replace(NEW, ""), typed(Fruit)).value is None


NASTY = st.lists(
    st.sampled_from(
        [
            *'[]{}",:\\`\n',
            "```json",
            "NaN",
            "1e999",
            '"name"',
            GOOD,
            "\ud83d",
            '"\\ud83d"',
            BLOCK_START,
            BLOCK_END,
            f'{{"{BLOCK_START}": 1}}',
        ]
    )
    | st.text(max_size=5)
).map("".join)


def everything(value: Any) -> Read[Any]:
    """Accept any JSON value."""
    return Read(value)


@given(NASTY)
def test_reading_when_the_reply_is_anything_at_all_never_fails(reply: str) -> None:
    """Every text gives a value that can be stored, or the reason why not."""
    answer = read_reply(reply, everything)
    if answer.value is not None:
        assert BLOCK_START not in canonical_json(answer.value)
    canonical_json(list(answer.problems))
    assert read_reply(reply, listed(Fruit)).calls == 1


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_reading_when_valid_json_stands_alone_gives_it_back(value: Any) -> None:
    """What is sent as JSON arrives, but for space at the ends of texts and lone surrogates."""
    assert read_reply(json.dumps(value), everything).value == cleaned(value)
