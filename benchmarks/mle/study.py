"""The study of agents at machine-learning competitions as the harness sees it."""

import inspect
import math
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest, text_digest
from langgraft._core.errors import (
    CompetitionError,
    InputError,
    PlanError,
    SandboxUnavailableError,
)
from langgraft._core.file_digests import FileDigests
from langgraft.benchmarks.comparison.verdicts import Better, Cell
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import (
    is_foreign,
    provider_modules,
    source_digests,
)
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    Checked,
    PlanLogReader,
    Report,
    RunSession,
    RunSpec,
    Study,
    list_runs,
)
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.settings import (
    AgentName,
    AgentSettings,
    StepSettings,
    TreeSettings,
)
from langgraft.benchmarks.mle.conditions import MemoryCondition
from langgraft.benchmarks.mle.plan import (
    MlePlan,
    agent_of,
    competition_of,
    memory_of,
    runs_at,
    tested_cell,
)
from langgraft.benchmarks.mle.sandboxes import (
    Sandboxes,
    check_engine_and_image,
    labelled_packages,
    weights_fingerprint,
    weights_of,
)
from langgraft.environments.competitions.archives import unpack_archives
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.layout import OwnFunction
from langgraft.environments.competitions.preparing import (
    folder_checksum,
    known_checksums,
    prepare_competition,
    read_checksums,
    verify_competition,
)
from langgraft.environments.competitions.registry import Registry
from langgraft.memory.model import MemoryDelta
from langgraft.memory.providers import provider_class
from langgraft.nodes.prompts import prompt

if TYPE_CHECKING:  # listing runs needs none of it
    from langchain_core.language_models import BaseChatModel

    from langgraft.benchmarks.harness.conversations import Message

CODE: Final = ("langgraft.benchmarks.mle.session",)
"""What carries out a run of any agent."""

NO_RESULT: Final = ("langgraft.benchmarks.mle.tree_page",)
"""What they import to show a run; that may change under a finished one."""


