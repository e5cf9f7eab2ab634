"""Programs that the simulated data scientist writes by the tree's prompts, and under what memory.

The memories show what timeouts in a store do:

none        no memory
seeded      a store of errors, all of it told in every stage (preset `implied`)
by stage    the same store with preset `kinds_by_stage`: timeouts are told to debugging alone
no limits   the store without its timeouts, preset `implied`
placebo     filler as long as what `seeded` tells

Three of seven entries of the store are timeouts of boosted trees and forests, as in the paper's
dog-breed runs (mle-agent-memory §4.6: 40.7 % of the entries).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes import Limits
from langgraft.environments.sandboxes.image.packages import shipped_packages
from langgraft.memory.controls import Placebo
from langgraft.memory.model import Episode, ErrorRecord, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.coding import CodingMemory, coding_preset
from langgraft.memory.recall import RecallContext
from langgraft.nodes.competition_run import Bounds, domain, instruction
from langgraft.nodes.dialogue import sample_config
from langgraft.nodes.program_text import read_program
from langgraft.nodes.search.deps import TreePrompts
from langgraft.nodes.search.journal import JournalNode, Stage
from langgraft.nodes.search.programs import summarize
from langgraft.nodes.tracebacks import code_names

Memory: TypeAlias = MemoryProvider[Any] | None

_CODE: Final[tuple[tuple[str, str, str], ...]] = (
    ("pandas", "KeyError: 'wind_speed'", "Use the column wind of the data."),
    ("numpy", "AttributeError: module 'numpy' has no attribute 'float'", "Write float instead."),
    ("general", "FileNotFoundError: ./data/train.csv", "Read ./input/train.csv."),
    ("pandas", "ValueError: columns overlap but no suffix specified", "Join on the id."),
)
_LIMITS: Final[tuple[tuple[str, str, str], ...]] = tuple(
    (
        package,
        f"TimeoutError: the program was stopped while fitting {model}",
        "Use a lighter model.",
    )
    for package, model in (
        ("sklearn", "RandomForestClassifier"),
        ("xgboost", "XGBClassifier"),
        ("lightgbm", "LGBMClassifier"),
    )
)


def memories(competition: Competition) -> Mapping[str, Memory]:
    """Make a memory for each condition, each in a bank of its own."""
    return {
        "none": None,
        "seeded": seeded(competition, "implied"),
        "by stage": seeded(competition, "kinds_by_stage"),
        "no limits": seeded(competition, "implied", limits=False),
        "placebo": Placebo(seeded(competition, "implied")),
    }


def seeded(competition: Competition, preset: str, *, limits: bool = True) -> CodingMemory:
    """Make a memory with the store's entries, errors of code and timeouts in turn."""
    memory = CodingMemory(InMemoryStore(), settings=coding_preset(preset))
    records: list[ErrorRecord] = []
    for number, told in enumerate(_CODE):
        records.append(ErrorRecord(*told))
        if limits and number:
            records.append(ErrorRecord(*_LIMITS[number - 1], kind="resource"))
    for record in records:
        name = f"earlier/{record.package}: {record.error}"
        how = Outcome(success=False)
        memory.file(
            Episode(name, domain(competition), competition.id, "", (), how, errors=(record,))
        )
    return memory


BOOSTED: Final = ("lightgbm", "xgboost")
"""Packages whose timeouts are in the store; what is counted is the share of programs with one."""
SECONDS: Final = 60.0
"""Wall clock of a program."""
STAGES: Final[tuple[Stage, ...]] = ("draft", "improve")
"""What is written for each seed."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and what it imports."""

    stage: Stage
    code: str

    @property
    def packages(self) -> frozenset[str]:
        """The packages it imports."""
        return frozenset(code_names(self.code).packages)

    @property
    def boosted(self) -> bool:
        """Whether it uses a package whose timeouts are in the store."""
        return not self.packages.isdisjoint(BOOSTED)


def write_programs(
    competition: Competition, seeds: int
) -> Mapping[str, Sequence[Sequence[Program]]]:
    """Write a draft and an improvement for each seed under each memory, in the order of the seeds."""
    desk = _Desk(competition)
    return {
        name: [[desk.write(memory, stage, seed) for stage in STAGES] for seed in range(seeds)]
        for name, memory in memories(competition).items()
    }


class _Desk:
    """Writes programs by the tree's prompts, without running them."""

    def __init__(self, competition: Competition) -> None:
        self._competition = competition
        self._prompts = TreePrompts()
        told = Bounds(Limits(), SECONDS, 30).text(self._prompts.bounds, done=0, spent=0.0)
        rules = self._prompts.rules.render(
            split="", folds="5", packages=", ".join(shipped_packages()), bounds=told
        )
        self._shown = {
            "task": competition.description.strip(),
            "rules": rules.strip(),
            "data": data_preview(competition.public_dir),
        }
        plain = self._asked("", "draft", SimulatedDataScientist(ignorance=0), "plain", ())
        self._ran = JournalNode(step=0, id="000", plan="", code=plain, metric=1.0, is_buggy=False)

    def write(self, memory: Memory, stage: Stage, seed: int) -> Program:
        """Write a draft, or an improvement of a plain program that ran."""
        here = self._competition
        step = 0 if stage == "draft" else 1
        context = RecallContext(
            domain=domain(here),
            task_id=here.id,
            episode_id=f"search-{seed}/{step:03d}",
            stage=stage,
            step=step,
        )
        recalled = "" if memory is None else memory.provide(instruction(here), context).text
        earlier = (self._ran,) if stage == "improve" else ()
        code = self._asked(
            recalled, stage, SimulatedDataScientist(seed=seed), f"search-{seed}", earlier
        )
        return Program(stage, code)

    def _asked(
        self,
        recalled: str,
        stage: Stage,
        model: SimulatedDataScientist,
        search: str,
        earlier: Sequence[JournalNode],
    ) -> str:
        lower = self._competition.board.thresholds.lower_is_better
        shown = self._shown | {
            "attempts": summarize(earlier, lower_is_better=lower),
            "memory": f"{recalled}\n" if recalled else "",
            "code": earlier[0].code.rstrip() if earlier else "",
        }
        template = self._prompts.draft if stage == "draft" else self._prompts.improve
        reply = model.invoke(template.render(**shown), sample_config(search, stage, "write"))
        return read_program(reply.text).code
