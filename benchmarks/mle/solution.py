"""One competition solved in one folder, outside of any study.

<out>/solve.json       what was asked for, and what results depend on beside it
<out>/submission.csv   what is submitted
<out>/solution.py      the program that made it, as far as it is known
<out>/grade.json       the grade, where the answers are there
<out>/work/            what the run needs to go on after a crash

Of the tree

<out>/best/            the best solution so far, while the search goes on
<out>/journal.json     every program of the search
<out>/tree.html        the same as a page

and of the chain and MLAB

<out>/events.jsonl     all that happened, an event a line
<out>/steps.json       the steps, and what was measured of each
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import CompetitionError, ResumeRefusedError, RunDirectoryError
from langgraft._core.files import atomic_write, disk_errors, make_directory
from langgraft.benchmarks.harness.directory import differences, locked
from langgraft.benchmarks.harness.log import read_json
from langgraft.benchmarks.harness.plans import package_versions
from langgraft.benchmarks.harness.study import SIMULATED
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.base import SOLUTION, Agent, Parts, Solved
from langgraft.benchmarks.mle.agents.settings import AgentSettings
from langgraft.benchmarks.mle.checking import hold
from langgraft.benchmarks.mle.conditions import MemoryCondition
from langgraft.benchmarks.mle.execute_agent import Found, Listener, find
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.sandboxes import EXECUTIONS, make_sandbox
from langgraft.benchmarks.mle.session import Models, grade, keep_files, provider_of
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.environments.competitions.archives import unpack_archives
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preparing import not_prepared, prepare_competition
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.stores.named import open_store, shown

ASKED: Final = "solve.json"
GRADE: Final = "grade.json"
WORK: Final = "work"

REMEMBERING: Final = MemoryCondition(name="kept", start="warm", preset="implied")
"""The memory of a run that is to remember: `CodingMemory`, at all stages."""


@dataclass(frozen=True)
class Order:
    """What is to be solved, and with what."""

    plan: MlePlan
    """Of one agent, one competition and one seed."""
    out: Path
    memory: str | None = None
    """Store of the memory to use and to fill, by name; `None`: none."""

    @property
    def seed(self) -> int:
        """Seed of the run."""
        return self.plan.seeds[0]

    @property
    def settings(self) -> AgentSettings:
        """The agent's section of the plan."""
        return self.plan.agents[0]

    @property
    def agent(self) -> Agent:
        """The agent."""
        return agent_named(self.settings.name)

    @property
    def begun(self) -> bool:
        """Whether the folder holds a run, to go on with."""
        return (self.out / ASKED).is_file()

    @property
    def done(self) -> bool:
        """Whether that run has ended."""
        return (self.out / self.agent.record_file).is_file()

    def competition(self) -> Competition:
        """Return the competition.

        Raises:
            CompetitionError: There is none of that id.
        """
        return self.plan.registry().get_competition(self.plan.competitions[0])


@dataclass(frozen=True)
class Solution:
    """What came of it."""

    found: Found
    report: Mapping[str, JSON] | None
    """The grade; `None` where there are no answers here."""
    files: Mapping[str, Path]
    """What was written, by what it is."""

    @property
    def submitted(self) -> bool:
        """Whether there is a submission."""
        return self.found.submission is not None


async def solve(order: Order, models: Models, listen: Listener) -> Solution:
    """Let an agent take part in a competition; go on where an earlier call was stopped.

    `check` comes first: it refuses what cannot work before anything is written.

    Args:
        order: What to solve.
        models: The model that acts, and the one for feedback if it is another.
        listen: Told of each program or step; on going on, of those before it again.

    Raises:
        InputError: The folder was begun with something else, or something cannot be used.
        InfrastructureError: A model, engine or disk failed; calling again goes on.
    """
    competition = order.competition()
    ready(competition)
    with ExitStack() as opened:
        store = None if order.memory is None else opened.enter_context(open_store(order.memory))
        make_directory(order.out)
        opened.enter_context(locked(order.out))
        memory = None if store is None else provider_of(REMEMBERING, store, None)
        begun = _begin(order, memory)
        below = make_sandbox(order.plan, order.plan.limits_of(order.settings), competition)
        work = order.out / WORK
        async with CachedSandbox(below, work / EXECUTIONS) as sandbox:
            parts = Parts(order.plan, order.settings, competition, sandbox, *models, memory=memory)
            found = await find(
                parts, work, episode_id=begun, seed=order.seed, best=order.out, listen=listen
            )
        return _written(order, competition, found, begun)


