"""Synthetic logs of a continual study: outcomes drawn from known probabilities, for tests."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft.benchmarks.harness.study import BankSource, RunSpec
from langgraft.memory.model import Add, MemoryDelta, MemoryItem

DOMAINS = {"A": "babyai/action_obj_door", "B": "babyai/find_obj"}
THIRD = "babyai/pickup_loc"
"""The family of C, in longer sequences."""
MANIFEST: dict[str, JSON] = {
    "format": 1,
    "study": "continual",
    "plan": "c0ffee" * 10,
    "limit": None,
    "fingerprints": {
        "prompts": {"act": "a1" * 32, "reflect": "b2" * 32},
        "world": "d3" * 32,
        "architectures": {"agg": "e4" * 32},
    },
    "packages": {"langgraft": "0.1.0", "langgraph": "1.2.22"},
    "python": "3.11.7",
}


@dataclass(frozen=True)
class World:
    """What a synthetic study looks like; effects are added to an item's chance of success."""

    conditions: Sequence[str] = ("raw", "agg")
    controls: Sequence[str] = ("agg+placebo", "agg+shuffled")
    effects: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    """(condition, sequence, task) → shift; a missing key is looked up as (condition, "", "")."""
    replicates: int = 3
    baseline_runs: int = 5
    train_items: int = 20
    test_items: int = 40
    steps: int = 1
    rerun: bool = True
    solved: float = 0.5
    """Share of items that are easy: solved 9 times in 10 without memory, others once."""
    probes: Sequence[str] = ()
    """Crossed probes, named `retrieval@pool`."""
    mends: Mapping[str, str] = field(default_factory=dict)
    """Remedy → the condition it is to improve on."""
    retrieved: int = 2
    """Items per retrieval, where the bank holds so many."""
    favorite: Mapping[str, float] = field(default_factory=dict)
    """Condition → share of queries that the oldest item of the bank is the best for."""
    told: str = ""
    """Stands in every text that a model could have written."""
    tokens: tuple[int, int] | None = None
    """Prompt and completion tokens of an episode, where results are to hold them."""
    judged: bool = False
    """Whether memory asked a question in each episode, which rules answered."""
    seed: int = 0
    sequences: Sequence[str] = ("A>B", "B>A")
    """Letters joined by `>`, or by `+` where tasks are mixed in one stream."""
    to_come: bool = False
    """Whether tasks are tested before they are learned, too."""
    online: bool = False
    """Whether training instances are played without memory, too."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The letters of all sequences."""
        return tuple(sorted({*"".join(self.sequences)} - {*">+"}))

    @property
    def streams(self) -> tuple[str, ...]:
        """What is trained."""
        begun = (
            ">".join(parts[:number])
            for parts in (sequence.split(">") for sequence in self.sequences)
            for number in range(1, len(parts) + 1)
        )
        return tuple(dict.fromkeys((*self.tasks, *begun)))


def chance(world: World, condition: str, sequence: str, task: str, item: str) -> float:
    """Return the probability that an item succeeds."""
    easy = _ease(item) < world.solved
    effects = world.effects
    shift = effects.get((condition, sequence, task), effects.get((condition, "", ""), 0.0))
    return min(1.0, max(0.0, (0.9 if easy else 0.1) + shift))


