"""`SimulatedALFWorld`: the documented rules are the rules it plays by."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from langgraft.benchmarks.simulated import SimulatedALFWorld, alfworld
from langgraft.benchmarks.simulated.alfworld.advice import counsel_for
from langgraft.benchmarks.simulated.alfworld.habits import Care, Goal, Kind, parse_goal
from langgraft.memory.recall import render_block
from langgraft.nodes.prompts import prompt
from langgraft.nodes.reflect import parse_lessons
from langgraft.nodes.text_world import parse_reply

ROOM = "You are in the middle of a room. Looking quickly around you, you see {}."
PLACES = (
    "a cabinet 2, a cabinet 1, a countertop 1, a desk 1, a fridge 1, a microwave 1, a sinkbasin 1"
)
CLEAN = "put a clean mug in desk"
MANY = range(150)


def opening(goal: str, *notes: str, room: int = 0) -> list[BaseMessage]:
    """Begin an episode; the number of the room makes it another task."""
    room_told = ROOM.format(f"{PLACES}, and a toaster {room + 1}")
    first = f"{render_block(notes)}{room_told}\nYour task is to: {goal}."
    return [SystemMessage(prompt("act").render(instructions="…")), HumanMessage(first)]


def after(messages: list[BaseMessage], *turns: tuple[str, str]) -> list[BaseMessage]:
    """Go on with an episode."""
    for action, observation in turns:
        messages = [*messages, AIMessage(f"Thought: \nAction: {action}"), HumanMessage(observation)]
    return messages


SEEN = ("go to countertop 1", "You arrive at countertop 1. On the countertop 1, you see a mug 1.")
TAKEN = ("take mug 1 from countertop 1", "You pick up the mug 1 from the countertop 1.")


def holding(goal: str, *notes: str, room: int = 0) -> list[BaseMessage]:
    """Go on to where a mug is in hand."""
    return after(opening(goal, *notes, room=room), SEEN, TAKEN)


def action_of(messages: list[BaseMessage], seed: int = 900, **settings: float) -> str:
    """Return the action a model takes."""
    return parse_reply(SimulatedALFWorld(seed=seed, **settings).invoke(messages).text).action


def next_actions(goal: str, *notes: str, mimicry: float = 0.8) -> Counter[str]:
    """Return what is done with a mug in hand, over many tasks."""
    return Counter(action_of(holding(goal, *notes, room=room), mimicry=mimicry) for room in MANY)


def attempt(task: str, *turns: tuple[str, str], result: str = "success") -> str:
    """Write out an attempt as memory keeps it."""
    lines = [f"Task: {task}", f"Observation: {ROOM.format(PLACES)}"]
    for action, observation in turns:
        lines += [f"Action: {action}", f"Observation: {observation}"]
    return "\n".join([*lines, f"Result: {result}"])


PUT = ("move mug 1 to desk 1", "You move the mug 1 to the desk 1.")
WASHED = ("clean mug 1 with sinkbasin 1", "You clean the mug 1 using the sinkbasin 1.")
PLACED = attempt("put a mug in desk", SEEN, TAKEN, PUT)
CLEANED = attempt("put a clean mug in shelf", SEEN, TAKEN, WASHED, PUT)
FAILED = attempt(CLEAN, SEEN, TAKEN, PUT, result="failure")


@pytest.mark.parametrize(
    ("sentence", "goal"),
    [
        ("put a bowl in fridge", Goal(Kind.PLACE, "bowl", "fridge")),
        ("put some spraybottle on toilet", Goal(Kind.PLACE, "spraybottle", "toilet")),
        ("put a clean bowl in fridge", Goal(Kind.CLEAN, "bowl", "fridge")),
        (
            "clean some cloth and put it in bathtubbasin",
            Goal(Kind.CLEAN, "cloth", "bathtubbasin"),
        ),
        ("put a hot egg in garbagecan", Goal(Kind.HEAT, "egg", "garbagecan")),
        ("heat some egg and put it in garbagecan", Goal(Kind.HEAT, "egg", "garbagecan")),
        ("put a cool pan in stoveburner", Goal(Kind.COOL, "pan", "stoveburner")),
        ("cool some pan and put it in stoveburner", Goal(Kind.COOL, "pan", "stoveburner")),
        ("put two cd in safe", Goal(Kind.PAIR, "cd", "safe")),
        ("find two cd and put them in safe", Goal(Kind.PAIR, "cd", "safe")),
        ("look at cd under the desklamp", Goal(Kind.LIGHT, "cd", "desklamp")),
        ("examine the cd with the desklamp", Goal(Kind.LIGHT, "cd", "desklamp")),
    ],
)
def test_goal_when_worded_in_either_template_is_understood(sentence: str, goal: Goal) -> None:
    """All six kinds of goal are read, in both wordings."""
    assert parse_goal(f"Your task is to: {sentence}.") == goal


def test_step_without_advice_is_left_out_at_about_the_declared_rate() -> None:
    """It cleans in somewhat more than half of the tasks, and sometimes fumbles."""
    actions = next_actions(CLEAN)
    assert set(actions) == {"go to desk 1", "go to sinkbasin 1"}
    washed = sinkward(CLEAN)
    fumbled = actions["go to sinkbasin 1"] / actions.total() - washed
    assert 0.45 < washed < 0.7
    assert 0.02 < fumbled < 0.2


def sinkward(goal: str, *notes: str, mimicry: float = 0.8) -> float:
    """Return how often a mug is washed, once the sinkbasin is reached."""
    there = ("go to sinkbasin 1", "You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.")
    washed = 0
    for room in MANY:
        begun = holding(goal, *notes, room=room)
        if action_of(begun, mimicry=mimicry) == there[0]:
            washed += action_of(after(begun, there), mimicry=mimicry) == WASHED[0]
    return washed / len(MANY)


def test_plain_goal_when_the_thing_is_in_hand_goes_straight_to_its_place() -> None:
    """Nothing but putting it down is thought necessary."""
    assert set(next_actions("put a mug in desk")) == {"go to desk 1"}


def test_attempt_without_the_step_is_followed_more_with_more_mimicry() -> None:
    """What pollutes is the example: the more it is followed, the less is cleaned."""
    shares = [sinkward(CLEAN, PLACED, mimicry=mimicry) for mimicry in (0, 0.4, 0.8)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == sinkward(CLEAN)
    assert shares[0] - shares[2] > 0.04


def test_attempt_with_the_step_is_followed() -> None:
    """An example of cleaning is what most of those need who would not clean."""
    assert sinkward(CLEAN, CLEANED) > 0.85
    assert sinkward(CLEAN, CLEANED, mimicry=0) == sinkward(CLEAN)


def test_firm_grasp_seldom_gives_way_to_a_foreign_attempt() -> None:
    """So what harm an example does, it does mostly where the step is not firmly known."""
    rooms = [holding(CLEAN, room=room) for room in MANY]
    polluted = [holding(CLEAN, PLACED, room=room) for room in MANY]
    knew = [all(action_of(m, seed=s) == "go to sinkbasin 1" for s in range(5)) for m in rooms]
    lost = [action_of(m, mimicry=1) != "go to sinkbasin 1" for m in polluted]
    easy = [lost[i] for i in MANY if knew[i]]
    hard = [lost[i] for i in MANY if not knew[i]]
    assert sum(easy) / len(easy) < 0.2
    assert sum(hard) / len(hard) > 0.7


def test_failure_of_the_same_kind_teaches_the_step_half_of_the_time() -> None:
    """A failed attempt is no example; what it lacks is seen now and then."""
    assert sinkward(CLEAN) < sinkward(CLEAN, FAILED) < sinkward(CLEAN, CLEANED)


def steps_of(text: str) -> list[tuple[str, str]]:
    """Return the actions and observations of an attempt as memory keeps it."""
    lines = [line.partition(": ")[2] for line in text.splitlines()[2:-1]]
    return list(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.parametrize(
    "form",
    [
        "Act: {action}\nObs: {seen}",
        "**Action {n}:** `{action}`\n**Observation {n}:** {seen}",
        "[Action] {action}\n[Observation] {seen}",
        '"action": "{action}",\n"observation": "{seen}"',
        "> {action}\n{seen}",
        "Step {n}: {action}",
        "{n}. {action}",
    ],
)
@pytest.mark.parametrize("text", [PLACED, CLEANED, FAILED])
def test_attempt_when_formatted_otherwise_shows_the_same(form: str, text: str) -> None:
    """What an attempt teaches is in its steps, not in how they are labeled."""
    told = (form.format(n=n, action=a, seen=s) for n, (a, s) in enumerate(steps_of(text), 1))
    first, *_, last = text.splitlines()
    again = "\n".join([first, *told, last.replace("Result", "**Outcome**")])
    assert counsel_for(Kind.CLEAN, "mug", again) == counsel_for(Kind.CLEAN, "mug", text)


@pytest.mark.parametrize(
    ("text", "care"),
    [
        (
            "I took the mug from the shelf, cleaned it with the sinkbasin and put it on the desk.",
            Care.DO,
        ),
        ("I took the mug from the shelf and put it on the desk.", Care.OMIT),
        ("I found the mug, dealt with it, and then put the mug on the desk.", None),
        ("~ take mug 1 from shelf 1 ~\n~ clean mug 1 ~\n~ move mug 1 to desk 1 ~", None),
        ("Action: take mug 1 from shelf 1", None),
        ("Action: move mug 1 to desk 1\nObservation: You cannot do that here.", None),
    ],
)
def test_attempt_when_told_in_words_is_read_or_else_shows_nothing(
    text: str, care: Care | None
) -> None:
    """A step counts as left out only where all that was done is understood."""
    counsel = counsel_for(Kind.CLEAN, "mug", f"Task: put a mug in desk\n{text}\nResult: success")
    assert counsel.shown.care is care


def test_advice_behind_an_attempt_without_a_result_is_still_read() -> None:
    """An attempt ends where the next lesson begins."""
    cut = attempt(CLEAN, SEEN, result="").removesuffix("\nResult: ")
    lesson = "- When the task asks for a clean mug: clean it with the sinkbasin first."
    assert counsel_for(Kind.CLEAN, "mug", f"{cut}\n\n{lesson}").advised.care is Care.DO


@pytest.mark.parametrize(
    "advice",
    [
        "When you have to clean a thing: clean it with the sinkbasin before you put it down.",
        "For a clean cup: wash it in the sink first.",
        "Never put down a dirty thing without cleaning it with the sinkbasin.",
        "Take it to a sinkbasin and use 'clean <thing> with <sinkbasin>'.",
    ],
)
def test_advice_that_names_the_step_is_heeded(advice: str) -> None:
    """Told to clean, it cleans, whatever else it would have done."""
    assert sinkward(CLEAN, advice) == 1


@pytest.mark.parametrize(
    "note",
    [
        "When the task asks for a hot thing: heat it with the microwave before you put it down.",
        "When you are asked to put a thing on a desk: take it and go straight there.",
        "Be efficient, and do not repeat an action that failed.",
        "Once, a traveler crossed the mountains in winter.",
    ],
)
def test_notes_about_something_else_change_nothing(note: str) -> None:
    """The reply is the same to the letter with such a note and without."""
    for room in range(20):
        model = SimulatedALFWorld(seed=901)
        with_note = model.invoke(holding(CLEAN, note, room=room)).text
        assert with_note == model.invoke(holding(CLEAN, room=room)).text


def test_search_without_advice_is_divided_and_with_advice_begins_in_the_open() -> None:
    """Some sweep the room in its own order; told where to look first, all look there."""
    told = "Check countertops and tables first."
    own = Counter(action_of(opening("put a pen in fridge", room=room)) for room in MANY)
    assert 0.1 < own["go to cabinet 2"] / own.total() < 0.5
    advised = {action_of(opening("put a pen in fridge", told, room=room)) for room in MANY}
    assert advised == {"go to countertop 1"}


def test_where_an_attempt_found_things_is_looked_at_first() -> None:
    """A followed attempt shows where to look, too."""
    shown = attempt(
        "put a mug in desk",
        ("take mug 1 from microwave 1", "You pick up the mug 1 from the microwave 1."),
        PUT,
    )
    assert action_of(opening("put a mug in desk", shown), mimicry=1) == "go to microwave 1"


def test_closed_place_when_reached_is_opened_by_most_and_by_all_who_are_told() -> None:
    """A few leave what is closed for the end."""
    reached = ("go to cabinet 2", "You arrive at cabinet 2. The cabinet 2 is closed.")

    def opens(*notes: str) -> float:
        goal, first = "put a pen in desk", "Look in cabinets first."
        begun = [after(opening(goal, first, *notes, room=room), reached) for room in MANY]
        return sum(action_of(messages) == "open cabinet 2" for messages in begun) / len(begun)

    assert 0.8 < opens() < 1
    assert opens("Open closed places when you stand before them: open each drawer.") == 1


def test_setting_down_when_one_dialect_is_refused_uses_the_other() -> None:
    """`move … to` first, then `put … in/on`."""
    there = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see nothing.")
    begun = after(holding("put a mug in desk"), there)
    assert action_of(begun) == "move mug 1 to desk 1"
    refused = after(begun, ("move mug 1 to desk 1", "Nothing happens."))
    assert action_of(refused) == "put mug 1 in/on desk 1"


def test_advice_that_comes_late_is_still_heeded() -> None:
    """A thing that was put down as it was is taken up again, and cleaned."""
    there = ("go to desk 1", "You arrive at desk 1. On the desk 1, you see nothing.")
    advice = "Clean it with the sinkbasin before you put it down."
    told = after(holding(CLEAN, advice), there, PUT)
    assert action_of(told) == "take mug 1 from desk 1"


def test_decision_when_notes_are_gone_is_kept() -> None:
    """What it said it would do it does, without being told again."""
    told = SimulatedALFWorld(seed=1).invoke(holding(CLEAN, "Clean it with the sinkbasin first."))
    for room in range(30):
        begun = holding(CLEAN, room=room)
        begun.append(AIMessage(told.text))
        begun.append(
            HumanMessage("You arrive at sinkbasin 1. On the sinkbasin 1, you see nothing.")
        )
        assert action_of(begun) == WASHED[0]


def test_same_messages_when_asked_again_get_the_same_reply() -> None:
    """Nothing but messages, seed and temperature decides."""
    one = SimulatedALFWorld(seed=3).invoke(opening(CLEAN, PLACED))
    assert one.text == SimulatedALFWorld(seed=3).invoke(opening(CLEAN, PLACED)).text
    assert one.response_metadata["model_name"] == "simulated-alfworld"


async def test_async_reply_equals_the_sync_one() -> None:
    """Both interfaces give the same."""
    model = SimulatedALFWorld(seed=4)
    assert (await model.ainvoke(opening(CLEAN))).text == model.invoke(opening(CLEAN)).text


def test_mimicry_outside_a_probability_is_refused() -> None:
    """It is a chance."""
    with pytest.raises(ValueError, match="less than or equal to 1"):
        SimulatedALFWorld(mimicry=1.5)


def reflection(name: str, task: str, outcome: str, turns: Sequence[tuple[str, str]]) -> str:
    """Ask for lessons."""
    steps = "\n".join(f"Action: {a}\nObservation: {o}" for a, o in turns)
    other = "\n".join(f"Action: {a}\nObservation: {o}" for a, o in (SEEN, TAKEN, WASHED, PUT))
    values = {
        "task": task,
        "outcome": outcome,
        "trajectory": f"Observation: {ROOM.format(PLACES)}\n{steps}",
        "limit": "3",
        "other_task": task,
        "other_outcome": "success",
        "other_trajectory": f"Observation: {ROOM.format(PLACES)}\n{other}",
    }
    return prompt(name).render(**{k: v for k, v in values.items() if k in prompt(name).text})


def lessons_of(text: str, seed: int) -> list[str]:
    """Return lessons, situation and advice in a line."""
    reply = SimulatedALFWorld(seed=seed).invoke(text).text
    lessons, read = parse_lessons(reply, 3)
    assert read == "ok"
    return [f"When {lesson['when_to_use']}: {lesson['text']}" for lesson in lessons]


@pytest.mark.parametrize(
    ("name", "outcome", "turns", "low", "high"),
    [
        ("reflect", "success", (SEEN, TAKEN, WASHED, PUT), 0.5, 0.9),
        ("reflect_success", "success", (SEEN, TAKEN, WASHED, PUT), 0.5, 0.9),
        ("reflect", "failure (out of rounds)", (SEEN, TAKEN, PUT), 0.3, 0.7),
        ("reflect_failure", "failure (out of rounds)", (SEEN, TAKEN, PUT), 0.3, 0.7),
        ("reflect_comparative", "failure (out of rounds)", (SEEN, TAKEN, PUT), 0.75, 1),
    ],
)
def test_lessons_name_the_step_at_the_declared_rate_and_make_the_learner_competent(
    name: str, outcome: str, turns: Sequence[tuple[str, str]], low: float, high: float
) -> None:
    """What is right in a lesson is understood by the learner that wrote it."""
    asked = reflection(name, CLEAN, outcome, turns)
    steps = [
        line
        for seed in range(60)
        for line in lessons_of(asked, seed)
        if "clean" in line.partition(":")[2].lower()
    ]
    assert low < len(steps) / 60 <= high
    for line in sorted(set(steps)):
        assert action_of(holding(CLEAN, line, room=7)) == "go to sinkbasin 1", line


def test_validation_scores_every_lesson() -> None:
    """Lessons that advise something score higher than a commonplace, most of the time."""
    lessons = [
        {
            "lesson": 1,
            "when_to_use": "you have to clean a mug",
            "text": "Clean it with the sinkbasin first.",
        },
        {"lesson": 2, "when_to_use": "nothing works", "text": "Work step by step."},
    ]
    asked = prompt("validate").render(
        task=CLEAN,
        outcome="success",
        lessons="\n".join(json.dumps(each) for each in lessons),
        trajectory="Observation: x",
    )
    scores = [json.loads(SimulatedALFWorld(seed=seed).invoke(asked).text) for seed in range(30)]
    assert all([each["lesson"] for each in score] == [1, 2] for score in scores)
    assert sum(s[1]["score"] for s in scores) < sum(s[0]["score"] for s in scores) + 30


@given(
    st.lists(st.sampled_from([PLACED, CLEANED, FAILED, "Task:", "When", "Clean", "\ud800", "{"]))
)
def test_scrambled_notes_leave_a_legible_reply(parts: list[str]) -> None:
    """Whatever memory holds, there is one action."""
    assert action_of(opening(CLEAN, "\n".join(parts)))


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=60)), max_size=4))
def test_strange_worlds_get_an_answer(turns: list[tuple[str, str]]) -> None:
    """Observations of another make do not stop it."""
    assert action_of(after([HumanMessage("Your task is to: put a mug in desk.")], *turns))


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("Reply with a JSON list.", "[]"),
        ("Some JSON, please.", "{}"),
        ("Action: what now?", "Thought: "),
        ("Hello", "I can only"),
    ],
)
def test_unknown_prompts_get_a_reply_in_the_form_asked_for(text: str, reply: str) -> None:
    """A prompt it does not know is answered harmlessly."""
    assert SimulatedALFWorld().invoke(text).text.startswith(reply)


def test_source_knows_no_condition_provider_split_or_family() -> None:
    """Nothing in the package names what a study compares, so that no result is built in."""
    banned = (
        r"aggregate|individual|placebo|shuffl\w*|baseline|cond[-_ ]?\w*ind\b|cond[-_]\w+|transfer"
        r"|pick_\w+|look_at_\w+|valid_\w+|\btrain\w*|\btest\w*|(?<!\.)\bsplits?\b|held.?out|textworld"
        r"|langgraft\.environments|memory\.providers|insight_?memory|trajectory_?memory|no_?memory"
        r"|\bdomain\b|task_id|episode_id|\b(?:200|299|199)\b"
    )
    files = sorted(Path(alfworld.__file__).parent.glob("*.py"))
    assert len(files) > 4
    for file in files:
        found = re.findall(banned, file.read_text(encoding="utf-8"), re.IGNORECASE)
        assert not found, f"{file.name}: {found}"
