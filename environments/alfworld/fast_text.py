"""TextWorld's grammar, made ready once: the same sentences without its copies and searches.

To write a sentence, TextWorld copies symbols and what they stand for deeply, and parses queries
anew. Here what it has parsed is turned into functions, once; nothing of it is evaluated as code.
What holds in a running game are plain tuples, asked in TextWorld's order.
"""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langgraft._core.untrusted import parse_program

Variable: TypeAlias = tuple[str, str]
"""An object of the world: name and type."""
Placeholder: TypeAlias = tuple[str, str]
"""What stands for one in an action or a query: name and type."""
Assignment: TypeAlias = Mapping[Placeholder, Variable]
FactKey: TypeAlias = tuple[str, tuple[str, ...]]
"""A predicate and its arguments' types."""
Fact: TypeAlias = tuple[Variable, ...]

Value: TypeAlias = Callable[[Mapping[str, Any]], Any]

_SHOWN: Final = frozenset({"id", "name", "definite", "indefinite"})


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


Write: TypeAlias = Callable[[Scene, Context], str]


class UnknownGrammarError(Exception):
    """A grammar uses what no grammar of ALFWorld does: TextWorld itself has to play it."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text of the grammar, ready to be written."""

    write: Write
    asks: frozenset[str]
    """The predicates that what it says depends on."""
    calls: bool
    """Whether it calls on rules of the grammar, which may depend on more."""

    def lasts(self, changing: frozenset[str]) -> bool:
        """Tell whether it says the same whatever happens in a game."""
        return not self.calls and self.asks.isdisjoint(changing)


