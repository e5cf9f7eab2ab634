"""The fast engine: the library keeps a game's state, and what it shows is written at once."""

import weakref
from typing import Any

from langgraft.environments.alfworld.engine import Frame
from langgraft.environments.alfworld.fast_game import Operation, negated
from langgraft.environments.alfworld.fast_loading import ready
from langgraft.environments.alfworld.fast_world import Context, Facts, Scene
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import Installed
from langgraft.environments.alfworld.textworld_engine import check_playing, libraries, one_call

_INVALID = "Nothing happens."
_NOBODY = Context({}, {})


class FastEngine:
    """One session of a game."""

    def __init__(self, game: Game, packages: Installed) -> None:
        """Make the game ready.

        Raises:
            UnknownGrammarError: Its grammar uses what no grammar of ALFWorld does.
        """
        self._name = game
        self._packages = packages
        with one_call(packages):
            self._game = ready(game, packages)
        self._holder = object()
        weakref.finalize(self, libraries().leave, self._holder)
        self._playing = False

    def reset(self) -> Frame:
        """Begin again."""
        with one_call(self._packages):
            library, _ = libraries().hold(self._holder)
            library.load_sas(self._game.program)
            self._scene = Scene(Facts(self._game.facts, self._game.ordered), self._game.names)
            self._carried_out: list[Operation] = []
            self._playing = True
            self._offered = self._offer(library)
            if self._game.start is None:
                intro = self._game.grammar.sentence("#intro#").write(self._scene, _NOBODY)
                self._game.start = self._frame(library, intro, begun=False)
            return self._game.start

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        with one_call(self._packages):
            check_playing(self._name, playing=self._playing)
            library = self._library()
            operation = self._offered.get(command.strip())
            feedback = _INVALID if operation is None else self._carry_out(operation, library)
            self._offered = self._offer(library)
            return self._frame(library, feedback, begun=True)

    def close(self) -> None:
        """Free what the game holds; a reset opens it again."""
        self._playing = False
        libraries().leave(self._holder)

    def _library(self) -> Any:
        """Return the library with the game as it stands in it."""
        library, known = libraries().hold(self._holder)
        if not known:
            library.load_sas(self._game.program)
            for operation in self._carried_out:
                self._apply(operation, library)
        return library

    def _apply(self, operation: Operation, library: Any) -> Any:
        effects = (self._packages.logic.Atom * operation.effects)()
        library.apply_operator(operation.number, effects)
        return effects

    def _carry_out(self, operation: Operation, library: Any) -> str:
        self._carried_out.append(operation)
        facts = self._scene.facts
        try:
            for effect in self._apply(operation, library):
                key, fact = self._game.change(effect)
                opposite = negated(key)
                if opposite[0] in self._game.asked:
                    facts.remove(opposite, fact)
                if key[0] in self._game.asked:
                    facts.add(key, fact)
            sentence = self._game.grammar.sentence(operation.form.feedback)
            return sentence.write(self._scene, operation.context)
        except ValueError:  # what TextWorld takes for a command that is not admissible
            return _INVALID

    def _offer(self, library: Any) -> dict[str, Operation]:
        """List what can be done now; of actions with the same command, the first."""
        count = library.get_applicable_operators_count()
        operators = (self._packages.downward.Operator * count)()
        library.get_applicable_operators(operators)
        offered: dict[str, Operation] = {}
        for operator in operators:
            operation = self._game.operation(operator, self._scene)
            offered.setdefault(self._game.command(operation, self._scene), operation)
        return offered

    def _frame(self, library: Any, feedback: str, *, begun: bool) -> Frame:
        won = bool(library.check_goal())
        return Frame(feedback, tuple(sorted(self._offered)), won=won, done=won and begun)
