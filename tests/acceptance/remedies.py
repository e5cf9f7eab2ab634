"""Remedies on frozen banks: what folding, MMR, bundles and quotas do to what is retrieved."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from acceptance.figure import Figure, Setting
from langgraft.benchmarks.simulated import SimulatedBabyAI
from langgraft.environments.babyai import BabyAI
from langgraft.graphs.react import build_react_agent
from langgraft.memory.model import Episode, MemoryDelta
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.memory.rankers import mean_pairwise_diversity
from langgraft.memory.recall import RecallContext

Asked: TypeAlias = Sequence[tuple[str, RecallContext]]
"""Queries and where the agent stands."""

FIELDS: Final[dict[str, Any]] = {"query_fields": ("task", "observation")}
SINGLE: Final[dict[str, Any]] = {"granularity": "individual", "top_k": 3, **FIELDS}
FOLDS: Final = (0.4, 0.5, 0.6, 0.8)
TRADE_OFFS: Final = (0.1, 0.3, 0.5, 0.7)
LEARNED, ASKED = 200, 100
"""Episodes of each task in the bank, and queries: smaller banks have not collapsed as far."""
TESTS: Final = "tests/benchmarks/continual/test_remedies_bank.py"
CONCENTRATED, NARROW, OWN = 0.8, 0.06, 0.5
"""What makes a bank a collapsed one, and the share that a quota is to restore."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a bank gave to all queries."""

    concentration: float
    """Share of the queries that one item is the best for."""
    coverage: float
    """Distinct items retrieved / items in the bank."""
    coverage_slots: float
    """Distinct items retrieved / items retrieved (continual-memory Figure 11b)."""
    diversity: float
    """1 - mean pairwise TF-IDF cosine of the items retrieved for all queries, repetitions
    included: what continual-memory §D calls context diversity."""
    between_contexts: float
    """The same of the injected contexts, the items of one query joined: stricter, because
    variety that every query gets alike does not count."""
    own_share: float
    """Items retrieved that are of the asking domain."""

    @property
    def collapsed(self) -> bool:
        """Whether nearly all queries get the same few items."""
        narrow = max(self.coverage, self.coverage_slots) <= NARROW
        return self.concentration >= CONCENTRATED and narrow


def retrieved(episodes: Iterable[Episode], asked: Asked, **settings: Any) -> Retrieved:
    """File episodes in an empty bank, and ask it."""
    memory = InsightMemory(InMemoryStore(), settings=InsightSettings.model_validate(settings))
    for episode in episodes:
        memory.file(episode)
    recalls = [memory.provide(query, context) for query, context in asked]
    items = [item for recall in recalls for item in recall.items]
    best = Counter(recall.items[0].id for recall in recalls if recall)
    distinct = len({item.id for item in items})
    domain = asked[0][1].domain
    contexts = ["\n\n".join(item.text for item in recall.items) for recall in recalls]
    return Retrieved(
        concentration=max(best.values()) / len(asked),
        coverage=distinct / len(memory.content().items),
        coverage_slots=distinct / len(items),
        diversity=mean_pairwise_diversity([item.text for item in items]) or 0.0,
        between_contexts=mean_pairwise_diversity(contexts) or 0.0,
        own_share=sum(item.source_domain == domain for item in items) / len(items),
    )


def measure(setting: Setting) -> list[Figure]:
    """Ask a bank that a simulated learner filled in BabyAI."""
    if setting.reduced:
        # A bank of fewer episodes, with one setting of each remedy, is a test.
        promise = "Folding, MMR, adaptive granularity and a quota mend a bank that has collapsed"
        return [Figure(promise, TESTS, "run with the tests", "", None)]
    setting.say(f"remedies on a bank of {2 * LEARNED} BabyAI episodes")
    played = played_bank(LEARNED, ASKED)
    learner = f"a simulated learner's {2 * LEARNED} episodes of find_obj, then action_obj_door"
    how = f"{learner}; asked by {len(played[1])} find_obj tests"
    return [*_diversity(*played, how), _quota(*played, how)]


