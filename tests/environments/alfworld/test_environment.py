"""An episode of ALFWorld: what is shown, what is taken, how it ends."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import get_args

import pytest
from alfworld_cases import game_of, needs_alfworld, one_of_each
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld import AlfworldEnvironment, GeneratedALFWorld, Semantics
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.games import FAMILIES
from langgraft.environments.alfworld.semantics import CONVENTIONS, convention_of, without_location
from langgraft.environments.text import TextEnvironment, Transition

pytestmark = needs_alfworld

NAMES: tuple[Semantics, ...] = get_args(Semantics)
NOTHING = "Nothing happens."
FAMILY_NAMES = tuple(FAMILIES)


def played(episode: AlfworldEnvironment, *actions: str) -> list[Transition]:
    """Play a script from the start."""
    episode.reset()
    return [episode.step(action) for action in actions]


@pytest.mark.parametrize("semantics", NAMES)
def test_game_when_the_walkthrough_is_played_is_won_in_every_family(semantics: Semantics) -> None:
    """The last command wins, and only then is there a reward and an end."""
    for game in one_of_each():
        episode = AlfworldEnvironment(game, semantics)
        assert isinstance(episode, TextEnvironment)
        *before, last = played(episode, *game.walkthrough)
        assert (last.reward, last.done, last.success) == (1.0, True, True)
        assert last.info == {"valid": True, "command": game.walkthrough[-1], "won_now": True}
        assert not any(turn.reward or turn.done or turn.success for turn in before)
        assert all(turn.info["valid"] for turn in before)


def test_difficulty_is_the_commands_of_the_walkthrough() -> None:
    """Of a generated game, by its task id; a game that is not there is named."""
    world = GeneratedALFWorld()
    game = world.games().find("pick_and_place", "17")
    assert world.difficulty("alfworld-generated/pick_and_place/17") == len(game.walkthrough) > 0
    with pytest.raises(SettingsError, match="no generated game 'none'"):
        world.difficulty("alfworld-generated/pick_and_place/none")


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_first_text_when_shown_in_compat_has_room_task_and_list_but_no_banner(family: str) -> None:
    """As AgentGym shows it: the welcome is cut, paragraphs become lines, commands follow."""
    game = game_of(family)
    start = AlfworldEnvironment(game).reset()
    room, task, listed = start.observation.split("\n")
    assert room.startswith("You are in the middle of a room. Looking quickly around you, you see a")
    assert task == f"Your task is to: {game.goal}."
    assert listed == "AVAILABLE ACTIONS: " + ",".join(start.actions)
    assert start.instruction == game.goal
    assert {"help", "inventory", "look"} <= set(start.actions)


def test_later_texts_when_shown_differ_by_semantics_in_the_list_alone() -> None:
    """`compat` lists once, `listed` at every turn, `current` at the latest alone, `react` never; the
    engine's words are the same.
    """  # noqa: D205
    game = game_of()
    engine = open_engine(game, fast=False)
    frames = [engine.reset(), *map(engine.step, game.walkthrough)]
    for name in NAMES:
        episode = AlfworldEnvironment(game, name)
        start, turns = episode.reset(), list(map(episode.step, game.walkthrough))
        told = "\n".join(frames[0].feedback.split("\n\n")[1:])
        lists = [f" AVAILABLE ACTIONS: {chr(10).join(frame.commands)}\n" for frame in frames]
        first = {
            "compat": f"{told}\nAVAILABLE ACTIONS: {','.join(frames[0].commands)}",
            "listed": told + lists[0],
            "current": told,
            "react": told,
        }
        now = [start.shown_now, *(turn.shown_now for turn in turns)]
        assert now[:-1] == [
            f"AVAILABLE ACTIONS: {','.join(frame.commands)}" if name == "current" else ""
            for frame in frames[:-1]
        ]
        assert now[-1] == "", "nothing can be done after the end"
        assert start.observation == first[name]
        assert [turn.observation for turn in turns] == [
            frame.feedback + (following if name == "listed" else "")
            for frame, following in zip(frames[1:], lists[1:], strict=True)
        ]
        assert [turn.actions for turn in turns] == [frame.commands for frame in frames[1:]]


@pytest.mark.parametrize(
    ("name", "rounds"), [("compat", 30), ("listed", 20), ("current", 30), ("react", 49)]
)
def test_rounds_when_not_given_are_those_of_the_convention(name: Semantics, rounds: int) -> None:
    """AgentGym's 30, twice, AgentBench's 20, ReAct's 49; any other number can be asked for."""
    assert AlfworldEnvironment(game_of(), name).max_rounds == rounds
    assert AlfworldEnvironment(game_of(), name, max_rounds=7).max_rounds == 7


