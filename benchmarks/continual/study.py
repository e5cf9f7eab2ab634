"""The continual-learning study as the harness sees it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, cast

from typing_extensions import override

from langgraft._core.canonical import JSON, digest, seeded_fraction
from langgraft._core.errors import PlanError, SettingsError
from langgraft.benchmarks.comparison.verdicts import Better, Cell
from langgraft.benchmarks.continual.plan import (
    MIXED,
    MOST_RUNS,
    PAIR,
    Condition,
    ContinualPlan,
    ControlCondition,
    CrossedProbe,
    of_pair,
    phases,
    tested_cell,
)
from langgraft.benchmarks.continual.worlds import (
    Difficulty,
    ForeignWorld,
    TaskList,
    grading,
    source_digest,
)
from langgraft.benchmarks.harness.plans import is_foreign, provider_modules, source_digests
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    BankSource,
    PlanLogReader,
    Report,
    RunSession,
    RunSpec,
    Study,
    list_runs,
)
from langgraft.environments.text import TextWorldFactory
from langgraft.memory.model import MemoryDelta
from langgraft.memory.providers import (
    make_provider,
    provider_class,
    provider_settings,
)
from langgraft.nodes.prompts import prompt

if TYPE_CHECKING:  # listing runs needs none of it
    from langchain_core.language_models import BaseChatModel

    from langgraft.benchmarks.harness.conversations import PlayedEpisode
    from langgraft.memory.provider import Need

CODE: Final = ("langgraft.benchmarks.continual.plan", "langgraft.benchmarks.continual.session")
"""What carries out a run."""

OTHER_WORLDS: Final = ("langgraft.benchmarks.continual.worlds",)
"""What names all worlds and learners: those of a plan are given beside it."""

ASKING: Final["Mapping[Need, Sequence[str]]"] = {
    "draft": ("draft", "judge_contradiction"),
    "facts": ("extract_facts", "judge_facts", "repair"),
    "lessons": (),
    "verdicts": ("judge_novelty", "judge_novelty_message", "judge_votes", "repair"),
}
"""What the agent has ready for memories that need it → the prompts of that, beside those of every
agent. It diagnoses no errors: a text world has no tracebacks."""

DISTILLING: Final[Mapping[str, Sequence[str]]] = {
    "plain": ("reflect",),
    "by_outcome": (
        "reflect",
        "reflect_success",
        "reflect_failure",
        "reflect_comparative",
        "repair",
        "validate",
    ),
    "strategies": ("strategies", "strategies_success", "strategies_failure", "repair"),
}
"""How lessons come of an episode → the prompts of that."""

CALLS_BEFORE: Final = 3
"""Model calls before an agent with a gate is told anything: a draft, and a verdict that may have to
be corrected."""
CALLS_TO_JUDGE: Final = 2
"""Model calls for one question about an episode: an answer, and its correction."""

CALLS_TO_EXTRACT: Final = 2
"""Model calls for the facts of an episode: an answer, and its correction."""

CALLS_TO_DISTILL: Final = {"plain": 1, "by_outcome": 4, "strategies": 2}
"""Model calls for the lessons of an episode: a reflection; or one that may have to be corrected, and
by outcome a validation that may have to be, too."""


RERUN_SEED_OFFSET = MOST_RUNS
"""Keeps the samples of the re-run apart from those of the baseline."""


class ContinualStudy(Study[ContinualPlan]):
    """Memory as a continual learner: forward and backward transfer (continual-memory)."""

    name = "continual"
    plan_model = ContinualPlan
    varying: ClassVar[Mapping[str, float | None] | None] = {}

    @override
    def check(self, plan: ContinualPlan) -> None:
        """Refuse memories that could learn nothing here, and settings that no learner has.

        Raises:
            PlanError: A memory needs what the agent does not make, or a learner has no such setting.
        """
        for condition in plan.conditions:
            if not is_foreign(condition.provider):
                _check_needs(condition)
        try:
            for part in plan.parts.values() if plan.model == SIMULATED else ():
                if part.world is None:
                    _learner(part, part.seed)
        except SettingsError as error:
            raise PlanError(str(error)) from error

    @override
    def expand(self, plan: ContinualPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan; a world that it names is imported and checked.

        Raises:
            PlanError: A task family does not exist, or a world that it names is none, or does not know how
            hard its tasks are, though their order goes by that.
        """
        return _listed(plan, _factory, _difficulty)

    @override
    def glimpse(self, plan: ContinualPlan) -> tuple[RunSpec, ...] | None:
        """List the runs of a plan that names worlds, as many items as it asks for."""
        if all(part.world is None for part in plan.parts.values()):
            return None
        return _listed(
            plan,
            lambda part: part.played_in.outline(part.semantics) if part.world else _factory(part),
        )

    @override
    def size(self, plan: ContinualPlan) -> tuple[int, int]:
        """Count the runs and items of a plan, on tasks that stand in for those of large data.

        Where the data holds fewer tasks than the plan asks for, there will be fewer items.

        Raises:
            PlanError: A task family does not exist, or there are no data.
        """
        runs = _listed(plan, lambda part: part.played_in.outline(part.semantics))
        return len(runs), sum(run.length for run in runs)

    def fingerprints(self, plan: ContinualPlan) -> Mapping[str, JSON]:
        """Return digests of prompts, code, the worlds' rules and the memories' architectures.

        Raises:
            PlanError: A memory that is not langgraft's own needs what the agent does not make.
            SettingsError: It cannot be imported, or has no such setting.
        """
        for condition in plan.conditions:
            if is_foreign(condition.provider):
                _check_needs(condition)
        architectures: dict[str, JSON] = {
            condition.name: digest(_architecture(condition)) for condition in plan.conditions
        }
        needs = frozenset(need for condition in plan.conditions for need in _needs(condition))
        prompts = [
            "act",
            "act_repair",
            "reflect",
            *(name for need in sorted(needs) for name in ASKING[need]),
        ]
        prompts += [name for each in plan.conditions for name in DISTILLING[each.distillation]]
        parts = plan.parts
        rules: dict[str, JSON] = {name: digest(_rules(part)) for name, part in parts.items()}
        return {
            "prompts": {name: prompt(name).sha256 for name in prompts},
            "code": source_digests(_code_of(plan), apart_from=OTHER_WORLDS),
            "world": rules if plan.pairs else rules[""],
            "architectures": architectures,
        }

    @override
    def measures(self) -> Mapping[str, Better | None]:
        """Return success, the share of test tasks that are solved."""
        return {"success": "higher"}

    @override
    def cell(self, run: RunSpec) -> Cell | None:
        """Return condition, sequence and task of an evaluation, and its pair where there are several."""
        return tested_cell(run.factors)

    @override
    def packages(self, plan: ContinualPlan) -> tuple[str, ...]:
        """Name what retrieval is computed with, and what the worlds are made of."""
        worlds = (name for part in plan.parts.values() for name in part.played_in.packages)
        return ("bm25s", "numpy", *dict.fromkeys(worlds))

    def open(
        self,
        plan: ContinualPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: "BaseChatModel",
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run."""
        from langgraft.benchmarks.continual.session import ContinualSession  # noqa: PLC0415

        part = _part_of(plan, run)
        world = part.played_in.factory(part.semantics)
        return ContinualSession(part, run, deltas, model, world=world, place=place)

    def simulated_model(self, plan: ContinualPlan, run: RunSpec) -> "BaseChatModel":
        """Return the simulated learner of the run's world, sampling by the run's seed."""
        from langgraft.benchmarks.harness.models import MeteredChatModel  # noqa: PLC0415

        part = _part_of(plan, run)
        seed = run.factors["model_seed"]
        assert isinstance(seed, int)
        learner = _learner(part, seed)
        identity: dict[str, JSON] = {
            "model": SIMULATED,
            "seed": seed,
            "temperature": plan.temperature,
            **_settings(part),
        }
        return MeteredChatModel(inner=learner, identity=identity, call_seconds=None)

    @override
    def most_calls(self, plan: ContinualPlan, run: RunSpec) -> int:
        """Return how many model calls a run makes: a reply a round, and what memory needs.

        That is what lessons take where they are kept, a draft and its judgment where there is a
        gate, and the judgment of an episode; memories of this study ask one question about it. One
        that is not langgraft's own is taken to need all of this.
        """
        part = _part_of(plan, run)
        calls = part.max_rounds or part.played_in.max_rounds(part.semantics)
        name = str(run.factors.get("retrieval", run.factors["condition"])).partition("+")[0]
        for condition in plan.conditions:
            if condition.name == name:
                foreign = is_foreign(condition.provider)
                needs = frozenset(ASKING) if foreign else _needs(condition)
                calls += CALLS_BEFORE * ("draft" in needs)
                if not run.frozen:
                    calls += CALLS_TO_DISTILL[condition.distillation] * ("lessons" in needs)
                    calls += CALLS_TO_EXTRACT * ("facts" in needs)
                    calls += CALLS_TO_JUDGE * ("verdicts" in needs)
        return run.length * calls

    @override
    def foreign_code(self, plan: ContinualPlan) -> tuple[str, ...]:
        """Return the worlds and memories that are not langgraft's own."""
        worlds = [part.world for part in plan.parts.values() if part.world is not None]
        memories = [each.provider for each in plan.conditions if is_foreign(each.provider)]
        return (*dict.fromkeys(worlds), *memories)

    @override
    def notes(self, plan: ContinualPlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Return the difference that each pair can detect: what the plan's size is good for."""
        from langgraft.benchmarks.continual.contrasts import (  # noqa: PLC0415
            detectable_line,
            fewer_tasks,
        )

        fewer = fewer_tasks(plan, runs)
        if not plan.pairs:
            return (*fewer, detectable_line(runs))
        lines = (
            f"{name}: {detectable_line([run for run in runs if run.factors[PAIR] == name])}"
            for name in plan.parts
        )
        return (*fewer, *lines)

    @override
    def episodes(self, plan: ContinualPlan, log: PlanLogReader) -> "Iterator[PlayedEpisode]":
        """Yield the episodes of a log; memory is asked again for what it recalled."""
        from langgraft.benchmarks.continual.conversations import played_episodes  # noqa: PLC0415

        return played_episodes(plan, log, _rules)

    def report(self, plan: ContinualPlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and its figures; of several pairs, one of each and of all."""
        from langgraft.benchmarks.continual.report import (  # noqa: PLC0415  ([bench])
            write_reports,
        )

        return write_reports(plan, log, out)


class RunList:
    """Builds the runs of one pair of task families, or of more families than two."""

    def __init__(
        self, plan: ContinualPlan, world: TaskList, difficulty: Difficulty | None = None
    ) -> None:
        """Take what lists the tasks, and what grades them where their order goes by that."""
        self._plan = plan
        self._difficulty = difficulty
        self._domains = plan.tasks.named
        self._train = {
            task: world.tasks(domain, "train")[: plan.train_items]
            for task, domain in self._domains.items()
        }
        self._test = {
            task: world.tasks(domain, "test")[: plan.test_items]
            for task, domain in self._domains.items()
        }
        # Drawn when a run first asks: a plan of too many runs is refused before most of them are.
        self._orders: dict[tuple[str, int], tuple[str, ...]] = {}

    def all(self) -> Iterator[RunSpec]:
        """List all runs, sources first."""
        plan = self._plan
        yield from self._bare("none", plan.baseline_runs, seed_offset=0)
        if plan.rerun:
            yield from self._bare("rerun", plan.runs, seed_offset=RERUN_SEED_OFFSET)
        for replicate in range(plan.runs if plan.online_baseline else 0):
            for task in self._domains:
                yield replace(self._train_run("none", replicate, task), frozen=True)
        for condition in plan.conditions:
            for replicate in range(plan.runs):
                for run in self._condition(condition, replicate):
                    yield _mending(run, condition)
        yield from self._beside()

    def _beside(self) -> Iterator[RunSpec]:
        replicates = range(self._plan.runs)
        for control, replicate in product(self._plan.controls, replicates):
            yield from self._control(control, replicate)
        for probe, replicate in product(self._plan.probes, replicates):
            yield from self._probe(probe, replicate)

    @cached_property
    def _whole(self) -> tuple[str, ...]:
        """The sequences of the plan; where tasks are mixed, by `+`."""
        sequences = self._plan.sequences
        mixed = self._plan.order in MIXED
        return tuple(each.replace(">", "+") for each in sequences) if mixed else sequences

    @cached_property
    def _streams(self) -> tuple[str, ...]:
        """What is trained: each task alone, then each beginning of a sequence that is longer, once."""
        begun = (
            ">".join(parts[:length])
            for parts in (sequence.split(">") for sequence in self._whole)
            for length in range(1, len(parts) + 1)
        )
        return tuple(dict.fromkeys((*self._domains, *begun)))

    def _bare(self, condition: str, runs: int, *, seed_offset: int) -> Iterator[RunSpec]:
        for replicate in range(runs):
            for task in self._domains:
                yield self._bare_test(condition, replicate, task, replicate + seed_offset)

    def _control(self, control: ControlCondition, replicate: int) -> Iterator[RunSpec]:
        for sequence in self._streams if control.transfer else self._whole:
            for task in sorted(phases(sequence)):
                yield self._test_run(control.name, replicate, sequence, task, bank_of=control.of)

    def _probe(self, probe: CrossedProbe, replicate: int) -> Iterator[RunSpec]:
        crossed: dict[str, JSON] = {"retrieval": probe.retrieval, "pool": probe.pool}
        for sequence in self._whole:
            for task in sorted(phases(sequence)):
                run = self._test_run(probe.name, replicate, sequence, task, bank_of=probe.pool)
                yield replace(run, factors={**run.factors, **crossed})

    def _condition(self, condition: Condition, replicate: int) -> Iterator[RunSpec]:
        name = condition.name
        for sequence in self._streams:
            *earlier, last = phases(sequence)
            yield self._train_run(name, replicate, sequence)
            for task in (last, *earlier):
                yield from self._tests_along(name, replicate, sequence, task)
            for task in self._to_come(sequence):
                yield self._test_run(name, replicate, sequence, task)

    def _to_come(self, stream: str) -> list[str]:
        """List the tasks that are tested before they are learned, of the sequences that begin so."""
        tests, come = self._plan.tests, dict.fromkeys("")
        for sequence in self._whole if tests != "met" else ():
            tasks = phases(sequence)
            if f"{sequence}>".startswith(f"{stream}>") and (tests or len(tasks) > 2):  # noqa: PLR2004
                come |= dict.fromkeys(tasks)
        return [task for task in come if task not in phases(stream)]

    def _tests_along(
        self, condition: str, replicate: int, sequence: str, task: str
    ) -> Iterator[RunSpec]:
        length = len(self._stream(sequence, replicate))
        steps = self._plan.milestones
        for milestone in range(1, steps):
            at = milestone * length // steps
            yield self._test_run(condition, replicate, sequence, task, at=at)
        yield self._test_run(condition, replicate, sequence, task)

    def _stream(self, sequence: str, replicate: int) -> tuple[str, ...]:
        """Return the instances of the last phase of a sequence, or of a mixture, in order."""
        tasks = sequence.rpartition(">")[2].split("+")
        orders = [self._order(task, replicate) for task in tasks]
        if len(orders) > 1 and self._plan.order == "shuffled":
            return self._shuffled((item for order in orders for item in order), replicate)
        turns = zip_longest(*orders)
        return tuple(item for turn in turns for item in turn if item is not None)

    def _order(self, task: str, replicate: int) -> tuple[str, ...]:
        if (task, replicate) not in self._orders:
            items = self._shuffled((item.id for item in self._train[task]), replicate)
            if self._difficulty is not None:
                items = tuple(sorted(items, key=self._difficulty))
            self._orders[task, replicate] = items
        return self._orders[task, replicate]

    def _shuffled(self, items: Iterable[str], replicate: int) -> tuple[str, ...]:
        """Order training instances by chance, the same way for all conditions."""
        seed = self._plan.seed
        return tuple(sorted(items, key=lambda n: seeded_fraction("order", seed, replicate, n)))

    def _train_run(self, condition: str, replicate: int, sequence: str) -> RunSpec:
        before, _, task = sequence.rpartition(">")
        source = BankSource(_train_name(condition, replicate, before)) if before else None
        factors = self._factors("train", condition, replicate, sequence, task, seed=replicate)
        return RunSpec(
            study=self._plan.study,
            name=_train_name(condition, replicate, sequence),
            factors=factors,
            item_ids=self._stream(sequence, replicate),
            source=source,
        )

    def _test_run(
        self,
        condition: str,
        replicate: int,
        sequence: str,
        task: str,
        *,
        at: int | None = None,
        bank_of: str | None = None,
    ) -> RunSpec:
        factors = self._factors("evaluate", condition, replicate, sequence, task, seed=replicate)
        when = sequence if at is None else f"{sequence} at {at}"
        return RunSpec(
            study=self._plan.study,
            name=f"{condition}/{replicate}/test {task} after {when}",
            factors={**factors, "at": at},
            item_ids=tuple(item.id for item in self._test[task]),
            source=BankSource(_train_name(bank_of or condition, replicate, sequence), at),
            frozen=True,
        )

    def _bare_test(self, condition: str, replicate: int, task: str, seed: int) -> RunSpec:
        return RunSpec(
            study=self._plan.study,
            name=f"{condition}/{replicate}/test {task}",
            factors={
                **self._factors("evaluate", condition, replicate, "", task, seed=seed),
                "at": None,
            },
            item_ids=tuple(item.id for item in self._test[task]),
            frozen=True,
        )

    def _factors(
        self, kind: str, condition: str, replicate: int, sequence: str, task: str, *, seed: int
    ) -> dict[str, JSON]:
        return {
            "kind": kind,
            "condition": condition,
            "replicate": replicate,
            "sequence": sequence,
            "task": task,
            "domain": " and ".join(self._domains[each] for each in phases(task)),
            "model_seed": self._plan.seed + seed,
        }


def _mending(run: RunSpec, condition: Condition) -> RunSpec:
    """Say in a run which condition its own is to improve on, where it is to improve on one."""
    if condition.mends is None:
        return run
    return replace(run, factors={**run.factors, "mends": condition.mends})


def _train_name(condition: str, replicate: int, sequence: str) -> str:
    return f"{condition}/{replicate}/train {sequence}"


def _listed(
    plan: ContinualPlan,
    tasks_of: Callable[[ContinualPlan], TaskList],
    difficulty_in: Callable[[ContinualPlan, TaskList], Difficulty | None] = lambda *_: None,
) -> tuple[RunSpec, ...]:
    """List the runs of each pair; without `difficulty_in`, in an order that is no curriculum.

    Raises:
        PlanError: A task family does not exist, or there are no data.
    """
    try:
        return list_runs(
            of_pair(run, name) if name else run
            for name, part in plan.parts.items()
            for tasks in [tasks_of(part)]
            for run in RunList(part, tasks, difficulty_in(part, tasks)).all()
        )
    except SettingsError as error:
        raise PlanError(str(error)) from error


def _factory(part: ContinualPlan) -> TextWorldFactory:
    """Return what makes the episodes of a pair; of a world that is not langgraft's own, checked.

    Raises:
        SettingsError: There is no such world, it is none, or it has too few tasks.
    """
    world = part.played_in
    made = world.factory(part.semantics)
    if isinstance(world, ForeignWorld):
        families = tuple(part.tasks.named.values())
        world.check(part.semantics, families)
        fewest = min(len(made.tasks(family, "train")) for family in families)
        if part.milestones > fewest:
            msg = (
                f"world {world.name!r}: {part.milestones} milestones do not fit into the {fewest}"
                " training tasks of a family"
            )
            raise SettingsError(msg)
        if part.model == SIMULATED:
            _learner(part, part.seed)
    return made


def _difficulty(part: ContinualPlan, tasks: TaskList) -> Difficulty | None:
    """Return what grades the tasks of a pair, where their order goes by it."""
    return grading(part.played_in, tasks) if part.order == "curriculum" else None


def _part_of(plan: ContinualPlan, run: RunSpec) -> ContinualPlan:
    """Return the plan of the pair a run belongs to."""
    return plan.parts[str(run.factors.get(PAIR, ""))]


def _settings(part: ContinualPlan) -> dict[str, JSON]:
    """Return the learner's settings as a model's identity names them, where there are any."""
    learner = cast("dict[str, JSON]", part.learner)
    return {"learner": learner} if learner else {}


def _learner(part: ContinualPlan, seed: int) -> "BaseChatModel":
    settings = cast("Mapping[str, JSON]", part.learner)
    return part.played_in.learner(seed=seed, temperature=part.temperature, settings=settings)


def _rules(part: ContinualPlan) -> JSON:
    """Return what decides how the world of a pair plays; of a foreign one, its learner's code too."""
    rules = part.played_in.describe(part.semantics, tuple(part.tasks.named.values()))
    if part.world is None or part.model != SIMULATED:
        return rules
    return {"world": rules, "learner": _code(type(_learner(part, part.seed)))}


def _code_of(plan: ContinualPlan) -> set[str]:
    """Name where the code begins that decides the results of a plan: its worlds, and no others."""
    parts = plan.parts.values()
    made: list[object] = [part.played_in.factory(part.semantics) for part in parts]
    if plan.model == SIMULATED:
        made += [_learner(part, part.seed) for part in parts]
    code = {base.__module__ for each in made for base in type(each).__mro__}
    ours = {module for module in code if module.startswith("langgraft.")}
    return {*CODE, *ours, *provider_modules(each.provider for each in plan.conditions)}


def _needs(condition: Condition) -> "frozenset[Need]":
    """Return what a memory needs of an agent."""
    from langgraph.store.memory import InMemoryStore  # noqa: PLC0415

    settings = cast("Mapping[str, JSON]", condition.settings)
    return make_provider(condition.provider, InMemoryStore(), settings=settings).needs


def _check_needs(condition: Condition) -> None:
    """Refuse a memory that could learn nothing here: its zero would pass for a finding."""
    needs = _needs(condition)
    if condition.distillation != "plain" and "lessons" not in needs:
        msg = (
            f"condition {condition.name!r}: distillation {condition.distillation!r} is idle, as"
            f" provider {condition.provider!r} keeps no lessons"
        )
        raise PlanError(msg)
    if unmet := sorted(needs - set(ASKING)):
        msg = (
            f"condition {condition.name!r}: provider {condition.provider!r} needs"
            f" {', '.join(unmet)}, but the agent of this study has only {', '.join(ASKING)} ready"
        )
        raise PlanError(msg)


def _architecture(condition: Condition) -> dict[str, JSON]:
    """Describe a memory: provider, settings, and the code of one that is not langgraft's own."""
    provider = provider_class(condition.provider)
    described: dict[str, JSON] = {
        "provider": provider.name,
        "settings": provider_settings(condition.provider, condition.settings).describe(),
    }
    if is_foreign(condition.provider):
        described["code"] = _code(provider)
    return described


def _code(kind: type) -> JSON:
    """Return the digest of the file a class is in; `None` in a notebook, which has no file."""
    return source_digest(kind.__module__)
