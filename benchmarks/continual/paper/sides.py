"""A pair of the study, beside the pair of the paper that has the same task families."""

from collections.abc import Mapping
from dataclasses import dataclass

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.published import (
    Backward,
    Family,
    Forward,
    Place,
    Role,
    World,
    continual_memory,
)

_WORLDS: Mapping[str, World] = {
    "alfworld": "ALFWorld",
    "alfworld-generated": "ALFWorld",
    "babyai": "BabyAI",
}


@dataclass(frozen=True)
class Side:
    """A pair of the study."""

    name: str
    """Folder of its own report."""
    analysis: Analysis
    world: World | None
    """The paper's world, where the paper has the same pair."""
    swapped: bool
    """Whether the paper's A is our B."""

    @property
    def generated(self) -> bool:
        """Whether its games were made here, and are not the paper's."""
        return self.analysis.generated

    @property
    def complete(self) -> bool:
        """Whether nothing is missing."""
        return all(run.done == run.planned for run in self.analysis.study.runs)

    def theirs(self, letters: str) -> str:
        """Return a task or a sequence as the paper calls it."""
        return letters.translate(str.maketrans("AB", "BA")) if self.swapped else letters

    def row(self, direction: Direction, sequence: str, condition: str) -> Transfer | None:
        """Return a transfer of ours."""
        rows = self.analysis.rows(direction, sequence)
        return next((row for row in rows if row.condition == condition), None)

    def family(self, task: str) -> Family | None:
        """Return what Table 2 prints of a task."""
        if self.world is None:
            return None
        return continual_memory().table_2[self.world, "A" if self.theirs(task) == "A" else "B"]

    def forward(self, sequence: str, role: Role) -> Forward | None:
        """Return what Tables 3 and 5 print."""
        place, paper = self._place(sequence, role), continual_memory()
        return None if place is None else paper.table_3.get(place) or paper.table_5.get(place)

    def backward(self, sequence: str, role: Role, study: int) -> Backward | None:
        """Return what Table 4 prints for Study 1, and Table 6 for Study 2."""
        place, paper = self._place(sequence, role), continual_memory()
        table = paper.table_4 if study == 1 else paper.table_6
        return None if place is None else table.get(place)

    def _place(self, sequence: str, role: Role) -> Place | None:
        if self.world is None:
            return None
        return "A>B" if self.theirs(sequence) == "A>B" else "B>A", self.world, role


def side_of(name: str, analysis: Analysis) -> Side:
    """Set a pair beside the paper's."""
    worlds = {domain.partition("/")[0] for domain in analysis.domains.values()}
    families = {task: domain.partition("/")[2] for task, domain in analysis.domains.items()}
    world = _WORLDS.get(worlds.pop()) if len(worlds) == 1 else None
    if world is None:
        return Side(name, analysis, None, swapped=False)
    table = continual_memory().table_2
    printed: dict[str, str] = {task: table[world, task].domain for task in ("A", "B")}
    turned = {"A": printed["B"], "B": printed["A"]}
    if families not in (printed, turned):
        return Side(name, analysis, None, swapped=False)
    return Side(name, analysis, world, swapped=families == turned)
