"""What memory made of STATE-Bench's trajectories recalls for its tasks, without any model.

    memory = make_provider("trajectory", store, settings={"feedback": "oracle"})
    file_trajectories(memory, bench)
    measure(memory, bench, bench.tasks(split="test"))
    audit(memory.content().items.values(), bench.tasks(split="test"))

A *leak* is a text of memory that tells what no agent at a test task should be told:

task   it names the test task
gold   it holds all *telling values* of the task's gold state: the ids and the numbers of two digits or
       more that its state requirements ask for, and that the opening does not name; of tasks with
       fewer than `FEWEST` of them nothing can be said. Ids and amounts of tasks are alike, so that a
       text may hold them by chance: what trajectories recorded at training tasks give is the level
       of chance, to compare others with.
label  it tells how an attempt was scored by gold answers: a result, or words of the scoring itself
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from langgraft._core.canonical import JSON
from langgraft.benchmarks.statebench.agents import episode_of, recall_for
from langgraft.environments.statebench import StateBench, Task
from langgraft.memory.model import MemoryItem
from langgraft.memory.provider import FEEDBACK, MemoryProvider
from langgraft.memory.rankers.diversity import mean_pairwise_diversity
from langgraft.memory.recall import Budget

FEWEST: Final = 3
"""Telling values that a task has at least, for a text that holds them all to be a leak."""

LeakKind: TypeAlias = Literal["task", "gold", "label"]

_LABEL: Final = re.compile(
    r"^Result: (?:success|failure)\b|\b(?:state|task)_requirements?\b|\bexpected_value\b"
    r"|\btask_completion_pass\b",
    re.MULTILINE,
)
_THOUSANDS: Final = re.compile(r"(?<=\d),(?=\d{3}\b)")
_TOKEN: Final = re.compile(r"\w+(?:-\w+)*")
_ID: Final = re.compile(r"(?=\S*[A-Za-z])(?=\S*\d)\w+(?:-\w+)*")


@dataclass(frozen=True, slots=True)
class Measures:
    """What was recalled for some tasks; shares are of recalled items unless said otherwise.

    `None`: nothing was recalled, or not enough.
    """

    queries: int
    items: float
    """Per query."""
    tokens: float
    """Per query."""
    empty: float
    """Share of queries for which nothing was recalled."""
    own_task: float | None
    """Learned on the very task that asks; of test tasks always 0."""
    own_domain: float | None
    own_kind: float | None
    """Learned on a task of the same workflow, as the benchmark names it, in the same domain."""
    diversity: float | None
    """1 - mean pairwise TF-IDF cosine of the recalled texts, repetitions included."""
    distinct: float | None
    """Distinct items / items recalled."""
    top: float | None
    """Share of queries whose best item is the one that is the best most often."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A text of memory that tells what it should not."""

    kind: LeakKind
    item: str
    """The item's id."""
    task: str
    """The test task it tells of; empty for a label."""
    told: tuple[str, ...]
    """What it tells."""


def file_trajectories(
    memory: MemoryProvider[Any],
    bench: StateBench,
    domain: str | None = None,
    *,
    scored: bool = True,
) -> int:
    """File the benchmark's recorded trajectories; return how many.

    Args:
        memory: The provider.
        bench: The benchmark.
        domain: Of one domain; `None`: of all.
        scored: Whether they come with their scores by state requirements, where they have any (246
            of 300). That is gold, which the provider's settings declare as `feedback="oracle"`.
            Official learning has no scores.

    Raises:
        InputError: The provider does not take gold answers.
    """
    trajectories = bench.trajectories(domain)
    for each in trajectories:
        score = each.replay()[1] if scored else None
        memory.file(episode_of(each.task, each.turns, score=score))
    return len(trajectories)


