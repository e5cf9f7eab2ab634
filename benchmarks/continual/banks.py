"""The banks behind a study, folded from its log: as they stand before each item of a stream."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from langgraft.benchmarks.continual.cells import RunResults, StudyLog
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.memory.model import Add, BankContent, MemoryDelta, MemoryItem, Remove


@dataclass
class Bank:
    """A bank while it grows."""

    content: BankContent = field(default_factory=BankContent)
    insights: dict[str, int] = field(default_factory=dict)
    """Item → lessons it holds: distinct ones of its episode that its text contains."""
    domains: Counter[str] = field(default_factory=Counter)
    """Task family → items in the bank."""

    @property
    def items(self) -> Mapping[str, MemoryItem]:
        """Items by id."""
        return self.content.items

    def known(self, ids: Iterable[str]) -> list[MemoryItem]:
        """Return the items with these ids; what memory made up on the way is in no bank."""
        return [self.items[identity] for identity in ids if identity in self.items]

    def share(self, domain: str) -> float | None:
        """Return the share of the items that are of a task family; `None` for an empty bank."""
        return self.domains[domain] / len(self.items) if self.items else None

    def take(self, deltas: Sequence[MemoryDelta], lessons: Collection[str]) -> None:
        """Apply what one episode changed.

        Args:
            deltas: Its deltas, in order.
            lessons: The lessons that were distilled from it.

        Raises:
            InputError: A change does not fit the bank.
        """
        changes = [change for delta in deltas for change in delta]
        for change in changes:
            match change:
                case Add(item):
                    self.domains[item.source_domain] += 1
                    self.insights[item.id] = sum(text in item.text for text in set(lessons))
                case Remove(identity, _) if identity in self.items:
                    self.domains[self.items[identity].source_domain] -= 1
            self.content.apply(change)


class Banks:
    """Folds the banks of a study, one stream at a time: nothing is kept in between.

    Args:
        study: The study.
        log: Its log.
    """

    def __init__(self, study: StudyLog, log: PlanLogReader) -> None:
        self._streams = {run.spec.name: run for run in study.training}
        self._log = log

    def along(self, name: str) -> Iterator[tuple[int, Bank]]:
        """Yield the bank of a stream before each of its items, and after the last.

        It is the same bank each time, which goes on growing: look at it before going on.

        Raises:
            InputError: The deltas do not fold.
        """
        spec = self._streams[name].spec
        bank = self._start(spec)
        yield 0, bank
        for number, (deltas, lessons) in enumerate(self._growth(name), start=1):
            bank.take(deltas, lessons)
            yield number, bank

    def at(self, spec: RunSpec) -> Bank | None:
        """Return the bank a run starts from; `None` where it is not there yet."""
        if spec.source is None:
            return Bank()
        run = self._streams[spec.source.run]
        wanted = run.planned if spec.source.items is None else spec.source.items
        if run.done < wanted:
            return None
        return next(bank for number, bank in self.along(run.spec.name) if number == wanted)

    def _start(self, spec: RunSpec) -> Bank:
        found = self.at(spec)
        return Bank() if found is None else found

    def _growth(self, name: str) -> Iterator[tuple[Sequence[MemoryDelta], list[str]]]:
        results, deltas = self._log.results(name), self._log.deltas(name)
        for result, delta in zip(results, deltas, strict=True):
            lessons = cast("Sequence[Mapping[str, str]]", result.get("lessons") or ())
            yield delta, [lesson["text"] for lesson in lessons]


def domain_of(run: RunResults) -> str:
    """Return the task family of a run: by its own word, or by the ids of its items."""
    spec = run.spec
    guess = spec.item_ids[0].rpartition("/")[0] if spec.item_ids else str(spec.factors["task"])
    return str(spec.factors.get("domain", guess))


def domains(study: StudyLog) -> dict[str, str]:
    """Return the task family of each task that is tested."""
    found: dict[str, str] = {}
    for key, cell in study.cells.items():
        found.setdefault(key.task, domain_of(cell.runs[0]))
    return dict(sorted(found.items()))
