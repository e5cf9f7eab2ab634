"""The continual-learning study as the harness sees it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError, SettingsError
from langgraft.benchmarks.continual.plan import PAIR, Condition, ContinualPlan, RunList, of_pair
from langgraft.benchmarks.continual.worlds import ForeignWorld, TaskList, source_digest
from langgraft.benchmarks.harness.plans import is_foreign, provider_modules, source_digests
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
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
    "lessons": (),
    "verdicts": ("judge_novelty", "judge_votes", "repair"),
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
}
"""How lessons come of an episode → the prompts of that."""

CALLS_BEFORE: Final = 3
"""Model calls before an agent with a gate is told anything: a draft, and a verdict that may have to
be corrected."""
CALLS_TO_JUDGE: Final = 2
"""Model calls for one question about an episode: an answer, and its correction."""

CALLS_TO_DISTILL: Final = {"plain": 1, "by_outcome": 4}
"""Model calls for the lessons of an episode: a reflection; or one that may have to be corrected, and
a validation that may have to be, too."""


class ContinualStudy(Study[ContinualPlan]):
    """Memory as a continual learner: forward and backward transfer (continual-memory)."""

    name = "continual"
    plan_model = ContinualPlan

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
            PlanError: A task family does not exist, or a world that it names is none.
        """
        return _listed(plan, _factory)

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
        calls = part.played_in.max_rounds(part.semantics)
        name = str(run.factors.get("retrieval", run.factors["condition"])).partition("+")[0]
        for condition in plan.conditions:
            if condition.name == name:
                foreign = is_foreign(condition.provider)
                needs = frozenset(ASKING) if foreign else _needs(condition)
                calls += CALLS_BEFORE * ("draft" in needs)
                if not run.frozen:
                    calls += CALLS_TO_DISTILL[condition.distillation] * ("lessons" in needs)
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

        return played_episodes(plan, log)

    def report(self, plan: ContinualPlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and its figures; of several pairs, one of each and of all."""
        from langgraft.benchmarks.continual.report import (  # noqa: PLC0415  ([bench])
            write_reports,
        )

        return write_reports(plan, log, out)


def _listed(
    plan: ContinualPlan, tasks_of: Callable[[ContinualPlan], TaskList]
) -> tuple[RunSpec, ...]:
    """List the runs of each pair.

    Raises:
        PlanError: A task family does not exist, or there are no data.
    """
    try:
        return list_runs(
            of_pair(run, name) if name else run
            for name, part in plan.parts.items()
            for run in RunList(part, tasks_of(part)).all()
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
        families = (part.tasks.A, part.tasks.B)
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
    rules = part.played_in.describe(part.semantics, (part.tasks.A, part.tasks.B))
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
