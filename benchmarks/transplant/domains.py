"""The domains of a plan: where their problems come from, who grades them, and how they are split."""

import atexit
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError
from langgraft.benchmarks.transplant.plan import DomainSpec, Solver, TransplantPlan
from langgraft.environments.problems.domain import AnswerDomain, Problem, ProblemDomain
from langgraft.environments.problems.math_problems import read_math
from langgraft.environments.problems.splits import draw, require_apart, shared_out

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from langgraft.benchmarks.simulated.solver import KnownProblem, SimulatedSolver

DATA: Final = "LANGGRAFT_DATA"
"""Environment variable: the folder that files are looked for in which a plan does not name."""


def _math(spec: DomainSpec) -> ProblemDomain:
    problems = read_math(_file(spec, "math/train.jsonl"))
    return AnswerDomain(spec.name, (Problem.of_math(each) for each in problems))


def _generated(spec: DomainSpec) -> ProblemDomain:
    from langgraft.environments.problems.generated import generate  # noqa: PLC0415  (sympy)

    return AnswerDomain(spec.name, generate(spec.part or spec.name))


def _livecodebench(spec: DomainSpec) -> ProblemDomain:
    from langgraft.environments.problems.code_grading import CodeDomain  # noqa: PLC0415
    from langgraft.environments.problems.code_problems import read_livecodebench  # noqa: PLC0415

    return CodeDomain(spec.name, read_livecodebench(_file(spec, "code/livecodebench.jsonl.gz")))


def _humaneval(spec: DomainSpec) -> ProblemDomain:
    from langgraft.environments.problems.code_grading import CodeDomain  # noqa: PLC0415
    from langgraft.environments.problems.code_problems import read_humaneval  # noqa: PLC0415

    return CodeDomain(spec.name, read_humaneval(_file(spec, "code/humaneval.jsonl.gz")))


_SOURCES: Final[Mapping[str, Callable[[DomainSpec], ProblemDomain]]] = {
    "math": _math,
    "generated": _generated,
    "livecodebench": _livecodebench,
    "humaneval": _humaneval,
}


def _file(spec: DomainSpec, usual: str) -> Path:
    path = spec.file or Path(os.environ.get(DATA, "")) / usual
    if not path.exists():
        msg = (
            f"domain {spec.name!r}: there is no {path}; name the file of problems in the plan"
            f" (`file`), or set {DATA} to the folder that holds {usual}"
        )
        raise PlanError(msg)
    return path


@cache
def open_domain(spec: DomainSpec) -> ProblemDomain:
    """Return a domain with its grader; each is read once a process.

    Raises:
        PlanError: There is no such source, or its file is not there.
        InputError: The file is not what it should be; the message names the line.
    """
    if spec.problems not in _SOURCES:
        msg = (
            f"domain {spec.name!r}: problems {spec.problems!r} are not one of {', '.join(_SOURCES)}"
        )
        raise PlanError(msg)
    opened = _SOURCES[spec.problems](spec)
    atexit.register(opened.close)
    return opened


@dataclass(frozen=True, slots=True)
class Splits:
    """Which problems a plan uses for what, by id."""

    evaluated: tuple[str, ...]
    source_builds: tuple[tuple[str, ...], ...]
    """A stream for each draw."""
    target_builds: tuple[tuple[str, ...], ...]


def splits_of(plan: TransplantPlan) -> Splits:
    """Draw the problems of a plan: those evaluated first, then the streams that banks are built from.

    Raises:
        InputError: There are too few, or two splits have a problem in common.
    """
    sizes = (plan.eval_items, plan.build_items, plan.target_build_items)
    return _splits(plan.domains, sizes, plan.eval_levels, plan.seeds, plan.seed)


_ANY: Final = "any level"


def _any(problem: Problem) -> str | None:
    return _ANY if problem.answer else None


def _level(problem: Problem) -> str | None:
    return problem.level if problem.answer else None


