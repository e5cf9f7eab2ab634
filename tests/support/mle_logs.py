"""Logs of a tree study that was never run: real journals of AIDE, and searches made by chance."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.study import BankSource, RunSpec
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.memory.deltas import Add, MemoryDelta
from langgraft.memory.items import MemoryItem
from langgraft.nodes.search.journal import JournalNode

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


@dataclass(frozen=True)
class Tree:
    """What a study of searches by chance looks like."""

    conditions: Sequence[str] = ("off", "cold", "warm", "placebo", "rerun")
    competitions: Sequence[str] = tuple(COMPETITIONS)
    seeds: int = 3
    steps: int = 12
    bugs: Mapping[str, float] = field(default_factory=lambda: {"warm": 0.15, "cold": 0.4})
    """Condition → chance that a program fails; 0.6 where it is missing."""
    told: str = ""
    """Stands in every text that a model could have written."""
    modality: str | None = None
    """In place of what the competitions say."""


class TreeLog:
    """A log of searches made by chance; the same world has the same log."""

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
        nodes = _nodes(self.tree, run)
        known = COMPETITIONS[competition]
        return result_of(nodes, competition, known, modality=self.tree.modality)


class JournalLog:
    """A log whose searches are given: condition → the journals of its seeds."""

    def __init__(self, journals: Mapping[str, Sequence[Sequence[JournalNode]]]) -> None:
        self._nodes = {
            f"{condition}/digits/{seed}": nodes
            for condition, found in journals.items()
            for seed, nodes in enumerate(found)
        }
        self.manifest: Mapping[str, JSON] = MANIFEST
        self.runs = tuple(
            run_spec(name.split("/")[0], "digits", int(name.split("/")[2])) for name in self._nodes
        )

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the one result of a run."""
        return [result_of(self._nodes[name], "digits", COMPETITIONS["digits"])]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return no changes."""
        assert name
        return [()]


def run_spec(
    condition: str,
    competition: str,
    seed: int,
    *,
    phase: str = "search",
    source: str | None = None,
) -> RunSpec:
    """Return a run as the tree study plans it."""
    prefix = "build/" if phase == "build" else ""
    return RunSpec(
        study="mle",
        name=f"{prefix}{condition}/{competition}/{seed}",
        factors={
            "agent": "tree",
            "memory": condition,
            "competition": competition,
            "seed": seed,
            "phase": phase,
        },
        item_ids=(competition,),
        source=None if source is None else BankSource(source),
    )


def _runs(tree: Tree) -> list[RunSpec]:
    builds = [run_spec("cold", name, 100, phase="build") for name in tree.competitions]
    return builds + [
        run_spec(
            condition,
            competition,
            seed,
            source=f"build/cold/{competition}/100" if condition in {"warm", "placebo"} else None,
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
    rate = tree.bugs.get(condition, 0.6)
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
    medal = score is not None and (score < 0.35 if lower else score > 0.85)
    report: dict[str, JSON] = {
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
        "submission_exists": best is not None,
        "valid_submission": best is not None,
        "is_lower_better": lower,
    }
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
        "report": report,
        "submission_sha256": hashlib.sha256(str(score).encode()).hexdigest() if best else "",
        "usage": {},
    }


def real_nodes(data: Path) -> dict[str, tuple[JournalNode, ...]]:
    """Return the programs of AIDE's real runs, by the name of the run."""
    return {journal.run: journal.nodes for journal in read_journals(data / "aide")}


def plan(**fields: Any) -> Any:
    """Return a plan with nothing of its own."""
    from langgraft.benchmarks.harness.study import Plan  # noqa: PLC0415

    return Plan(study="mle", **fields)
