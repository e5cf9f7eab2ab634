"""Make a game ready: TextWorld loads it as it loads any, and what it then holds is taken over."""

import sys
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, Final

from langgraft.environments.alfworld.fast_game import FastGame, Form
from langgraft.environments.alfworld.fast_text import Grammar
from langgraft.environments.alfworld.fast_world import Fact, Variable
from langgraft.environments.alfworld.games import Game
from langgraft.environments.alfworld.installed import Installed, installed
from langgraft.environments.alfworld.patches import replaced
from langgraft.environments.alfworld.textworld_engine import libraries, load, one_call

MOST: Final = 1024
"""How many games are kept ready, at about half a megabyte each; a study's are some 600."""

_READY: OrderedDict[tuple[str, str, str], FastGame] = OrderedDict()


def ready(game: Game, packages: Installed) -> FastGame:
    """Return the game made ready; the one that was used longest ago is forgotten.

    Wants the engine's lock to be held.

    Raises:
        UnknownGrammarError: Its grammar uses what no grammar of ALFWorld does.
    """
    key = (game.domain, game.grammar, game.problem)
    found = _READY.pop(key, None) or _make_ready(game, packages)
    _READY[key] = found
    if len(_READY) > MOST:
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
            (key.name, key.types): frozenset(_fact(each, variables) for each in facts)
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


def _fact(proposition: Any, variables: Mapping[str, Variable]) -> Fact:
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