class Grammar:
    """A game's rules for sentences."""

    def __init__(
        self,
        text: Any,
        logic: Any,
        *,
        parse: Callable[[str], Sequence[Any]],
        parse_query: Callable[[str], Any],
    ) -> None:
        """Make ready what TextWorld has parsed.

        Args:
            text: TextWorld's `textgen`.
            logic: The game's `GameLogic`.
            parse: Reads a text of the grammar into TextWorld's symbols.
            parse_query: Reads a query into TextWorld's `Rule`.

        Raises:
            UnknownGrammarError: It uses what no grammar of ALFWorld does.
        """
        self._text = text
        self._types = logic.types
        self._parse = parse
        self._parse_query = parse_query
        self._sentences: dict[str, Sentence] = {}
        self._queries: dict[str, Query] = {}
        self._rules: dict[str, list[tuple[Query | None, Write]]] = {
            str(name): [
                (self.query(rule.condition) if rule.condition else None, self._join(rule.rhs))
                for rule in rules
            ]
            for name, rules in logic.grammar._rules.items()  # noqa: SLF001  (no other door)
        }

    def sentence(self, text: str) -> Sentence:
        """Make a text of the grammar ready, such as `#intro#`."""
        if text not in self._sentences:
            symbols = self._parse(text)
            self._sentences[text] = Sentence(
                self._join(symbols),
                asks=frozenset(name for symbol in symbols for name in self._asked(symbol)),
                calls=any(self._calls(symbol) for symbol in symbols),
            )
        return self._sentences[text]

    def asked(self) -> frozenset[str]:
        """Return the predicates that anything made ready so far asks for."""
        return frozenset(
            predicate
            for query in self._queries.values()
            for keys, _ in query.parts
            for predicate, _ in keys
        )

    def _expand(self, name: str, scene: Scene, context: Context) -> str:
        """Write what a name stands for: its first rule whose condition holds."""
        for condition, write in self._rules[name]:
            if condition is None or condition.holds(scene.facts, context.assignment):
                return write(scene, context)
        raise IndexError(name)

    def query(self, text: str) -> Query:
        """Make a query ready, such as `holds(a:agent, o:object)`."""
        if text not in self._queries:
            rule = self._parse_query(text)
            self._queries[text] = Query(
                tuple(
                    (self._keys(part), tuple((each.name, each.type) for each in part.parameters))
                    for part in rule.preconditions
                )
            )
        return self._queries[text]

    def _keys(self, predicate: Any) -> tuple[FactKey, ...]:
        """List the kinds of facts that may match: of each type and of those under it."""
        types = [self._types.get(name) for name in predicate.signature.types]
        return tuple(
            (predicate.name, tuple(each.name for each in subtypes))
            for subtypes in self._types.multi_subtypes(types)
        )

    def _join(self, symbols: Sequence[Any]) -> Write:
        writers = [self._symbol(symbol) for symbol in symbols]
        if len(writers) == 1:
            return writers[0]
        return lambda scene, context: "".join([write(scene, context) for write in writers])

    def _symbol(self, symbol: Any) -> Write:
        kinds = self._text
        if isinstance(symbol, kinds.TerminalSymbol):
            literal = str(symbol)
            return lambda _scene, _context: literal
        if isinstance(symbol, kinds.NonterminalSymbol):
            name = str(symbol)
            return lambda scene, context: self._expand(name, scene, context)
        if isinstance(symbol, kinds.EvalSymbol):
            value = _expression(symbol.expression)
            return lambda _scene, context: str(value(context.variables))
        if isinstance(symbol, kinds.ConditionalSymbol):
            each = self._each(symbol)
            return lambda scene, context: "".join(each(scene, context))
        if isinstance(symbol, kinds.ListSymbol) and hasattr(symbol.symbol, "given"):
            return self._listing(self._each(symbol.symbol))
        raise UnknownGrammarError(repr(symbol))

    def _each(self, symbol: Any) -> Callable[[Scene, Context], list[str]]:
        """Make a conditional symbol ready: one text for each way in which its query holds."""
        write = self._symbol(symbol.expression)
        if not symbol.given:
            return lambda scene, context: [write(scene, context)]
        query = self.query(symbol.given)

        def texts(scene: Scene, context: Context) -> list[str]:
            found = query.assignments(scene.facts, context.assignment)
            return [write(scene, _narrowed(scene, context, each)) for each in found]

        return texts

    def _listing(self, each: Callable[[Scene, Context], list[str]]) -> Write:
        def write(scene: Scene, context: Context) -> str:
            texts = each(scene, context)
            if not texts:
                return self._expand("list_empty", scene, context)
            if len(texts) == 1:
                return texts[0]
            between = self._expand("list_separator", scene, context)
            last = self._expand("list_last_separator", scene, context)
            return between.join(texts[:-1]) + last + texts[-1]

        return write

    def _asked(self, symbol: Any) -> list[str]:
        if isinstance(symbol, self._text.ListSymbol):
            return self._asked(symbol.symbol)
        given = getattr(symbol, "given", None)
        return [each.name for each in self._parse_query(given).preconditions] if given else []

    def _calls(self, symbol: Any) -> bool:
        if isinstance(symbol, self._text.ListSymbol):
            return self._calls(symbol.symbol)
        if isinstance(symbol, self._text.ConditionalSymbol):
            return self._calls(symbol.expression)
        return isinstance(symbol, self._text.NonterminalSymbol)


def _narrowed(scene: Scene, context: Context, assignment: Mapping[Any, Any]) -> Context:
    named = {name: scene.names[variable] for (name, _), (variable, _) in assignment.items()}
    return Context({**context.variables, **named}, assignment)


def _expression(source: str) -> Value:
    """Read an expression of the grammar: a few forms are known, and no other is taken."""
    try:
        (statement,) = parse_program(source.strip()).body
    except (SyntaxError, ValueError) as error:
        raise UnknownGrammarError(source) from error
    if not isinstance(statement, ast.Expr):
        raise UnknownGrammarError(source)
    return _value(statement.value, source)


def _value(node: ast.expr, source: str) -> Value:
    match node:
        case ast.Constant(value=str(text)):
            return lambda _: text
        case ast.Name(id=name):
            return lambda variables: _named(variables, name)
        case ast.Attribute(value=ast.Name(id=name), attr=shown) if shown in _SHOWN:
            return lambda variables: getattr(_named(variables, name), shown)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _value(left, source), _value(right, source)
            return lambda variables: first(variables) + second(variables)
        case ast.BoolOp(op=ast.Or(), values=[left, right]):
            first, second = _value(left, source), _value(right, source)
            return lambda variables: first(variables) or second(variables)
        case _:
            raise UnknownGrammarError(source)


def _named(variables: Mapping[str, Any], name: str) -> Any:
    try:
        return variables[name]
    except KeyError as error:
        raise NameError(name) from error
