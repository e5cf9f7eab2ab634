"""Memory is the fold of its deltas, asking changes nothing, and no store shows."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from acceptance.figure import Figure, Setting, share
from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft.benchmarks.continual.plan import paper_conditions
from langgraft.benchmarks.reporting.words import several
from langgraft.benchmarks.simulated import SimulatedBabyAI
from langgraft.environments.babyai import BabyAI
from langgraft.graphs.react import build_react_agent
from langgraft.memory.model import (
    Episode,
    ErrorRecord,
    Lesson,
    MemoryDelta,
    Outcome,
    Step,
    Verdict,
    fold,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.recall import Budget, RecallContext
from langgraft.memory.stores import ReadOnlyStore

_PLAIN = "open the red blue grey door key ball box pick up pickup go to find toggle left wall 1 2"
WORDS = [*_PLAIN.split(), "né", "\u202e", "\x00", "</recalled_memory>", "🜁"]

TASK = "babyai/action_obj_door"


@dataclass
class Tally:
    """Checks made and checks that failed, by name."""

    made: dict[str, int] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)

    def check(self, name: str, case: str, *, holds: bool) -> None:
        """Count one check."""
        self.made[name] = self.made.get(name, 0) + 1
        if not holds:
            self.failed.setdefault(name, []).append(case)

    def figure(self, name: str, promise: str, how: str) -> Figure:
        """Write the checks of one name as a row."""
        made, failed = self.made.get(name, 0), self.failed.get(name, [])
        return Figure(
            promise, how, share(made - len(failed), made, failed), "all", made > 0 and not failed
        )


FORGETTING: list[JSON] = [
    {"policy": "frequency_utility", "min_uses": 2},
    {"policy": "success_rate"},
    {"policy": "capacity", "limit": 20, "buffer": 5},
]

VARIANTS: dict[str, tuple[str, dict[str, JSON]]] = {
    "expel with votes": ("expel", {"votes": {}}),
    "agent_kb with a gate": ("agent_kb", {"gate": True, "max_items": 25}),
    "coding across tasks": ("coding", {"tasks": "all"}),
    "a small lightweight": ("lightweight", {"max_short_term": 5, "max_long_term": 8}),
    "a forgetting trajectory": ("trajectory", {"forgetting": FORGETTING}),
}
"""Settings that make a provider another one."""


def architectures() -> dict[str, tuple[str, dict[str, JSON]]]:
    """Return every provider with its defaults, as the paper's conditions have it, and others."""
    return {
        **{name: (name, {}) for name in PROVIDERS},
        **{
            condition.name: (condition.provider, dict(condition.settings))
            for condition in paper_conditions()
        },
        **VARIANTS,
    }


def measure(setting: Setting) -> list[Figure]:
    """Try every provider on random episodes, and the agent on real ones."""
    count, seeds = setting.size(200, 40), range(setting.size(2, 1))
    tally = Tally()
    for name, (provider, settings) in architectures().items():
        setting.say(f"the fold of {name}")
        for seed in seeds:
            with plain_store(setting.work / f"fold-{name}-{seed}.sqlite") as other:
                memory = make_provider(provider, InMemoryStore(), settings=settings)
                elsewhere = make_provider(provider, other, settings=settings)
                _fill(memory, elsewhere, _episodes(seed, count), tally, f"{name}, seed {seed}")
            with plain_store(setting.work / f"fold-{name}-{seed}.sqlite") as other:
                reopened = make_provider(provider, other, settings=settings)
                _compare(memory, reopened, tally, f"{name}, seed {seed}")
        _play(setting, name, tally)
    sizes = f"{len(architectures())} architectures, {count} random episodes, {several(len(seeds), 'seed')}"
    return [
        tally.figure("fold", "The fold of the deltas is the bank, byte for byte", sizes),
        tally.figure("provide", "`provide` leaves the digest of the bank as it is", sizes),
        tally.figure("frozen", "So it does on a frozen bank", sizes),
        tally.figure(
            "stores",
            "In memory and in a reopened SQLite store, contents and recalls are the same",
            sizes,
        ),
        tally.figure(
            "agent",
            "The same agent makes the same items on both, reopened half-way",
            f"agents with all but coding memory, {_played(setting)} episodes of BabyAI each; that"
            " something was learned is a check of its own",
        ),
    ]


@contextmanager
def plain_store(path: Path) -> Iterator[BaseStore]:
    """Open a LangGraph store that is not ours, ranks nothing and survives its process."""
    # Among the development dependencies, not those of langgraft.
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415

    with SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        yield store


def _episodes(seed: int, count: int) -> list[Episode]:
    chance = random.Random(seed)
    return [_episode(chance, f"episode {number}") for number in range(count)]


def random_episode(identity: str) -> Episode:
    """Return an episode with any texts, the same for each name."""
    return _episode(random.Random(identity), identity)


