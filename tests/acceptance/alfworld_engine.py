"""ALFWorld's engine: real games won, shown as TextWorld shows them, and how fast."""

import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, islice
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import Final

from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.performance.environments import engine_times, generated_games
from langgraft.environments.alfworld import AlfworldEnvironment
from langgraft.environments.alfworld.engine import Engine, Frame, plan
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.game_files import PackLibrary, TreeLibrary
from langgraft.environments.alfworld.games import FAMILIES, Game

PACK: Final = "games-2.1.2.jsonl.xz"
ARCHIVE: Final = "games-2.1.1-put.tar.xz"
A_FAMILY: Final = (26, 25)
"""How many games of a family are played of each release: 306 in all."""
BOUND: Final = 8.0
AT_ONCE: Final = 16
INVALID: Final = ("", "go to nowhere 1", "put {o} on {r}", "LOOK", "nonsense")


@dataclass(frozen=True, slots=True)
class Played:
    """What came of a game."""

    name: str
    dialect: str
    won: bool
    """Through the environment, by the walkthrough or the planner's commands."""
    same: bool
    """Whether the fast engine showed what TextWorld shows."""
    calls: int


def measure_games(setting: Setting) -> list[Figure]:
    """Play real games of all six types and both dialects."""
    folder = _folder(setting)
    if not (folder / PACK).is_file() or not (folder / ARCHIVE).is_file():
        missing = f"not measured: `LANGGRAFT_DATA/alfworld` has no {PACK} and {ARCHIVE}"
        return [Figure("Real games of ALFWorld are won", "", missing, "", None)]
    games = _games(folder, setting)
    setting.say(f"{len(games)} real games of ALFWorld, fast and plain, in two processes")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        played = list(pool.map(_play, games))
    return [_won(played), _same(played), _at_once(games)]


def _folder(setting: Setting) -> Path:
    data = os.environ.get("LANGGRAFT_DATA", setting.checkout.parent / "shared" / "data")
    return Path(data) / "alfworld"


def _games(folder: Path, setting: Setting) -> list[Game]:
    """Choose games from all splits; at reduced size one a family, in either dialect by turns."""
    found: list[Game] = []
    for turn, library in enumerate((PackLibrary(folder / PACK), TreeLibrary(folder / ARCHIVE))):
        for number, family in enumerate(FAMILIES):
            if setting.reduced and number % 2 != turn:
                continue
            names = [each for split in library.splits() for each in library.names(family, split)]
            count = setting.size(A_FAMILY[turn], 1)
            chosen = names[:: max(1, len(names) // count)][:count]
            found += [library.find(family, name) for name in chosen]
    return found


def _play(game: Game) -> Played:
    winning = game.walkthrough or plan(game)
    commands = _script(game, winning)
    fast, plain = open_engine(game), open_engine(game, fast=False)
    same = _frames(fast, commands) == _frames(plain, commands)
    fast.close()
    plain.close()
    return Played(game.name, game.dialect, _wins(game, winning), same, len(commands) + 1)


def _wins(game: Game, winning: tuple[str, ...]) -> bool:
    episode = AlfworldEnvironment(game)
    episode.reset()
    turns = [episode.step(command) for command in winning]
    return bool(turns and turns[-1].success and turns[-1].done and turns[-1].reward == 1.0)


def _script(game: Game, winning: tuple[str, ...]) -> list[str]:
    """Put what is not admissible between the winning commands, and random ones behind them."""
    chance = random.Random(game.name)
    commands = list(winning)
    commands.insert(chance.randrange(len(commands)), chance.choice(INVALID))
    engine = open_engine(game)
    frame = _frames(engine, commands)[-1]
    for _ in range(4):
        commands.append(chance.choice(frame.commands))
        frame = engine.step(commands[-1])
    engine.close()
    return commands


def _frames(engine: Engine, commands: list[str]) -> list[Frame]:
    return [engine.reset(), *(engine.step(command) for command in commands)]


def _won(played: list[Played]) -> Figure:
    lost = [each.name for each in played if not each.won]
    dialects = Counter(each.dialect for each in played)
    return Figure(
        "Real games of ALFWorld are won by those who know how",
        f"{len(played)} released games of all six types ({dialects['move']} in the words of"
        f" json_2.1.2, {dialects['put']} of json_2.1.1), by the walkthrough they come with or the"
        " planner's, through `AlfworldEnvironment`",
        share(len(played) - len(lost), len(played), lost) + " won",
        "all",
        not lost,
    )


def _same(played: list[Played]) -> Figure:
    other = [each.name for each in played if not each.same]
    calls = sum(each.calls for each in played)
    return Figure(
        "The fast engine shows what TextWorld shows, byte for byte",
        f"text, admissible commands, won and done of {calls:,} resets and commands in those games:"
        " the winning ones, some that are not admissible, and random ones",
        share(len(played) - len(other), len(played), other) + " games",
        "all",
        not other,
    )


def _at_once(games: list[Game]) -> Figure:
    """Play episodes in threads of their own, command by command, and each alone for comparison."""
    step = max(1, len(games) // AT_ONCE)
    chosen = list(islice(cycle(games[::step]), AT_ONCE))
    scripts = {
        game.name: _script(game, game.walkthrough or plan(game)) for game in dict.fromkeys(chosen)
    }
    alone = {game.name: _frames(open_engine(game), scripts[game.name]) for game in chosen}
    together = Barrier(AT_ONCE)

    def same(game: Game) -> bool:
        together.wait()
        return _frames(open_engine(game), scripts[game.name]) == alone[game.name]

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(same, chosen))
    other = [game.name for game, held in zip(chosen, found, strict=True) if not held]
    return Figure(
        f"{AT_ONCE} episodes at once do not get in each other's way",
        f"{len(scripts)} of those games in {AT_ONCE} threads, the same"
        " commands; each beside itself alone",
        share(AT_ONCE - len(other), AT_ONCE, other) + " the same",
        "all",
        not other,
    )


def measure_speed(setting: Setting) -> list[Figure]:
    """Compare the fast engine with TextWorld as it is, in one process."""
    setting.say("the fast engine of ALFWorld and TextWorld, in turns")
    games, which = _games_for_speed(setting)
    times = engine_times(games, rounds=setting.size(5, 2))
    return [
        Figure(
            f"The fast engine of ALFWorld saves most of a {call}",
            f"CPU of {call}s in {len(games)} {which} games, TextWorld's over ours, in turns;"
            " median of the rounds",
            f"{times[call].ratio:.0f}x ({times[call].plain:.1f} ms over {times[call].ours:.2f} ms)",
            f"≥ {bound:g}x" if bound else "",
            times[call].ratio >= bound if bound else None,
        )
        for call, bound in (("step", BOUND), ("reset", BOUND), ("load", None))
    ]


def _games_for_speed(setting: Setting) -> tuple[tuple[Game, ...], str]:
    path = _folder(setting) / PACK
    families = list(FAMILIES)[: setting.size(6, 2)]
    if not path.is_file():
        return generated_games()[: len(families)], "generated"
    library = PackLibrary(path)
    return tuple(
        library.find(family, library.names(family, "train")[0]) for family in families
    ), "released"
