"""The continual-learning study as the harness sees it."""

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from langgraft._core.canonical import JSON, digest, text_digest
from langgraft._core.errors import PlanError, SettingsError
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.continual.power import detectable_line
from langgraft.benchmarks.continual.runs import RunList
from langgraft.benchmarks.continual.session import ContinualSession
from langgraft.benchmarks.harness.models import MeteredChatModel
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
from langgraft.environments.babyai import BabyAI
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.policy import Need
from langgraft.memory.providers import (
    PROVIDERS,
    make_provider,
    provider_class,
    provider_settings,
)
from langgraft.nodes.prompts import prompt

CODE = (
    "langgraft._core",
    "langgraft.memory",
    "langgraft.environments",
    "langgraft.nodes",
    "langgraft.graphs",
    "langgraft.benchmarks.continual.runs",
    "langgraft.benchmarks.continual.session",
)
"""What decides results; how they are reported may change under a finished run."""

LEARNER = (
    "langgraft.benchmarks.simulated.babyai",
    "langgraft.benchmarks.simulated.chat",
    "langgraft.benchmarks.simulated.judging",
)
"""The simulated model."""

ASKING: Final[Mapping[Need, Sequence[str]]] = {
    "draft": ("draft", "judge_contradiction"),
    "lessons": (),
    "verdicts": ("judge_novelty", "judge_votes", "repair"),
}
"""What the agent has ready for memories that need it → the prompts of that, beside those of every
agent. It diagnoses no errors: a text world has no tracebacks."""

CALLS_BEFORE: Final = 3
"""Model calls before an agent with a gate is told anything: a draft, and a verdict that may have to
be corrected."""
CALLS_TO_JUDGE: Final = 2
"""Model calls for one question about an episode: an answer, and its correction."""


class ContinualStudy(Study[ContinualPlan]):
    """Memory as a continual learner: forward and backward transfer (continual-memory)."""

    name = "continual"
    plan_model = ContinualPlan

    def expand(self, plan: ContinualPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan.

        Raises:
            PlanError: A task family does not exist, or a memory needs what the agent does not make.
        """
        for condition in plan.conditions:
            _check_needs(condition)
        try:
            return tuple(RunList(plan, BabyAI(semantics=plan.semantics)).all())
        except SettingsError as error:
            raise PlanError(str(error)) from error

    def fingerprints(self, plan: ContinualPlan) -> Mapping[str, JSON]:
        """Return digests of prompts, code, the world's rules and the memories' architectures."""
        world = BabyAI(semantics=plan.semantics)
        first = world(world.tasks(plan.tasks.A, "train")[0].id)
        architectures: dict[str, JSON] = {
            condition.name: digest(_architecture(condition)) for condition in plan.conditions
        }
        needs = frozenset(need for condition in plan.conditions for need in _needs(condition))
        prompts = ["act", "reflect", *(name for need in sorted(needs) for name in ASKING[need])]
        learner = LEARNER if plan.model == SIMULATED else ()
        return {
            "prompts": {name: prompt(name).sha256 for name in prompts},
            "code": source_digests((*CODE, *learner)),
            "world": digest({"instructions": first.instructions, "semantics": plan.semantics}),
            "architectures": architectures,
        }

    def open(
        self,
        plan: ContinualPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run."""
        world = BabyAI(semantics=plan.semantics)
        return ContinualSession(plan, run, deltas, model, world=world, place=place)

    def simulated_model(self, plan: ContinualPlan, run: RunSpec) -> BaseChatModel:
        """Return the simulated BabyAI learner, sampling by the run's seed."""
        from langgraft.benchmarks.simulated.babyai import (  # noqa: PLC0415  (not for real models)
            SimulatedBabyAI,
        )

        seed = run.factors["model_seed"]
        assert isinstance(seed, int)
        learner = SimulatedBabyAI(seed=seed, temperature=plan.temperature)
        identity = {"model": SIMULATED, "seed": seed, "temperature": plan.temperature}
        return MeteredChatModel(inner=learner, identity=identity)

    @override
    def most_calls(self, plan: ContinualPlan, run: RunSpec) -> int:
        """Return how many model calls a run makes: a reply a round, and what memory needs.

        That is a reflection where lessons are kept, a draft and its judgment where there is a
        gate, and the judgment of an episode; memories of this study ask one question about it.
        """
        calls = BabyAI().max_rounds
        name = str(run.factors.get("retrieval", run.factors["condition"])).partition("+")[0]
        for condition in plan.conditions:
            if condition.name == name:
                needs = _needs(condition)
                calls += CALLS_BEFORE * ("draft" in needs)
                if not run.frozen:
                    calls += ("lessons" in needs) + CALLS_TO_JUDGE * ("verdicts" in needs)
        return run.length * calls

    @override
    def notes(self, plan: ContinualPlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Return the difference that the plan can detect: what its size is good for."""
        return (detectable_line(runs),)

    def report(self, plan: ContinualPlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and its figures."""
        from langgraft.benchmarks.continual.report import write_report  # noqa: PLC0415  ([bench])

        return write_report(plan, log, out)


def _needs(condition: Condition) -> frozenset[Need]:
    """Return what a memory needs of an agent."""
    settings = cast("Mapping[str, JSON]", condition.settings)
    return make_provider(condition.provider, InMemoryStore(), settings=settings).needs


def _check_needs(condition: Condition) -> None:
    """Refuse a memory that could learn nothing here: its zero would pass for a finding."""
    if unmet := sorted(_needs(condition) - set(ASKING)):
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
    if condition.provider not in PROVIDERS:
        described["code"] = _code(provider)
    return described


def _code(provider: type) -> JSON:
    """Return the digest of the file a class is in; `None` in a notebook, which has no file."""
    try:
        return text_digest(inspect.getsource(inspect.getmodule(provider) or provider))
    except (OSError, TypeError):
        return None
