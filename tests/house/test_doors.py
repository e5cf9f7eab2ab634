"""What every door of the library refuses: one clear error, whichever door it is.

Doors are found, not listed: a factory, builder, control or method that checks nothing fails here.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_origin

import pytest
from chain_cases import scripted
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode
from toy_world import Corridors
from tree_cases import sandbox, toy

import langgraft
from langgraft._core.errors import SettingsError
from langgraft.benchmarks.ablation import Experiment
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.problems.domain import AnswerDomain, Problem
from langgraft.environments.sandboxes import Limits
from langgraft.graphs import build_react_agent
from langgraft.memory import ImportChoices, controls, providers
from langgraft.memory.controls import Control
from langgraft.memory.model import Episode, Outcome, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    PROVIDERS,
    ExpeLSettings,
    InsightMemory,
    VoteSettings,
    make_provider,
)
from langgraft.memory.providers.trajectory import TrajectoryMemory
from langgraft.memory.rankers import BM25
from langgraft.memory.recall import Budget, RecallContext
from langgraft.memory.settings import make_ranker
from langgraft.nodes import dialogue
from langgraft.nodes.dialogue import ChatModel

Door = Callable[..., Any]


def factories() -> Iterator[Door]:
    """Yield what makes a node or a graph: it returns a `Runnable`, and is public."""
    for room in (langgraft.nodes, langgraft.graphs):
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module = importlib.import_module(found.name)
            for name, value in vars(module).items():
                own = inspect.isfunction(value) and value.__module__ == module.__name__
                if own and not name.startswith("_") and value is not dialogue.chat_model:
                    returned = value.__annotations__.get("return")
                    kind = get_origin(returned) or returned
                    if isinstance(kind, type) and issubclass(kind, Runnable):
                        yield value


def hints(door: Door) -> dict[str, Any]:
    """Return what the arguments of a door should be."""
    return {name: each.annotation for name, each in inspect.signature(door).parameters.items()}


FACTORIES = {f"{door.__module__}.{door.__name__}": door for door in factories()}
ARGUMENTS = [
    pytest.param(door, name, id=f"{where}-{name}")
    for where, door in FACTORIES.items()
    for name, hint in hints(door).items()
    if hint is not Any
]
CONTROLS = [
    value
    for value in vars(controls).values()
    if inspect.isclass(value) and issubclass(value, Control) and not inspect.isabstract(value)
]
STORES = [langgraft.RankedStore, langgraft.ReadOnlyStore]
ASKED = {
    name: method
    for name, method in inspect.getmembers(MemoryProvider, inspect.isfunction)
    if not name.startswith("_")
    and name != "asks_again"
    and {Episode, RecallContext} & {*hints(method).values()}
}


def test_doors_when_looked_for_are_found() -> None:
    """Nothing below passes for want of doors."""
    assert {door.__name__ for door in FACTORIES.values()} >= {
        *(name for name in langgraft.nodes.__all__ if name.endswith(("_node", "_messages"))),
        *langgraft.graphs.__all__,
    }
    assert {"provide", "aprovide", "questions", "aquestions", "file", "afile"} <= {*ASKED}
    assert len(CONTROLS) > 4


@pytest.mark.parametrize(("door", "name"), ARGUMENTS)
def test_factory_when_given_something_else_names_the_argument(door: Door, name: str) -> None:
    """An object of no use, or a class in place of an object: before anything else is looked at."""
    where = f"^`{name}` of {door.__name__} must be "
    with pytest.raises(SettingsError, match=f"{where}.*, got <object object"):
        door(**{name: object()})
    if "Callable" not in str(hints(door)[name]):
        with pytest.raises(SettingsError, match=f"{where}.*the class Thing: give an object, Thing"):
            door(**{name: type("Thing", (), {})})


@pytest.mark.parametrize("door", FACTORIES.values(), ids=FACTORIES)
def test_factory_when_an_argument_is_misspelt_says_which_was_meant(door: Door) -> None:
    """Python would only count what is missing."""
    *_, name = hints(door)
    with pytest.raises(SettingsError, match=f"^{door.__name__} takes no `{name}s`: .*'{name}'"):
        door(**{f"{name}s": None})


# Models by name ---------------------------------------------------------------------------


NAMED = [
    pytest.param(door, name, id=f"{where}-{name}")
    for where, door in FACTORIES.items()
    for name, hint in hints(door).items()
    if str(ChatModel) in str(hint)
]


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield one right thing for each argument that a door with models cannot do without."""
    competition: Competition = toy(tmp_path)
    model = scripted("done")
    with sandbox(competition) as place:
        yield {
            "memory": TrajectoryMemory(InMemoryStore()),
            "environment": Corridors(),
            "competition": competition,
            "domain": AnswerDomain("sums", [Problem("p", "What is 1 + 1?", "Sums", "1", "2")]),
            "sandbox": place,
            "name": "draft",
            "begin": lambda state: None,
            "model": model,
            "runnable": model,
            "code_model": model,
        }


