"""TextWorld as it is installed, behind a small interface: a running game, and the planner's plans.

One call at a time is let in, and nothing of the process is changed by it.
"""

import io
import sys
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Protocol, Self, TextIO

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import Installed, installed
from langgraft.environments.alfworld.reading import check_rules

_LOCK: Final = threading.RLock()
_EVAL_SEES_LOCALS: Final = sys.version_info < (3, 13)
MOST_COPIES: Final = 16
"""How many copies serve the games of the fast engine: each takes 34 MB that is never given back."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the engine shows after a reset or a command."""

    feedback: str
    """The engine's text, unchanged."""
    commands: tuple[str, ...]
    """The admissible commands, in the engine's order."""
    won: bool
    """The goal holds *now*; it can be lost again."""
    done: bool
    """The engine considers the game over."""


class Engine(Protocol):
    """One running game."""

    def reset(self) -> Frame:
        """Begin again; the same every time."""
        ...

    def step(self, command: str) -> Frame:
        """Carry out a command; one that is not admissible is answered and changes nothing."""
        ...

    def close(self) -> None:
        """Free what the game holds."""
        ...


class TextWorldEngine:
    """A game played by TextWorld as it is."""

    def __init__(self, game: Game, packages: Installed) -> None:
        """Load the game."""
        self._game = game
        self._packages = packages
        self._env: Any = None
        with one_call(packages):
            self._open()

    def reset(self) -> Frame:
        """Begin again."""
        with one_call(self._packages):
            if self._env is None:
                self._open()
            self._playing = True
            return _frame(self._env.reset(), done=False)

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        with one_call(self._packages):
            check_playing(self._game, playing=self._playing)
            state, _, done = self._env.step(command)
            return _frame(state, done=bool(done))

    def close(self) -> None:
        """Free what the game holds; a reset opens it again."""
        with one_call(self._packages):
            self._env, self._playing = None, False
            self._leave()

    def _open(self) -> None:
        library = libraries().borrow()
        self._leave = weakref.finalize(self, libraries().give_back, library)
        self._env = load(self._game, self._packages, library)
        self._playing = False


def _frame(state: Any, *, done: bool) -> Frame:
    return Frame(
        feedback=state["feedback"],
        commands=tuple(state["admissible_commands"]),
        won=bool(state["won"]),
        done=done,
    )


def check_playing(game: Game, *, playing: bool) -> None:
    """Refuse a command to a game that has not begun.

    Raises:
        RuntimeError: It has not been reset since it was opened or closed.
    """
    if not playing:
        raise RuntimeError(f"game {game.name!r} has not begun: reset it before a command")


def plan(game: Game) -> tuple[str, ...]:
    """Return commands that win the game from its start; none where it is won already.

    They are those of TextWorld's own planner: an oracle.

    Raises:
        GameError: The planner finds no way to win it, or its rules or grammar are not known.
        MissingExtraError: alfworld, TextWorld or the planner is not installed.
    """
    check_rules(game.domain, game.grammar, game.label)
    packages = installed()
    with one_call(packages):
        library = libraries().borrow()
        try:
            env = load(game, packages, library).unwrapped
            state = env._pddl_state  # noqa: SLF001  (the planner has no other door)
            won = state.check_goal()
            commands = () if won else tuple(state.replan(env._entity_infos))  # noqa: SLF001
        finally:
            libraries().give_back(library)
    if not commands and not won:
        raise GameError("it cannot be won: the planner finds no plan", source=game.label)
    return commands


@contextmanager
def one_call(packages: Installed) -> Iterator[None]:
    """Let one thread in at a time, and put back what the packages overwrite.

    TextWorld's parsers and PDDL's translator keep their state in modules.
    """
    with _LOCK, ExitStack() as undone:
        undone.callback(setattr, sys, "argv", sys.argv)
        undone.enter_context(replaced(packages.interface, "CapturingStdout", Quiet))
        if not _EVAL_SEES_LOCALS:
            derive = _derive(packages.text)
            undone.enter_context(replaced(packages.text.EvalSymbol, "derive", derive))
        yield


def _derive(text: Any) -> Any:
    """Let expressions see their variables: since Python 3.13 `eval` has no sight of `locals()`."""

    def derive(self: Any, context: Any = None) -> list[Any]:
        variables = (context or self.context)["variables"]
        return [text.TerminalSymbol(eval(self.expression.strip(), {}, variables))]  # noqa: S307

    return derive


