"""Logs of studies that were never run: real journals of AIDE, and runs made by chance."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.study import BankSource, RunSpec
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.memory.model import Add, MemoryDelta, MemoryItem
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.workbench.log import StepRecord

MANIFEST: dict[str, JSON] = {
    "format": 1,
    "study": "mle",
    "plan": "c0ffee" * 10,
    "limit": None,
    "fingerprints": {"prompts": {"tree_draft": "a1" * 32}},
    "packages": {"langgraft": "0.1.0"},
    "python": "3.11.7",
}
COMPETITIONS: dict[str, dict[str, JSON]] = {
    "randhie-visits": {
        "modality": "tabular",
        "metric_group": "regression",
        "metric": "rmsle",
        "lower_is_better": True,
    },
    "digits": {
        "modality": "image",
        "metric_group": "classification",
        "metric": "accuracy",
        "lower_is_better": False,
    },
    "docstring-origin": {
        "modality": "text",
        "metric_group": "probabilistic classification",
        "metric": "log-loss",
        "lower_is_better": True,
    },
}
CODES = (
    "import pandas as pd\nfrom sklearn.linear_model import Ridge\nx = 1 + 2\nprint(x < {n})\n",
    "import pandas as pd\nimport numpy as np\nimport sklearn.svm\nif not {n} or 3 > 2:\n    y = -{n}\n",
    "import torch\nimport pandas\nfrom sklearn.model_selection import KFold\nz = {n} ** 2 % 7\n",
)
ERRORS = ("TypeError", "KeyError", "ValueError")
EXECUTING = {"chain": ("run_bash", "run_python"), "mlab": ("Execute Script",)}
TALKING = {
    "chain": ("edit_file", "think", "message", "invalid"),
    "mlab": ("Edit Script (AI)", "Understand File", "Inspect Script Lines", "invalid"),
}


@dataclass(frozen=True)
class Tree:
    """What a study of runs by chance looks like."""

    agents: Sequence[str] = ("tree",)

    conditions: Sequence[str] = ("off", "cold", "warm", "placebo", "rerun")
    competitions: Sequence[str] = tuple(COMPETITIONS)
    seeds: int = 3
    steps: int = 12
    """Of a search; runs of other agents have from none to three times as many."""
    bugs: Mapping[str, float] = field(default_factory=lambda: {"warm": 0.15, "cold": 0.4})
    """Condition, or that of an agent (`tree-uct/warm`) → chance that a program fails; or 0.6."""
    told: str = ""
    """Stands in every text that a model could have written."""
    modality: str | None = None
    """In place of what the competitions say."""


class TreeLog:
    """A log of runs made by chance; the same world has the same log."""

    def __init__(
        self,
        tree: Tree | None = None,
        *,
        missing: Sequence[str] = (),
        manifest: Mapping[str, JSON] | None = None,
    ) -> None:
        self.tree = tree or Tree()
        self.runs = tuple(_runs(self.tree))
        self.manifest: Mapping[str, JSON] = {**MANIFEST, **(manifest or {})}
        self._missing = frozenset(missing)

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the one result of a run, or none where it is missing."""
        run = next(each for each in self.runs if each.name == name)
        return [] if name in self._missing else [self._result(run)]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return three entries of a build, one of them of time that ran out."""
        run = next(each for each in self.runs if each.name == name)
        if name in self._missing or run.factors["memory"] in {"off", "rerun"}:
            return [()] if name not in self._missing else []
        first = 3 if run.source else 0
        kinds = ("code", "resource", "environment")
        return [tuple(MemoryDelta((Add(_entry(run, first + n, kinds[n])),)) for n in range(3))]

    def _result(self, run: RunSpec) -> Mapping[str, JSON]:
        competition = str(run.factors["competition"])
        known = COMPETITIONS[competition]
        if not str(run.factors["agent"]).startswith("tree"):
            steps = _steps(self.tree, run)
            return step_result_of(steps, competition, known, modality=self.tree.modality)
        nodes = _nodes(self.tree, run)
        return result_of(nodes, competition, known, modality=self.tree.modality)


class GivenLog:
    """A log whose runs and results are given."""

    def __init__(self, results: Sequence[tuple[RunSpec, Mapping[str, JSON]]]) -> None:
        self._results = {run.name: result for run, result in results}
        self.manifest: Mapping[str, JSON] = MANIFEST
        self.runs = tuple(run for run, _ in results)

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the one result of a run."""
        return [self._results[name]]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return no changes."""
        assert name
        return [()]


class JournalLog(GivenLog):
    """A log whose searches are given: condition → the journals of its seeds."""

    def __init__(self, journals: Mapping[str, Sequence[Sequence[JournalNode]]]) -> None:
        super().__init__(
            [
                (
                    run_spec(condition, "digits", seed),
                    result_of(nodes, "digits", COMPETITIONS["digits"]),
                )
                for condition, found in journals.items()
                for seed, nodes in enumerate(found)
            ]
        )


class StepLog(GivenLog):
    """A log of the chain agent whose steps are given: condition → the runs of its seeds."""

    def __init__(
        self, runs: Mapping[str, Sequence[Sequence[StepRecord]]], *, agent: str = "chain"
    ) -> None:
        super().__init__(
            [
                (
                    run_spec(condition, "digits", seed, agent=agent),
                    step_result_of(steps, "digits", COMPETITIONS["digits"]),
                )
                for condition, found in runs.items()
                for seed, steps in enumerate(found)
            ]
        )


def run_spec(
    condition: str,
    competition: str,
    seed: int,
    *,
    phase: str = "search",
    source: str | None = None,
    agent: str = "tree",
    alone: bool = True,
) -> RunSpec:
    """Return a run as the study plans it; `alone`: its agent is the only one."""
    prefix = "" if agent == "tree" and alone else f"{agent}/"
    prefix += "build/" if phase == "build" else ""
    return RunSpec(
        study="mle",
        name=f"{prefix}{condition}/{competition}/{seed}",
        factors={
            "agent": agent,
            "memory": condition,
            "competition": competition,
            "seed": seed,
            "phase": phase,
        },
        item_ids=(competition,),
        source=None if source is None else BankSource(source),
    )


def _runs(tree: Tree) -> list[RunSpec]:
    return [run for agent in tree.agents for run in _runs_of(tree, agent)]


def _runs_of(tree: Tree, agent: str) -> list[RunSpec]:
    alone = len(tree.agents) == 1
    builds = [
        run_spec("cold", name, 100, phase="build", agent=agent, alone=alone)
        for name in tree.competitions
    ]
    banks = {str(build.factors["competition"]): build.name for build in builds}
    return builds + [
        run_spec(
            condition,
            competition,
            seed,
            source=banks[competition] if condition in {"warm", "placebo"} else None,
            agent=agent,
            alone=alone,
        )
        for condition in tree.conditions
        for competition in tree.competitions
        for seed in range(tree.seeds)
    ]


def _entry(run: RunSpec, place: int, kind: str) -> MemoryItem:
    return MemoryItem(
        id=f"{run.name}/{place}",
        text=f"entry {place}",
        type="error_trace",
        source_domain="mle",
        episode_id=f"{run.name}/{place:03d}",
        success=False,
        order_index=place,
        metadata={"kind": kind},
    )


def _nodes(tree: Tree, run: RunSpec) -> list[JournalNode]:
    condition, competition = (str(run.factors[name]) for name in ("memory", "competition"))
    chance = random.Random(f"{competition} {run.factors['seed']} {condition}")
    rate = tree.bugs.get(f"{run.factors['agent']}/{condition}", tree.bugs.get(condition, 0.6))
    nodes: list[JournalNode] = []
    for step in range(tree.steps):
        buggy = chance.random() < rate
        parent = chance.choice(nodes).id if len(nodes) > 2 else None
        memory = condition not in {"off", "rerun"} and step > 0
        nodes.append(
            JournalNode(
                step=step,
                id=f"{step:03d}",
                parent_id=parent,
                plan=f"Plan {step}. {tree.told}",
                code=chance.choice(CODES).format(n=step)
                + (f"# {tree.told}\n" if tree.told else ""),
                metric=None if buggy else round(0.3 + 0.6 * chance.random(), 6),
                is_buggy=buggy,
                exc_type=(tree.told or chance.choice(ERRORS)) if buggy else None,
                exc_value=tree.told or "boom",
                analysis=tree.told or "It went as planned.",
                output=tree.told or "metric: 0.5",
                timed_out=False,
                submission="absent" if buggy else "valid",
                reasons=("it raised",) if buggy else (),
                recalled="- a note" if memory else "",
                recalled_kinds=("resource" if step % 3 == 0 else "code",) if memory else (),
            )
        )
    return nodes


def _steps(tree: Tree, run: RunSpec) -> list[StepRecord]:
    agent, condition, competition = (
        str(run.factors[name]) for name in ("agent", "memory", "competition")
    )
    chance = random.Random(f"{agent} {competition} {run.factors['seed']} {condition}")
    rate = tree.bugs.get(condition, 0.6)
    memory = "- a note" if condition not in {"off", "rerun"} else ""
    steps = []
    for place in range(chance.randint(0, 3 * tree.steps)):
        told = {
            "step": place,
            "thought": tree.told,
            "attempt": int(place >= 2 * tree.steps),
            "recalled": memory,
            "recalled_kinds": ("code", "resource") if memory and place % 2 else (),
        }
        if chance.random() < 0.4:
            action = chance.choice(TALKING[agent])
            steps.append(StepRecord(action=action, failed=action == "invalid", **told))
        else:
            steps.append(_execution(tree, chance, agent, failed=chance.random() < rate, **told))
    return steps


def _execution(
    tree: Tree, chance: random.Random, agent: str, *, failed: bool, **told: Any
) -> StepRecord:
    program = chance.choice(CODES).format(n=told["step"])
    error = chance.choice(ERRORS)
    return StepRecord(
        action=chance.choice(EXECUTING[agent]),
        command=f"{program}# {tree.told}",
        executed=True,
        program=program,
        failed=failed,
        exit_code=int(failed),
        exc_type=(tree.told or error) if failed else None,
        exc_value=tree.told or ("'sex'" if error == "KeyError" else "no such argument"),
        metric=None if failed else round(0.3 + 0.6 * chance.random(), 6),
        output=tree.told or "Validation metric: 0.5",
        error={"package": "general", "error": tree.told or error} if failed else None,
        **told,
    )


def step_result_of(
    steps: Sequence[StepRecord],
    competition: str,
    known: Mapping[str, JSON],
    *,
    modality: str | None = None,
) -> dict[str, JSON]:
    """Return the result of a run as the study commits it: its last metric is handed in."""
    score = next((each.metric for each in reversed(steps) if each.metric is not None), None)
    return {
        "agent": "chain",
        "competition": competition,
        **known,
        "modality": modality or known["modality"],
        "validation": score,
        "report": report_of(score, competition, lower=bool(known["lower_is_better"])),
        "submission_sha256": "" if score is None else _digest(score),
        "usage": {},
        "steps": [step.model_dump(mode="json") for step in steps],
        "ended": "finished" if len(steps) % 2 else "steps",
        "attempts": max((step.attempt for step in steps), default=0) + 1,
    }


def result_of(
    nodes: Sequence[JournalNode],
    competition: str,
    known: Mapping[str, JSON],
    *,
    modality: str | None = None,
) -> dict[str, JSON]:
    """Return the result of a search as the tree study commits it."""
    lower = bool(known["lower_is_better"])
    scored = [(node.metric, node) for node in nodes if node.metric is not None]
    pick = min if lower else max
    best = pick(scored, key=lambda pair: pair[0])[1] if scored else None
    score = None if best is None else best.metric
    candidates: list[JSON] = []
    if best is not None:
        candidates = [{"node": best.id, "metric": score, "metrics": [score]}]
    return {
        "competition": competition,
        **known,
        "modality": modality or known["modality"],
        "journal": [node.model_dump(mode="json") for node in nodes],
        "chosen": "" if best is None else best.id,
        "validation": score,
        "candidates": candidates,
        "report": report_of(score, competition, lower=lower),
        "submission_sha256": _digest(score) if best else "",
        "usage": {},
    }


def report_of(score: float | None, competition: str, *, lower: bool) -> dict[str, JSON]:
    """Return the grader's report on a submission of some score; `None`: there is none."""
    medal = score is not None and (score < 0.35 if lower else score > 0.85)
    return {
        "competition_id": competition,
        "score": score,
        "gold_threshold": 0.95,
        "silver_threshold": 0.9,
        "bronze_threshold": 0.85,
        "median_threshold": 0.6,
        "any_medal": medal,
        "gold_medal": False,
        "silver_medal": False,
        "bronze_medal": medal,
        "above_median": score is not None and (score < 0.5 if lower else score > 0.6),
        "submission_exists": score is not None,
        "valid_submission": score is not None,
        "is_lower_better": lower,
    }


def _digest(score: float | None) -> str:
    return hashlib.sha256(str(score).encode()).hexdigest()


def real_nodes(data: Path) -> dict[str, tuple[JournalNode, ...]]:
    """Return the programs of AIDE's real runs, by the name of the run."""
    return {journal.run: journal.nodes for journal in read_journals(data / "aide")}


def plan(**fields: Any) -> Any:
    """Return a plan with nothing of its own."""
    from langgraft.benchmarks.harness.study import Plan  # noqa: PLC0415

    return Plan(study="mle", **fields)