class MleStudy(Study[MlePlan]):
    """Agents that write programs for competitions, with and without memory (mle-agent-memory)."""

    name = "mle"
    plan_model = MlePlan
    no_conversations = (
        "an item's line holds what its agent's run came to, and no prompts or replies; a search's journal"
        " and an agent's events lie in the run's folder `kept`"
    )
    default_store: ClassVar[str] = "chroma"
    """The paper keeps its memory in a vector database; here it is kept in the run directory."""
    default_concurrency: ClassVar[int] = 2
    default_processes: ClassVar[int | None] = 1  # sandboxes do the work
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
        if plan.weights is not None:
            found["weights"] = weights_fingerprint(plan)
        return {**found, "left_out": list(left_out(plan))} if plan.only_prepared else found

    @override
    def went_well(self, result: Mapping[str, JSON]) -> bool | None:
        """Say whether what was submitted won a medal."""
        report = result.get("report")
        found = report.get("any_medal") if isinstance(report, Mapping) else None
        return found if isinstance(found, bool) else None

    @override
    def messages(self, kept: Path) -> "Sequence[Message]":
        """Return what agents did that work step by step: their calls of tools, and what came of them."""
        from langgraft.benchmarks.mle.agents.steps import messages_of  # noqa: PLC0415

        return messages_of(kept)

    @override
    def measures(self) -> Mapping[str, Better | None]:
        """Return the measures of all agents."""
        from langgraft.benchmarks.mle.analysis import MEASURES  # noqa: PLC0415  (light plans)

        return {each.name: each.better for of_kind in MEASURES.values() for each in of_kind}

    @override
    def cell(self, run: RunSpec) -> Cell | None:
        """Return agent, condition and competition of a run that builds no bank."""
        return tested_cell(run)

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
        from langgraft.benchmarks.mle.checking import hold  # noqa: PLC0415
        from langgraft.benchmarks.mle.session import check_memories, check_models  # noqa: PLC0415

        self.check_engine(plan)
        hold(plan)
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
    def try_out(
        self, plan: MlePlan, runs: Sequence[RunSpec], *, concurrency: int | None = None
    ) -> Iterator[Checked]:
        """Try out what runs need, as `langgraft preview --check` shows it."""
        from langgraft.benchmarks.mle.checking import checks, tried  # noqa: PLC0415
        from langgraft.benchmarks.mle.session import check_memories, check_models  # noqa: PLC0415

        def made() -> str:
            check_models(plan)
            check_memories(plan)
            return "can be set up (no call was made)"

        yield tried("models and memories", made)
        ready = []
        for each in competitions_of(plan):
            found = tried(f"data of {each.id}", partial(_readied, plan, each))
            yield found
            if found.ok:
                ready.append(each)
        concurrency = concurrency or self.default_concurrency
        yield from checks(plan, runs, ready, concurrency=concurrency, place=Path.cwd())

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
        from langgraft.benchmarks.mle.session import MleSession, models_of  # noqa: PLC0415

        competition = plan.registry().get_competition(competition_of(run))
        if place.files is None:
            msg = f"run {run.name!r} needs a run directory to keep its work in"
            raise PlanError(msg)
        section = plan.agent(agent_of(run))
        borrowed = self.sandboxes.borrow(plan, section, competition, place.files.shared)
        try:
            return MleSession(
                plan,
                run,
                deltas,
                models=models_of(plan, section, model),
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
        return MeteredChatModel(inner=learner, identity=identity, call_seconds=None)

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
        lines = list(_size_lines(plan, runs, concurrency=self.default_concurrency))
        if plan.sandbox == "docker":
            lines.append(f"sandbox: {_engine_line(plan)}")
        else:
            lines.append("sandbox: none; programs are processes of this machine, not isolated")
        lines.append(f"packages: {_packages_line(plan)}")
        if plan.weights is not None:
            lines.append(f"weights: {_weights_line(plan)}")
        if plan.embedder is not None:
            lines.append(f"errors are compared by {plan.embedder}; each text is embedded once")
        lines += unprepared_lines(plan)
        return tuple(lines)

    @override
    def report(self, plan: MlePlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and figures, and list the submissions."""
        from langgraft.benchmarks.mle.report import write_report  # noqa: PLC0415  ([bench])
        from langgraft.benchmarks.mle.session import list_submissions  # noqa: PLC0415

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


def _packages_line(plan: MlePlan) -> str:
    """Say which packages agents are told of, and where that is known from."""
    try:
        known = labelled_packages(plan)
    except SandboxUnavailableError:
        return "those of the image, which cannot be looked at now"
    if known is None:
        return f"{plan.image} has no label that names them; it is asked as the first run begins"
    where = "named by the image's label"
    if plan.packages is not None:
        where = "named by the plan"
    elif plan.sandbox != "docker":
        where = "those of our own image, whether this machine has them or not"
    return f"{', '.join(known) or 'none'} ({where})"


def _weights_line(plan: MlePlan) -> str:
    try:
        return f"{', '.join(weights_of(plan))} (read-only, from {plan.weights})"
    except InputError as error:
        return str(error)


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


# How large a plan is, said before it is run: programs, time, and the steps that would fit --------

SECONDS_A_PROGRAM: Final[Mapping[AgentName, float]] = {"tree": 2.5, "chain": 1.5, "mlab": 1.0}
"""Of a program of the simulated models at a competition that ships: 1.2 to 2.0 s of one processor,
as measured, and its container. Of the others it is a step, of which two in three (chain) or one in
three (MLAB) execute anything, in a container that is there: 0.6 to 1.4 s, as measured. A language
model's may take all the time they are given."""

SLOT_MINUTES: Final = 20


def _most_programs(plan: MlePlan, runs: Sequence[RunSpec]) -> int:
    """Return how many programs the runs execute at the most."""
    return sum(_programs(plan, run) for run in runs)


def _size_lines(plan: MlePlan, runs: Sequence[RunSpec], *, concurrency: int) -> Iterator[str]:
    """Say how many programs there are at most, about how long they take, and what would fit.

    Args:
        plan: The plan.
        runs: Its runs as they would be executed.
        concurrency: Runs that go on at the same time: each has one item, or two in a row.
    """
    for section in plan.agents:
        yield _programs_line(plan, section, _of(section, runs))
    if plan.model == SIMULATED:
        minutes = sum(
            _most_programs(plan, _of(section, runs)) * _pace(section, concurrency) / 60
            for section in plan.agents
        )
        yield (
            f"time: at most about {_minutes(minutes)} if {_paces(plan)} and"
            f" {max(_at_once(each, concurrency) for each in plan.agents)} run at once (a program may take"
            f" {_seconds_text(plan)})"
        )
        if len(plan.agents) == 1:
            yield _fitting_line(plan, runs, concurrency)
        return
    yield f"time: as long as the models take and their programs, {_seconds_text(plan)} each at most"
    for section in plan.agents:
        if _hours(section) is not None:
            yield _hours_line(section, _of(section, runs))


def _seconds_text(plan: MlePlan) -> str:
    """Say how long one execution may take; of agents that differ, of each."""
    seconds = {each.label: plan.seconds_of(each) for each in plan.agents}
    if len(set(seconds.values())) == 1:
        return f"{next(iter(seconds.values())):g} s"
    return ", ".join(f"{most:g} s ({label})" for label, most in seconds.items())


def _programs_line(plan: MlePlan, section: AgentSettings, runs: Sequence[RunSpec]) -> str:
    agent = agent_named(section.name)
    count = sum(run.length for run in runs)
    what = "searches" if section.name == "tree" else "runs"
    first = "" if len(plan.agents) == 1 else f" of {section.label}"
    told = f"programs{first}: at most {_most_programs(plan, runs):,} in {count:,} {what}"
    told += f" of {section.steps} steps; "
    if agent.cached:
        return f"{told}what is the same in several conditions runs once"
    return f"{told}each runs them all: what a live workspace did is not kept to be looked up"


def _of(section: AgentSettings, runs: Sequence[RunSpec]) -> list[RunSpec]:
    return [run for run in runs if agent_of(run) == section.label]


def _hours(section: AgentSettings) -> float | None:
    return section.hours if isinstance(section, StepSettings | TreeSettings) else None


def _hours_line(section: AgentSettings, runs: Sequence[RunSpec]) -> str:
    count, hours = sum(run.length for run in runs), _hours(section) or 0.0
    dollars = section.dollars if isinstance(section, StepSettings) else None
    money = "" if dollars is None else f" and at most {dollars:,g} dollars"
    return (
        f"{section.label}: a run has at most {hours:g} h{money}, all {count:,} runs"
        f" {count * hours:,.0f} h, one after another"
    )


def _fitting_line(plan: MlePlan, runs: Sequence[RunSpec], concurrency: int) -> str:
    (section,) = plan.agents
    count = sum(run.length for run in runs)
    fitting = math.floor(SLOT_MINUTES * 60 / _pace(section, concurrency) / max(count, 1))
    fitting -= agent_named(section.name).most_executions(section) - section.steps
    if fitting < 1:
        return f"steps: not even one fits into {SLOT_MINUTES} minutes; take fewer searches"
    return f"steps: {fitting} would fit into {SLOT_MINUTES} minutes at that pace"


def _programs(plan: MlePlan, run: RunSpec) -> int:
    section = plan.agent(agent_of(run))
    return run.length * agent_named(section.name).most_executions(section)


def _at_once(section: AgentSettings, concurrency: int) -> int:
    return min(concurrency * agent_named(section.name).at_once(section), os.cpu_count() or 1)


def _pace(section: AgentSettings, concurrency: int) -> float:
    """Return the seconds from one program to the next, of all that run at once."""
    return SECONDS_A_PROGRAM[section.name] / _at_once(section, concurrency)


def _paces(plan: MlePlan) -> str:
    paces = sorted({SECONDS_A_PROGRAM[each.name] for each in plan.agents})
    if {each.name for each in plan.agents} == {"tree"}:
        return f"a program takes {paces[0]:g} s"
    paces = sorted({paces[0], paces[-1]})
    return f"a program or step takes {' to '.join(f'{pace:g}' for pace in paces)} s"


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"  # noqa: PLR2004


# Data of competitions --------------------------------------------------------------------


def competitions_of(plan: MlePlan) -> tuple[Competition, ...]:
    """Return the competitions that a plan is run at.

    Raises:
        CompetitionError: There is none of an id, its files are not as they should be, or only
            what is prepared is wanted and nothing is.
    """
    found = plan.registry()
    named = tuple(found.get_competition(each) for each in plan.competitions)
    if not plan.only_prepared:
        return named
    ready = tuple(each for each in named if _can_be_ready(found, each))
    if not ready:
        lines = _missing_lines(named, hint="")
        msg = f"only_prepared is set, and nothing is: {'; '.join(lines)}"
        raise CompetitionError(msg)
    return ready


def left_out(plan: MlePlan) -> tuple[str, ...]:
    """Return the ids of the competitions that a plan names and is not run at."""
    ready = {each.id for each in competitions_of(plan)}
    return tuple(each for each in plan.competitions if each not in ready)


def unprepared_lines(plan: MlePlan) -> Iterator[str]:
    """Say of competitions whose data is not there how it is made."""
    found = plan.registry()
    if without := left_out(plan):
        yield f"left out, as their data is not prepared ({len(without)}): {', '.join(without)}"
    missing = [each for each in competitions_of(plan) if not each.prepared]
    shipped = [each.id for each in missing if found.get_source(each.id) == "shipped"]
    if shipped:
        yield f"data not prepared yet: {', '.join(shipped)}; `run` prepares it"
    yield from _missing_lines([each for each in missing if each.id not in shipped])


def fingerprint(competition: Competition) -> dict[str, JSON]:
    """Return digests of what decides a competition's results, wherever it lies.

    Its data counts by its checksums, or where it has none by its content; `None` as long as that
    is not prepared.
    """
    return {
        "description": text_digest(competition.description),
        "board": digest([repr(competition.board.thresholds), competition.board.thresholds.teams]),
        "grader": _grader(competition),
        "data": _data(competition),
    }


def make_ready(found: Registry, competitions: tuple[Competition, ...]) -> None:
    """Prepare the competitions that ship, hold all against their checksums, and unpack archives.

    What was read once is known by its size and time: no run reads large data only to hash it.

    Raises:
        CompetitionError: Another one is not prepared, data is not what its checksums say, or an
            archive is not unpacked, for what it holds or a full disk.
        MissingExtraError: A package that data is made from is not installed.
    """
    shipped = [each for each in competitions if found.get_source(each.id) == "shipped"]
    others = [each for each in competitions if each not in shipped]
    # Refused before the first one is prepared, and all at once.
    if missing := list(_missing_lines([each for each in others if not each.prepared])):
        raise CompetitionError("; ".join(missing))
    with FileDigests() as digests:
        for each in others:
            if wrong := verify_competition(each, known_checksums(digests)):
                msg = f"the data of {each.id} is not what its checksums say: {'; '.join(wrong[:3])}"
                raise CompetitionError(msg, path=each.public_dir.parent)
    for each in shipped:
        prepare_competition(each)
    for each in competitions:
        unpack_archives(each)


def _readied(plan: MlePlan, competition: Competition) -> str:
    """Prepare a competition as a run does, and say what agents find of it."""
    make_ready(plan.registry(), (competition,))
    unpacked = unpack_archives(competition)
    archives = (
        f", {len(unpacked.notes)} archives unpacked or left as told" if unpacked.notes else ""
    )
    verified = "as its checksums say" if competition.checksums is not None else "without checksums"
    return f"prepared, {verified}{archives}"


def _can_be_ready(found: Registry, competition: Competition) -> bool:
    return competition.prepared or found.get_source(competition.id) == "shipped"


_HINT: Final = ", and `only_prepared: true` leaves out what is not there"


def _missing_lines(missing: Sequence[Competition], *, hint: str = _HINT) -> Iterator[str]:
    """Say how data is made, a line for all that is made in the same way."""
    alike: dict[tuple[bool, str], list[str]] = {}
    for each in missing:
        alike.setdefault((each.prepare_fn is None, _place(each)), []).append(each.id)
    for (of_kaggle, place), ids in alike.items():
        told = f"the data of {len(ids)} competitions is not prepared ({', '.join(ids)}): "
        if len(ids) == 1:
            told = f"the data of {ids[0]} is not prepared: "
        if of_kaggle:
            yield (
                f"{told}with MLE-bench and an account on Kaggle `mlebench prepare -c ID {place}`"
                f" makes it, for each ID; `data_dir` of a plan names another place{hint}"
            )
        else:
            yield f"{told}run `langgraft competitions prepare {' '.join(ids)} {place}`"


def _place(competition: Competition) -> str:
    """Return the options that tell where a competition's data and files lie."""
    where = f"--data-dir {shlex.quote(str(competition.public_dir.parent.parent.parent))}"
    if isinstance(competition.grader.grade, OwnFunction) and competition.prepare_fn is not None:
        where += f" --folder {shlex.quote(str(competition.grader.grade.file.parent.parent))}"
    return where


def _grader(competition: Competition) -> JSON:
    grade = competition.grader.grade
    source = _source(grade.file) if isinstance(grade, OwnFunction) else None
    return [competition.grader.name, source]


def _source(file: Path) -> str:
    return text_digest(file.read_text(encoding="utf-8"))


def _data(competition: Competition) -> JSON:
    expected = competition.checksums
    if expected is not None:
        known = read_checksums(expected) if isinstance(expected, Path) else expected
        return digest(known.model_dump(mode="json"))
    if not competition.prepared:
        return None
    folders = (competition.public_dir, competition.private_dir)
    with FileDigests() as digests:
        return digest([folder_checksum(each, known_checksums(digests)) for each in folders])
