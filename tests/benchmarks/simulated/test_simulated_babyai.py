"""`SimulatedBabyAI`: the documented rules are the rules it plays by."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraft.benchmarks.simulated import SimulatedBabyAI, babyai
from langgraft.memory.recall import render_block
from langgraft.nodes.prompts import prompt
from langgraft.nodes.reflect import parse_lessons
from langgraft.nodes.text_world import parse_reply

INSTRUCTIONS = "- go to <obj> <id>: walk there.\n- pick up <obj> <id>: take it."
ACTIONS = ("turn left", "turn right", "move forward")
NO_KEY = "In front of you in this room, you can see several objects: "
KEY = f"{NO_KEY}There is a grey key 1 right in front of you 2 steps away.  "
DOOR = f"{NO_KEY}There is a red closed door 1 2 steps in front of you and 1 steps to your left.  "
KEY_ACTIONS = (*ACTIONS, "pickup grey key 1", "go to grey key 1")
DOOR_ACTIONS = (*ACTIONS, "toggle and go through red closed door 1", "go to red closed door 1")
MANY = range(60)


def sight(words: str, actions: tuple[str, ...]) -> str:
    """Word an observation as BabyAI does."""
    listed = ", ".join(f'"{action}"' for action in (*actions, "check available actions"))
    tail = "The room has walls around you. You are not carrying anything."
    return f"{words}{tail}\nAvailable actions: [{listed}]"


def opening(goal: str, words: str, actions: tuple[str, ...], *notes: str) -> list[BaseMessage]:
    """Begin an episode."""
    first = f"{render_block(notes)}Your goal: {goal}\n{sight(words, actions)}"
    return [SystemMessage(prompt("act").render(instructions=INSTRUCTIONS)), HumanMessage(first)]


def pick_up(*notes: str) -> list[BaseMessage]:
    """Begin an episode with a key in sight."""
    return opening("pick up the grey key", KEY, KEY_ACTIONS, *notes)


def open_door(*notes: str) -> list[BaseMessage]:
    """Begin an episode with a door to open."""
    return opening("open the red door", DOOR, DOOR_ACTIONS, *notes)


def go_to_door(*notes: str) -> list[BaseMessage]:
    """Begin an episode with a door to go to."""
    return opening("go to the red door", DOOR, DOOR_ACTIONS, *notes)


def unseen_key(*notes: str) -> list[BaseMessage]:
    """Begin an episode with a key out of sight and a door in sight."""
    return opening("pick up the key", DOOR, DOOR_ACTIONS, *notes)


def action_of(messages: list[BaseMessage], seed: int = 0, temperature: float = 0.5) -> str:
    """Return the action a model takes."""
    reply = SimulatedBabyAI(seed=seed, temperature=temperature).invoke(messages)
    return parse_reply(reply.text).action


def actions_of(messages: list[BaseMessage]) -> set[str]:
    """Return the actions that models of many seeds take."""
    return {action_of(messages, seed) for seed in MANY}


def after(messages: list[BaseMessage], action: str, observation: str) -> list[BaseMessage]:
    """Go on with an episode."""
    return [*messages, AIMessage(f"Thought: \nAction: {action}"), HumanMessage(observation)]


def attempt(task: str, *turns: tuple[str, str], result: str) -> str:
    """Write out an attempt as memory keeps it."""
    lines = [f"Task: {task}", f"Observation: Your goal: {task}"]
    for action, observation in turns:
        lines += [f"Action: {action}", f"Observation: {observation}"]
    return "\n".join([*lines, f"Result: {result}"])


REFUSED = "The action is not recognized. Please check valid actions."
FETCHED = attempt("pick up the red ball", ("pickup red ball 1", "ok"), result="success")
REACHED = attempt("go to the blue door", ("go to blue closed door 1", "ok"), result="success")
OPENED = attempt(
    "open the blue door", ("go to blue closed door 1", "ok"), ("toggle", "ok"), result="success"
)
EXPLORED = attempt(
    "pick up the ball",
    ("toggle and go through red closed door 1", "ok"),
    ("pickup red ball 1", "ok"),
    result="success",
)
TURNED = attempt(
    "pick up the ball", ("turn left", "ok"), ("pickup red ball 1", "ok"), result="success"
)


def test_taking_without_advice_follows_the_instructions() -> None:
    """Whatever the seed, the first try uses the spelling of the instructions."""
    assert actions_of(pick_up()) == {"pick up grey key 1"}


def test_taking_when_refused_notices_the_list_about_half_the_time() -> None:
    """After a refusal some draws find the listed spelling and the others try other words."""
    messages = after(pick_up(), "pick up grey key 1", REFUSED)
    taken = [action_of(messages, seed) for seed in range(200)]
    assert set(taken) == {"pickup grey key 1", "go to grey key 1"}
    assert 70 < taken.count("pickup grey key 1") < 130


def test_taking_when_the_instructions_have_the_right_spelling_follows_them() -> None:
    """The spelling comes from the system prompt, not from the rules."""
    told = [SystemMessage("pickup <obj> <id>: take it. Thought: Action:"), *pick_up()[1:]]
    assert actions_of(told) == {"pickup grey key 1"}


def test_opening_without_advice_mostly_walks_through() -> None:
    """The ignorance about doors shows as two ways of acting."""
    taken = [action_of(open_door(), seed) for seed in range(200)]
    assert 90 < taken.count("toggle and go through red closed door 1") < 150
    assert set(taken) == {"toggle and go through red closed door 1", "go to red closed door 1"}


def test_going_to_a_door_without_advice_is_divided() -> None:
    """About half of the draws walk through a door they should only go to."""
    taken = [action_of(go_to_door(), seed) for seed in range(200)]
    assert 70 < taken.count("go to red closed door 1") < 130


def test_search_without_advice_seldom_leaves_the_room_at_once() -> None:
    """No draw goes through a door before it has turned or moved."""
    assert actions_of(unseen_key()) <= set(ACTIONS)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (pick_up("- When the goal is to pick up an object: use 'pickup', one word."), "pickup"),
        (pick_up("to pick something up write pickup as one word"), "pickup"),
        (pick_up(FETCHED), "pickup"),
        (pick_up(EXPLORED), "pickup"),
        (go_to_door("When you have to go to a door: 'go to' is enough, stop there."), "go to"),
        (go_to_door(REACHED), "go to"),
        (go_to_door(OPENED), "go to"),
        (open_door("To open a door, go to it and toggle it."), "go to"),
        (open_door("When asked to open a door: use 'toggle and go through'."), "toggle and"),
        (unseen_key("If an object is not in view, go through doors to other rooms."), "toggle and"),
        (unseen_key("When the object is out of sight: turn around in place."), "turn left"),
        (unseen_key(EXPLORED), "toggle and"),
        (unseen_key(TURNED), "turn left"),
    ],
)
def test_notes_that_fit_replace_the_draw(messages: list[BaseMessage], expected: str) -> None:
    """Matching advice and imitated successes decide for every seed."""
    assert all(action.startswith(expected) for action in actions_of(messages))


def test_opening_with_advice_toggles_before_the_door() -> None:
    """Advised to toggle, it does so once it stands in front of the door."""
    facing = f"{NO_KEY}There is a red closed door 1 right in front of you 1 steps away.  "
    messages = after(
        open_door("- When the goal is to open a door: go to it, then use 'toggle'."),
        "go to red closed door 1",
        sight(facing, (*DOOR_ACTIONS, "toggle")),
    )
    assert actions_of(messages) == {"toggle"}


@pytest.mark.parametrize(
    "note",
    [
        "- When the goal is to pick up an object: use 'pickup', one word.",
        "- When the goal is to go to a door: 'go to' is enough; stop in front of it.",
        "- When you have to go to a key: go to it and stop there.",
        "The weather was calm on that day. Trains leave on the hour.",
        "Read the list of available actions with care.",
        attempt("pick up the red ball", ("pick up red ball 1", REFUSED), result="failure"),
    ],
)
def test_notes_about_something_else_leave_the_draw_as_it_is(note: str) -> None:
    """Advice for other goals, filler and others' failures decide nothing."""
    assert len(actions_of(open_door(note))) == 2