class SyntheticLog:
    """A log that was never run.

    Args:
        world: What is studied.
        done: Run name → how many of its items are done; all of them where it is missing.
        manifest: Overrides of the manifest.
        runs: The runs of a plan, in the place of the world's.
    """

    def __init__(
        self,
        world: World | None = None,
        *,
        done: Mapping[str, int] | None = None,
        manifest: Mapping[str, JSON] | None = None,
        runs: Sequence[RunSpec] | None = None,
    ) -> None:
        self.world = world or World()
        self.runs = tuple(_runs(self.world) if runs is None else runs)
        self.manifest: Mapping[str, JSON] = {**MANIFEST, **(manifest or {})}
        self._done = dict(done or {})
        self._specs = {run.name: run for run in self.runs}
        self._results: dict[str, list[Mapping[str, JSON]]] = {}
        self._banks: dict[str, list[str]] = {}

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the results of a run."""
        if name not in self._results:
            run = self._specs[name]
            self._results[name] = [self._result(run, place) for place in range(self._count(run))]
        return self._results[name]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return one new item per training episode."""
        run = self._specs[name]
        if run.frozen:
            return [() for _ in self.results(name)]
        first = len(self._bank(run, 0))
        added = enumerate(self._bank(run, self._count(run))[first:], start=first)
        return [(MemoryDelta((Add(self._item(identity, at)),)),) for at, identity in added]

    def _count(self, run: RunSpec) -> int:
        return self._done.get(run.name, run.length)

    def _bank(self, run: RunSpec, items: int) -> list[str]:
        """List the items of the bank a run has after some of its items, oldest first."""
        if run.name not in self._banks:
            before: list[str] = []
            if run.source is not None:
                source = self._specs[run.source.run]
                wanted = source.length if run.source.items is None else run.source.items
                before = self._bank(source, wanted)
            added = [] if run.frozen else run.item_ids
            self._banks[run.name] = [*before, *(f"{item}/lesson" for item in added)]
        whole = self._banks[run.name]
        return whole if run.frozen else whole[: len(whole) - run.length + items]

    def _item(self, identity: str, order_index: int) -> MemoryItem:
        episode = identity.removesuffix("/lesson")
        domain, _, number = episode.rpartition("/")
        return MemoryItem(
            id=identity,
            text=f"{self.world.told}advice number {number} of {domain}",
            type="other",
            source_domain=domain,
            episode_id=episode,
            success=True,
            order_index=order_index,
            key=f"{self.world.told}situation {number}",
        )

    def _result(self, run: RunSpec, place: int) -> dict[str, JSON]:
        factors: Any = run.factors
        item = run.item_ids[place]
        condition, sequence, task = factors["condition"], factors["sequence"], factors["task"]
        luck = seeded_fraction(self.world.seed, run.name, item)
        success = luck < chance(self.world, condition, sequence, task, item)
        bare = condition in {"none", "rerun"}
        usage: dict[str, JSON] = {}
        if self.world.tokens is not None:
            prompt, completion = self.world.tokens
            asked: JSON = {"think": {"replies": 1, "tokens": prompt + completion}}
            usage = {
                "usage": {
                    "prompt_tokens": prompt,
                    "completion_tokens": completion,
                    "by_node": asked,
                }
            }
        told = self.world.told
        lessons: list[JSON] = [] if run.frozen else [{"text": f"{told}look", "when_to_use": "lost"}]
        return {
            **usage,
            **({"judging": [{"kind": "votes", "by": "rules"}]} if self.world.judged else {}),
            "task_id": item,
            "success": success,
            "score": 1.0 if success else 0.0,
            "rounds": 6 if success else 20,
            "reason": "success" if success else "time",
            "invalid_replies": 0,
            "recalls": [] if bare else [self._recall(run, place)],
            "lessons": lessons,
            "reflection": "ok",
            "steps": [["", "", f"{told}a room"], [f"{told}hm", f"{told}go", f"{told}a wall"]],
        }

    def _recall(self, run: RunSpec, place: int) -> dict[str, JSON]:
        """Retrieve some items by chance; the favorite first as often as the world says."""
        item, bank = run.item_ids[place], self._bank(run, place)
        name = str(run.factors["condition"])
        ranked = _ranked(run.name, item, tuple(bank))
        if bank and seeded_fraction("top", run.name, item) < self.world.favorite.get(name, 0.0):
            ranked = (bank[0], *(each for each in ranked if each != bank[0]))
        found: list[JSON] = list(ranked[: self.world.retrieved])
        return {
            "id": "r",
            "query": f"{self.world.told}find",
            "searched": f"{self.world.told}find it",
            "step": 0,
            "tokens": 120,
            "item_ids": found,
            "scores": [1.0 for _ in found],
            "dropped": [],
            "tied": len(found),
        }


