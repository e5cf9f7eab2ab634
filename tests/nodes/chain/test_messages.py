"""The log as a model sees it: complete, in order, within bounds."""

import itertools
from collections.abc import Sequence

import pytest
from chain_cases import LogMaker
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraft._core.errors import SettingsError
from langgraft.nodes.chain.deps import ChainPrompts, Instructions, messages_of
from langgraft.nodes.chain.visible_history import (
    Condensation,
    Condenser,
    ObservationMasking,
    ObservationTrimming,
    cut_to_fit,
    visible_history,
)
from langgraft.nodes.workbench.limits import estimated_tokens
from langgraft.nodes.workbench.log import CONDENSATION, INVALID, RECALL, Event

INSTRUCTIONS = Instructions(ChainPrompts(), "Tell what $1 costs.", ("numpy", "pandas"))
BOUNDS = "Steps: 9 of 9 left."


def told(events: Sequence[Event], *condensers: Condenser) -> list[BaseMessage]:
    """Return the messages of a log."""
    return messages_of(
        visible_history(events, condensers), INSTRUCTIONS, data="a.csv", bounds=BOUNDS
    )


def well_formed(messages: Sequence[BaseMessage]) -> None:
    """Check what providers insist on: each call answered at once, roles by turns."""
    assert [each.type for each in messages[:2]] == ["system", "human"]
    for before, after in itertools.pairwise(messages):
        called = [call["id"] for call in before.tool_calls] if isinstance(before, AIMessage) else []
        answered = [after.tool_call_id] if isinstance(after, ToolMessage) else []
        assert called == answered
        assert before.type != after.type
    assert not isinstance(messages[-1], AIMessage)
    assert all(each.text.strip() for each in messages if not isinstance(each, AIMessage))


def test_messages_when_an_attempt_begins_are_what_to_do_and_how() -> None:
    """The first message holds task, data, packages, bounds, and what memory recalls."""
    log = LogMaker().event("environment", RECALL, text="<memory>heed this</memory>", kinds=[])
    system, first = told(log.events)
    assert "one tool call" in system.text
    for part in ("Tell what $1 costs.", "<memory>heed this</memory>\n", "a.csv", "numpy, pandas",
                 "whatever else the task's description asks for", "split anew"):  # fmt: skip
        assert part in first.text
    assert first.text.endswith(f"\n\n{BOUNDS}")
    assert "expected to use all" in system.text


def test_messages_when_things_were_done_show_each_with_what_came_of_it() -> None:
    """Calls and observations, messages and answers, invalid calls and what was wrong."""
    log = LogMaker().did("run_bash", "a.csv", command="ls", thought=" I look.\n")
    log.said("Hm.\n", "Go on.")
    log.did(INVALID, "no such tool", failed=True, tool="my_tool", said='{"a": 1}', problem="x")
    log.did("think", "", thought_="x").said("", "Go on.")
    messages = told(log.events)
    well_formed(messages)
    ran, seen, said, answer, odd, refused, _, _, last = messages[2:]
    assert isinstance(ran, AIMessage)
    assert ran.text == " I look.\n"
    assert ran.tool_calls[0]["args"] == {"command": "ls"}
    assert (seen.text, said.text, answer.text) == ("a.csv", "Hm.\n", "Go on.")
    assert isinstance(odd, AIMessage)
    assert (odd.tool_calls[0]["name"], odd.tool_calls[0]["args"]) == ("my_tool", {"a": 1})
    assert refused.text == "no such tool"
    assert last.text.endswith("Go on.\n\n" + BOUNDS)


@pytest.mark.parametrize(
    ("tool", "said"),
    [("run_bash", '{"command": ls'), ("run_bash", '["ls"]'), ("run_bash", ""), ("my tool!", "{}")],
)
@pytest.mark.parametrize("thought", ["", "\n", "I look."])
def test_messages_when_no_provider_would_take_a_call_back_quote_it_and_make_up_none(
    tool: str, said: str, thought: str
) -> None:
    """A call that was not made like that is not shown as one; the model is told what it sent."""
    log = LogMaker().did("think", "Noted.", thought_="x")
    log.did(
        INVALID, "Not done: y.", failed=True, tool=tool, said=said, problem="y", thought=thought
    )
    messages = told(log.events)
    well_formed(messages)
    assert [each.text for each in messages[4:-1]] == [thought] * bool(thought.strip())
    assert not any(isinstance(each, AIMessage) and each.tool_calls for each in messages[4:])
    quoted = f"You called `{tool}` with these arguments:\n```\n{said}\n```\nNot done: y."
    assert messages[-1].text.startswith(quoted)


def test_messages_when_circles_were_left_hide_them_and_say_so() -> None:
    """What the agent went in circles with is gone from view, and a notice is there instead."""
    log = LogMaker().did("run_bash", "kept", command="pwd")
    for _ in range(3):
        log.did("run_bash", "circles", command="ls", failed=True)
    log.recovered("errors", 2).event("environment", RECALL, text="<new/>", kinds=[])
    log.did("run_bash", "after", command="id")
    messages = told(log.events)
    well_formed(messages)
    text = "\n".join(each.text for each in messages)
    assert "circles\n" not in text.replace("in circles", "")
    assert "<new/>" in messages[1].text
    assert "(the same call, which failed three times in a row)" in text
    assert next(each.text for each in messages if isinstance(each, ToolMessage)) == "kept"
    only = LogMaker().did("run_bash", command="ls").recovered("pairs", 0)
    well_formed(told(only.events))


