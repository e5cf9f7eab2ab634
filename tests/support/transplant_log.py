"""Logs of transplant studies that nobody played: outcomes drawn with effects that a test plants."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.transplant.plan import NONE, RunList, TransplantPlan
from langgraft.memory.model import MemoryDelta

Effect = Callable[[Mapping[str, Any]], float]
"""What the factors of a run add to the chance of solving a problem."""

SYSTEMS = [
    {"name": "none", "provider": "none"},
    {
        "name": "simple_rag",
        "provider": "simple_rag",
        "source": {"top_k": 5},
        "target": {"top_k": 3},
    },
    {
        "name": "lightweight",
        "provider": "lightweight",
        "source": {"every": 3},
        "target": {"every": 2},
    },
    {"name": "expel", "provider": "expel", "source": {"top_k": 5}, "target": {"top_k": 3}},
]


def transplant_plan(**fields: Any) -> TransplantPlan:
    """Return a small plan of three systems and two solvers."""
    given = {
        "source": {"name": "code", "problems": "generated", "part": "counting"},
        "target": {"name": "math", "problems": "generated", "part": "algebra"},
        "systems": SYSTEMS,
        "solvers": [{"name": "strong"}, {"name": "weak"}],
        "controlled": ["lightweight"],
        "eval_items": 100,
        **fields,
    }
    return TransplantPlan.model_validate(given)


@dataclass
class DrawnLog:
    """A finished log; outcomes are drawn by problem, seed and effect, paired between conditions."""

    plan: TransplantPlan
    effect: Effect
    seed: int = 0
    order_sd: float = 0.0
    """By how much the chance varies between whole runs with memory."""
    rate: float = 0.55
    rename: Callable[[str], str] = str

    def __post_init__(self) -> None:
        plan = self.plan
        ids = [self.rename(f"eval-{n}") for n in range(plan.eval_items)]
        builds = {
            "source": [[f"s{d}-{n}" for n in range(plan.build_items)] for d in range(plan.seeds)],
            "target": [
                [f"t{d}-{n}" for n in range(plan.target_build_items)] for d in range(plan.seeds)
            ],
        }
        self._runs = tuple(RunList(plan, ids, builds).all())  # type: ignore[arg-type]
        self._number = {name: n for n, name in enumerate(ids)}
        chance = random.Random(self.seed)
        self._hard = [chance.random() for _ in ids]
        self._shifts: dict[str, list[float]] = {}
        self._results = {
            run.name: [self._result(run, item) for item in run.item_ids] for run in self._runs
        }

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """All runs of the plan."""
        return self._runs

    @property
    def manifest(self) -> Mapping[str, Any]:
        """A manifest as a run directory has it."""
        prints = {"prompts": {"solve": "0" * 64}, "grader": "26 known pairs"}
        return {"fingerprints": prints, "limit": None}

    def results(self, name: str) -> list[Mapping[str, Any]]:
        """Return the results of a run."""
        return self._results[name]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return no deltas."""
        return [() for _ in self.results(name)]

    def _result(self, run: RunSpec, item: str) -> Mapping[str, Any]:
        f = run.factors
        bare = f["architecture"] == NONE or f["system"] == NONE
        off = f["control"] in {"write_only", "frozen"}
        number = self._number.get(item, 0)
        # How hard a problem is, and what memory's text moves beside: both by problem.
        hard, rate, prompt = self._hard[number], self.rate, "bare"
        if not bare and not off and f["kind"] == "eval":
            rate += self.effect(f)
            place = [f[key] for key in ("system", "budget", "condition", "control", "seed")]
            prompt = "/".join(map(str, place))
            hard += self._shift(f"{f['solver']}/{prompt}")[number]
        return {
            "problem": item,
            "kind": "Sums",
            "level": "Level 3",
            "success": hard < rate,
            "by_last_token": hard < rate,
            "template": "t" * 64,
            "prompt": f"{prompt}/{item}",
            "asked": not bare,
            "recalled": 0 if bare or off else 3,
            "tokens": 0 if bare or off else 200,
            "lacked_room": 0,
            "usage": {"simulated_replies": 1},
        }

    def _shift(self, run: str) -> list[float]:
        if run not in self._shifts:
            chance = random.Random(f"{self.seed}/{run}")
            whole = chance.gauss(0, self.order_sd)
            self._shifts[run] = [whole + chance.gauss(0, 0.12) for _ in self._hard]
        return self._shifts[run]