@pytest.mark.parametrize("name", NAMES)
def test_instructions_when_read_say_how_to_play_and_leave_the_reply_format_open(
    name: Semantics,
) -> None:
    """They tell what invalid looks like; where no list is shown at each turn, they name the commands."""
    text = AlfworldEnvironment(game_of(), name).instructions
    assert "Nothing happens" in text
    for absent in ("Thought:", "Action:", "<set down>", "$"):
        assert absent not in text
    assert ("move <object> to <receptacle>" in text) == (name in {"compat", "react"})
    assert ("think: " in text) == (name == "react")


NOT_ADMISSIBLE = {
    "empty": "",
    "blanks": "  \t ",
    "prose": "I would like to look around",
    "another case": "Look",
    "a period": "look.",
    "quotes": '"look"',
    "a code mark": "`look`",
    "two blanks": "go  to fridge 1",
    "two commands": "look, inventory",
    "a thing that is not there": "take dragon 1 from desk 1",
    "not there yet": "put mug 1 in/on desk 1",
    "NUL": "look\x00",
    "binary": "".join(map(chr, range(256))),
    "half of a surrogate pair": "look \ud83d",
    "right to left": "\u202elook",
    "overlong": "look " * 100_000,
    "an expression": "{__import__('os').abort()}",
    "a rule of the grammar": "#look.feedback#",
    "PDDL": "(lookaction agent1)",
    "a think action": "think: where could it be?",
}


@pytest.mark.parametrize("action", [pytest.param(each, id=k) for k, each in NOT_ADMISSIBLE.items()])
def test_action_when_it_is_not_admissible_is_answered_and_changes_nothing(action: str) -> None:
    """Whatever a model writes, the world says so and is as it was."""
    game = game_of("pick_and_place")
    episode = AlfworldEnvironment(game)
    start = episode.reset()
    turn = episode.step(action)
    assert (turn.observation, turn.reward, turn.done) == (NOTHING, 0.0, False)
    assert turn.info == {"valid": False, "command": None, "won_now": False}
    assert turn.actions == start.actions
    assert [episode.step(each).done for each in game.walkthrough][-1]


@pytest.mark.parametrize(
    ("name", "action", "valid"),
    [
        ("compat", " look \n", True),
        ("compat", "look</s>", True),
        ("compat", "look\ninventory", False),
        ("compat", "LOOK", False),
        ("listed", "  LOOK ", True),
        ("listed", "Look\ninventory", True),
        ("listed", "look.", False),
        ("react", " look ", True),
        ("react", "look\ninventory", True),
        ("react", "Look", False),
    ],
)
def test_action_when_cleaned_is_cleaned_as_the_convention_does(
    name: Semantics, action: str, *, valid: bool
) -> None:
    """Blanks go in all; case in `listed`; what follows the first line in `listed` and `react`."""
    (turn,) = played(AlfworldEnvironment(game_of(), name), action)
    assert turn.info["valid"] is valid
    assert turn.observation.startswith(NOTHING) is not valid


@given(st.text(), st.sampled_from(NAMES))
def test_action_when_cleaned_twice_is_as_cleaned_once(action: str, name: Semantics) -> None:
    """Cleaning ends: only `compat` may have another end mark to take away."""
    convention = convention_of(name)
    once = convention.cleaned(action)
    assert convention.cleaned(once) == once or once.endswith("</s>")
    assert once in action or name == "listed"


def test_think_when_said_in_react_is_answered_ok_and_changes_nothing() -> None:
    """A thought costs a round and is no valid command; elsewhere it is not understood."""
    episode = AlfworldEnvironment(game_of(), "react")
    start = episode.reset()
    turn = episode.step("think: a sponge may be in the sink")
    assert (turn.observation, turn.info["valid"], turn.actions) == ("OK.", False, start.actions)
    assert not turn.done


