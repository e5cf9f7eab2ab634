"""The fast engine: the library keeps a game's state, and what it shows is written at once.

TextWorld loads a game as it loads any; what it then holds is taken over, worked out once for all
sessions of that game.
"""

import sys
import weakref
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final

from langgraft.environments.alfworld.engine import (
    Frame,
    check_playing,
    libraries,
    load,
    one_call,
    replaced,
)
from langgraft.environments.alfworld.fast_text import (
    Context,
    Fact,
    FactKey,
    Facts,
    Grammar,
    Placeholder,
    Scene,
    Sentence,
    Variable,
)
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import Installed, installed

MOST_READY: Final = 1024
"""How many games are kept ready, at about half a megabyte each; a study's are some 600."""

_INVALID = "Nothing happens."
_NOBODY = Context({}, {})


@dataclass(frozen=True, slots=True)
class Form:
    """An action of the rules: what it is done to, and how it is asked for and answered."""

    parameters: tuple[Placeholder, ...]
    template: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Operation:
    """An action with everything it is done to."""

    number: int
    """What the planner's library knows it by."""
    effects: int
    """How many changes the library reports."""
    form: Form
    context: Context
    command: str
    """The text that asks for it, if that is always the same; else empty."""


@dataclass(slots=True)
class FastGame:
    """A game, ready to be played by any number of sessions."""

    packed_program: bytes
    """The game in the form the planner's library loads, compressed to a fifteenth."""
    facts: Mapping[FactKey, frozenset[Fact]]
    """What holds at the start, as far as a sentence asks for it."""
    asked: frozenset[str]
    """The predicates that sentences ask for."""
    variables: Mapping[str, Variable]
    """The objects, by name."""
    names: Mapping[str, Any]
    """What is known of each object, by its name in the rules: TextWorld's `EntityInfo`."""
    forms: Mapping[str, Form]
    grammar: Grammar
    changing: frozenset[str]
    """The predicates that an action may change."""
    operations: dict[int, Operation] = field(default_factory=dict)
    ordered: dict[FactKey, list[Fact]] = field(default_factory=dict)
    changes: dict[bytes, tuple[FactKey, Fact]] = field(default_factory=dict)
    start: Frame | None = None
    """What the game shows first, once it has been shown."""

    @property
    def program(self) -> bytes:
        """The game in the form the planner's library loads."""
        return zlib.decompress(self.packed_program)

    def operation(self, operator: Any, scene: Scene) -> Operation:
        """Return the action that an operator of the library is."""
        known = self.operations.get(operator.id)
        if known is None:
            known = self.operations[operator.id] = self._read(operator, scene)
        return known

    def command(self, operation: Operation, scene: Scene) -> str:
        """Write the text that asks for an action now."""
        if operation.command:
            return operation.command
        return self._ask(self.grammar.sentence(operation.form.template), operation.context, scene)

    def change(self, effect: Any) -> tuple[FactKey, Fact]:
        """Read what an action made hold.

        Raises:
            ValueError: It is no fact, on which TextWorld gives up an action as well.
        """
        name = effect._name  # noqa: SLF001  (its property decodes it anew each time)
        if name not in self.changes:
            self.changes[name] = _fact(effect.name, self.variables)
        return self.changes[name]

    def _read(self, operator: Any, scene: Scene) -> Operation:
        name, *objects = operator.name.split()
        form = self.forms[name]
        pairs = list(zip(form.parameters, objects, strict=False))
        context = Context(
            variables={each: self.names[target] for (each, _), target in pairs},
            assignment={(each, kind): (target, kind) for (each, kind), target in pairs},
        )
        sentence = self.grammar.sentence(form.template)
        lasting = sentence.lasts(self.changing)
        return Operation(
            number=operator.id,
            effects=operator.nb_effect_atoms,
            form=form,
            context=context,
            command=self._ask(sentence, context, scene) if lasting else "",
        )

    def _ask(self, sentence: Sentence, context: Context, scene: Scene) -> str:
        text = sentence.write(scene, context)
        if "{" in text or "}" in text:
            return text.format(**{key: info.name for key, info in self.names.items()})
        return text


def negated(key: FactKey) -> FactKey:
    """Name the facts that say the opposite."""
    predicate, types = key
    opposite = predicate.split("not_", 1)[1] if predicate.startswith("not_") else "not_" + predicate
    return opposite, types


