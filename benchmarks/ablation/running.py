"""Does memory help my agent? `ablate` asks, and `preview_ablation` says before what that takes.

    found = ablate(experiment, out="runs/mine")
    print(found)
    found.verdicts  # {"trajectory": "helps"}

The run directory resumes: after a crash, a full disk or a cap, run the same program again.
"""

import asyncio
import contextvars
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore

from langgraft._core.arguments import check_whole, did_you_mean, validation_as
from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError, LanggraftError, PlanError
from langgraft._core.lazy import require
from langgraft.benchmarks.ablation.analysis import (
    Analysis,
    Word,
    analyze,
    planned_effect,
    reach_of,
    tests_for,
)
from langgraft.benchmarks.ablation.attempt import Agent, ObservedMemory
from langgraft.benchmarks.ablation.experiment import Experiment, file_digest, memories
from langgraft.benchmarks.ablation.plan import (
    CURRENT,
    OWN,
    AblationPlan,
    GuardSpec,
    MemorySpec,
    SourceSpec,
    TestTask,
    pair,
)
from langgraft.benchmarks.ablation.report import (
    HEADINGS,
    SIMULATED_NOTICE,
    rows_of,
    sentences,
    summary,
    title_of,
    to_json,
)
from langgraft.benchmarks.ablation.study import AblationStudy
from langgraft.benchmarks.comparison.verdicts import FEWEST_RUNS
from langgraft.benchmarks.harness.budget import CallBudget, Caps, Price, in_dollars, price_of
from langgraft.benchmarks.harness.log import PlanLog, read_events, run_folder
from langgraft.benchmarks.harness.models import plan_budget, real_model, run_models
from langgraft.benchmarks.harness.plans import PreparedPlan, prepare
from langgraft.benchmarks.harness.progress import PlanOutcome, Progress
from langgraft.benchmarks.harness.schedule import run_plan, stop_on_signals
from langgraft.benchmarks.harness.study import SIMULATED, RunSpec, Study, is_simulated
from langgraft.benchmarks.harness.verify import sealed_report
from langgraft.benchmarks.reporting.findings import registered_lines
from langgraft.memory.bank_format import write_items
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import Budget, count_tokens_approximately
from langgraft.nodes.turns import check_provider


