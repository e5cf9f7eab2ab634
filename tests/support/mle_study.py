"""A tree study small enough for tests: a competition of houses, and models that reply by rule."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gates import Gate
from langchain_core.language_models import BaseChatModel
from toy_competition import ID, write_competition
from tree_cases import BROKEN, FIX, RuleModel, feedback, reply
from typing_extensions import override

from langgraft.__main__ import main
from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.harness.models import MeteredChatModel
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.mle.agents.settings import TreeSettings
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.environments.competitions.preparing import prepare_competition

PROGRAM = """\
rows = open("input/test.csv").read().split()[1:]
lines = [f"{{row.split(',')[0]}},{{10 * int(row.split(',')[1]) + {off}}}" for row in rows]
open("submission.csv", "w").write("\\n".join(["id,price", *lines]) + "\\n")
print("Validation metric:", {off} + 0.25)
"""
"""A program that works, and tells how far it is off."""


def fails(sample: str) -> bool:
    """Say whether a program fails unless a fix is known."""
    return seeded_fraction("houses", sample) < 0.5


def rule(text: str, sample: str) -> str:
    """Write programs by chance of the sample, and judge them by what the prompt shows."""
    if not sample.endswith("/write"):
        return feedback(text, sample)
    chance = seeded_fraction("houses", sample)
    heeded = FIX in text or ("# What came of it" in text and chance < 0.3)
    if chance < 0.5 and not heeded:
        return reply(BROKEN.format(number=int(chance * 4)))
    program = PROGRAM.format(off=round(chance * 3, 3))
    repaired = "# What came of it" in text
    return reply(program, f"{FIX} So it runs. And more.") if repaired else reply(program)


class HouseStudy(MleStudy):
    """The study, with models that reply by rule; what was asked is kept.

    Args:
        before_call: Called with each sample's name; may raise.
    """

    def __init__(self, before_call: Callable[[str], None] = lambda _: None) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []
        self._before_call = before_call

    @override
    def simulated_model(self, plan: MlePlan, run: RunSpec) -> BaseChatModel:
        """Return a model that replies by rule."""

        def answer(text: str, sample: str) -> str:
            self._before_call(sample)
            self.asked.append((sample, text))
            return rule(text, sample)

        return MeteredChatModel(inner=RuleModel(rule=answer), identity={"model": "rule"})


TREE_FIELDS = set(TreeSettings.model_fields) - set(MlePlan.model_fields) - {"name"}


def house_plan(folder: Path, *, prepared: bool = True, **changes: Any) -> MlePlan:
    """Write the competition into a folder, prepare it, and make a small plan for it.

    Settings of the tree stand among the changes; other agents are given as `agents`.
    """
    mine = folder / "mine"
    if not (mine / ID).exists():
        write_competition(mine)
    tree = {"steps": 8, "drafts": 2}
    tree |= {name: changes.pop(name) for name in TREE_FIELDS if name in changes}
    fields: dict[str, Any] = {
        "agents": [{"name": "tree", **tree}],
        "memory": ["off", "cold", "warm", "placebo"],
        "competitions": [ID],
        "folders": [mine],
        "data_dir": folder / "data",
        "seeds": [0],
        "build_seeds": [100],
        "seconds": 20,
        "sandbox": "subprocess",
        **changes,
    }
    plan = MlePlan.model_validate(fields)
    if prepared:
        prepare_competition(plan.registry().get_competition(ID))
    return plan


def errors_of(text: str) -> list[str]:
    """Return the names that failing programs were called with, where a prompt shows them."""
    return re.findall(r"unexpected keyword argument '(\w+)'", text)


class GatedStudy(HouseStudy):
    """The study, with programs that pass a gate before all else."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self._passing = gate.code

    @override
    def simulated_model(self, plan: MlePlan, run: RunSpec) -> BaseChatModel:
        def answer(text: str, sample: str) -> str:
            return rule(text, sample).replace("```python\n", f"```python\n{self._passing}")

        return MeteredChatModel(inner=RuleModel(rule=answer), identity={"model": "rule"})


def solve_at(gate: Gate, words: Sequence[str]) -> None:
    """Be `langgraft solve` with programs that pass a gate: for a process of its own."""
    setattr(MleStudy, "simulated_model", GatedStudy(gate).simulated_model)  # noqa: B010
    sys.argv = ["langgraft", "solve", *words]
    main()
