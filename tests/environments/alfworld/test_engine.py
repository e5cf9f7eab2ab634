"""The engine: what is shown, side by side with TextWorld, and what is left of it in a process."""

import dataclasses
import gc
import logging
import random
import sys
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alfworld_cases import game_of, needs_alfworld, one_of_each

from langgraft._core.canonical import digest
from langgraft._core.errors import GameError
from langgraft.environments.alfworld import environment as environment_module
from langgraft.environments.alfworld.engine import MOST_COPIES, Engine, Frame, TextWorldEngine, plan
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.installed import installed

pytestmark = needs_alfworld

INVALID = ("", "go to nowhere 1", "put {o} on {r}", "LOOK", "look\nlook", "take mug 1")


def script(game: Game, engine: Engine, seed: int = 0, turns: int = 4) -> list[str]:
    """Choose commands: the walkthrough, invalid ones, and random ones after a win."""
    chance = random.Random(seed)
    commands = [*game.walkthrough]
    commands.insert(chance.randrange(len(commands) + 1), chance.choice(INVALID))
    commands += [" look ", "inventory", chance.choice(INVALID)]
    frame = play(engine, commands)[-1]
    for _ in range(turns):
        commands.append(chance.choice(frame.commands))
        frame = engine.step(commands[-1])
    return commands


def play(engine: Engine, commands: Sequence[str]) -> list[Frame]:
    """Play from the start."""
    return [engine.reset(), *(engine.step(command) for command in commands)]


def shown(frames: Sequence[Frame]) -> str:
    """Digest all that was shown."""
    return digest([[each.feedback, list(each.commands), each.won, each.done] for each in frames])


@pytest.mark.parametrize(
    "family",
    [
        "pick_two_obj",
        pytest.param("look_at_obj", marks=pytest.mark.matrix),
        pytest.param("pick_heat_then_place", marks=pytest.mark.matrix),
    ],
)
def test_engine_when_fast_shows_what_textworld_shows(family: str) -> None:
    """Byte for byte: texts, admissible commands, whether it is won and done; bad input included."""
    game = game_of(family, seed=3)
    engine = open_engine(game)
    commands = script(game, engine, seed=len(family))
    plain = open_engine(game, fast=False)
    assert play(engine, commands) == play(plain, commands)
    engine.close()
    plain.close()


def test_transcripts_when_the_packages_are_those_pinned_are_those_recorded() -> None:
    """A change of a package, of the generator or of this engine shows here."""
    digests = [
        shown(play(engine, script(game, engine)))[:16]
        for game in one_of_each()
        for engine in [open_engine(game)]
    ]
    assert digest(digests)[:16] == "5abbf11026808502"


def test_game_when_lost_again_after_winning_says_so() -> None:
    """`won` is the goal now; the engine plays on."""
    game = game_of("pick_and_place")
    engine = open_engine(game)
    frames = play(engine, game.walkthrough)
    assert (frames[-1].won, frames[-1].done) == (True, True)
    assert not any(frame.won or frame.done for frame in frames[:-1])
    back = engine.step(game.walkthrough[-1].replace("move", "take").replace(" to ", " from "))
    assert back.feedback.startswith("You pick up")
    assert (back.won, back.done) == (False, False)


def test_episodes_when_many_run_in_threads_are_as_played_alone() -> None:
    """Sixteen at once, some of the same game."""
    games = [game_of(family, seed) for family in FAMILIES for seed in range(2)] + [
        game_of("pick_two_obj")
    ] * 4

    def episode(number: int) -> str:
        game = games[number]
        engine = open_engine(game)
        frames = play(engine, [*game.walkthrough, *INVALID[:2]])
        engine.close()
        return shown(frames)

    alone = [episode(number) for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(episode, range(16))) == alone


def test_sessions_when_more_than_copies_of_the_library_keep_their_own_state() -> None:
    """A session whose copy went to another goes on where it stood."""
    game = game_of("pick_cool_then_place")
    expected = play(open_engine(game), game.walkthrough)
    sessions = [open_engine(game) for _ in range(MOST_COPIES + 3)]
    seen = [[session.reset()] for session in sessions]
    for turn, command in enumerate(game.walkthrough):
        for frames, session in zip(seen, sessions, strict=True):
            frames.append(session.step(command))
        assert all(frames[-1] == expected[turn + 1] for frames in seen)
    assert all(frames == expected for frames in seen)


@pytest.mark.parametrize("fast", [True, False])
def test_engine_when_closed_opens_again_at_a_reset(fast: bool) -> None:
    """And until then there is no game to command."""
    game = game_of()
    engine = open_engine(game, fast=fast)
    with pytest.raises(RuntimeError, match="has not begun"):
        engine.step("look")
    first = engine.reset()
    engine.step(first.commands[0])
    engine.close()
    engine.close()
    with pytest.raises(RuntimeError, match="has not begun"):
        engine.step("look")
    assert engine.reset() == first


