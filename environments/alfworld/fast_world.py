"""What holds in a running game, and how it is asked: plain tuples, in TextWorld's order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Variable: TypeAlias = tuple[str, str]
"""An object of the world: name and type."""
Placeholder: TypeAlias = tuple[str, str]
"""What stands for one in an action or a query: name and type."""
Assignment: TypeAlias = Mapping[Placeholder, Variable]
FactKey: TypeAlias = tuple[str, tuple[str, ...]]
"""A predicate and its arguments' types."""
Fact: TypeAlias = tuple[Variable, ...]


class Facts:
    """What holds now: what held at the start, and the predicates that have changed since."""

    def __init__(
        self, start: Mapping[FactKey, frozenset[Fact]], ordered: dict[FactKey, list[Fact]]
    ) -> None:
        """Begin with what holds at the start.

        Args:
            start: The facts.
            ordered: Those that were sorted before; more are added as they are asked for.
        """
        self._start = start
        self._ordered_at_start = ordered
        self._changed: dict[FactKey, set[Fact]] = {}
        self._ordered: dict[FactKey, list[Fact]] = {}

    def ordered(self, key: FactKey) -> list[Fact]:
        """List the facts of a predicate, sorted."""
        changed = self._changed.get(key)
        known = self._ordered_at_start if changed is None else self._ordered
        facts = known.get(key)
        if facts is None:
            facts = sorted(self._start.get(key, ()) if changed is None else changed)
            known[key] = facts
        return facts

    def add(self, key: FactKey, fact: Fact) -> None:
        """Note that a fact holds."""
        self._own(key).add(fact)

    def remove(self, key: FactKey, fact: Fact) -> None:
        """Note that a fact does not hold."""
        self._own(key).discard(fact)

    def _own(self, key: FactKey) -> set[Fact]:
        self._ordered.pop(key, None)
        if key not in self._changed:
            self._changed[key] = set(self._start.get(key, ()))
        return self._changed[key]


@dataclass(frozen=True, slots=True)
class Scene:
    """What sentences are written about."""

    facts: Facts
    names: Mapping[str, Any]
    """What is known of each object, by its name in the rules: TextWorld's `EntityInfo`."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the words of a sentence stand for."""

    variables: Mapping[str, Any]
    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Query:
    """A conjunction of predicates: each with the facts that may match, and its placeholders."""

    parts: tuple[tuple[tuple[FactKey, ...], tuple[Placeholder, ...]], ...]

    def assignments(self, facts: Facts, given: Assignment) -> Iterator[Assignment]:
        """Yield what makes all parts hold, in TextWorld's order."""
        yield from self._match(facts, given, 0)

    def holds(self, facts: Facts, given: Assignment) -> bool:
        """Tell whether there is any."""
        return next(self._match(facts, given, 0), None) is not None

    def _match(self, facts: Facts, given: Assignment, depth: int) -> Iterator[Assignment]:
        if depth == len(self.parts):
            yield given
            return
        keys, placeholders = self.parts[depth]
        for key in keys:
            for fact in facts.ordered(key):
                extended = _extended(given, placeholders, fact)
                if extended is not None:
                    yield from self._match(facts, extended, depth + 1)


def _extended(
    given: Assignment, placeholders: Sequence[Placeholder], fact: Fact
) -> Assignment | None:
    """Let placeholders stand for a fact's objects: each for one, and no two for the same."""
    new: dict[Placeholder, Variable] = {}
    for placeholder, variable in zip(placeholders, fact, strict=False):
        known = given.get(placeholder) or new.get(placeholder)
        if known is None:
            new[placeholder] = variable
        elif known != variable:
            return None
    if not new:
        return given
    objects = set(new.values())
    if len(objects) < len(new) or not objects.isdisjoint(given.values()):
        return None
    return {**given, **new}