def test_help_when_asked_for_lists_the_commands() -> None:
    """The engine's own help is a command like any other."""
    (turn,) = played(AlfworldEnvironment(game_of()), "help")
    assert turn.info["valid"]
    assert "Available commands:" in turn.observation


@pytest.mark.parametrize(
    "spelled",
    ["put {} in/on {}", "put {} in {}", "place {} on {}", "move {} to {}", "put {} into {}"],
)
def test_thing_when_it_is_set_down_in_either_dialect_is_set_down(spelled: str) -> None:
    """The game decides which words it wants; the environment says it in those."""
    game = game_of("pick_and_place")
    *way, last = game.walkthrough
    thing, place = (
        last.removeprefix("move ").removeprefix("put ").replace("in/on", "to").split(" to ")
    )
    *_, turn = played(AlfworldEnvironment(game), *way, spelled.format(thing, place))
    assert turn.success
    assert turn.info["command"] == last


def test_location_when_an_older_game_names_it_is_cut() -> None:
    """Release json_2.1.1 tells a number of no use; later ones tell the receptacle."""
    assert without_location("You arrive at loc 12. On the bed 1, you see a cd 1.") == (
        "On the bed 1, you see a cd 1."
    )
    for told in ("You arrive at bed 1. On the bed 1, you see nothing.", NOTHING, ""):
        assert without_location(told) == told


def test_step_when_no_episode_runs_is_refused() -> None:
    """Before `reset`, after the end and after `close` a step raises and says what to do."""
    game = game_of("pick_and_place")
    episode = AlfworldEnvironment(game)
    with pytest.raises(RuntimeError, match=r"pick_and_place/0: call reset\(\)"):
        episode.step("look")
    played(episode, *game.walkthrough)
    with pytest.raises(RuntimeError, match="has ended"):
        episode.step("look")
    episode.reset()
    assert not episode.step("look").done
    episode.close()
    episode.close()
    with pytest.raises(RuntimeError, match=r"call reset\(\)"):
        episode.step("look")
    assert episode.reset() == AlfworldEnvironment(game).reset()


@pytest.mark.parametrize("fast", [True, False])
def test_game_when_nothing_leads_to_its_goal_is_refused_at_the_start(*, fast: bool) -> None:
    """It says that it can be solved, and nothing in it can be cleaned."""
    game = game_of("pick_clean_then_place")
    barren = replace(game, problem=re.sub(r"\(cleanable \w+\)", "", game.problem))
    with pytest.raises(GameError, match="cannot be won"):
        AlfworldEnvironment(barren, fast=fast).reset()
    assert AlfworldEnvironment(game, fast=fast).reset().actions


def test_episodes_when_played_at_once_do_not_disturb_one_another() -> None:
    """Sixteen episodes in eight threads say what each says alone."""

    def transcript(number: int) -> list[Transition]:
        game = one_of_each()[number % 6]
        return played(AlfworldEnvironment(game), "inventory", *game.walkthrough)

    alone = [transcript(number) for number in range(6)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(transcript, range(16)))
    assert together == [alone[number % 6] for number in range(16)]


BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: AlfworldEnvironment(game_of(), "fixed"), "semantics 'fixed'"),  # type: ignore[arg-type]
    (lambda: AlfworldEnvironment(game_of(), None), "semantics None"),  # type: ignore[arg-type]
    (lambda: AlfworldEnvironment(game_of(), []), "semantics []"),  # type: ignore[arg-type]
    (lambda: AlfworldEnvironment(game_of(), max_rounds=0), "max_rounds must be"),
    (lambda: AlfworldEnvironment(game_of(), max_rounds=True), "max_rounds must be"),
    (lambda: AlfworldEnvironment(game_of(), max_rounds=2.5), "max_rounds must be"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("build", "named"), BAD)
def test_bad_setting_when_given_is_refused_by_name(build: Callable[[], object], named: str) -> None:
    """What is wrong and what there is, in one line, before a game is opened."""
    with pytest.raises(SettingsError) as caught:
        build()
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_conventions_when_listed_are_those_that_can_be_named() -> None:
    """The type and the table do not drift apart."""
    assert tuple(CONVENTIONS) == NAMES
