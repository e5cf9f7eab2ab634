"""`langgraft solve`: one competition, from its data to a submission, and what is told of that meanwhile."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.errors import (
    BudgetExceededError,
    CompetitionError,
    InfrastructureError,
    SettingsError,
)
from langgraft._core.texts import in_a_line
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import RESPONSES, check_reachable, real_model
from langgraft.benchmarks.harness.progress import (
    EXIT_COMPLETE,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
)
from langgraft.benchmarks.harness.schedule import stop_on_signals
from langgraft.benchmarks.harness.study import SIMULATED
from langgraft.benchmarks.mle.agents.base import AgentProgress, AgentResult
from langgraft.benchmarks.mle.agents.settings import SECTIONS, as_section
from langgraft.benchmarks.mle.plan import MlePlan, runs_of
from langgraft.benchmarks.mle.session import Models, models_of
from langgraft.benchmarks.mle.solution import WORK, Order, Solution, check, solve
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.cli.printing import complain, say, write_json
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.layout import CONFIG, is_competition_id
from langgraft.memory.stores.named import store_kind
from langgraft.nodes.search.ends import candidates
from langgraft.nodes.search.journal import Journal, JournalNode, Stage
from langgraft.nodes.workbench.log import StepRecord

NO_MEMORY: Final = ("off", "none")


@dataclass(frozen=True)
class Asked:
    """What a user typed."""

    competition: str
    fields: Mapping[str, Any]
    """Of the plan, where they were given."""
    agent: str
    settings: Mapping[str, Any]
    """Of the agent's section, where they were given."""
    seed: int
    memory: str
    out: Path | None


def order_of(asked: Asked) -> Order:
    """Turn what a user typed into an order; nothing is written.

    Raises:
        SettingsError: A value is not possible.
        CompetitionError: There is no such competition.
    """
    fields = {key: value for key, value in asked.fields.items() if value is not None}
    name, folders = asked.competition, list(fields.pop("folders", ()))
    if not is_competition_id(name) or (Path(name) / CONFIG).is_file():
        own = _own_folder(name)
        folders.insert(0, own.parent)
        name = own.name
    fixed = {"competitions": [name], "seeds": [asked.seed], "build_seeds": [], "memory": ["off"]}
    fixed["agents"] = [_section(asked)]
    with validation_as(SettingsError):
        plan = MlePlan.model_validate({**fields, **fixed, "folders": folders})
    folder = f"solve-{name}" if asked.agent == "tree" else f"solve-{name}-{asked.agent}"
    order = Order(plan, asked.out or Path("runs") / folder, _store(asked.memory))
    order.competition()
    return order


def _section(asked: Asked) -> dict[str, Any]:
    """Return the agent's section of the plan.

    Raises:
        SettingsError: There is no such agent, or it has no such option.
    """
    try:
        section: dict[str, Any] = as_section(asked.agent)
    except ValueError as error:
        raise SettingsError(f"--agent: {error}") from error
    given = {name: value for name, value in asked.settings.items() if value is not None}
    if foreign := [name for name in given if name not in SECTIONS[asked.agent].model_fields]:
        having = [name for name, each in SECTIONS.items() if foreign[0] in each.model_fields]
        msg = f"--{foreign[0]} is not for --agent {asked.agent}, but for {' and '.join(having)}"
        raise SettingsError(msg)
    if "policy" in given:
        given["policy"] = _as_yaml(given["policy"])
    return {**section, **given}


def _as_yaml(policy: str) -> Any:
    """Return a policy's name, or its settings.

    Raises:
        SettingsError: It is no YAML.
    """
    import yaml  # noqa: PLC0415

    try:
        return yaml.safe_load(policy)
    except yaml.YAMLError as error:
        msg = f"--policy {policy!r:.80} is neither a name nor settings as YAML"
        raise SettingsError(msg) from error


def _own_folder(name: str) -> Path:
    folder = Path(name).resolve()
    if not (folder / CONFIG).is_file():
        msg = f"{name!r:.80} is neither a competition's id nor a folder that holds {CONFIG}"
        raise CompetitionError(msg)
    return folder


def _store(memory: str) -> str | None:
    """Return the store that a memory's name stands for; a folder is a Chroma database."""
    if memory in NO_MEMORY:
        return None
    if not memory or Path(memory).is_file():
        msg = f"--memory {memory!r:.80} is no folder; `off` is without memory"
        raise SettingsError(msg)
    spec = memory if memory == "memory" or ":" in memory else f"chroma:{Path(memory).resolve()}"
    store_kind(spec)
    return spec


