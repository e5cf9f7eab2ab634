"""Programs that the simulated data scientist writes by the tree's prompts, and what they import."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.acceptance.tree_stores import Memory, memories
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes.telling import span
from langgraft.memory.recall import RecallContext
from langgraft.nodes.code_names import code_names
from langgraft.nodes.competing import domain, instruction
from langgraft.nodes.sampling import sample_config
from langgraft.nodes.search.briefing import TreePrompts
from langgraft.nodes.search.journal import JournalNode, Stage
from langgraft.nodes.search.packages import shipped_packages
from langgraft.nodes.search.program_text import read_program
from langgraft.nodes.search.summary import summarize

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
        rules = self._prompts.rules.render(
            limit=span(SECONDS), folds="5", packages=", ".join(shipped_packages())
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
