"""A pair of the study, beside the pair of the paper that has the same task families."""

from collections.abc import Mapping
from dataclasses import dataclass

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.metrics import Direction, Transfer
from langgraft.benchmarks.continual.published.printed import (
    TABLE_3,
    TABLE_4,
    TABLE_5,
    TABLE_6,
    TASKS,
    Backward,
    Family,
    Forward,
    Role,
    Task,
    World,
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
        theirs: Task = "A" if self.theirs(task) == "A" else "B"
        return TASKS[self.world][theirs]

    def forward(self, sequence: str, role: Role) -> Forward | None:
        """Return what Tables 3 and 5 print."""
        if self.world is None:
            return None
        place = (self.theirs(sequence), self.world, role)
        return TABLE_3.get(place) or TABLE_5.get(place)

    def backward(self, sequence: str, role: Role, study: int) -> Backward | None:
        """Return what Table 4 prints for Study 1, and Table 6 for Study 2."""
        if self.world is None:
            return None
        table = TABLE_4 if study == 1 else TABLE_6
        return table.get((self.theirs(sequence), self.world, role))


def side_of(name: str, analysis: Analysis) -> Side:
    """Set a pair beside the paper's."""
    worlds = {domain.partition("/")[0] for domain in analysis.domains.values()}
    families = {task: domain.partition("/")[2] for task, domain in analysis.domains.items()}
    world = _WORLDS.get(worlds.pop()) if len(worlds) == 1 else None
    if world is None:
        return Side(name, analysis, None, swapped=False)
    printed = {str(task): family.domain for task, family in TASKS[world].items()}
    turned = {"A": printed["B"], "B": printed["A"]}
    if families not in (printed, turned):
        return Side(name, analysis, None, swapped=False)
    return Side(name, analysis, world, swapped=families == turned)