def test_success_of_another_kind_is_imitated_for_worse() -> None:
    """Shown how a door was gone to, it stops in front of the door it should open."""
    facing = f"{NO_KEY}There is a red closed door 1 right in front of you 1 steps away.  "
    messages = after(
        open_door(REACHED), "go to red closed door 1", sight(facing, (*DOOR_ACTIONS, "toggle"))
    )
    assert actions_of(messages) == {"go to red closed door 1"}


@pytest.mark.parametrize(
    "text",
    [
        "Task: pick up the ball\nAct: turn left\nObs: ok\nAct: pickup red ball 1\nResult: success",
        "**Task:** pick up the ball\n> turn left\nok\n> pickup red ball 1\nok\n**Outcome:** Success",
        "Task: pick up the ball\n1. turn left\n2. `pickup red ball 1`\nStatus: solved",
    ],
)
def test_attempt_when_formatted_otherwise_is_imitated_all_the_same(text: str) -> None:
    """Labels make no difference to what an attempt shows."""
    assert actions_of(pick_up(text)) == {"pickup grey key 1"}
    assert actions_of(unseen_key(text)) == {"turn left"}


@pytest.mark.parametrize("told", ["~ turn left ~", "It came to hand at last.", "Action: jump"])
def test_attempt_that_is_not_understood_changes_nothing_but_the_draw(told: str) -> None:
    """How an attempt searched is not guessed from steps that cannot be read."""
    messages = unseen_key(f"Task: pick up the ball\n{told}\nResult: success")
    assert len(actions_of(messages)) > 1


