"""Every provider there is, in the settings that make it another one, as parts of its suite."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, TypeAlias

import pytest
from langgraph.store.base import BaseStore

from langgraft.memory.controls import (
    Control,
    Frozen,
    Placebo,
    RandomRetrieval,
    Shuffled,
    WriteOnly,
)
from langgraft.memory.model import Episode, Question, Verdict
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid
from langgraft.memory.recall import RecallContext
from langgraft.memory.testing.providers.base import Make
from langgraft.testing import ProviderConformance

Part: TypeAlias = type[ProviderConformance]


def part(
    make: Make, *, writer: Make | None = None, base: Part = ProviderConformance, **say: Any
) -> Part:
    """Return what a provider says of itself to its suite."""

    class Said(base):  # type: ignore[misc, valid-type]  # which base, the caller says
        @pytest.fixture
        def make(self) -> Make:
            return make

        @pytest.fixture
        def make_writer(self) -> Make:
            return writer or make

    for name, value in say.items():
        setattr(Said, name, value)
    return Said


def named(name: str, **settings: Any) -> Make:
    """Return what makes a provider of a name."""
    return lambda store: make_provider(name, store, settings=settings)


class Judged(ProviderConformance):
    """For providers that learn from a judge: it adds rules, and agrees with the first one shown."""

    def answers(self, question: Question) -> Sequence[Verdict]:
        """Answer with the words of ExpeL."""
        rules = question.shows["rules"]
        assert isinstance(rules, Mapping)
        agreed = [Verdict(question.id, "agree", str(name)) for name in list(rules)[:1]]
        return [Verdict(question.id, "add", text=f"rule of {question.episode_id}"), *agreed]


class Changing(ProviderConformance):
    """For facts that a judge has replace, correct and repeat one another."""

    def answers(self, question: Question) -> Sequence[Verdict]:
        """Say something else of each fact kept."""
        kept, new = question.shows["kept"], question.shows["facts"]
        assert isinstance(kept, Mapping)
        assert isinstance(new, Mapping)
        said = ("replaces", "corrects", "repeats")
        return [
            Verdict(question.id, said[(len(name) + place) % 3], str(held), str(name))
            for name in new
            for place, held in enumerate(kept)
        ]


class Debugging(ProviderConformance):
    """For providers that are asked about an error of the task at hand."""

    def asks(self, episode: Episode) -> tuple[str, RecallContext]:
        """Ask with the error in sight, while debugging."""
        query, context = super().asks(episode)
        seen = episode.steps[1].observation
        return query, replace(context, task_id=episode.task_id, stage="debug", observation=seen)

    def with_settings(
        self, memory: MemoryProvider[Any], store: BaseStore, **changes: Any
    ) -> MemoryProvider[Any]:
        """Look at other tasks where the one at hand is excluded."""
        if changes.get("same_task") == "exclude":
            changes["tasks"] = "all"
        return super().with_settings(memory, store, **changes)


class Controlling(ProviderConformance):
    """For controls, whose settings are those of the provider they wrap."""

    wrap: ClassVar[Callable[[MemoryProvider[Any]], Control]]

    def with_settings(
        self, memory: MemoryProvider[Any], store: BaseStore, **changes: Any
    ) -> MemoryProvider[Any]:
        """Change the settings of the wrapped provider."""
        if not isinstance(memory, Control):  # the one that fills its bank
            return super().with_settings(memory, store, **changes)
        return type(self).wrap(super().with_settings(memory.inner, store, **changes))


def control(wrap: Callable[[MemoryProvider[Any]], Control], **say: Any) -> Part:
    """Return the part of a control around a provider of three lessons."""
    inner = named("insight", granularity="individual", top_k=3)
    said = {"learns": False, "imports": False, "wrap": staticmethod(wrap), **say}
    return part(lambda store: wrap(inner(store)), writer=inner, base=Controlling, **said)


_MATCHED = "What is delivered decides how many are drawn, so that what is found is not all told."
_ASKED: Final[Mapping[str, Any]] = {"coding": {"base": Debugging}}
_UNLEARNED: Final[Mapping[str, Any]] = {"none": {"learns": False, "recalls": False}}
_SINGLE: Final = {"granularity": "individual", "top_k": 3}

REGISTERED: Final[Mapping[str, Part]] = {
    name: part(named(name), **_ASKED.get(name, {}), **_UNLEARNED.get(name, {}))
    for name in PROVIDERS
}
"""Every provider that plans know by name, with its defaults."""

SETTINGS: Final[Mapping[str, Part]] = {
    "insight_adaptive": part(named("insight", granularity="adaptive", top_k=2)),
    "insight_fused": part(
        named(
            "insight",
            **_SINGLE,
            ranker=Hybrid((BM25(), Dense("hashing:32"))),
            requery_interval=4,
        )
    ),
    "insight_remedied": part(
        named("insight", **_SINGLE, fold_above=0.8, mmr=0.5, candidates=10, own_domain_share=0.5)
    ),
    "trajectory_diverse": part(named("trajectory", ranker=MMR(Dense("hashing:32")))),
    "expel_votes": part(named("expel", votes={}), base=Judged),
    "facts_changing": part(
        named(
            "facts",
            profile=[{"name": "task at hand"}, {"name": "pet", "many": True}],
            always=["state"],
            ttl_days={"state": 2},
            max_episodes=4,
            candidates=3,
        ),
        base=Changing,
    ),
    "agent_kb_gate": part(named("agent_kb", gate=True, max_items=7)),
    "lightweight_small": part(named("lightweight", max_short_term=2, max_long_term=3)),
    "coding_all": part(
        named("coding", tasks="all", kinds_by_stage={"debug": ["code"]}), base=Debugging
    ),
    "forgetting": part(
        named(
            "trajectory",
            forgetting=[
                {"policy": "frequency_utility"},
                {"policy": "success_rate"},
                {"policy": "capacity", "limit": 5, "buffer": 2},
            ],
        ),
        episodes=9,  # more than it keeps
    ),
}
"""Settings that make a provider another one."""

CONTROLS: Final[Mapping[str, Part]] = {
    "random": control(
        RandomRetrieval,
        departures={
            "test_items_when_found_are_recalled_or_dropped_whatever_the_budget": _MATCHED,
            "test_item_when_larger_than_the_budget_is_dropped_with_the_reason": _MATCHED,
        },
    ),
    "placebo": control(Placebo),
    "shuffled": control(
        Shuffled,
        departures={
            "test_items_when_found_are_recalled_or_dropped_whatever_the_budget": _MATCHED,
            "test_item_when_larger_than_the_budget_is_dropped_with_the_reason": _MATCHED,
        },
    ),
    "write_only": control(WriteOnly, learns=True, imports=True, recalls=False),
    "frozen_on": control(Frozen),
    "frozen_off": control(lambda inner: Frozen(inner, provide=False), recalls=False),
}
"""The controls."""