def run(asked: Asked, *, as_json: bool) -> int:
    """Solve a competition, telling of each program or step; return the exit code."""
    order = order_of(asked)
    competition = order.competition()
    with ExitStack() as opened:
        make_models(order, None)  # a real one is checked before anything is written
        check(order)
        models = make_models(order, opened)
        progress = Progress(order, competition, as_json=as_json)
        progress.begin()
        try:
            solution = asyncio.run(_solved(order, models, progress))
        except (InfrastructureError, BudgetExceededError) as error:
            complain(f"langgraft: {' '.join(str(error).split())}")
            complain(_AGAIN)
            return EXIT_INCOMPLETE
    if solution is None:
        complain(_AGAIN)
        return EXIT_INTERRUPTED
    progress.end(solution)
    return EXIT_COMPLETE if solution.submitted else EXIT_INCOMPLETE


_AGAIN: Final = "not finished; run the same command again to go on"


async def _solved(order: Order, models: Models, progress: "Progress") -> Solution | None:
    """Solve; `None` where somebody asked to stop."""
    stop = asyncio.Event()
    with stop_on_signals(stop):
        solving = asyncio.create_task(solve(order, models, progress.tell))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({solving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return solving.result() if solving.done() else None
        finally:
            for task in (solving, stopping):
                task.cancel()
            await asyncio.gather(solving, stopping, return_exceptions=True)


def make_models(order: Order, opened: ExitStack | None) -> Models:
    """Make the models; with `opened`, replies of real ones are kept in the folder.

    Raises:
        InputError: A model cannot be set up.
    """
    plan = order.plan
    if plan.model == SIMULATED:
        (run,) = runs_of(plan)
        return MleStudy().simulated_model(plan, run), None
    responses = None
    if opened is not None:
        responses = opened.enter_context(ResponseCache(order.out / WORK / RESPONSES))
    model = real_model(plan, responses)
    if opened is None and not (order.out / WORK / RESPONSES).exists():
        check_reachable(model)  # before anything is written
    return models_of(plan, order.settings, model)


# What is told meanwhile -------------------------------------------------------------------------

_WIDTH: Final = 100
"""Characters of a line of progress."""
_BEST: Final = " (best so far)"
_TOLD: Final = ("chosen", "candidates", "ended", "attempts")
"""Of the fields that an agent's result has, those that are not listed in a file."""


class Progress:
    """Tells of a run while it goes on: a line for each program or step, or a JSON object."""

    def __init__(self, order: Order, competition: Competition, *, as_json: bool) -> None:
        self._order = order
        self._metric = competition.grader.name
        self._name = competition.name
        self._as_json = as_json
        lower = competition.board.thresholds.lower_is_better
        lines: type[_TreeLines | _StepLines] = (
            _TreeLines if order.agent.unit == "programs" else _StepLines
        )
        self._lines = lines(order.settings.steps, lower_is_better=lower)

    def begin(self) -> None:
        """Say what is done."""
        order, plan = self._order, self._order.plan
        if self._as_json:
            return
        size = f"{order.settings.steps} {order.agent.unit}"
        say(f"{self._name}: {size}, {self._metric}, model {plan.model}")
        if plan.model == SIMULATED:
            say("the simulated model follows rules; it is no language model")
        what = "search" if order.agent.name == "tree" else "run"
        if order.done:
            say(f"this {what} is done; told again:")
        elif order.begun:
            say(f"going on with the {what} in {order.out}")

    def tell(self, done: AgentProgress) -> None:
        """Tell of a program or a step."""
        self._lines.add(done)
        if self._as_json:
            write_json(dict(self._lines.row()))
        else:
            say(self._lines.line())

    def end(self, solution: Solution) -> None:
        """Say what came of it."""
        if self._as_json:
            write_json(_as_json(solution))
            return
        came = solution.found.came
        say(self._lines.end(came, submitted=solution.submitted, metric=self._metric))
        if solution.report is not None:
            say(_graded(solution.report))
        for what, path in solution.files.items():
            say(f"{what}: {path}")


def _medal(report: Mapping[str, JSON]) -> str:
    earned: Sequence[str] = [
        each for each in ("gold", "silver", "bronze") if report[f"{each}_medal"]
    ]
    return earned[0] if earned else ""


def _graded(report: Mapping[str, JSON]) -> str:
    if report["score"] is None:
        return "grade: not valid"
    medal = _medal(report)
    place = f"{medal} medal" if medal else "no medal"
    side = "above" if report["above_median"] else "not above"
    return f"grade: {report['score']}, {place}, {side} the median ({report['median_threshold']})"


def _as_json(solution: Solution) -> dict[str, JSON]:
    found = solution.found
    told = {name: found.came.fields[name] for name in _TOLD if name in found.came.fields}
    return {
        "event": "solution",
        **told,
        "validation": found.came.validation,
        "report": None if solution.report is None else dict(solution.report),
        "files": {what: str(path) for what, path in solution.files.items()},
        "usage": dict(found.usage),
        "resumed": found.resumed,
    }


class _TreeLines:
    """Programs: where each comes from, and what it is worth."""

    def __init__(self, steps: int, *, lower_is_better: bool) -> None:
        self._steps = steps
        self._lower = lower_is_better
        self._nodes: list[JournalNode] = []

    def add(self, done: AgentProgress) -> None:
        assert isinstance(done, JournalNode)
        self._nodes.append(done)

    def line(self) -> str:
        node, stage = self._nodes[-1], self._stage
        origin = " of " * bool(node.parent_ids) + " and ".join(node.parent_ids)
        told = f"{_count(len(self._nodes), self._steps)} {node.id} {stage + origin:<14} "
        told += self._outcome(node) + (" · memory" if node.recalled else "")
        return in_a_line(told, _WIDTH).rstrip()

    def row(self) -> Mapping[str, JSON]:
        node, stage = self._nodes[-1], self._stage
        return {
            "event": "program",
            "id": node.id,
            "stage": stage,
            "parent": node.parent_id,
            **({} if node.partner_id is None else {"partner": node.partner_id}),
            "metric": node.metric,
            "buggy": node.is_buggy,
            "reasons": list(node.reasons),
            "best": self._is_best(node),
            "recalled": bool(node.recalled),
        }

    def end(self, came: AgentResult, *, submitted: bool, metric: str) -> str:
        if not submitted:
            return "no program left a valid submission"
        return f"chosen: {came.fields['chosen']}, validation {metric} {came.validation:g}"

    @property
    def _stage(self) -> Stage:
        return Journal("", "", tuple(self._nodes)).stage(self._nodes[-1])

    def _is_best(self, node: JournalNode) -> bool:
        best = candidates(self._nodes, count=1, lower_is_better=self._lower)
        return bool(best) and best[0].id == node.id

    def _outcome(self, node: JournalNode) -> str:
        if node.is_buggy:
            return f"buggy: {node.reasons[0] if node.reasons else node.analysis}"
        metric = "no metric" if node.metric is None else f"{node.metric:.6g}"
        return f"{metric}{_BEST if self._is_best(node) else ''}"


class _StepLines:
    """Steps: what was done, and what was seen of it."""

    def __init__(self, steps: int, *, lower_is_better: bool) -> None:
        self._steps = steps
        self._lower = lower_is_better
        self._last: StepRecord | None = None
        self._attempts = 0
        self._begins = False
        self._best: float | None = None
        self._is_best = False

    def add(self, done: AgentProgress) -> None:
        assert isinstance(done, StepRecord)
        self._last = done
        self._begins = done.attempt >= self._attempts
        self._attempts = done.attempt + 1
        metric = None if done.failed else done.metric  # what failed may have told one before
        self._is_best = metric is not None and self._beats(metric)
        if self._is_best:
            self._best = metric

    def line(self) -> str:
        step = self._step
        told = f"{_count(step.step + 1, self._steps)} {step.action:<18} {self._outcome()}"
        if self._begins and step.recalled:
            told += " · memory"
        return in_a_line(told, _WIDTH).rstrip()

    def row(self) -> Mapping[str, JSON]:
        step = self._step
        return {
            "event": "step",
            "step": step.step,
            "action": step.action,
            "attempt": step.attempt,
            "executed": step.executed,
            "failed": step.failed,
            "error": step.exc_type,
            "metric": step.metric,
            "best": self._is_best,
            "recalled": bool(step.recalled) and self._begins,
        }

    def end(self, came: AgentResult, *, submitted: bool, metric: str) -> str:
        told = f"ended: {came.fields['ended']}"
        if not submitted:
            return f"{told}; there is no valid submission"
        if came.validation is None:
            return f"{told}; no validation metric was reported"
        return f"{told}; validation {metric} {came.validation:g}"

    @property
    def _step(self) -> StepRecord:
        assert self._last is not None
        return self._last

    def _beats(self, metric: float) -> bool:
        if self._best is None:
            return True
        return metric < self._best if self._lower else metric > self._best

    def _outcome(self) -> str:
        step = self._step
        if step.failed:
            told = f"{step.exc_type}: {step.exc_value}" if step.exc_type else _how(step)
            return f"failed: {told}"
        if step.metric is not None:
            return f"{step.metric:.6g}{_BEST if self._is_best else ''}"
        said = step.command or step.thought
        return f"submission {step.submission}" if step.submission else said


def _how(step: StepRecord) -> str:
    """Say how a step without an exception failed."""
    if step.timed_out:
        return "time ran out"
    if step.exit_code:
        return f"exit code {step.exit_code}"
    return step.output


def _count(number: int, steps: int) -> str:
    return f"{number:>{len(str(steps))}}/{steps}"