def check(order: Order) -> None:
    """Refuse what cannot work: no engine, no data, a folder that was begun with something else.

    Raises:
        InputError: Something of that kind; nothing was written.
        MissingExtraError: What the search needs is not installed.
    """
    competition = order.competition()
    MleStudy.check_engine(order.plan)
    hold(order.plan)
    if not _can_be_ready(competition):
        raise CompetitionError(not_prepared(competition))
    _check_folder(order)


def ready(competition: Competition) -> None:
    """Prepare a competition's data, unless it is there, and unpack archives in it.

    Raises:
        CompetitionError: It cannot be prepared or unpacked, or is not what its checksums say.
        MissingExtraError: A package that data is made from is not installed.
    """
    if competition.prepared or competition.prepare_fn is not None:
        prepare_competition(competition)
    unpack_archives(competition)


def _can_be_ready(competition: Competition) -> bool:
    there = competition.prepared or competition.sample_submission.is_file()
    return there or competition.prepare_fn is not None


def _asked(order: Order) -> dict[str, JSON]:
    """Return what decides the result, with the data as it is once it is prepared."""
    plan: dict[str, JSON] = order.plan.model_dump(mode="json")
    study = MleStudy()
    return {
        "format": 1,
        "plan": plan,
        "memory": None if order.memory is None else shown(order.memory),
        "fingerprints": dict(study.fingerprints(order.plan)),
        "packages": dict(package_versions(study, order.plan)),
    }


def _check_folder(order: Order) -> None:
    out = order.out
    if not out.exists():
        return
    if not out.is_dir():
        raise RunDirectoryError("is no folder: give another one", path=out)
    if order.begun:
        if order.competition().prepared:  # before that, its content is not known
            _refuse_others(order)
        return
    with disk_errors("list", out):
        foreign = sorted(each.name for each in out.iterdir() if each.name not in _FIRST)
    if foreign:
        msg = f"is not empty and holds no {ASKED} (but {foreign[0]!r}): give another folder"
        raise RunDirectoryError(msg, path=out)


_FIRST: Final = {"plan.lock", f".{ASKED}.tmp", WORK}
"""What a process that was killed early leaves."""


_ANOTHER: Final = "restore it, or give another folder"


def _refuse_others(order: Order) -> None:
    was = dict(read_json(order.out / ASKED, _ANOTHER))
    was.pop("search", None)
    found = list(differences(was, json.loads(canonical_json(_asked(order))), "", ""))
    if found:
        msg = "was begun with something else (give another folder, or go back)"
        raise ResumeRefusedError(msg, path=order.out, differences=_own(found))


def _own(found: Sequence[str]) -> list[str]:
    """Leave out what differs only because another agent was asked for: its settings and its code."""
    agent = f"{_SECTION}name: "
    if not any(each.startswith(agent) for each in found):
        return list(found)
    return [each for each in found if each.startswith(agent) or not each.startswith(_AGENTS)]


_SECTION: Final = "plan.agents[0]."
_AGENTS: Final = (_SECTION, "fingerprints.")


def _begin(order: Order, memory: MemoryProvider[Any] | None) -> str:
    """Note what was asked for, or check that it still is; return the run's name.

    Where memory outlives the run, its name has what the bank held at first: memory files nothing
    twice under one name, and the next run of the same seed is another one.
    """
    path = order.out / ASKED
    if path.exists():
        _refuse_others(order)
        return str(read_json(path, _ANOTHER)["search"])
    rest = f"{order.plan.competitions[0]}/seed-{order.seed}"
    name = order.plan.named(order.settings.name, rest)
    if memory is not None:
        name += f"-{memory.content().digest[:8]}"
    asked: dict[str, JSON] = {**_asked(order), "search": name}
    atomic_write(path, f"{canonical_json(asked)}\n".encode())
    return name


def _written(order: Order, competition: Competition, found: Found, run: str) -> Solution:
    """Write what came of a run; the same run again writes the same files."""
    out, agent = order.out, order.agent
    submission = keep_files(found, agent.name, out)
    files: dict[str, Path] = {}
    if found.submission is not None:
        files["submission"] = submission
    if SOLUTION in found.came.files:
        files["solution"] = out / SOLUTION
    report = None
    if competition.prepared and found.submission is not None:
        report = grade(submission, competition)
        atomic_write(out / GRADE, f"{json.dumps(report, indent=2)}\n".encode())
    simulated = order.plan.model == SIMULATED or bool(found.usage.get("simulated_replies"))
    files |= agent.leave(found.came, out, Solved(run, competition, report, simulated))
    if report is not None:
        files["grade"] = out / GRADE
    return Solution(found, report, files)
