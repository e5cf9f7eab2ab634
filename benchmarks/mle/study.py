"""The study of agents at machine-learning competitions as the harness sees it."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest, text_digest
from langgraft._core.errors import PlanError, SandboxUnavailableError
from langgraft.benchmarks.harness.graph import list_runs
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import is_foreign, provider_modules
from langgraft.benchmarks.harness.source import source_digests
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    PlanLogReader,
    Report,
    RunSession,
    RunSpec,
    Study,
)
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.conditions import MemoryCondition
from langgraft.benchmarks.mle.data import (
    competitions_of,
    fingerprint,
    left_out,
    make_ready,
    unprepared_lines,
)
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.runs import agent_of, competition_of, memory_of, runs_at
from langgraft.benchmarks.mle.sandboxes import Sandboxes, check_engine_and_image
from langgraft.benchmarks.mle.sizing import size_lines
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.providers import provider_class
from langgraft.nodes.prompts import prompt

if TYPE_CHECKING:  # listing runs needs none of it
    from langchain_core.language_models import BaseChatModel

CODE: Final = ("langgraft.benchmarks.mle.models", "langgraft.benchmarks.mle.session")
"""What carries out a run of any agent."""

NO_RESULT: Final = ("langgraft.benchmarks.mle.tree_page",)
"""What they import to show a run; that may change under a finished one."""


class MleStudy(Study[MlePlan]):
    """Agents that write programs for competitions, with and without memory (mle-agent-memory)."""

    name = "mle"
    plan_model = MlePlan
    default_store: ClassVar[str] = "chroma"
    """The paper keeps its memory in a vector database; here it is kept in the run directory."""
    default_workers: ClassVar[int] = 2
    """Searches under way at the same time. A program has one processor and 2 GiB unless the plan
    says otherwise: two of them fill two processors, and no more memory than a small machine has."""

    def __init__(self) -> None:
        self.sandboxes = Sandboxes()

    @override
    def expand(self, plan: MlePlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan.

        Raises:
            CompetitionError: There is no such competition, or its files are not as they should be.
            PlanError: There are too many runs.
        """
        return list_runs(runs_at(plan, [each.id for each in competitions_of(plan)]))

    @override
    def fingerprints(self, plan: MlePlan) -> Mapping[str, JSON]:
        """Return digests of prompts, code, data, image and the memories' architectures."""
        agents = [agent_named(each.name) for each in plan.agents]
        code = {*CODE, *(type(each).__module__ for each in agents)}
        code |= provider_modules(each.provider_name for each in plan.memory)
        unused = () if plan.model == SIMULATED else ("langgraft.benchmarks.simulated",)
        prompts = {name for each in agents for name in each.prompts}
        data: dict[str, JSON] = {each.id: fingerprint(each) for each in competitions_of(plan)}
        found: dict[str, JSON] = {
            "prompts": {name: prompt(name).sha256 for name in sorted(prompts)},
            "code": dict(source_digests(code, apart_from=(*NO_RESULT, *unused))),
            "competitions": data,
            "image": _image(plan),
            "architectures": {each.name: digest(_architecture(each)) for each in plan.memory},
        }
        return {**found, "left_out": list(left_out(plan))} if plan.only_prepared else found

    @override
    def packages(self, plan: MlePlan) -> tuple[str, ...]:
        """Name what retrieval and grades are computed with."""
        return ("bm25s", "numpy", "pandas", "scikit-learn")

    @override
    def make_ready(self, plan: MlePlan) -> None:
        """Find the engine and image, prepare the competitions that ship, and check models and memories.

        Raises:
            SandboxUnavailableError: There is no engine or image.
            CompetitionError: A competition of one's own is not prepared, or data is not as it was.
            MissingExtraError: Grading needs the extra `mle`.
            InputError: A model cannot be set up, or memory needs what an agent cannot give.
        """
        from langgraft.benchmarks.mle.models import check_models  # noqa: PLC0415
        from langgraft.benchmarks.mle.session import check_memories  # noqa: PLC0415

        self.check_engine(plan)
        check_models(plan)
        check_memories(plan)
        make_ready(plan.registry(), competitions_of(plan))

    @staticmethod
    def check_engine(plan: MlePlan) -> None:
        """Check that there is something to run programs in.

        Raises:
            SandboxUnavailableError: There is no engine or image.
        """
        if plan.sandbox == "docker":
            check_engine_and_image(plan.image)

    @override
    def open(
        self,
        plan: MlePlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: "BaseChatModel",
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run."""
        from langgraft.benchmarks.mle.models import models_of  # noqa: PLC0415
        from langgraft.benchmarks.mle.session import MleSession  # noqa: PLC0415

        competition = plan.registry().get_competition(competition_of(run))
        if place.files is None:
            msg = f"run {run.name!r} needs a run directory to keep its work in"
            raise PlanError(msg)
        borrowed = self.sandboxes.borrow(plan, competition, place.files.shared)
        try:
            return MleSession(
                plan,
                run,
                deltas,
                models=models_of(plan, plan.agent(agent_of(run)), model),
                competition=competition,
                borrowed=borrowed,
                place=place,
                files=place.files,
            )
        except BaseException:
            borrowed.release()
            raise

    @override
    def simulated_model(self, plan: MlePlan, run: RunSpec) -> "BaseChatModel":
        """Return the simulated model of the run's agent."""
        from langgraft.benchmarks.harness.models import MeteredChatModel  # noqa: PLC0415

        section = plan.agent(agent_of(run))
        temperature = plan.temperature_of(section)
        learner, known = agent_named(section.name).simulated_model(temperature=temperature)
        identity = {"model": SIMULATED, "temperature": temperature, **known}
        return MeteredChatModel(inner=learner, identity=identity)

    @override
    def most_calls(self, plan: MlePlan, run: RunSpec) -> int:
        """Return how many model calls a run makes at the most."""
        section = plan.agent(agent_of(run))
        memory = memory_of(plan, run).start != "off"
        return run.length * agent_named(section.name).most_calls(section, memory=memory)

    @override
    def foreign_code(self, plan: MlePlan) -> tuple[str, ...]:
        """Return the memories that are not langgraft's own."""
        return tuple(each.provider_name for each in plan.memory if is_foreign(each.provider_name))

    @override
    def notes(self, plan: MlePlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Say how many programs the plan runs at most, how long that takes, and what is missing."""
        lines = list(size_lines(plan, runs, workers=self.default_workers))
        if plan.sandbox == "docker":
            lines.append(f"sandbox: {_engine_line(plan)}")
        else:
            lines.append("sandbox: none; programs are processes of this machine, not isolated")
        lines += unprepared_lines(plan)
        return tuple(lines)

    @override
    def report(self, plan: MlePlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and figures, and list the submissions."""
        from langgraft.benchmarks.mle.report import write_report  # noqa: PLC0415  ([bench])
        from langgraft.benchmarks.mle.submissions import list_submissions  # noqa: PLC0415

        if isinstance(log, PlanLog):
            list_submissions(log, out)
        return write_report(plan, log, out)


def _image(plan: MlePlan) -> JSON:
    """Return the digest of the image; `None` where none is asked for, or none can be had now."""
    if plan.sandbox != "docker":
        return None
    try:
        return check_engine_and_image(plan.image)
    except SandboxUnavailableError:
        return None  # said by `notes`, and refused by `make_ready`


def _engine_line(plan: MlePlan) -> str:
    try:
        image = check_engine_and_image(plan.image)
    except SandboxUnavailableError as error:
        return str(error)
    return f"{plan.image} ({image.removeprefix('sha256:')[:12]})"


def _architecture(condition: MemoryCondition) -> dict[str, JSON]:
    """Describe a condition's memory, with the code of a provider that is not langgraft's own."""
    provider = provider_class(condition.provider_name)
    described: dict[str, JSON] = {
        "start": condition.start,
        "control": condition.control,
        "of": condition.of,
        "provider": provider.name,
        "settings": condition.architecture().describe(),
    }
    if is_foreign(condition.provider_name):
        described["code"] = text_digest(inspect.getsource(inspect.getmodule(provider) or provider))
    return described