def played_bank(count: int, tests: int) -> tuple[list[Episode], Asked]:
    """Have Cond-Ind learn one task after the other; return its episodes and queries of the first.

    By then the second task's lessons have diluted the bank.
    """
    tasks = "babyai/find_obj", "babyai/action_obj_door"
    world = BabyAI()
    memory = _Keeping(InMemoryStore(), settings=InsightSettings.model_validate(SINGLE))
    agent = build_react_agent(SimulatedBabyAI(), environment=world, memory=memory)
    for domain in tasks:
        for task in world.tasks(domain, "train")[:count]:
            agent.invoke({"task_id": task.id, "episode_id": task.id})
    asked = []
    for task in world.tasks(tasks[0], "test")[:tests]:
        shown = world(task.id).reset()
        context = RecallContext(
            domain=task.domain, task_id=task.id, episode_id=task.id, observation=shown.observation
        )
        asked.append((shown.instruction, context))
    return memory.episodes, asked


class _Keeping(InsightMemory):
    """Keeps the episodes too, to file them otherwise."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.episodes: list[Episode] = []

    @override
    def file(self, episode: Episode, *, generation: str | None = None) -> MemoryDelta:
        self.episodes.append(episode)
        return super().file(episode, generation=generation)


def _diversity(episodes: Sequence[Episode], asked: Asked, how: str) -> list[Figure]:
    """Compare with Cond-Agg on the same episodes; all settings that were tried are shown."""
    single = retrieved(episodes, asked, **SINGLE)
    bundle = retrieved(episodes, asked, **FIELDS)
    folded = {at: retrieved(episodes, asked, **SINGLE, fold_above=at) for at in FOLDS}
    mixed = {at: retrieved(episodes, asked, **SINGLE, mmr=at) for at in TRADE_OFFS}
    adaptive = retrieved(episodes, asked, **{**SINGLE, "granularity": "adaptive"})
    goal, strict = bundle.diversity, bundle.between_contexts
    collapse = (
        f"top-1 concentration {single.concentration:.2f}, coverage {single.coverage:.3f} of the"
        f" bank and {single.coverage_slots:.3f} of the slots; context diversity"
        f" {single.diversity:.3f}, Cond-Agg {goal:.3f}"
    )
    bounds = f"concentration ≥ {CONCENTRATED}, coverage ≤ {NARROW}"
    remedied = [*folded.values(), *mixed.values()]
    return [
        Figure("Single lessons collapse", how, collapse, bounds, single.collapsed),
        Figure(
            "Folding and MMR raise context diversity (§D: of the items retrieved) to that of"
            " bundles, at every setting tried",
            how,
            _grids(folded, mixed, lambda each: each.diversity),
            f"{single.diversity:.3f} without < {goal:.3f} ≤ with it",
            single.diversity < goal <= min(each.diversity for each in remedied),
        ),
        # Not promised: queries this alike find the same candidates, so that each context gains
        # in variety and most contexts gain the same.
        Figure(
            "How far folding and MMR set the contexts of different queries apart",
            how,
            f"{single.between_contexts:.3f} without;"
            f" {_grids(folded, mixed, lambda each: each.between_contexts)}",
            f"Cond-Agg has {strict:.3f}",
            None,
        ),
        Figure(
            "Adaptive granularity reaches bundles by both measures",
            how,
            f"{adaptive.diversity:.3f} of items, {adaptive.between_contexts:.3f} of contexts",
            f"≥ {goal:.3f} and ≥ {strict:.3f}",
            adaptive.diversity >= goal and adaptive.between_contexts >= strict,
        ),
    ]


def _grids(
    folded: Mapping[float, Retrieved],
    mixed: Mapping[float, Retrieved],
    measure: Callable[[Retrieved], float],
) -> str:
    def grid(found: Mapping[float, Retrieved]) -> str:
        return ", ".join(f"{measure(each):.3f} at {at}" for at, each in found.items())

    return f"folding {grid(folded)}; MMR {grid(mixed)}"


def _quota(episodes: Sequence[Episode], asked: Asked, how: str) -> Figure:
    before = retrieved(episodes, asked, **SINGLE).own_share
    after = retrieved(episodes, asked, **SINGLE, own_domain_share=OWN).own_share
    return Figure(
        f"A quota of {OWN} restores the own-task share in a diluted bank",
        how,
        f"{before:.3f} before, {after:.3f} with it",
        f"before < {OWN} ≤ with it",
        before < OWN <= after,
    )
