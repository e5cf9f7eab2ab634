"""What the fast engine takes over of TextWorld: how facts are asked for, and in which order."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final

import pytest
from alfworld_cases import needs_alfworld
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraft.environments.alfworld.fast_text import Facts, Grammar, UnknownGrammarError
from langgraft.environments.alfworld.installed import import_part, installed

pytestmark = needs_alfworld

OBJECTS: Final = {"a": "cup", "b": "cup", "c": "shelf", "d": "shelf", "e": "cup"}
PLACEHOLDERS: Final = {"x": "cup", "y": "shelf", "z": "thing", "w": "thing"}
PREDICATES: Final = {"clean": 1, "near": 2, "under": 2}

objects = st.sampled_from(sorted(OBJECTS))
facts = st.sets(
    st.sampled_from(sorted(PREDICATES)).flatmap(
        lambda name: st.tuples(st.just(name), st.tuples(*[objects] * PREDICATES[name]))
    ),
    max_size=14,
)
parts = st.lists(
    st.sampled_from(sorted(PREDICATES)).flatmap(
        lambda name: st.tuples(
            st.just(name), st.tuples(*[st.sampled_from(sorted(PLACEHOLDERS))] * PREDICATES[name])
        )
    ),
    min_size=1,
    max_size=3,
)


def types() -> Any:
    """Return a small hierarchy: cups and shelves are things."""
    logic = import_part("textworld.logic")
    hierarchy = logic.TypeHierarchy()
    hierarchy.add(logic.Type("thing", []))
    hierarchy.add(logic.Type("cup", ["thing"]))
    hierarchy.add(logic.Type("shelf", ["thing"]))
    return hierarchy


def grammar(rules: Mapping[str, Any] | None = None) -> Grammar:
    """Make a grammar ready that has these rules."""
    text = installed().text
    return Grammar(
        text,
        SimpleNamespace(types=types(), grammar=SimpleNamespace(_rules=rules or {})),
        parse=lambda source: text._parse_and_convert(source, rule_name="symbols"),
        parse_query=text.Rule.parse_conjunctive_query,
    )


@settings(max_examples=40)
@given(
    facts=facts,
    parts=parts,
    bound=st.dictionaries(st.sampled_from(sorted(PLACEHOLDERS)), objects, max_size=2),
)
def test_query_when_asked_answers_as_textworld_does(
    facts: set[tuple[str, tuple[str, ...]]],
    parts: list[tuple[str, tuple[str, ...]]],
    bound: dict[str, str],
) -> None:
    """The same assignments in the same order, whatever holds and is bound before."""
    logic = import_part("textworld.logic")
    query = " & ".join(
        f"{name}({', '.join(f'{each}: {PLACEHOLDERS[each]}' for each in each_of)})"
        for name, each_of in parts
    )
    state = logic.State(logic.GameLogic())
    state._logic.types = types()
    ours: dict[Any, set[Any]] = {}
    for name, named in facts:
        variables = [(each, OBJECTS[each]) for each in named]
        state.add_fact(logic.Proposition(name, [logic.Variable(*each) for each in variables]))
        key = (name, tuple(kind for _, kind in variables))
        ours.setdefault(key, set()).add(tuple(variables))
    before = {(name, PLACEHOLDERS[name]): (bound[name], OBJECTS[bound[name]]) for name in bound}
    theirs = state.all_assignments(
        installed().text.Rule.parse_conjunctive_query(query),
        {logic.Placeholder(*each): logic.Variable(*what) for each, what in before.items()},
    )
    expected = [
        {(ph.name, ph.type): (variable.name, variable.type) for ph, variable in each.items()}
        for each in theirs
    ]
    known = Facts({key: frozenset(each) for key, each in ours.items()}, {})
    assert list(grammar().query(query).assignments(known, before)) == expected


@pytest.mark.parametrize(
    "text", ["{__import__('os').getcwd()}", "{o.__class__}", "{o.name * 9}", "{o.name.upper()}"]
)
def test_grammar_when_it_holds_other_code_is_not_made_ready(text: str) -> None:
    """Names and their joining are known; nothing else is run."""
    with pytest.raises(UnknownGrammarError):
        grammar().sentence(text)