def test_process_when_games_are_played_is_left_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file, no change of what the interpreter holds, nothing printed; closed or collected."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    arguments, stdout = sys.argv, sys.stdout
    packages = installed()
    parts = [
        (packages.downward, "pddl2sas"),
        (packages.downward, "load_lib"),
        (packages.interface, "CapturingStdout"),
        (packages.text, "_parse_and_convert"),
        (packages.text, "copy_context"),
        (packages.text.EvalSymbol, "derive"),
    ]
    before = [getattr(owner, name) for owner, name in parts]
    for fast in (True, False):
        game = game_of("look_at_obj", seed=7)
        engine = open_engine(game, fast=fast)
        play(engine, game.walkthrough[:2])
        if fast:
            engine.close()
        del engine
        gc.collect()
    assert [getattr(owner, name) for owner, name in parts] == before
    assert (sys.argv, sys.stdout) == (arguments, stdout)
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr() == ("", "")


def test_prints_of_other_threads_when_a_game_is_loaded_come_through(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The translator takes the process's standard output; others keep theirs."""
    stop = threading.Event()
    printed = 0

    def talk() -> None:
        nonlocal printed
        while not stop.is_set():
            sys.stdout.write("still here\n")
            printed += 1
            stop.wait(0.005)

    talker = threading.Thread(target=talk)
    talker.start()
    while printed < 2:
        open_engine(game_of("look_at_obj", seed=8)).close()
    stop.set()
    talker.join()
    assert capsys.readouterr().out == "still here\n" * printed


@pytest.mark.skipif(
    sys.version_info >= (3, 13), reason="TextWorld 1.7.0 by itself plays on Python 3.12 or older"
)
def test_textworld_when_used_beside_the_engine_is_its_own() -> None:
    """Somebody's own environment plays in full, between our calls and with its own state."""
    packages, game = installed(), game_of("pick_two_obj")
    expected = play(open_engine(game), game.walkthrough)
    infos = packages.core.EnvInfos(won=True, admissible_commands=True, policy_commands=True)
    own = packages.alfred.AlfredDemangler(packages.pddl.PddlEnv(infos))
    own.load(game.as_data())
    engine = open_engine(game_of("pick_heat_then_place"))
    engine.reset()
    state = own.reset()
    assert state["policy_commands"]  # which needs the translation that the fast engine leaves out
    for command, frame in zip(game.walkthrough, expected[1:], strict=True):
        engine.step("look")
        state, _, done = own.step(command)
        assert (state.feedback, state["won"], done) == (frame.feedback, frame.won, frame.done)


def test_engine_when_textworld_is_not_the_known_one_falls_back_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The installed one plays; whoever asked for it gets no warning."""
    other = dataclasses.replace(installed(), doubt="textworld 9.9 is installed, not 1.7.0")
    monkeypatch.setattr(environment_module, "installed", lambda: other)
    environment_module._say_once.cache_clear()
    with caplog.at_level(logging.WARNING):
        engines = [open_engine(game_of(), fast=fast) for fast in (False, True, True)]
    assert all(isinstance(engine, TextWorldEngine) for engine in engines)
    (record,) = caplog.records
    assert record.message.endswith(f"as it is, which is slow: {other.doubt}")


@pytest.mark.parametrize("fast", [True, False])
def test_engine_when_a_game_is_unknown_or_damaged_refuses_it(fast: bool) -> None:
    """A grammar may hold code, and PDDL that does not parse would end the process."""
    game = game_of()
    spoken = dataclasses.replace(game, grammar=game.grammar.replace("{o.name}", "{exit()}", 1))
    cut = dataclasses.replace(game, problem=game.problem[: len(game.problem) // 2])
    for bad, reason in ((spoken, "not played"), (cut, "cannot load")):
        with pytest.raises(GameError, match=reason):
            open_engine(bad, fast=fast)


def with_goal(game: Game, goal: str) -> Game:
    """Give a game another goal in PDDL."""
    start, _ = game.problem.split("(:goal")
    return dataclasses.replace(game, problem=f"{start}(:goal {goal}))")


@pytest.mark.parametrize("family", ["pick_clean_then_place", "look_at_obj"])
def test_plan_when_played_wins(family: str) -> None:
    """Its commands are admissible, and the last one reaches the goal."""
    game = game_of(family, seed=5)
    engine = open_engine(game)
    frame = engine.reset()
    commands = plan(game)
    for command in commands:
        assert command in frame.commands
        assert not frame.won
        frame = engine.step(command)
    assert frame.won


def test_plan_when_there_is_none_says_so() -> None:
    """A goal that nothing leads to is an error."""
    game = with_goal(game_of(), "(exists (?o - object) (and (isHot ?o) (isSliced ?o)))")
    with pytest.raises(GameError, match="cannot be won"):
        plan(game)


def test_plan_when_the_goal_holds_at_the_start_is_empty() -> None:
    """Nothing has to be done."""
    game = with_goal(game_of(), "(exists (?r - receptacle) (openable ?r))")
    assert plan(game) == ()
