"""What is worked out once for a game: its rules, its start, and each action as it comes up."""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraft.environments.alfworld.engine import Frame
from langgraft.environments.alfworld.fast_text import Grammar, Sentence
from langgraft.environments.alfworld.fast_world import (
    Context,
    Fact,
    FactKey,
    Placeholder,
    Scene,
    Variable,
)


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