def test_failure_of_the_same_kind_is_avoided() -> None:
    """What failed first in a like attempt is not tried again."""
    passed = ("toggle and go through blue closed door 1", "ok")
    failed = attempt("go to the blue door", passed, result="failure")
    assert actions_of(go_to_door(failed)) == {"go to red closed door 1"}
    refused = attempt("pick up the red ball", ("pick up red ball 1", REFUSED), result="failure")
    assert actions_of(pick_up(refused)) == {"pickup grey key 1"}


def test_notes_that_disagree_are_settled_by_rank() -> None:
    """The first of two contrary lessons wins."""
    stay = "- When the object is not in view: turn around in place."
    leave = "- When the object is not in view: go through doors into other rooms."
    assert actions_of(unseen_key(stay, leave)) == {"turn left"}
    assert actions_of(unseen_key(leave, stay)) == {"toggle and go through red closed door 1"}


def test_advice_is_obeyed_within_the_episode_after_the_notes_are_gone() -> None:
    """A plan once stated is kept when notes are exchanged for others that are silent on it."""
    note = "- When the object is not in view: go through doors into other rooms."
    for seed in MANY:
        model = SimulatedBabyAI(seed=seed)
        first = model.invoke(unseen_key(note))
        later = [*unseen_key("Bread is baked early."), first, HumanMessage(sight(DOOR, ACTIONS))]
        assert "doors into rooms" not in model.invoke(later).text
        later = [*later[:2], first, HumanMessage(sight(DOOR, DOOR_ACTIONS))]
        assert action_of(later, seed).startswith("toggle and go through")


def test_same_messages_when_asked_again_get_the_same_reply() -> None:
    """A reply depends on seed and messages alone; other seeds may differ."""
    assert len({SimulatedBabyAI(seed=7).invoke(go_to_door()).text for _ in range(3)}) == 1
    assert len(actions_of(go_to_door())) == 2


def test_temperature_zero_takes_the_most_likely_option() -> None:
    """Without sampling the seed makes no difference."""
    greedy = {action_of(open_door(), seed, temperature=0.0) for seed in MANY}
    assert greedy == {"toggle and go through red closed door 1"}


async def test_async_reply_equals_the_sync_one_and_counts_tokens() -> None:
    """Both ways of asking give the same text and usage."""
    model = SimulatedBabyAI()
    one, other = model.invoke(pick_up()), await model.ainvoke(pick_up())
    assert one.text == other.text
    assert one.usage_metadata == other.usage_metadata
    assert one.usage_metadata is not None
    assert one.usage_metadata["input_tokens"] > one.usage_metadata["output_tokens"] > 0
    assert model.model_name == one.response_metadata["model_name"] == "simulated-babyai"


def review(task: str, outcome: str, *turns: tuple[str, str], first: str = "") -> list[BaseMessage]:
    """Ask for lessons of an attempt."""
    steps = [f"Observation: Your goal: {task}\n{first}"]
    steps += [f"Thought: x\nAction: {action}\nObservation: {seen}" for action, seen in turns]
    text = prompt("reflect").render(
        task=task, outcome=outcome, trajectory="\n".join(steps), limit="3"
    )
    return [HumanMessage(text)]