def built(door: Door, parts: Mapping[str, Any], **given: Any) -> Any:
    """Call a door with what it needs and what is given."""
    needed = {
        name: parts[name]
        for name, each in inspect.signature(door).parameters.items()
        if each.default is each.empty
    }
    return door(**{**needed, **given})


@pytest.mark.parametrize(("door", "name"), NAMED)
def test_model_when_it_is_named_is_made_by_langchain(
    door: Door, name: str, parts: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No network is needed for that; the chain agent's model calls tools."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert isinstance(built(door, parts, **{name: "openai:gpt-4.1-mini"}), Runnable)


@pytest.mark.parametrize(("door", "name"), NAMED)
def test_model_when_its_name_makes_none_says_why(
    door: Door, name: str, parts: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The argument is named, and so is the key that is missing."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for model, why in (
        ("nobody:knows", "infer model provider"),
        ("openai:gpt-4.1-mini", "OPENAI_API_KEY"),
        ("", "infer model provider"),
    ):
        with pytest.raises(SettingsError, match=f"^`{name}` of .* got {model!r}: .*{why}"):
            built(door, parts, **{name: model})


def test_model_when_it_is_named_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    """What LangChain makes of the name is what the agent asks."""
    asked: list[str] = []

    def make(name: str) -> GenericFakeChatModel:
        asked.append(name)
        return GenericFakeChatModel(messages=iter([AIMessage("Action: walk")] * 3))

    monkeypatch.setattr("langchain.chat_models.init_chat_model", make)
    agent = build_react_agent("somebody:model", environment=Corridors())
    assert agent.invoke({"task_id": "toy/corridor/3"})["success"]
    assert asked == ["somebody:model"]


# Memory -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROVIDERS)
def test_provider_when_made_of_something_else_says_so(name: str) -> None:
    """A class of stores, plain settings, a setting among the arguments, another's settings."""
    kind = providers.provider_class(name)
    made, wanted = kind.__name__, kind.settings_model.__name__
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (InMemoryStore, {}, "`store` of .* got the class InMemoryStore: give an object"),
        ({}, {}, "`store` of .* such as InMemoryStore"),
        (InMemoryStore(), {"settings": {"credit": True}}, rf"write it as {wanted}\(credit=…\)"),
        (InMemoryStore(), {"settings": kind.settings_model}, f"got the class {wanted}"),
        (InMemoryStore(), {"setting": None}, "takes no `setting`: did you mean 'settings'"),
    ]
    for store, fields, said in wrong:
        with pytest.raises(SettingsError, match=f"(?=.*{made}).*{said}"):
            kind(store, **fields)


@pytest.mark.parametrize("name", PROVIDERS)
def test_settings_when_misspelt_say_which_was_meant(name: str) -> None:
    """From the constructor as from a plan."""
    kind: type[Any] = providers.provider_class(name).settings_model
    with pytest.raises(
        SettingsError, match=f"^{kind.__name__}: .*there is no credits: did you mean 'credit'"
    ):
        kind(credits=True)
    with pytest.raises(SettingsError, match=f"^{kind.__name__}: credit: .* bool.*'perhaps'"):
        kind(credit="perhaps")
    with pytest.raises(SettingsError, match=f"^provider '{name}': .*did you mean 'credit'"):
        make_provider(name, InMemoryStore(), settings={"credits": True})


@pytest.mark.parametrize(
    ("kind", "typo", "meant"),
    [
        (Limits, "second", "seconds"),
        (VoteSettings, "max_rule", "max_rules"),
        (ImportChoices, "on_conflit", "on_conflict"),
    ],
)
def test_other_settings_when_misspelt_say_which_was_meant(
    kind: type[Any], typo: str, meant: str
) -> None:
    """Whatever is built of settings refuses them alike."""
    with pytest.raises(SettingsError, match=f"{kind.__name__}: .*{typo}: did you mean '{meant}'"):
        kind(**{typo: 1})


def test_settings_within_settings_when_misspelt_are_named_by_their_way() -> None:
    """One line says which part of the whole it is."""
    with pytest.raises(SettingsError, match=r"^ExpeLSettings: votes\.max_rule: "):
        ExpeLSettings(votes=cast("Any", {"max_rule": 3}))


