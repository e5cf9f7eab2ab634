"""TextWorld's own games: its four challenges, made by seed and played by its own engine.

    from langgraft.environments.textworld import TextWorldGames

    worlds = TextWorldGames()  # task ids: textworld/coin_collector/17
    episode = worlds("textworld/treasure_hunter/203")

They come with the extra `alfworld`: TextWorld's wheel has the compiler (Inform 7) and the interpreter
that its games need. A game takes one to three seconds to make, once a process, and 0.4 MB. The
objective names the last thing to be done, and not the way there, as `tw-make --only-last-action` has it.
"""

import math
import re
import shutil
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final
from warnings import catch_warnings, filterwarnings

from langgraft._core.arguments import did_you_mean
from langgraft._core.canonical import JSON
from langgraft._core.errors import GameError, SettingsError
from langgraft._core.lazy import require
from langgraft.environments.text import Reset, TextTask, Transition

CHALLENGES: Final[dict[str, dict[str, JSON]]] = {
    "coin_collector": {"level": 105},
    "treasure_hunter": {"level": 13},
    "cooking": {
        "recipe": 1,
        "take": 1,
        "go": 6,
        "open": True,
        "cook": True,
        "cut": False,
        "drop": False,
        "recipe_seed": 0,
        "split": None,
    },
    "simple": {"rewards": "sparse", "goal": "brief", "test": False},
}
"""Family → settings of the challenge `tw-<family>`: mazes of ten rooms, and houses of six."""

SPLITS: Final = {"train": range(200), "test": range(200, 300)}
"""Split → seeds."""

MAX_ROUNDS: Final = 50
"""Replies an agent has in an episode."""

INSTRUCTIONS: Final = """You play a text adventure. Each turn you see what your last command led to, and the
commands that can be given now. Give one of them, such as `go north`, `open chest`, `take key from table`."""

_LONGEST: Final = 150
"""Characters of a command; the interpreter has room for 198."""
_META: Final = re.compile(r"(q|quit|restart|restore|save|undo|script|unscript|transcript|tw-.*)\b")
_STATUS_LINE: Final = re.compile(r"\n>[^\n]*\s*\Z")
_ASKED_AT_THE_END: Final = "Would you like to RESTART"

# TextWorld draws from one generator of the process, and its parsers keep their state in modules.
_LOCK: Final = threading.RLock()


class TextWorldEpisode:
    """A game, seen and played as text.

    A command that the game does not list may still be one; what is none is answered in words, costs
    a round and changes nothing. Commands to the interpreter (`restart`, `undo`) are none.
    """

    instructions = INSTRUCTIONS
    max_rounds = MAX_ROUNDS

    def __init__(self, task: TextTask, path: Path) -> None:
        """Take a game file; it is opened by `reset`."""
        self.task = task
        self._path = path
        self._env: Any = None
        self._commands: tuple[str, ...] = ()
        self._done = False
        self.walkthrough: tuple[str, ...] = ()
        """Commands that win the game, after a reset: an oracle."""

    def reset(self) -> Reset:
        """Start the game again from the beginning; the same every time."""
        self.close()
        textworld = _textworld()
        asked = {"won": True, "lost": True, "admissible_commands": True, "objective": True}
        with _one_call():
            infos = textworld.EnvInfos(**asked, extras=["walkthrough"])
            self._env = textworld.start(str(self._path), infos)
            state = self._env.reset()
        self.walkthrough = tuple(state["extra.walkthrough"] or ())
        self._commands, self._done = tuple(state["admissible_commands"]), False
        goal = " ".join(state["objective"].split())
        room = state["feedback"].rpartition(state["objective"])[2]
        return Reset(goal, f"{goal}\n\n{self._shown(room)}", self._commands)

    def step(self, action: str) -> Transition:
        """Take one action, written as text.

        Raises:
            RuntimeError: Called before `reset` or after the episode ended.
        """
        if self._env is None or self._done:
            raise RuntimeError(f"{self.task.id}: no episode is under way; call reset()")
        command = " ".join(action.encode("ascii", "replace").decode().split())[:_LONGEST]
        valid = command in self._commands
        if not command or _META.match(command.lower()):
            said = self._shown("That is no command of this game.")
            return Transition(said, 0.0, done=False, success=False, actions=self._commands)
        with _LOCK:
            state, score, done = self._env.step(command)
        won = bool(state["won"])
        self._done = bool(done or won or state["lost"])
        self._commands = () if self._done else tuple(state["admissible_commands"])
        return Transition(
            observation=self._shown(state["feedback"]),
            reward=float(won),
            done=self._done,
            success=won,
            actions=self._commands,
            info={"valid": valid, "score": int(score)},
        )

    def close(self) -> None:
        """Free the game; `reset` opens it again."""
        if self._env is not None:
            with _LOCK:
                self._env.close()
            self._env = None

    def _shown(self, feedback: str) -> str:
        told = _STATUS_LINE.sub("", feedback.partition(_ASKED_AT_THE_END)[0])
        text = re.sub(r"\s*\n\s*\n\s*", "\n", told).strip()
        listed = f"\nAvailable actions: {', '.join(self._commands)}" if self._commands else ""
        return text + listed


