"""Episodes in text worlds: replies read, actions taken, running worlds kept and rebuilt."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from toy_world import Corridors, playing

from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.nodes.state import AgentState, StepState
from langgraft.nodes.text_world import (
    EnvironmentSessions,
    Reply,
    act_node,
    parse_reply,
    render_messages,
    think_node,
)

TASK = "toy/corridor/9"


def sessions_of(worlds: Corridors, capacity: int = 8) -> EnvironmentSessions:
    """Make a table of corridors."""
    return EnvironmentSessions(worlds, capacity=capacity)


def test_episode_when_it_goes_on_keeps_its_world() -> None:
    """Nothing is replayed while the world is at hand, and it is closed at the end."""
    worlds = Corridors()
    sessions = sessions_of(worlds)
    sessions.start("e", "toy/corridor/3")
    seen = [
        sessions.step("e", "toy/corridor/3", ["walk"] * n, "walk").observation for n in range(3)
    ]
    assert seen[-1] == "At 3 after walk."
    assert (worlds.counts.opened, worlds.counts.steps, worlds.counts.closed) == (1, 3, 1)
    assert len(sessions) == 0


def test_episode_when_its_world_is_gone_is_replayed() -> None:
    """A new process finds the world where the state says it was."""
    worlds = Corridors()
    transition = sessions_of(worlds).step("e", TASK, ["walk", "wait", "walk"], "walk")
    assert transition.observation == "At 3 after walk."
    assert worlds.counts.steps == 4


def test_episode_when_an_old_state_is_resumed_is_replayed_from_there() -> None:
    """A fork of the history gets a world of its own past; the other one is let go of."""
    worlds = Corridors()
    sessions = sessions_of(worlds)
    sessions.start("e", TASK)
    for taken in range(4):
        sessions.step("e", TASK, ["walk"] * taken, "walk")
    forked = sessions.step("e", TASK, ["walk"], "wait")
    assert forked.observation == "At 1 after wait."
    onward = sessions.step("e", TASK, ["walk", "wait"], "walk")
    assert onward.observation == "At 2 after walk."
    assert (worlds.counts.opened, worlds.counts.closed) == (2, 1)
    same_length = sessions.step("e", TASK, ["walk", "walk", "walk"], "walk")
    assert same_length.observation == "At 4 after walk."


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["walk", "wait"])), max_size=20))
def test_episodes_when_interleaved_in_a_small_table_see_what_they_would_alone(
    turns: list[tuple[int, str]],
) -> None:
    """However often a world is evicted, the agent cannot tell."""
    sessions = sessions_of(Corridors(), capacity=2)
    taken: dict[int, list[str]] = {number: [] for number in range(4)}
    for number, action in turns:
        if len(taken[number]) > 7:
            continue
        seen = sessions.step(f"e{number}", TASK, taken[number], action).observation
        taken[number].append(action)
        assert seen == f"At {taken[number].count('walk')} after {action}."
        assert len(sessions) <= 2


def test_table_when_full_lets_go_of_the_episode_idle_longest() -> None:
    """What is evicted is closed."""
    worlds = Corridors()
    sessions = sessions_of(worlds, capacity=2)
    for name in ("a", "b"):
        sessions.start(name, TASK)
    sessions.step("a", TASK, [], "walk")
    sessions.start("c", TASK)
    assert (len(sessions), worlds.counts.closed, worlds.counts.opened) == (2, 1, 3)
    sessions.step("a", TASK, ["walk"], "walk")
    assert worlds.counts.opened == 3
    sessions.step("b", TASK, [], "walk")
    assert worlds.counts.opened == 4


def test_episode_when_started_again_or_ended_closes_its_world() -> None:
    """No world is left open by anyone."""
    worlds = Corridors()
    sessions = sessions_of(worlds)
    sessions.start("e", TASK)
    sessions.start("e", TASK)
    assert (worlds.counts.opened, worlds.counts.closed) == (2, 1)
    sessions.end("e")
    sessions.end("e")
    assert (worlds.counts.closed, len(sessions)) == (2, 0)


def test_world_when_it_fails_is_closed_and_the_episode_can_be_tried_again() -> None:
    """A broken step leaves nothing open, and a retry replays."""
    worlds = Corridors()
    sessions = sessions_of(worlds)
    sessions.start("e", TASK)
    sessions.step("e", TASK, [], "walk")
    with pytest.raises(OSError, match="the world broke"):
        sessions.step("e", TASK, ["walk"], "break")
    with pytest.raises(OSError, match="the world broke"):
        sessions.step("e", TASK, ["break"], "walk")
    assert worlds.counts.opened == worlds.counts.closed == 2
    assert sessions.step("e", TASK, ["walk"], "walk").observation == "At 2 after walk."


def test_episodes_when_played_by_many_threads_do_not_mix() -> None:
    """Each thread sees its own world, in a table too small for all."""
    sessions = sessions_of(Corridors(), capacity=3)

    def play(number: int) -> list[str]:
        taken: list[str] = []
        seen = [sessions.start(f"e{number}", TASK)[1].observation]
        for turn in range(6):
            action = "walk" if (turn + number) % 2 else "wait"
            seen.append(sessions.step(f"e{number}", TASK, taken, action).observation)
            taken.append(action)
        return seen

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(play, range(40)))
    assert results == [play(number) for number in range(40)]


def test_capacity_when_below_one_is_refused() -> None:
    """A table without room would let go of what it just opened."""
    with pytest.raises(SettingsError, match="capacity must be at least 1, got 0"):
        sessions_of(Corridors(), capacity=0)


def test_reply_when_unreadable_does_not_take_back_what_was_reached() -> None:
    """A world may call a goal reached and go on; a slip of the pen after that loses nothing."""
    act = act_node(EnvironmentSessions(Corridors()))
    state = AgentState(
        task_id="toy/1",
        episode_id="e",
        steps=[{"said": "", "thought": "", "action": "", "observation": "start", "valid": True}],
        said="hm",
        thought="hm",
        action="",
        valid=False,
        reason="no action",
        success=True,
        score=0.9,
        max_rounds=5,
        done=False,
    )
    after = act.invoke(state)
    assert after["success"] is True
    assert after["score"] == 0.9


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)


@given(st.lists(words).map(" ".join), st.lists(words, min_size=1).map(" ".join))
def test_reply_when_written_as_asked_is_read_back(thought: str, action: str) -> None:
    """The form that is asked for is the one that is read."""
    assert parse_reply(f"Thought: {thought}\nAction: {action}") == Reply(thought, action)


def step(said: str, observation: str) -> StepState:
    """Make a turn of a state."""
    return StepState(said=said, thought="go", action="walk", observation=observation, valid=True)


STEPS = [step("", "At 0."), step(" **Action:** walk\n", "At 1.")]


def test_messages_when_memory_is_recalled_put_it_before_the_first_observation() -> None:
    """Recalled text stands in one place, and the conversation alternates."""
    assert render_messages("play", "<notes>\n", STEPS) == [
        SystemMessage("play"),
        HumanMessage("<notes>\nAt 0."),
        AIMessage(" **Action:** walk\n"),
        HumanMessage("At 1."),
    ]


def test_messages_when_nothing_is_recalled_show_no_trace_of_memory() -> None:
    """Without memory the prompt is the bare episode."""
    assert render_messages("play", "", STEPS)[1] == HumanMessage("At 0.")


def state(**fields: Any) -> AgentState:
    """Make the part of a state that thinking reads."""
    plain = {"world_instructions": "Walk.", "recalled": "", "steps": STEPS}
    return cast("AgentState", {**plain, **fields})


async def test_node_when_run_returns_the_turn_sync_and_async() -> None:
    """The model sees the instructions, and its reply becomes thought and action."""
    model = playing("no", "Thought: on\nAction: walk")
    node = think_node(model, prompt=Prompt("p", "Rules: $instructions"))
    said = {"said": "Thought: on\nAction: walk", "thought": "on", "action": "walk"}
    expected = {**said, "valid": True, "reason": ""}
    assert node.invoke(state()) == await node.ainvoke(state()) == expected
    assert model.seen[0][0] == SystemMessage("Rules: Walk.")


def test_node_when_the_reply_is_malformed_keeps_it_and_says_why() -> None:
    """The whole reply is the thought of a turn without an action."""
    update = think_node(playing("hm", " let me see ")).invoke(state())
    assert update["valid"] is False
    assert update["said"] == update["thought"] == " let me see "
    assert update["action"] == ""
    assert update["reason"] == "The reply holds no line that starts with 'Action:'."


def test_node_when_the_reply_holds_a_lone_surrogate_makes_it_storable() -> None:
    """Half an emoji in a reply breaks no log."""
    update = think_node(playing("", "Thought: \ud83d\nAction: walk")).invoke(state())
    assert update["thought"] == "?"