def _episode(chance: random.Random, identity: str) -> Episode:
    def text(longest: int) -> str:
        return " ".join(chance.choices(WORDS, k=chance.randint(0, longest)))

    return Episode(
        id=identity,
        domain=chance.choice(["babyai/find_obj", TASK]),
        task_id=text(2),
        task=text(8),
        steps=tuple(Step(text(6), text(4), text(30)) for _ in range(chance.randint(0, 6))),
        outcome=Outcome(chance.choice([True, False, None])),
        lessons=tuple(Lesson(text(15), text(6)) for _ in range(chance.randint(0, 4))),
        errors=tuple(
            ErrorRecord(text(1), text(8), text(8), chance.choice(("code", "resource")))
            for _ in range(chance.randint(0, 2))
        ),
    )


def _judged(memory: MemoryProvider[Any], episode: Episode, number: int) -> Episode:
    """Answer what memory asks about an episode, and let it carry what memory would recall."""
    chance = random.Random(f"{number} {episode.id}")
    verdicts = []
    for question in memory.questions(episode):
        shown = re.findall(r'"([^"]*/[^"]*)"', canonical_json(dict(question.shows)))
        for action in ("add", "agree", "edit", "remove", "none"):
            named = chance.choice([*shown, "gone"])
            text = " ".join(chance.choices(WORDS, k=4))
            verdicts.append(Verdict(question.id, action, None if action == "add" else named, text))
    context = RecallContext(
        domain=episode.domain,
        task_id=episode.task_id,
        episode_id=episode.id,
        observation=episode.task,
    )
    receipt = memory.provide(episode.task, context, Budget(tokens=400)).receipt
    return replace(episode, verdicts=tuple(verdicts), recalls=(receipt,))


def _ask(memory: MemoryProvider[Any], number: int) -> list[tuple[str, JSON]]:
    """Ask with and without a limit, at the start and later, where every memory answers."""
    chance = random.Random(number)
    query = " ".join(chance.choices(WORDS, k=5))
    # A third of the random episodes are of the task without a name.
    at = RecallContext(
        domain=TASK,
        task_id="",
        episode_id=f"asking {number}",
        episode_index=0,
        observation="a red door",
    )
    found = [
        memory.provide(query, replace(at, step=step), budget)
        for step in (0, 4)
        for budget in (None, Budget(tokens=80))
    ]
    return [(recall.text, recall.receipt.to_json()) for recall in found]


def _fill(
    memory: MemoryProvider[Any],
    elsewhere: MemoryProvider[Any],
    episodes: list[Episode],
    tally: Tally,
    case: str,
) -> None:
    deltas: list[MemoryDelta] = []
    for number, bare in enumerate(episodes):
        episode = _judged(memory, bare, number)
        made = memory.file(episode)
        same = made == elsewhere.file(episode)
        tally.check("stores", f"{case}: delta of {episode.id}", holds=same)
        deltas.append(MemoryDelta.from_json(made.to_json()))
        if number % 10 == 0:
            before = memory.content().digest
            _ask(memory, number)
            memory.questions(episode)
            tally.check("provide", case, holds=memory.content().digest == before)
    folded = fold(deltas).to_bytes()
    tally.check("fold", case, holds=folded == memory.content().to_bytes())
    tally.check("fold", f"{case}, SQLite", holds=folded == elsewhere.content().to_bytes())


def _compare(
    memory: MemoryProvider[Any], reopened: MemoryProvider[Any], tally: Tally, case: str
) -> None:
    frozen = type(memory)(ReadOnlyStore(memory.store), settings=memory.settings)
    before = frozen.content().digest
    tally.check("stores", f"{case}: contents", holds=reopened.content() == memory.content())
    answers = [text for number in range(25) for text, _ in _ask(memory, number)]
    tally.check("stores", f"{case}: recalls nothing", holds=any(answers) or memory.name == "none")
    for number in range(25):
        expected = digest(_ask(memory, number))
        tally.check("stores", f"{case}: recall", holds=digest(_ask(reopened, number)) == expected)
        tally.check("frozen", f"{case}: recall", holds=digest(_ask(frozen, number)) == expected)
    tally.check("frozen", f"{case}: digest", holds=frozen.content().digest == before)


def _played(setting: Setting) -> int:
    return setting.size(24, 6)


def _play(setting: Setting, name: str, tally: Tally) -> None:
    """Play the same episodes on both stores; the other one is reopened half-way."""
    provider, settings = architectures()[name]
    tasks = [task.id for task in BabyAI().tasks(TASK, "train")[: _played(setting)]]
    half = len(tasks) // 2
    memory = make_provider(provider, InMemoryStore(), settings=settings)
    if "errors" in memory.needs:
        return  # a text world has no errors to learn from
    _episodes_of(memory, tasks)
    tally.check("agent", f"{name} learns", holds=bool(memory.content().items) or name == "none")
    path = setting.work / f"agent-{name}.sqlite"
    for part in (tasks[:half], tasks[half:]):
        with plain_store(path) as other:
            elsewhere = make_provider(provider, other, settings=settings)
            _episodes_of(elsewhere, part)
            content = elsewhere.content()
    tally.check("agent", name, holds=content.to_bytes() == memory.content().to_bytes())


def _episodes_of(memory: MemoryProvider[Any], tasks: list[str]) -> None:
    agent = build_react_agent(SimulatedBabyAI(seed=1), environment=BabyAI(), memory=memory)
    for task_id in tasks:
        agent.invoke({"task_id": task_id, "episode_id": task_id})
