"""The transplant study as the harness sees it."""

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError
from langgraft.benchmarks.comparison.verdicts import Better, Cell
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
from langgraft.benchmarks.transplant.plan import (
    NONE,
    SIDES,
    VARYING,
    RunList,
    TransplantPlan,
    tested_cell,
)
from langgraft.environments.problems.grading import KNOWN, wrongly_judged
from langgraft.memory.model import MemoryDelta
from langgraft.memory.providers import provider_class, provider_settings
from langgraft.nodes.prompts import prompt

if TYPE_CHECKING:  # listing runs needs none of it
    from langchain_core.language_models import BaseChatModel

    from langgraft.benchmarks.harness.conversations import PlayedEpisode

CODE: Final = ("langgraft.benchmarks.transplant.plan", "langgraft.benchmarks.transplant.selection")
"""What carries out a run."""

GATED_CALLS: Final = 4
"""The same where it only recalls, with a gate: a draft, its judgment and the correction of that, a solution."""

PROMPTS: Final = ("solve", "reflect", "draft", "judge_contradiction", "judge_votes", "repair")

CALLS: Final = 6
"""Model calls of an attempt in which a memory learns, at the most: a draft, its judgment and the
correction of that, a solution, a reflection, and an answer to what memory asks."""


class TransplantStudy(Study[TransplantPlan]):
    """Architecture and content of a memory in another domain (memory-transplants)."""

    name = "transplant"
    plan_model = TransplantPlan
    varying: ClassVar[Mapping[str, float | None] | None] = VARYING

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
        """Count the runs and items of a plan, with one name in the place of all problems of a run."""
        one = [("problem",)] * plan.seeds
        runs = list_runs(RunList(plan, ("problem",), dict.fromkeys(SIDES, one)).all())
        build = {"source": plan.build_items, "target": plan.target_build_items}
        sizes = {"eval": plan.eval_items, "select": 1, "admit": plan.target_build_items}
        return len(runs), sum(
            sizes.get(str(run.factors["kind"])) or build[str(run.factors["architecture"])]
            for run in runs
        )

    def fingerprints(self, plan: TransplantPlan) -> Mapping[str, JSON]:
        """Return digests of prompts, code, problems and the memories' architectures."""
        from langgraft.benchmarks.transplant.domains import fingerprint  # noqa: PLC0415
        from langgraft.memory.recall import count_tokens_approximately  # noqa: PLC0415

        systems = [each for each in plan.systems if each.provider != NONE]
        code = {*CODE, *provider_modules(each.provider for each in systems)}
        unused = () if plan.model == SIMULATED else ("langgraft.benchmarks.simulated",)
        architectures: dict[str, JSON] = {
            f"{system.name}/{plan.domain_of(side).name}": digest(
                {
                    "provider": provider_class(system.provider).name,
                    "settings": [
                        provider_settings(
                            system.provider, system.settings_of(side, chosen)
                        ).describe()
                        for chosen in system.candidates or (None,)
                    ],
                }
            )
            for system in systems
            for side in SIDES
        }
        return {
            "grader": f"{len(KNOWN)} known pairs, SHA-256 {digest([list(each) for each in KNOWN])[:12]}",
            "tokenizer": count_tokens_approximately.__qualname__,
            "prompts": {name: prompt(name).sha256 for name in PROMPTS},
            "code": dict(source_digests(code, apart_from=unused)),
            "problems": fingerprint(plan),
            "architectures": architectures,
        }

    @override
    def measures(self) -> Mapping[str, Better | None]:
        """Return success, the share of problems that are solved."""
        return {"success": "higher"}

    @override
    def cell(self, run: RunSpec) -> Cell | None:
        """Return solver, budget, system and condition of an evaluation; a control is `CONDITION~control`."""
        return tested_cell(run)

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
        from langgraft.benchmarks.transplant.selection import (  # noqa: PLC0415
            AdmissionSession,
            SelectionSession,
        )
        from langgraft.benchmarks.transplant.session import TransplantSession  # noqa: PLC0415

        match run.factors["kind"]:
            case "select":
                return SelectionSession(plan, run, place)
            case "admit":
                return AdmissionSession(plan, run, deltas, model, place)
            case _:
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
        from langgraft.benchmarks.transplant.selection import MOST_REPLAYED  # noqa: PLC0415

        match run.factors["kind"]:
            case "select":
                return 0
            case "admit":
                return run.length * (1 + MOST_REPLAYED)
            case _:
                gated = run.factors["remedy"] == "gated" or self._gates(plan, run)
                return run.length * (CALLS if not run.frozen else GATED_CALLS if gated else 1)

    def _gates(self, plan: TransplantPlan, run: RunSpec) -> bool:
        """Say whether a run may ask for a draft before it recalls."""
        system = plan.system_of(run)
        if system is None:
            return False
        parts: list[Mapping[str, object]] = [system.settings, system.source, system.target]
        return any(each.get("gate") for each in (*parts, *system.candidates))

    @override
    def foreign_code(self, plan: TransplantPlan) -> tuple[str, ...]:
        """Return the memories that are not langgraft's own."""
        systems = (each for each in plan.systems if each.provider != NONE)
        return tuple(each.provider for each in systems if is_foreign(each.provider))

    @override
    def notes(self, plan: TransplantPlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Say how banks are shared, and what cannot be tested."""
        read = {run.source.run for run in runs if run.source and run.factors["remedy"] is None}
        shared = (
            f"banks that are read: {len(read)}, one for each solver, system, domain and draw, built"
            f" under {plan.build_budget} tokens; all budgets and conditions of a seed read the same"
        )
        same = [s.name for s in plan.systems if s.provider != NONE and plan.same_architecture(s)]
        told = (*_reach(plan), shared, *_selected(plan))
        if not same:
            return told
        untestable = (
            f"one architecture for both domains: {', '.join(same)}; H1 and H3 are not testable"
        )
        return (*told, f"{untestable} there")

    @override
    def episodes(self, plan: TransplantPlan, log: PlanLogReader) -> "Iterator[PlayedEpisode]":
        """Yield the attempts of a log: those that built banks, and those that were evaluated."""
        from langgraft.benchmarks.transplant.session import played_attempts  # noqa: PLC0415

        return played_attempts(plan, log)

    def report(self, plan: TransplantPlan, log: PlanLogReader, out: Path) -> Report:
        """Write the report, its tables and its page."""
        from langgraft.benchmarks.transplant.report import write_report  # noqa: PLC0415  ([bench])

        return write_report(plan, log, out)


def _reach(plan: TransplantPlan) -> tuple[str, ...]:
    """Say what could be found, before anything is paid for; nothing where it cannot be computed."""
    if find_spec("scipy") is None:
        return ()
    from langgraft.benchmarks.transplant.analysis import planned  # noqa: PLC0415
    from langgraft.benchmarks.transplant.report import reach_in_words  # noqa: PLC0415

    return (reach_in_words(planned(plan)),)


def _selected(plan: TransplantPlan) -> tuple[str, ...]:
    grids = [f"{s.name} ({len(s.candidates)} candidates)" for s in plan.systems if s.grid]
    if not grids:
        return ()
    return (f"settings that each domain selects on its own build problems: {', '.join(grids)}",)