def test_settings_when_nothing_is_near_list_what_there_is() -> None:
    """One of them may be it."""
    with pytest.raises(SettingsError, match=r"no k: there are feedback, .*, top_k"):
        make_provider("insight", InMemoryStore(), settings={"k": 3})


def test_name_when_misspelt_says_which_was_meant() -> None:
    """Of a provider, and of a ranker."""
    with pytest.raises(SettingsError, match="'insigt': did you mean 'insight'"):
        make_provider("insigt", InMemoryStore(), settings={})
    for given, meant in (
        ("SimpleRAG", "simple_rag"),
        ("simplerag", "simple_rag"),
        ("TrajectoryMemory", "trajectory"),
        ("NoMemory", "none"),
    ):
        with pytest.raises(SettingsError, match=f"'{given}': did you mean '{meant}'"):
            make_provider(given, InMemoryStore())
    with pytest.raises(SettingsError, match="'bm52': did you mean 'bm25'"):
        make_ranker({"ranker": "bm52"})


@pytest.mark.parametrize("method", ASKED)
async def test_memory_when_handed_something_plain_says_how_it_is_written(method: str) -> None:
    """A dict or a text in place of an episode or a context, on every way into memory."""
    memory = InsightMemory(InMemoryStore())
    before = memory.content()
    for name, hint in hints(ASKED[method]).items():
        if hint not in (Episode, RecallContext):
            continue
        for wrong in ({"domain": "math"}, "math"):
            said = rf"`{name}` of InsightMemory.{method} must be .*{hint.__name__}\(.*domain=…"
            with pytest.raises(SettingsError, match=said):
                await getattr(memory, method)(**{name: wrong})
    assert memory.content() == before


def test_memory_when_handed_what_it_knows_takes_it() -> None:
    """What the checks let through is filed and recalled."""
    memory = TrajectoryMemory(InMemoryStore())
    assert memory.file(episode=make_episode("e0"))
    assert memory.provide("a task", context=asking(), budget=Budget(tokens=0)).tokens == 0


def test_context_when_its_fields_have_no_names_says_which_there_are() -> None:
    """Three texts in a row are soon in another order."""
    context: Any = RecallContext
    with pytest.raises(SettingsError, match=r"no place for 'math': .*\(domain=…, task_id=…, epis"):
        context("math", "p1", "e1")
    with pytest.raises(SettingsError, match="takes no `task`: did you mean 'task_id'"):
        context(domain="math", task="p1", episode_id="e1")


@pytest.mark.parametrize("kind", CONTROLS)
def test_control_when_given_the_class_of_a_memory_says_so(kind: type[Control]) -> None:
    """And when it is given a name in place of a memory."""
    inner: Any
    for inner in (InsightMemory, "insight"):
        with pytest.raises(SettingsError, match=f"`inner` of {kind.__name__} must be a MemoryProv"):
            kind(inner)


@pytest.mark.parametrize("kind", STORES)
def test_store_when_made_of_something_else_says_so(kind: type[BaseStore]) -> None:
    """A class of stores or rankers is none, and neither is a name."""
    for name, hint in [*hints(kind).items()][:2]:
        for wrong in (InMemoryStore, BM25, "memory"):
            said = f"`{name}` of {kind.__name__} must be a {hint.__name__}"
            with pytest.raises(SettingsError, match=said):
                kind(**{name: wrong})


def test_episode_when_its_outcome_is_a_bare_word_says_how_it_is_written() -> None:
    """`True` is no outcome."""
    outcome: Any = True
    with pytest.raises(SettingsError, match=r"got True: write it as Outcome\(success=…\)"):
        make_episode("e0", outcome=outcome)


@pytest.mark.parametrize(
    ("make", "given", "named", "said"),
    [
        (Episode, (), {"task": "go"}, r"Episode needs `id` and .*: Episode\(id=…, .*outcome=…\)"),
        (Step, ("think",), {}, "Step needs `action` and `observation`"),
        (Step, ("", "", ""), {"thougt": ""}, "Step takes no `thougt`: did you mean 'thought'"),
        (Outcome, (True, 1.0, "", "environment", 5), {}, "Outcome has no place for 5"),
        (Experiment, (), {"build": str}, "Experiment needs `test`"),
        (make_provider, ("insight",), {}, "make_provider needs `store`"),
    ],
)
def test_call_when_a_part_is_missing_or_misspelt_names_it(
    make: Callable[..., object], given: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    """Nobody has to read a `TypeError`."""
    with pytest.raises(SettingsError, match=said):
        make(*given, **named)