@cache
def _splits(
    domains: tuple[DomainSpec, DomainSpec],
    sizes: tuple[int, int, int],
    levels: tuple[tuple[str, int], ...],
    seeds: int,
    seed: int,
) -> Splits:
    source, target = (list(open_domain(each).problems.values()) for each in domains)
    counts = shared_out(sizes[0], dict(levels)) if levels else {_ANY: sizes[0]}
    stratum = _level if levels else _any
    evaluated = draw("evaluation", target, counts, seed=seed, stratum=stratum)
    sources, targets = (
        [
            draw(f"{name} {n}", each, {_ANY: size}, seed=seed, stratum=_any, apart_from=evaluated)
            for n in range(seeds)
        ]
        for name, each, size in (
            ("source build", source, sizes[1]),
            ("target build", target, sizes[2]),
        )
    )
    for number, (one, other) in enumerate(zip(sources, targets, strict=True)):
        names = (f"source build {number}", f"target build {number}")
        require_apart({"evaluation": evaluated, names[0]: one, names[1]: other})
    return Splits(
        tuple(each.id for each in evaluated),
        tuple(tuple(each.id for each in drawn) for drawn in sources),
        tuple(tuple(each.id for each in drawn) for drawn in targets),
    )


def fingerprint(plan: TransplantPlan) -> dict[str, JSON]:
    """Return digests of the problems that a plan uses, of each domain and split."""
    splits, (source, target) = splits_of(plan), map(open_domain, plan.domains)

    def of(domain: ProblemDomain, ids: tuple[str, ...]) -> str:
        problems = (domain.problems[each] for each in ids)
        return digest(
            [[p.id, p.text, p.kind, p.level, p.answer, *(p.known or ())] for p in problems]
        )

    return {
        "evaluation": of(target, splits.evaluated),
        **{f"source build {n}": of(source, each) for n, each in enumerate(splits.source_builds)},
        **{f"target build {n}": of(target, each) for n, each in enumerate(splits.target_builds)},
    }


def simulated_solver(plan: TransplantPlan, solver: Solver, seed: int) -> "BaseChatModel":
    """Return the simulated solver of a plan's problems, with its declared strengths.

    What it says where it is wrong is off by one, or no answer at all; of a problem of code it replies
    with the programs whose verdicts are known, and where none is known to be right never solves it.

    Raises:
        PlanError: There are no such strengths.
    """
    from langgraft.benchmarks.simulated.solver import (  # noqa: PLC0415
        PRESETS,
        Strengths,
    )

    given = dict(solver.strengths)
    preset = PRESETS.get(str(given.pop("preset", solver.name)))
    with validation_as(PlanError, f"solver {solver.name!r}: strengths: "):
        own = Strengths.model_validate({**(preset.model_dump() if preset else {}), **given})
    update = {"strengths": own, "seed": seed, "temperature": plan.temperature}
    return _solver_of(plan.domains).model_copy(update=update)


@cache
def _solver_of(domains: tuple[DomainSpec, ...]) -> "SimulatedSolver":
    """Return a solver that knows the problems of domains; copies share what it took to learn them."""
    from langgraft.benchmarks.simulated.solver import SimulatedSolver  # noqa: PLC0415

    made = SimulatedSolver(known=tuple(problem for spec in domains for problem in _known(spec)))
    assert made.by_text
    return made


@cache
def _known(spec: DomainSpec) -> "tuple[KnownProblem, ...]":
    from langgraft.benchmarks.simulated.solver import KnownProblem  # noqa: PLC0415

    def replies(problem: Problem) -> tuple[str | None, str]:
        if problem.known is None:
            return problem.answer, f"{problem.answer}+1"
        right, wrong = problem.known
        return right or None, wrong if wrong.strip() else _FAILS

    return tuple(
        KnownProblem(
            text=each.text,
            kind=each.kind,
            level=each.level,
            right=replies(each)[0],
            wrong=replies(each)[1],
            program=each.known is not None,
        )
        for each in open_domain(spec).problems.values()
    )


_FAILS: Final = "raise NotImplementedError"
"""The program for a problem of code of which none is known to be wrong."""
