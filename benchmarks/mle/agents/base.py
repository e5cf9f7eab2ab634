"""What an agent is to a study: everything that differs between agents, and nothing that does not.

Checkpoints, usage, resuming, banks, grading and the log are the same for all of them, and lie
around this seam (`execute_agent`, `session`, `results`, `solution`). An agent brings its graph, says
what it rests on and how large it can grow, and reads what its graph left.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

from langchain_core.language_models import BaseChatModel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from langgraft._core.canonical import JSON
from langgraft._core.texts import Prompt
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.memory.model import BankContent, MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.competition_run import Gpus
from langgraft.nodes.prompts import prompt
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.workbench.log import StepRecord

AgentProgress: TypeAlias = JournalNode | StepRecord
"""What an agent is seen doing: a program of a tree, a step of the others."""

Graph: TypeAlias = "CompiledStateGraph[Any, None, Any, Any]"

SUBMISSION = "submission.csv"
SOLUTION = "solution.py"
"""Files of every run: what was submitted, and the program that made it, as far as it is known."""


@dataclass(frozen=True)
class Parts:
    """What a run is made of."""

    plan: MlePlan
    settings: AgentSettings
    """The agent's section of the plan."""
    competition: Competition
    sandbox: Sandbox
    model: BaseChatModel
    """The model that acts."""
    feedback_model: BaseChatModel | None = None
    """The model that reviews, diagnoses and judges; `None`: the one that acts."""
    memory: MemoryProvider[Any] | None = None
    """What is asked, holding what the run begins with; `None`: the run has no memory."""
    learn: bool = True
    """Whether the run files what it meets."""
    packages: tuple[str, ...] = ()
    """What the agent is told that programs can import; `find` looks it up."""

    weights: tuple[str, ...] = ()
    """Names of pretrained weights that programs find, as the agent is told."""

    @property
    def diagnosis(self) -> Prompt:
        """The prompt that failures are diagnosed with."""
        return prompt("diagnose_by_example" if self.plan.diagnosis_examples else "diagnose")

    def arguments(self, place: "Place") -> "Arguments":
        """Return what every builder of a graph is told, beside the model that acts."""
        return Arguments(
            competition=self.competition,
            sandbox=self.sandbox,
            feedback_model=self.feedback_model,
            memory=self.memory,
            learn=self.learn,
            artifacts=place.artifacts,
            seconds=self.plan.seconds_of(self.settings),
            packages=self.packages,
            gpus=self.plan.gpus,
            weights=self.weights,
            budget=Budget(self.plan.memory_tokens),
            checkpointer=place.saver,
        )


class Arguments(TypedDict):
    """What `Parts.arguments` returns."""

    competition: Competition
    sandbox: Sandbox
    feedback_model: BaseChatModel | None
    memory: MemoryProvider[Any] | None
    learn: bool
    artifacts: FolderArtifacts
    seconds: float
    packages: tuple[str, ...]
    gpus: Gpus
    weights: tuple[str, ...]
    budget: Budget
    checkpointer: BaseCheckpointSaver[Any] | None


@dataclass(frozen=True)
class Place:
    """Where a run keeps what it needs to go on."""

    artifacts: FolderArtifacts
    """Of contents."""
    saver: BaseCheckpointSaver[Any] | None
    """Of checkpoints."""
    best: Path | None = None
    """Where it may show what it has while it goes on; `None`: nowhere."""


@dataclass(frozen=True)
class Left:
    """What the graph of a run left so far."""

    artifacts: FolderArtifacts
    state: Mapping[str, Any]


@dataclass(frozen=True)
class Solved:
    """What a solved competition's folder tells of a run, beside what came of it."""

    run: str
    """Its name."""
    competition: Competition
    report: Mapping[str, JSON] | None
    """The grade, where there is one."""
    simulated: bool
    """Whether its model was the simulated one."""


@dataclass(frozen=True)
class AgentResult:
    """What came of a run, as its agent reads it."""

    record: str
    """Reference of the last record: it vouches for the whole run."""
    fields: Mapping[str, JSON]
    """The agent's own part of the result in a study's log."""
    deltas: tuple[MemoryDelta, ...] = ()
    """How the run changed memory."""
    validation: float | None = None
    """The validation metric of what was submitted."""
    submission: str = ""
    """Reference of what was submitted; empty: nothing was."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """What people want to look at beside the submission, by name."""


class Agent(ABC):
    """An agent of the study; it holds nothing, so that any number of runs may share it."""

    name: ClassVar[AgentName]
    title: ClassVar[str]
    """What it is called in reports."""
    unit: ClassVar[str]
    """What a run of it is a sequence of, in the plural."""
    prompts: ClassVar[tuple[str, ...]]
    """Prompts that it asks with, by name."""
    files: ClassVar[tuple[str, ...]]
    """Names of the files that `AgentResult.files` may have."""
    record_file: ClassVar[str]
    """The file that a solved competition's folder holds once the run has ended."""
    cached: ClassVar[bool]
    """Whether what a program did is kept, and not run again."""

    @abstractmethod
    def most_calls(self, settings: AgentSettings, *, memory: bool) -> int:
        """Return how many model calls a run makes at the most."""

    @abstractmethod
    def most_executions(self, settings: AgentSettings) -> int:
        """Return how many programs a run executes at the most."""

    def at_once(self, settings: AgentSettings) -> int:
        """Return how many programs of a run are executed at the same time."""
        del settings
        return 1

    @abstractmethod
    def simulated_model(self, *, temperature: float) -> tuple[BaseChatModel, Mapping[str, JSON]]:
        """Return the simulated model that can be this agent's, and what else it is known by."""

    @abstractmethod
    def check_memory(self, memory: MemoryProvider[Any], *, learn: bool) -> None:
        """Refuse memory that needs what the agent cannot give, before a run is paid for.

        Raises:
            SettingsError: It does.
        """

    @abstractmethod
    def graph(self, parts: Parts, place: Place) -> Graph:
        """Build the graph that a plan describes; it is invoked with `episode_id` and `seed`."""

    @abstractmethod
    def told(self, left: Left) -> Sequence[AgentProgress]:
        """Return what is done so far, each whole; it only ever grows at its end."""

    @abstractmethod
    def read(self, left: Left, run: str) -> AgentResult:
        """Read what came of a run that has ended; `run` is its name."""

    @abstractmethod
    def bank_of(self, left: Left) -> BankContent:
        """Return what memory held where the run stands: what it began with and all it learned."""

    @abstractmethod
    async def restore(self, memory: MemoryProvider[Any], left: Left) -> None:
        """Make memory what it is to be where a run goes on."""

    @abstractmethod
    def leave(self, came: AgentResult, out: Path, about: Solved) -> Mapping[str, Path]:
        """Write what the folder `out` of a solved competition shows of the run.

        Returns:
            The files, by what they are; the last one is the record.
        """


S = TypeVar("S", bound=AgentSettings)


def must_be(settings: AgentSettings, section: type[S]) -> S:
    """Return settings as the section of one agent."""
    assert isinstance(settings, section), settings.name
    return settings