class TextWorldGames:
    """Makes episodes by task id, and lists the tasks there are; each game is made once."""

    def __init__(self) -> None:
        """Take a temporary folder for games, which goes with this."""
        self._folder = Path(mkdtemp(prefix="langgraft-textworld-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def __call__(self, task_id: str) -> TextWorldEpisode:
        """Return a fresh episode of one task; its game is made where it is not there yet.

        Raises:
            SettingsError: There is no such task.
            GameError: TextWorld cannot make the game.
            MissingExtraError: TextWorld is not installed.
        """
        domain, _, seed = str(task_id).rpartition("/")
        family, last = _family(domain), SPLITS["test"][-1]
        if not re.fullmatch(r"0|[1-9][0-9]{0,3}", seed) or int(seed) > last:
            msg = f"no task {task_id!r:.80}; tasks are <family>/<seed> with a seed from 0 to {last}"
            raise SettingsError(msg)
        path = self._folder / f"{family}-{seed}.z8"
        with _one_call():
            if not path.exists():
                _make(family, int(seed), path)
        split = "train" if int(seed) in SPLITS["train"] else "test"
        return TextWorldEpisode(TextTask(f"{domain}/{seed}", domain, split), path)

    def difficulty(self, task_id: str) -> float:
        """Return how many commands win a game, which is made where it is not there yet.

        Raises:
            SettingsError: There is no such task.
            GameError: TextWorld cannot make the game.
            MissingExtraError: TextWorld is not installed.
        """
        episode = self(task_id)
        episode.reset()
        episode.close()
        return float(len(episode.walkthrough) or math.inf)

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List the tasks of a family in one split, by seed.

        Raises:
            SettingsError: There is no such family or split.
        """
        _family(domain)
        if split not in SPLITS:
            raise SettingsError(f"no split {split!r} of {domain}; there are {', '.join(SPLITS)}")
        return tuple(TextTask(f"{domain}/{seed}", domain, split) for seed in SPLITS[split])


def _family(domain: str) -> str:
    family = domain.removeprefix("textworld/")
    if family not in CHALLENGES or family == domain:
        known = [f"textworld/{each}" for each in CHALLENGES]
        raise SettingsError(f"no task family {domain!r:.80}: {did_you_mean(domain, known)}")
    return family


def _make(family: str, seed: int, path: Path) -> None:
    """Make a game of a challenge, and compile it."""
    textworld = _textworld()
    options = textworld.GameOptions()
    textworld.g_rng.set_seed(seed)
    options.seeds = seed
    options.path = str(path)
    options.grammar.only_last_action = True
    make = textworld.challenges.CHALLENGES[f"tw-{family}"][1]
    try:
        textworld.generator.compile_game(make(dict(CHALLENGES[family]), options), options)
    except Exception as error:
        msg = f"TextWorld cannot make it: {type(error).__name__}: {error}"
        raise GameError(msg, source=f"textworld/{family}/{seed}") from error


@contextmanager
def _one_call() -> Iterator[None]:
    """Let one thread in at a time; Jericho's warning is not shown that it keeps no score of such games."""
    with _LOCK, catch_warnings():
        filterwarnings("ignore", message=".* is not fully supported")
        yield


def _textworld() -> Any:
    with _LOCK:
        for part in ("textworld.challenges", "textworld"):
            found = require(part, extra="alfworld", purpose="TextWorld's own games")
        return found