@pytest.mark.parametrize(
    ("asked", "episode", "expected"),
    [
        (
            review("pick up the key", "success", ("pickup grey key 1", "done"), first=KEY),
            pick_up,
            {"pickup grey key 1"},
        ),
        (
            review("go to the door", "success", ("go to red closed door 1", "x"), first=DOOR),
            go_to_door,
            {"go to red closed door 1"},
        ),
        (
            review("open a door", "success", ("go to red closed door 1", "x"), ("toggle", "x")),
            open_door,
            {"go to red closed door 1"},
        ),
        (
            review(
                "pick up the key",
                "success",
                ("toggle and go through red closed door 1", KEY),
                ("pickup grey key 1", "done"),
            ),
            unseen_key,
            {"toggle and go through red closed door 1"},
        ),
    ],
)
def test_lessons_of_success_make_the_learner_competent(
    asked: list[BaseMessage], episode: Callable[..., list[BaseMessage]], expected: set[str]
) -> None:
    """What it writes down after a success, in any wording, it can read and act on."""
    for seed in MANY:
        lessons, status = parse_lessons(SimulatedBabyAI(seed=seed).invoke(asked).text, 3)
        assert status == "ok"
        notes = [f"- When {lesson['when_to_use']}: {lesson['text']}" for lesson in lessons]
        assert {action_of(episode(*notes), other) for other in range(5)} == expected


def test_lessons_of_failure_are_right_only_sometimes() -> None:
    """From refused spellings some draws learn the right one, others nothing of use."""
    asked = review("pick up the key", "failure (x)", ("pick up grey key 1", REFUSED), first=KEY)
    texts = [SimulatedBabyAI(seed=seed).invoke(asked).text for seed in range(100)]
    right = sum("pickup" in text for text in texts)
    assert 40 < right < 80


def test_lessons_name_the_kind_of_goal() -> None:
    """A lesson can be found by the words of a goal of its kind."""
    asked = review(
        "open the red door", "failure (x)", ("toggle and go through red", "x"), first=DOOR
    )
    for seed in MANY:
        lessons = json.loads(SimulatedBabyAI(seed=seed).invoke(asked).text)
        assert len(lessons) <= 3
        assert "open a door" in lessons[0]["when_to_use"]


@given(st.text(max_size=300), st.lists(st.text(max_size=100), max_size=4))
def test_strange_messages_get_an_answer(system: str, others: list[str]) -> None:
    """No text makes it fail."""
    messages: list[BaseMessage] = [SystemMessage(system)]
    messages += [HumanMessage(t) if i % 2 else AIMessage(t) for i, t in enumerate(others)]
    assert SimulatedBabyAI().invoke(messages).text


@given(
    st.lists(
        st.sampled_from(
            [
                "Task:",
                "Action:",
                "Observation:",
                "Result: success",
                "When",
                "pickup",
                "\n",
                ":",
                "-",
            ]
        )
    )
)
def test_scrambled_notes_leave_a_legible_reply(parts: list[str]) -> None:
    """Whatever stands in the notes, the reply holds one action."""
    assert action_of(pick_up(" ".join(parts)))


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Reply with a JSON list and nothing else.", "[]"),
        ("Answer in JSON.", "{}"),
        ("Write Thought: and Action: lines.", "Thought: I do not understand the task."),
    ],
)
def test_unknown_prompts_get_a_reply_in_the_form_asked_for(text: str, reply: str) -> None:
    """A prompt it does not know is answered harmlessly."""
    assert SimulatedBabyAI().invoke(text).text.startswith(reply)


def test_source_knows_no_condition_provider_split_or_family() -> None:
    """Nothing in the package names what a study compares, so that no result is built in."""
    banned = (
        r"aggregate|individual|placebo|shuffl\w*|baseline|cond[-_ ]?\w*ind\b|cond[-_]\w+|transfer"
        r"|action_?obj_?door|find_?obj\w*|\btrain\w*|\btest\w*|(?<!\.)\bsplits?\b|held.?out|minigrid"
        r"|langgraft\.environments|memory\.providers|insight_?memory|trajectory_?memory|no_?memory"
        r"|\bdomain\b|task_id|episode_id|\b(?:200|299|199)\b"
    )
    files = sorted(Path(babyai.__file__).parent.glob("*.py"))
    assert len(files) > 4
    for file in files:
        found = re.findall(banned, file.read_text(encoding="utf-8"), re.IGNORECASE)
        assert not found, f"{file.name}: {found}"