def _fact(text: str, variables: Mapping[str, Variable]) -> tuple[FactKey, Fact]:
    """Read an atom as the library writes it: `NegatedAtom opened(fridge_1)`."""
    sign, rest = text.split(" ", 1)
    predicate, inner = rest.split("(", 1)
    fact = tuple(variables[each] for each in inner[:-1].split(", ") if each)
    if sign == "NegatedAtom":
        predicate = "not_" + predicate
    return (predicate, tuple(kind for _, kind in fact)), fact


_READY: OrderedDict[tuple[str, str, str], FastGame] = OrderedDict()


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


def ready(game: Game, packages: Installed) -> FastGame:
    """Return the game made ready; the one that was used longest ago is forgotten.

    Wants the engine's lock to be held.

    Raises:
        UnknownGrammarError: Its grammar uses what no grammar of ALFWorld does.
    """
    key = (game.domain, game.grammar, game.problem)
    found = _READY.pop(key, None) or _make_ready(game, packages)
    _READY[key] = found
    if len(_READY) > MOST_READY:
        _READY.popitem(last=False)
    return found


def forget() -> None:
    """Forget all games that were made ready; sessions that play one go on."""
    with one_call(installed()):
        _READY.clear()


def _make_ready(game: Game, packages: Installed) -> FastGame:
    _parser()  # as it is installed: looked up before `_symbols` takes its place
    library = libraries().borrow()
    try:
        with (
            _forgotten_after(),
            _without_planner(packages),
            replaced(packages.text, "_parse_and_convert", _symbols),
        ):
            return _taken_over(load(game, packages, library).unwrapped, packages)
    finally:
        libraries().give_back(library)


def _taken_over(env: Any, packages: Installed) -> FastGame:
    state, logic = env._pddl_state, env._logic  # noqa: SLF001  (no other door)
    forms = {
        name: _form(action, logic.actions[name])
        for name, action in state._actions.items()  # noqa: SLF001
        if name in logic.actions
    }
    grammar = Grammar(packages.text, logic, parse=_symbols, parse_query=_query)
    for form in forms.values():
        grammar.sentence(form.template)
        grammar.sentence(form.feedback)
    asked = grammar.asked()
    variables = {name: (name, kind) for name, kind in state.name2type.items()}
    return FastGame(
        packed_program=zlib.compress(state.sas.encode("utf-8"), level=1),
        facts={
            (key.name, key.types): frozenset(_fact_of(each, variables) for each in facts)
            for key, facts in state._facts.items()  # noqa: SLF001
            if key.name in asked
        },
        asked=asked,
        variables=variables,
        names=dict(env._entity_infos),  # noqa: SLF001
        forms=forms,
        grammar=grammar,
        changing=frozenset(_changing(state.task)),
    )


def _fact_of(proposition: Any, variables: Mapping[str, Variable]) -> Fact:
    return tuple(variables[each.name] for each in proposition.arguments)


def _form(action: Any, wording: Any) -> Form:
    return Form(
        parameters=tuple((each.name.strip("?"), each.type_name) for each in action.parameters),
        template=wording.template,
        feedback=wording.feedback_rule,
    )


def _changing(task: Any) -> Iterable[str]:
    names = {effect.literal.predicate for action in task.actions for effect in action.effects}
    names |= {axiom.name for axiom in task.axioms}
    return names | {f"not_{name}" for name in names}


@contextmanager
def _without_planner(packages: Installed) -> Iterator[None]:
    """Leave out the second translation of a game, which only planning needs."""
    translate = packages.downward.pddl2sas
    last: list[Any] = []

    def once(*texts: str, verbose: bool = False, optimize: bool = False) -> Any:
        if not optimize:
            last[:] = [translate(*texts, verbose=verbose)]
        return last[0]

    with replaced(packages.downward, "pddl2sas", once):
        yield


@contextmanager
def _forgotten_after() -> Iterator[None]:
    """Forget the facts made meanwhile: TextWorld would keep each of them for good."""
    kept: dict[Any, Any] = getattr(sys.modules.get("mementos.core"), "_memento_cache", {})
    before = len(kept)
    try:
        yield
    finally:
        while len(kept) > before:
            kept.popitem()


@lru_cache(maxsize=4096)
def _symbols(text: str, rule_name: str = "symbols") -> Any:
    return _parser()(text, rule_name=rule_name)


@cache
def _parser() -> Callable[..., Any]:
    parse: Callable[..., Any] = installed().text._parse_and_convert  # noqa: SLF001
    return parse


@lru_cache(maxsize=1024)
def _query(text: str) -> Any:
    return installed().text.Rule.parse_conjunctive_query(text)