def load(game: Game, packages: Installed, library: Any) -> Any:
    """Load a game into TextWorld's own environment, in ALFWorld's wrappers.

    Raises:
        GameError: It cannot be loaded.
    """
    with replaced(packages.downward, "load_lib", lambda: library):
        infos = packages.core.EnvInfos(won=True, admissible_commands=True)
        inner = packages.pddl.PddlEnv(infos)
    env = packages.alfred.AlfredInfos(packages.alfred.AlfredDemangler(inner))
    try:
        env.load(game.as_data())
    except (Exception, SystemExit) as error:  # the translator ends the process on bad PDDL
        # The dummy that the translator writes in place of a goal that nothing leads to.
        hopeless = isinstance(error, KeyError) and error.args == ("val1",)
        why = f"TextWorld cannot load it: {type(error).__name__}: {error}"
        msg = "it cannot be won: nothing leads to its goal" if hopeless else why
        raise GameError(msg, source=game.label) from error
    return env


class Libraries:
    """Hands copies out, and takes them back: once loaded, a copy stays in the process.

    The library keeps its state in globals, so games that run side by side need a copy each; and it
    cannot be unloaded (it defines unique symbols), so that a copy per game would pile up. All
    methods but `leave` want the engine's lock to be held.
    """

    def __init__(self) -> None:
        self._free: list[Any] = []
        self._held: OrderedDict[object, Any] = OrderedDict()
        self._left: deque[object] = deque()

    def hold(self, holder: object) -> tuple[Any, bool]:
        """Return the holder's copy, and whether it still knows the holder's game.

        With more holders than copies, the one that was idle for longest loses its copy.
        """
        self._collect()
        library = self._held.pop(holder, None)
        known = library is not None
        if library is None:
            library = self._spare()
        self._held[holder] = library
        return library, known

    def leave(self, holder: object) -> None:
        """Give the holder's copy back; from any thread, and while garbage is collected."""
        self._left.append(holder)

    def borrow(self) -> Any:
        """Take a copy that nobody else gets until it is given back."""
        self._collect()
        return self._free.pop() if self._free else _load_library()

    def give_back(self, library: Any) -> None:
        """Return a borrowed copy."""
        self._free.append(library)

    def _spare(self) -> Any:
        if self._free:
            return self._free.pop()
        if len(self._held) < MOST_COPIES:
            return _load_library()
        return self._held.popitem(last=False)[1]

    def _collect(self) -> None:
        while self._left:
            library = self._held.pop(self._left.popleft(), None)
            if library is not None:
                self._free.append(library)


@cache
def libraries() -> Libraries:
    """Return the process's copies of the planner's library."""
    return Libraries()


def _load_library() -> Any:
    try:
        return installed().downward.load_lib()
    except (OSError, RuntimeError) as error:
        msg = (
            f"the planner's library, which keeps a game's state, does not load: {error}; build it"
            " anew: pip install --force-reinstall --no-cache-dir fast-downward-textworld==20.6.4"
        )
        raise SettingsError(msg) from error


@contextmanager
def replaced(owner: Any, name: str, ours: Callable[..., Any]) -> Iterator[None]:
    """Put `ours` in the place of a function while the block runs.

    Others who call it from their own threads meanwhile get what was there. Where there is no such
    function, as another version may have none, nothing is done.
    """
    theirs = getattr(owner, name, None)
    if theirs is None:
        yield
        return
    here = threading.get_ident()

    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (ours if threading.get_ident() == here else theirs)(*args, **kwargs)

    setattr(owner, name, chosen)
    try:
        yield
    finally:
        setattr(owner, name, theirs)


class Quiet(list[str]):
    """Keeps what this thread prints; what others print meanwhile goes where it should.

    PDDL's translator takes `sys.stdout` from the whole process for as long as it works.
    """

    def __enter__(self) -> Self:
        """Begin to keep."""
        self._split = sys.stdout = _Split(sys.stdout)
        return self

    def __exit__(self, *_: object) -> None:
        """Give back what was taken."""
        self.extend(self._split.end())
        if sys.stdout is self._split:
            sys.stdout = self._split.before


class _Split(io.TextIOBase):
    def __init__(self, before: TextIO) -> None:
        super().__init__()
        self.before = before
        self._kept: io.StringIO | None = io.StringIO()
        self._here = threading.get_ident()

    def write(self, text: str) -> int:
        if self._kept is not None and threading.get_ident() == self._here:
            return self._kept.write(text)
        return self.before.write(text)

    def flush(self) -> None:
        if self._kept is None or threading.get_ident() != self._here:
            self.before.flush()

    def end(self) -> list[str]:
        kept, self._kept = self._kept, None
        return kept.getvalue().splitlines() if kept else []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)