# Most worlds have runs of the same names, so that one test's draws are another's.
@lru_cache(maxsize=20_000)
def _ranked(run: str, item: str, bank: tuple[str, ...]) -> tuple[str, ...]:
    asked = hashlib.sha256(f"{run}\n{item}\n".encode())

    def key(each: str) -> bytes:
        drawn = asked.copy()
        drawn.update(each.encode())
        return drawn.digest()

    return tuple(sorted(bank, key=key))


@lru_cache(maxsize=20_000)
def _ease(item: str) -> float:
    return seeded_fraction("easy", item)


@lru_cache(maxsize=20_000)
def _order(ids: tuple[str, ...], *key: JSON) -> tuple[str, ...]:
    return tuple(sorted(ids, key=lambda item: seeded_fraction("order", *key, item)))


def _test(
    world: World, condition: str, replicate: int, sequence: str, task: str, *, at: int | None = None
) -> RunSpec:
    ids = tuple(f"{DOMAINS.get(task, THIRD)}/{200 + number}" for number in range(world.test_items))
    when = f" after {sequence}" if sequence else ""
    when += "" if at is None else f" at {at}"
    source = None
    if sequence:
        trained = condition.partition("@")[2] or condition.partition("+")[0]
        source = BankSource(f"{trained}/{replicate}/train {sequence}", at)
    factors: dict[str, JSON] = {
        "kind": "evaluate",
        "condition": condition,
        "replicate": replicate,
        "sequence": sequence,
        "task": task,
        "domain": DOMAINS.get(task, THIRD),
        "at": at,
    }
    if "@" in condition:
        factors["retrieval"], _, factors["pool"] = condition.partition("@")
    name = f"{condition}/{replicate}/test {task}{when}"
    order = _order(ids, replicate, condition)
    return RunSpec("continual", name, factors, order, source, frozen=True)


def _train(world: World, condition: str, replicate: int, sequence: str) -> RunSpec:
    before, _, task = sequence.rpartition(">")
    ids = tuple(
        f"{DOMAINS.get(each, THIRD)}/{number}"
        for each in task.split("+")
        for number in range(world.train_items)
    )
    source = BankSource(f"{condition}/{replicate}/train {before}") if before else None
    factors: dict[str, JSON] = {
        "kind": "train",
        "condition": condition,
        "replicate": replicate,
        "sequence": sequence,
        "task": task,
        "domain": " and ".join(DOMAINS.get(each, THIRD) for each in task.split("+")),
    }
    if condition in world.mends:
        factors["mends"] = world.mends[condition]
    name = f"{condition}/{replicate}/train {sequence}"
    return RunSpec("continual", name, factors, _order(ids, replicate), source)


def _runs(world: World) -> Iterator[RunSpec]:
    for condition, count in (("none", world.baseline_runs), ("rerun", world.replicates)):
        if condition == "none" or world.rerun:
            for replicate in range(count):
                yield from (_test(world, condition, replicate, "", task) for task in world.tasks)
    for replicate in range(world.replicates if world.online else 0):
        yield from (
            replace(_train(world, "none", replicate, task), frozen=True) for task in world.tasks
        )
    for condition in world.conditions:
        for replicate in range(world.replicates):
            yield from _condition(world, condition, replicate)
    for beside in (*world.controls, *world.probes):
        for replicate in range(world.replicates):
            for sequence in world.sequences:
                tasks = sorted({*sequence} - {*">+"})
                yield from (_test(world, beside, replicate, sequence, task) for task in tasks)


def _condition(world: World, condition: str, replicate: int) -> Iterator[RunSpec]:
    for sequence in world.streams:
        yield _train(world, condition, replicate, sequence)
        met = sorted({*sequence} - {*">+"}, key=lambda task: task != sequence[-1])
        for task in met:
            for step in range(1, world.steps):
                at = step * world.train_items // world.steps
                yield _test(world, condition, replicate, sequence, task, at=at)
            yield _test(world, condition, replicate, sequence, task)
        whole = (each for each in world.sequences if f"{each}>".startswith(f"{sequence}>"))
        come = sorted({*"".join(whole)} - {*sequence, ">", "+"})
        for task in come if world.to_come else ():
            yield _test(world, condition, replicate, sequence, task)