@dataclass(frozen=True)
class Ablation:
    """What came of an ablation; `print` it, or open its `page`.

    `analysis` holds all numbers, `simulated` says whether rules played.
    """

    out: Path
    """The run directory."""
    page: Path
    """The verdict page."""
    analysis: Analysis
    simulated: bool

    @property
    def verdicts(self) -> dict[str, Word]:
        """The verdict on each memory, by name."""
        return {each.name: each.word for each in self.analysis.memories}

    @property
    def exit_code(self) -> int:
        """1 where a memory harms or a change regressed, or a check failed; else 0."""
        guard = self.analysis.guard
        bad = "harms" in self.verdicts.values() or not self.analysis.sound
        return int(bad or (guard is not None and guard.verdict == "regressed"))

    @property
    def title(self) -> str:
        """What was asked."""
        return title_of(self.analysis.plan)

    @property
    def columns(self) -> tuple[str, ...]:
        """Headings of `rows`."""
        return HEADINGS

    def rows(self) -> list[tuple[str, ...]]:
        """Return each condition in short, as a terminal shows it."""
        return list(rows_of(self.analysis))

    def lines(self) -> list[str]:
        """Say what came of it, in plain sentences."""
        notice = (SIMULATED_NOTICE,) if self.simulated else ()
        return [*notice, *sentences(self.analysis)]

    def __str__(self) -> str:
        return "\n".join([*self.lines(), f"page: {self.page}"])

    def summary(self) -> str:
        """Return the verdict as GitHub-flavored Markdown, for `$GITHUB_STEP_SUMMARY`."""
        return summary(self.analysis, simulated=self.simulated, page=self.page)

    def to_json(self) -> dict[str, JSON]:
        """Return the verdict as JSON, with how long attempts took."""
        told = to_json(self.analysis, simulated=self.simulated)
        return {**told, "seconds": cast("JSON", self.latency), "page": str(self.page)}

    def frame(self) -> Any:
        """Return every attempt as a row of a pandas frame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        pandas = require("pandas", extra="bench", purpose="A frame")
        rows = [
            {
                "condition": arm.arm.name,
                "run": run,
                "task": result["task"],
                "kind": result["kind"],
                "score": result["score"],
                "recalled": [each["id"] for each in result["recalled"]],
                "memory_tokens": result["tokens"],
                **result["usage"],
                "answer": result["answer"],
                "error": result["error"],
            }
            for arm in self.analysis.arms
            for run, found in arm.results.items()
            for result in found.values()
        ]
        return pandas.DataFrame(rows)

    @cached_property
    def latency(self) -> dict[str, float]:
        """Mean seconds an attempt of the test took, by condition; it differs between repetitions."""
        log = PlanLog(self.out)
        found: dict[str, list[float]] = {}
        for run in log.graph:
            if run.spec.factors["kind"] in ("test", "guard"):
                events = run_folder(self.out, run) / "events.jsonl"
                took = [float(e["seconds"]) for e in read_events(events) if e["event"] == "item"]
                found.setdefault(str(run.spec.factors["condition"]), []).extend(took)
        return {name: math.fsum(each) / len(each) for name, each in found.items() if each}

    def bank(self, memory: str, *, run: int = 0) -> tuple[MemoryItem, ...]:
        """Return the items that a memory had learned before the test.

        Args:
            memory: Its name, with its source where there are several: `trajectory@travel`.
            run: Of which replicate.

        Raises:
            InputError: There is no such memory, or replicate.
        """
        self._check_known(memory, run)
        content = PlanLog(self.out).bank(f"build {memory}/{run}")
        return tuple(sorted(content.items.values(), key=lambda each: each.order_index))

    def _check_known(self, memory: str, run: int) -> None:
        plan = self.analysis.plan
        known = [CURRENT] if plan.guard else [a.bank for a in plan.arms() if a.has_memory]
        if memory not in known:
            msg = f"there is no bank of {memory!r:.80}: {did_you_mean(memory, known)}"
            raise InputError(msg)
        if run not in range(plan.replicates):
            msg = f"there is no replicate {run!r}: they are 0 to {plan.replicates - 1}"
            raise InputError(msg)

    def admitted(self, memory: str, path: Path | str, *, run: int = 0) -> int:
        """Write a bank without the items that harm, and return how many stay.

        Any provider takes the file (`import_items`): admission by what items were worth in replays.

        Args:
            memory: As in `bank`.
            path: File to write.
            run: Of which replicate.

        Raises:
            InputError: There is no such memory, or no item of it was tried: ask for `credit`.
        """
        self._check_known(memory, run)
        tried = next((each.credits for each in self.analysis.memories if each.name == memory), ())
        if not tried:
            msg = f"no item of {memory!r} was tried: run with `credit`, in attempts"
            raise InputError(msg)
        harmful = {each.id for each in tried if each.verdict == "harms"}
        kept = [item for item in self.bank(memory, run=run) if item.id not in harmful]
        write_items(Path(path), kept)
        return len(kept)


@dataclass(frozen=True)
class AblationPreview:
    """What an ablation takes, and what it could find; nothing is sent for it.

    `attempts` of the agent, and `notes`: what to mind, in words.
    """

    attempts: int
    calls: int
    """If an attempt takes as many calls as the experiment declares."""
    prompt_tokens: int
    """At the most, at four characters each: inputs, and as much recalled text as there is room for."""
    completion_tokens: int
    """At the most."""
    cost: float | None
    """In dollars, at the most; `None` where no price is known."""
    detectable: float
    """True difference that would be found four times in five; infinite where none."""
    notes: tuple[str, ...]

    def tests_for(self, effect: float) -> int | None:
        """Return how many test tasks find a difference four times in five; `None`: too few replicates."""
        return self._tests_for(effect)

    _tests_for: Callable[[float], int | None]

    def __str__(self) -> str:
        money = "" if self.cost is None else f", at most {self.cost:,.2f} dollars"
        told = (
            f"{self.attempts:,} attempts, about {self.calls:,} model calls; at most"
            f" {self.prompt_tokens:,} tokens sent and {self.completion_tokens:,} replied{money}"
        )
        return "\n".join([told, *self.notes])


def plan_of(
    experiment: Experiment,
    *,
    name: str = "",
    harm: bool = False,
    credit: int = 0,
    guard: GuardSpec | None = None,
) -> AblationPlan:
    """Return the plan of an experiment.

    Raises:
        InputError: What is asked for is not possible.
    """
    trained = {source: [task.id for task in tasks] for source, tasks in experiment.train.items()}
    filed = {source: [each.id for each in some] for source, some in experiment.episodes.items()}
    sources = trained or filed
    made = "played" if trained else "filed"
    if experiment.bank is not None:
        made, sources = "imported", {"": [Path(experiment.bank).name]}
    if not sources:
        msg = "there is nothing to make a memory of: give `train`, `episodes` or `bank`"
        raise InputError(msg)
    known = memories(experiment)
    if guard is not None and (harm or credit):
        msg = "a guard tries one memory alone: leave `harm` and `credit` out, or `against`"
        raise InputError(msg)
    if guard is not None and (len(known) > 1 or len(sources) > 1):
        msg = "a guard holds one memory with one source against what was: name one"
        raise InputError(msg)
    fields = {
        "study": "ablation",
        "title": experiment.title,
        "experiment": name,
        "model": _model_name(experiment),
        "base_url": experiment.base_url,
        "temperature": experiment.temperature,
        "max_tokens": experiment.max_tokens,
        "memories": [
            MemorySpec(name=each, provider=provider, settings=settings)
            for each, (provider, settings) in known.items()
        ],
        "conditions": tuple(experiment.conditions),
        "sources": [SourceSpec(name=each, items=tuple(ids)) for each, ids in sources.items()],
        "made": made,
        "tests": [TestTask(id=each.id, kind=each.kind) for each in experiment.test],
        "replicates": experiment.replicates,
        "seed": experiment.seed,
        "budget": experiment.budget,
        "margin": experiment.margin,
        "solved": experiment.solved,
        "calls": experiment.calls,
        "hypotheses": list(experiment.hypotheses),
        "harm": harm,
        "credit_calls": credit,
        "guard": guard,
        "fingerprint": experiment.fingerprint(),
    }
    with validation_as(PlanError, known=AblationPlan.model_fields):
        return AblationPlan.model_validate(fields)


def _model_name(experiment: Experiment) -> str:
    if experiment.model is None:
        return OWN
    return experiment.model if isinstance(experiment.model, str) else SIMULATED


def preview_ablation(
    experiment: Experiment,
    *,
    harm: bool = False,
    credit: int = 0,
    against: Path | str | None = None,
    batch: int = 20,
    prices: tuple[float, float] | None = None,
) -> AblationPreview:
    """Say what an ablation takes, and what it could find; all that a run checks is checked, and nothing is run.

    Args:
        experiment: The agent, its tasks and its score.
        harm: As in `ablate`.
        credit: As in `ablate`.
        against: As in `ablate`; how much of it a guard needs shows as it goes.
        batch: As in `ablate`.
        prices: What a million tokens cost, sent and replied; by default the shipped prices.

    Raises:
        InputError: What is asked for is not possible.
    """
    held = _held_against(against, experiment, batch)
    prepared = _prepared(experiment, held, harm=harm, credit=credit)
    plan, runs = prepared.plan, [each.spec for each in prepared.graph]
    missing = _try_model(prepared, experiment)
    tasks = {name: count_tokens_approximately(task.text) for name, task in experiment.tasks.items()}
    attempts = calls = sent = 0
    mean = sum(tasks.values()) // max(len(tasks), 1)
    for run in runs:
        if run.factors["kind"] == "build" and plan.made != "played":
            continue
        attempts += run.length
        calls += run.length * plan.calls
        room = 0 if run.factors["memory"] in ("none", "rerun") else plan.budget
        sent += plan.calls * sum(tasks.get(item, mean) + room for item in run.item_ids)
    replied = calls * plan.max_tokens
    known = None if plan.model in (OWN, SIMULATED) else price_of(plan.model, {})
    if prices is not None:
        known = Price(prompt=prices[0], completion=prices[1])
    cost = None if known is None else in_dollars(known.cost(sent, replied))
    effect = math.inf
    if len(plan.tests) > 1 and plan.replicates >= FEWEST_RUNS:
        effect = planned_effect(plan)
    notes = (*registered_lines(prepared.study, plan, runs), *reach_of(plan), *missing)
    return AblationPreview(
        attempts, calls, sent, replied, cost, effect, notes, partial(tests_for, plan)
    )


def ablate(
    experiment: Experiment | None = None,
    *,
    out: Path | str,
    harm: bool = False,
    credit: int = 0,
    against: Path | str | None = None,
    batch: int = 20,
    concurrency: int | None = None,
    max_calls: int | None = None,
    max_tokens: int | None = None,
    max_dollars: float | None = None,
    max_hours: float | None = None,
    name: str = "",
    progress: Progress | None = None,
    **fields: Any,
) -> Ablation:
    """Try an agent with and without memory, and with what tells why, and say whether memory helps.

    Args:
        experiment: The agent, its tasks and its score; or give its fields by name.
        out: The run directory: made, or gone on with where it was stopped.
        harm: Also try what the agent does when the item recalled first is absent, superseded,
            contradicted, of a neighboring task, or poisoned.
        credit: Attempts to spend on which item changed which answer.
        against: Instead of all conditions: hold the memory against an earlier bank (a file of
            `export_items`, with `@` and the beginning of its SHA-256 if that is to be checked) or
            against the attempts with memory of an earlier run directory, and stop when it is sure.
        batch: Pairs of task and replicate between two looks of such a guard.
        concurrency: Attempts under way at the same time; 16 unless said otherwise.
        max_calls: Most calls of a model by name, failed ones included; no other can be capped.
        max_tokens: Most tokens, sent and replied, of a model by name.
        max_dollars: Most money that a model by name may cost, by the shipped prices.
        max_hours: After so long no attempt is begun any more.
        name: Where the experiment can be imported from, as `package.module:object`.
        progress: Told what happens.
        **fields: Of `Experiment`, where none is given.

    Raises:
        InputError: Something given is wrong; nothing has been run. Or a score is none.
        LanggraftError: It was stopped, or something failed; run it again to go on.
        ResumeRefusedError: The directory was begun with other tasks, code or settings.
        MissingExtraError: The extra `bench` is not installed.
    """
    require("scipy.special", extra="bench", purpose="A comparison")
    if experiment is None:
        experiment = Experiment(**fields)
    elif fields:
        experiment = replace(experiment, **fields)
    held = _held_against(against, experiment, batch)
    prepared = _prepared(experiment, held, name=name, harm=harm, credit=credit)
    plan, study, folder = prepared.plan, prepared.study, Path(out)
    if concurrency is not None:
        check_whole("concurrency", concurrency)
    caps = Caps(calls=max_calls, tokens=max_tokens, dollars=max_dollars, hours=max_hours)
    named = isinstance(experiment.model, str)
    if caps.limits_a_model and not named:
        msg = (
            "`max_calls`, `max_tokens` and `max_dollars` cap a model by name (`model=…`), which the"
            " harness asks; the agent's own model, or a simulated one, they cannot stop"
        )
        raise InputError(msg)
    budget = plan_budget(plan, folder, caps) if named else None
    with _models(prepared, experiment, folder, budget) as model_for:
        outcome = _run(
            prepared,
            folder,
            model_for,
            concurrency=concurrency,
            hours=max_hours,
            progress=progress,
        )
    if not outcome.complete:
        told = "; ".join(outcome.reasons[:3])
        msg = f"not finished: {told or outcome.summary()}; run it again to go on"
        raise LanggraftError(msg)
    return open_ablation(folder, study)


def _prepared(
    experiment: Experiment, held: "_HeldAgainst", *, harm: bool, credit: int, name: str = ""
) -> PreparedPlan[AblationPlan]:
    """Return what will be run, once all is checked that can be without a model; nothing is written."""
    plan = plan_of(experiment, name=name, harm=harm, credit=credit, guard=held.guard)
    prepared = prepare(AblationStudy(experiment, against=held.bank, logged=held.logged), plan)
    _try_banks(experiment, held.bank)
    if plan.made == "played" and plan.model != OWN:  # else the agent may file what it needs itself
        for memory in _providers(experiment):
            check_provider(memory, "the experiment")
    return prepared


def open_ablation(directory: Path | str, study: Study[Any] | None = None) -> Ablation:
    """Verify a run directory, write its page, and return what it found.

    Raises:
        RunDirectoryError: It is damaged, or another study's.
    """
    from langgraft.benchmarks.studies import read_plan  # noqa: PLC0415  (it knows all studies)

    folder = Path(directory)
    _, plan = read_plan(folder / "plan.yaml")
    if not isinstance(plan, AblationPlan):
        msg = f"{folder} holds a run of the study {plan.study!r}, and no ablation"
        raise InputError(msg)
    log = PlanLog(folder)
    with sealed_report(folder) as out:
        written = (study or AblationStudy()).report(plan, log, out)
    return Ablation(folder, written.page, analyze(plan, log), is_simulated(plan, log))


# Running it -------------------------------------------------------------------------------


def _run(
    prepared: PreparedPlan[AblationPlan],
    out: Path,
    model_for: Callable[[Any, RunSpec], BaseChatModel],
    **choices: Any,
) -> PlanOutcome:
    async def work() -> PlanOutcome:
        stop = asyncio.Event()
        main = threading.current_thread() is threading.main_thread()
        with stop_on_signals(stop) if main else ExitStack():
            return await run_plan(prepared, out, model_for=model_for, stop=stop, **choices)

    try:
        asyncio.get_running_loop()
        in_a_loop = True  # a notebook's, which must not be waited in
    except RuntimeError:
        in_a_loop = False
    if not in_a_loop:
        return asyncio.run(work())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, work()).result()


@contextmanager
def _models(
    prepared: PreparedPlan[AblationPlan],
    experiment: Experiment,
    out: Path,
    budget: CallBudget | None,
) -> Iterator[Callable[[Any, RunSpec], BaseChatModel]]:
    plan = prepared.plan
    # Before anything is written `build` is tried: what is wrong there shows at once.
    if plan.model == OWN:
        _try_build(experiment, None)
        yield lambda _plan, _run: cast("BaseChatModel", None)
        return
    _try_build(experiment, _first_model(prepared))
    with run_models(prepared.study, plan, out, budget) as model_for:
        yield model_for


def _first_model(prepared: PreparedPlan[AblationPlan]) -> BaseChatModel:
    if prepared.plan.model != SIMULATED:
        return real_model(prepared.plan, None)
    return prepared.study.simulated_model(prepared.plan, next(iter(prepared.graph)).spec)


def _try_model(prepared: PreparedPlan[AblationPlan], experiment: Experiment) -> tuple[str, ...]:
    """Try `build` as a run does, and return what a run would still miss: a key."""
    if prepared.plan.model == OWN:
        _try_build(experiment, None)
        return ()
    missing: tuple[str, ...] = ()
    try:
        model = _first_model(prepared)
    except InputError as error:
        if prepared.plan.model == SIMULATED:
            raise
        # With any key it can be set up, or what is wrong is not the key.
        model = real_model(prepared.plan, None, api_key="none")
        missing = (f"a run is not possible yet: {error}",)
    _try_build(experiment, model)
    return missing


def _try_build(experiment: Experiment, model: BaseChatModel | None) -> None:
    """Have the agent made around each memory, as a run would."""
    for memory in _providers(experiment):
        observed = ObservedMemory(
            memory, Budget(experiment.budget), learn=True, reflects=model is None
        )
        Agent(experiment, observed, model)


def _try_banks(experiment: Experiment, against: Path | None) -> None:
    """Have what is to be imported read, by each memory."""
    given = [path for path in (experiment.bank, against) if path is not None]
    for memory in _providers(experiment) if given else ():
        for path in given:
            memory.import_items(path, ImportChoices(), dry_run=True)


def _providers(experiment: Experiment) -> Iterator[MemoryProvider[Any]]:
    for provider, settings in memories(experiment).values():
        yield make_provider(provider, InMemoryStore(), settings=settings)


# A guard ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _HeldAgainst:
    """What a change is held against."""

    guard: GuardSpec | None = None
    bank: Path | None = None
    logged: Mapping[str, float] | None = None


def _held_against(against: Path | str | None, experiment: Experiment, batch: int) -> _HeldAgainst:
    if against is None:
        return _HeldAgainst()
    text = str(against)
    check_whole("batch", batch)
    path, version = text, ""
    if "@" in Path(text).name and not Path(text).expanduser().exists():
        path, _, version = text.rpartition("@")
    place = Path(path).expanduser()
    if place.is_dir():
        outcomes = _logged(place, experiment)
        sha = digest(dict(outcomes))
        logged: Mapping[str, float] | None = outcomes
    else:
        sha, logged = str(file_digest(place)), None
    if version and not sha.startswith(version):
        msg = f"{place} has the digest {sha[:12]}, and not {version!r:.80}: it is not the version named"
        raise InputError(msg)
    guard = GuardSpec(against=sha, logged=logged is not None, batch=batch)
    return _HeldAgainst(guard, None if logged is not None else place, logged)


def _logged(directory: Path, experiment: Experiment) -> dict[str, float]:
    """Read the outcomes with memory of an earlier run, by pair of task and replicate."""
    (name, *_) = memories(experiment)
    log = PlanLog(directory)
    found: dict[str, float] = {}
    for run in log.runs:
        factors = run.factors
        tested = factors.get("kind") == "test" and factors.get("condition") == name
        guarded = factors.get("kind") == "guard" and factors.get("condition") == "current"
        if tested or guarded:
            for result in log.results(run.name):
                if not result.get("skipped"):
                    at = pair(str(result["task"]), cast("int", factors["run"]))
                    found[at] = float(cast("float", result["score"]))
    wanted = [
        pair(task.id, number) for number in range(experiment.replicates) for task in experiment.test
    ]
    if missing := [each for each in wanted if each not in found]:
        msg = (
            f"{directory} has no attempt of {name!r} at {missing[0]!r} (task#replicate), nor at"
            f" {len(missing) - 1} others: hold the change against a run of the same tasks and replicates"
        )
        raise InputError(msg)
    return found