def measure(
    memory: MemoryProvider[Any],
    bench: StateBench,
    tasks: Sequence[Task],
    budget: Budget | None = None,
) -> Measures:
    """Ask memory about each task, as an agent would before it begins, and measure what comes."""
    kinds = {task.id: (task.domain, task.kind) for task in bench.tasks()}
    asked = [(task, recall_for(memory, task, budget)) for task in tasks]
    slots = [(task, item) for task, recall in asked for item in recall.items]
    best = Counter(recall.items[0].id for _, recall in asked if recall.items)
    queries = len(asked)
    return Measures(
        queries=queries,
        items=len(slots) / max(queries, 1),
        tokens=sum(recall.tokens for _, recall in asked) / max(queries, 1),
        empty=sum(not recall for _, recall in asked) / max(queries, 1),
        own_task=_share(item.task_id == task.id for task, item in slots),
        own_domain=_share(item.source_domain == task.domain for task, item in slots),
        own_kind=_share(
            kinds.get(item.task_id or "") == (task.domain, task.kind) for task, item in slots
        ),
        diversity=mean_pairwise_diversity([item.text for _, item in slots]),
        distinct=len({item.id for _, item in slots}) / len(slots) if slots else None,
        top=max(best.values()) / best.total() if best else None,
    )


def audit(items: Iterable[MemoryItem], tasks: Sequence[Task]) -> list[Leak]:
    """Look for leaks of test tasks in items of memory, whatever they are retrieved for.

    Args:
        items: Of a bank (`memory.content().items.values()`), or recalled ones.
        tasks: The test tasks; an item is held against each of its own domain's.
    """
    telling = [(task, telling_values(task)) for task in tasks]
    return [leak for item in items for leak in _leaks(item, telling)]


def leaks_in(text: str, task: Task) -> list[Leak]:
    """Look for leaks of one test task in one text: a learning, or the block of a prompt."""
    item = MemoryItem(
        id="text",
        text=text,
        type="other",
        source_domain=task.domain,
        episode_id="",
        success=None,
        order_index=0,
    )
    return audit([item], [task])


def telling_values(task: Task) -> frozenset[str]:
    """Return the ids and numbers of a task's gold state that its opening does not name."""
    found = {token for value in _values(list(task.requirements)) for token in _telling(value)}
    return frozenset(found - _tokens(task.opening))


def _leaks(item: MemoryItem, telling: Sequence[tuple[Task, frozenset[str]]]) -> Iterator[Leak]:
    text = f"{item.text}\n{item.key or ''}"
    if labels := [found[0] for found in _LABEL.finditer(text)]:
        yield Leak("label", item.id, "", tuple(dict.fromkeys(labels)))
    elif item.metadata.get(FEEDBACK) == "oracle" and item.success is not None:
        yield Leak("label", item.id, "", (f"success: {item.success}",))
    said = _tokens(text)
    for task, values in telling:
        if task.domain != item.source_domain:
            continue
        name = task.id.partition("/")[2]
        if name in said:
            yield Leak("task", item.id, task.id, (name,))
        if len(values) >= FEWEST and values <= said:
            yield Leak("gold", item.id, task.id, tuple(sorted(values)))


def _tokens(text: str) -> frozenset[str]:
    return frozenset(_TOKEN.findall(_THOUSANDS.sub("", text)))


def _values(value: JSON) -> Iterator[JSON]:
    """Yield the leaves of requirements; names of fields and of kinds of records tell nothing."""
    if isinstance(value, Mapping):
        for name, each in value.items():
            if name not in ("entity_type", "field"):
                yield from _values(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _values(each)
    else:
        yield value


def _telling(value: JSON) -> Iterator[str]:
    if isinstance(value, str):
        yield from (token for token in _TOKEN.findall(value) if _ID.fullmatch(token))
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) >= 10:  # noqa: PLR2004
        yield str(abs(int(value)) if value == int(value) else abs(value))


def _share(flags: Iterable[bool]) -> float | None:
    counted = [*flags]
    return sum(counted) / len(counted) if counted else None