def test_condensers_when_observations_are_long_or_old_show_less_of_them() -> None:
    """Long observations lose their middle and old ones all, but never the call they answer."""
    log = LogMaker()
    for number in range(5):
        log.did("run_bash", f"{number}" + "x" * 20_000 + "end", command="cat")
    messages = told(log.events, ObservationTrimming(1_000), ObservationMasking(2, block=1))
    well_formed(messages)
    seen = [each.text for each in messages if isinstance(each, ToolMessage)]
    assert seen[:3] == ["[left out for room]"] * 3
    assert seen[3].startswith("3xx")
    assert seen[3].endswith("xend")
    assert len(seen[3]) < 1_100
    for wrong in (lambda: ObservationMasking(0), lambda: ObservationTrimming(True)):
        with pytest.raises(SettingsError, match="whole number"):
            wrong()


@given(st.integers(2, 6), st.integers(1, 5))
def test_masking_when_steps_go_on_changes_what_a_prompt_begins_with_once_a_block(
    keep: int, block: int
) -> None:
    """Between two blocks each prompt begins with all of the last one, for providers' caches."""
    log, before, changed = LogMaker(), list[str](), 0
    for number in range(20):
        log.did("run_bash", f"{number} was seen here and is long enough", command=f"{number}")
        messages = [str(each.text) for each in told(log.events, ObservationMasking(keep, block))]
        shown = sum("was seen here" in each for each in messages)
        assert min(keep, number + 1) <= shown < keep + block
        changed += messages[: len(before)] != before
        before = messages[:-1]
    assert changed == max(20 - keep, 0) // block


def condensed(events: list[Event], most: int) -> list[BaseMessage] | None:
    """Leave out what does not fit, and return the messages then; `None` where nothing is left."""

    def render(cut: Condensation) -> list[BaseMessage]:
        log = LogMaker()
        log.events = list(events)
        return told(log.event("environment", CONDENSATION, **cut.arguments()).events)

    cut = cut_to_fit(
        visible_history(events), len(events), most=most, now=estimated_tokens(told(events)),
        measure=lambda cut: estimated_tokens(render(cut)),
    )  # fmt: skip
    return None if cut is None else render(cut)


def test_condensing_when_the_prompt_is_too_long_keeps_the_newest_half() -> None:
    """Half of the turns go, behind the first message, and the newest stay whole."""
    log = LogMaker().event("environment", RECALL, text="<memory/>", kinds=[])
    for number in range(8):
        log.did("run_bash", f"{number}" + "x" * 4_000, command="cat")
    whole = estimated_tokens(told(log.events))
    messages = condensed(log.events, whole - 1)
    assert messages is not None
    well_formed(messages)
    assert [each.text[0] for each in messages if isinstance(each, ToolMessage)] == list("4567")
    assert "<memory/>" in messages[1].text
    fewer = condensed(log.events, whole // 4)
    assert fewer is not None
    assert [each.text[0] for each in fewer if isinstance(each, ToolMessage)] == ["7"]


@given(
    st.lists(st.tuples(st.sampled_from("bmi"), st.integers(0, 30_000)), max_size=12),
    st.integers(900, 4_000),
)
def test_condensing_whatever_was_done_fits_and_shows_the_last_turn(
    turns: list[tuple[str, int]], most: int
) -> None:
    """However long texts are, a prompt becomes short enough, and no call is left dangling."""
    log = LogMaker().event("environment", RECALL, text="m" * 9_000, kinds=[])
    for kind, length in turns:
        if kind == "b":
            log.did("run_bash", "s" * length, command="c" * length, thought="t" * length)
        elif kind == "m":
            log.said("q" * length)
        else:
            log.did(INVALID, "p" * length, failed=True, tool="x", said="{" * length, problem="")
    if estimated_tokens(told(log.events)) <= most:
        return
    messages = condensed(log.events, most)
    assert messages is not None
    well_formed(messages)
    assert estimated_tokens(messages) <= most or estimated_tokens(messages) < 1_100
    last = messages[-1].text
    shown = {"b": len(messages) > 2, "m": "Go on." in last, "i": "You called `x`" in last}
    assert not turns or shown[turns[-1][0]]


def test_condensing_when_only_circles_were_left_still_says_so() -> None:
    """Without it the agent, which sees no turn, would begin them again."""
    log = LogMaker()
    for _ in range(3):
        log.did("run_bash", failed=True, command="f")
    log.recovered("errors", 0).event("environment", RECALL, text="m" * 9_000, kinds=[])
    messages = condensed(log.events, 1_500)
    assert messages is not None
    assert "failed three times in a row" in messages[1].text
    assert estimated_tokens(messages) <= 1_500


def test_condensing_when_nothing_can_be_left_out_any_more_gives_up() -> None:
    """A first message that has been cut to its shortest is not cut again and again."""
    log = LogMaker().event("environment", CONDENSATION, first_kept=0, texts=300, first_message=500)
    assert condensed(log.events, 10) is None


def test_messages_when_asked_twice_are_equal() -> None:
    """What is sent depends on the log and on settings alone."""
    log = LogMaker().did("run_bash", "x\0y", command="ls").said("z")
    first, again = told(log.events), told(log.events)
    assert first == again
    assert "\0" not in "".join(each.text for each in first)
    assert isinstance(first[-1], HumanMessage)


def test_messages_when_memory_had_nothing_to_say_are_those_without_memory() -> None:
    """So that replies that conditions of a study have in common are paid once."""
    asked = LogMaker().event("environment", RECALL, text="", kinds=[])
    both = [log.did("run_bash", "a.csv", command="ls") for log in (LogMaker(), asked)]
    assert told(both[0].events) == told(both[1].events)
