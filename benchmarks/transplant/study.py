"""The transplant study as the harness sees it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError
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
from langgraft.benchmarks.transplant.plan import NONE, SIDES, RunList, TransplantPlan
from langgraft.environments.problems.known_answers import KNOWN, wrongly_judged
from langgraft.memory.model import MemoryDelta
from langgraft.memory.providers import provider_class, provider_settings
from langgraft.nodes.prompts import prompt

if TYPE_CHECKING:  # listing runs needs none of it
    from langchain_core.language_models import BaseChatModel

CODE: Final = ("langgraft.benchmarks.transplant.plan", "langgraft.benchmarks.transplant.session")
"""What carries out a run."""

PROMPTS: Final = ("solve", "reflect", "draft", "judge_contradiction", "judge_votes", "repair")

CALLS: Final = 6
"""Model calls of an attempt in which a memory learns, at the most: a draft, its judgment and the
correction of that, a solution, a reflection, and an answer to what memory asks."""


class TransplantStudy(Study[TransplantPlan]):
    """Architecture and content of a memory in another domain (memory-transplants)."""

    name = "transplant"
    plan_model = TransplantPlan

    @override
    def check(self, plan: TransplantPlan) -> None:
        """Refuse memories that learn from what a solver does not have.

        Raises:
            PlanError: One needs the records of errors.
        """
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415

        for system in plan.systems:
            if system.provider == NONE or is_foreign(system.provider):
                continue
            for side in SIDES:
                settings = provider_settings(system.provider, system.settings_of(side))
                made = provider_class(system.provider)(InMemoryStore(), settings=settings)
                if "errors" in made.needs:
                    msg = (
                        f"system {system.name!r}: {system.provider!r} learns from records of errors,"
                        " which a grader of problems does not give"
                    )
                    raise PlanError(msg)

    @override
    def expand(self, plan: TransplantPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan; its problems are read.

        Raises:
            PlanError: A domain's file is not there, or there are too many runs.
            InputError: A file is not what it should be, there are too few problems, or splits overlap.
        """
        from langgraft.benchmarks.transplant.domains import splits_of  # noqa: PLC0415

        splits = splits_of(plan)
        builds = {"source": splits.source_builds, "target": splits.target_builds}
        return list_runs(
            RunList(plan, splits.evaluated, {side: builds[side] for side in SIDES}).all()
        )

    @override
    def size(self, plan: TransplantPlan) -> tuple[int, int]:
        """Count the runs and items of a plan, on names that stand in for problems."""
        listed = RunList(
            plan,
            _names(plan.eval_items),
            {
                "source": [_names(plan.build_items)] * plan.seeds,
                "target": [_names(plan.target_build_items)] * plan.seeds,
            },
        )
        runs = list_runs(listed.all())
        return len(runs), sum(run.length for run in runs)

    def fingerprints(self, plan: TransplantPlan) -> Mapping[str, JSON]:
        """Return digests of prompts, code, problems and the memories' architectures."""
        from langgraft.benchmarks.transplant.domains import fingerprint  # noqa: PLC0415

        systems = [each for each in plan.systems if each.provider != NONE]
        code = {*CODE, *provider_modules(each.provider for each in systems)}
        unused = () if plan.model == SIMULATED else ("langgraft.benchmarks.simulated",)
        architectures: dict[str, JSON] = {
            f"{system.name}/{plan.domain_of(side).name}": digest(
                {
                    "provider": provider_class(system.provider).name,
                    "settings": provider_settings(
                        system.provider, system.settings_of(side)
                    ).describe(),
                }
            )
            for system in systems
            for side in SIDES
        }
        return {
            "grader": f"{len(KNOWN)} known pairs, SHA-256 {digest([list(each) for each in KNOWN])[:12]}",
            "prompts": {name: prompt(name).sha256 for name in PROMPTS},
            "code": dict(source_digests(code, apart_from=unused)),
            "problems": fingerprint(plan),
            "architectures": architectures,
        }

    @override
    def make_ready(self, plan: TransplantPlan) -> None:
        """Check the grader on known pairs (gate G3), and what the domains need.

        Raises:
            PlanError: It judges one otherwise.
            MissingExtraError: The extra `math` is not installed.
            SandboxUnavailableError: A domain runs programs, and there is no engine or image.
        """
        from langgraft.benchmarks.transplant.domains import open_domain  # noqa: PLC0415

        if wrong := wrongly_judged():
            given, right, counts = wrong[0]
            msg = (
                f"the grader judges {len(wrong)} of {len(KNOWN)} known pairs wrongly, such as {given!r}"
                f" for {right!r}, which {'counts' if counts else 'does not count'}: nothing is run"
            )
            raise PlanError(msg)
        for spec in plan.domains:
            open_domain(spec).make_ready()

    @override
    def packages(self, plan: TransplantPlan) -> tuple[str, ...]:
        """Name what retrieval and grades are computed with."""
        return ("bm25s", "math-verify", "numpy", "sympy")

    def open(
        self,
        plan: TransplantPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: "BaseChatModel",
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run."""
        from langgraft.benchmarks.transplant.session import TransplantSession  # noqa: PLC0415

        return TransplantSession(plan, run, deltas, model, place)

    def simulated_model(self, plan: TransplantPlan, run: RunSpec) -> "BaseChatModel":
        """Return the simulated solver of a run, with the strengths that the plan declares."""
        from langgraft.benchmarks.harness.models import MeteredChatModel  # noqa: PLC0415
        from langgraft.benchmarks.transplant.domains import simulated_solver  # noqa: PLC0415

        seed = run.factors["model_seed"]
        assert isinstance(seed, int)
        solver = next(each for each in plan.solvers if each.name == run.factors["solver"])
        identity: dict[str, JSON] = {
            "model": SIMULATED,
            "seed": seed,
            "temperature": plan.temperature,
            "strengths": dict(solver.strengths),
        }
        made = simulated_solver(plan, solver, seed)
        return MeteredChatModel(inner=made, identity=identity, call_seconds=None)

    @override
    def most_calls(self, plan: TransplantPlan, run: RunSpec) -> int:
        """Return how many model calls a run makes at the most."""
        return run.length * (1 if run.frozen else CALLS)

    @override
    def foreign_code(self, plan: TransplantPlan) -> tuple[str, ...]:
        """Return the memories that are not langgraft's own."""
        systems = (each for each in plan.systems if each.provider != NONE)
        return tuple(each.provider for each in systems if is_foreign(each.provider))

    @override
    def notes(self, plan: TransplantPlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Say how banks are shared, and what cannot be tested."""
        banks = sum(run.factors["kind"] == "build" for run in runs)
        shared = (
            f"banks: {banks}, one for each solver, system, domain and draw, built under"
            f" {plan.build_budget} tokens; all budgets and conditions of a seed read the same"
        )
        same = [s.name for s in plan.systems if s.provider != NONE and plan.same_architecture(s)]
        if not same:
            return (shared,)
        untestable = (
            f"one architecture for both domains: {', '.join(same)}; H1 and H3 are not testable"
        )
        return shared, f"{untestable} there"

    def report(self, plan: TransplantPlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and its page."""
        from langgraft.benchmarks.transplant.report import write_report  # noqa: PLC0415  ([bench])

        return write_report(plan, log, out)


def _names(count: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(count))
