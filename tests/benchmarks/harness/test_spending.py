"""What was spent, by condition and node: what items tell, and what was paid to the last picodollar."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from typer.testing import CliRunner
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.budget import SPENT, CallBudget, Price, read_spent
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.models import MeteredChatModel
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import spending, used
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSession, RunSpec
from langgraft.benchmarks.harness.usage import metered
from langgraft.cli.app import app
from langgraft.memory.model import MemoryDelta

PRICE = Price(prompt=0.3, completion=1.7)
THINK, REFLECT = (70, 9), (200, 31)
"""Prompt and completion tokens of the two nodes' replies."""


def reply(tokens: tuple[int, int]) -> AIMessage:
    """Return a reply that says what it took."""
    prompt, completion = tokens
    usage: Any = {
        "input_tokens": prompt,
        "output_tokens": completion,
        "total_tokens": prompt + completion,
    }
    return AIMessage("ok", usage_metadata=usage)


class AskingStudy(ChainStudy):
    """An item asks a model twice where it thinks, and where a run learns once more."""

    @override
    def expand(self, plan: ChainPlan) -> tuple[RunSpec, ...]:
        items = tuple(f"item-{number}" for number in range(plan.items))
        return tuple(
            RunSpec(self.name, f"{name}/0", {"condition": name}, items, frozen=name == "none")
            for name in ("none", "agg")
        )

    @override
    def open(
        self,
        plan: ChainPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        return AskingSession(run, model)


class AskingSession:
    """A run of it."""

    def __init__(self, run: RunSpec, model: BaseChatModel) -> None:
        graph = StateGraph(MessagesState)
        nodes = ["think"] if run.factors["condition"] == "none" else ["think", "reflect"]
        for before, name in zip([START, *nodes], nodes, strict=False):
            graph.add_node(name, self._asking(model, name))
            graph.add_edge(before, name)
        graph.add_edge(nodes[-1], END)
        self._graph = graph.compile()

    def _asking(self, model: BaseChatModel, name: str) -> Any:
        async def ask(state: MessagesState) -> Mapping[str, Any]:
            return {"messages": [await model.ainvoke(f"{name} of {state['messages'][0].text}")]}

        return ask

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Ask."""
        with metered() as usage:
            await self._graph.ainvoke({"messages": [HumanMessage(item_id)]})
            told: dict[str, JSON] = {
                "said": 'an echo of "usage":{"replies":7}',
                "usage": usage.totals(),
            }
            return ItemOutcome(told, (), {"usage": usage.billing()})

    async def aclose(self) -> None:
        """Nothing is held."""


@pytest.fixture
async def out(tmp_path: Path) -> Path:
    """A finished directory of two conditions with four items each, whose model had a price."""
    out, study = tmp_path / "out", AskingStudy()
    budget = CallBudget(prices={"mine": PRICE}, path=out / SPENT)

    def model_for(_plan: Any, run: RunSpec) -> BaseChatModel:
        turns = [THINK] if run.factors["condition"] == "none" else [THINK, REFLECT]
        inner = GenericFakeChatModel(messages=iter([reply(each) for each in turns * 4]))
        return MeteredChatModel(
            inner=inner, identity={"model": "mine"}, budget=budget, call_seconds=None
        )

    await run_plan(prepare(study, chain_plan(items=4)), out, model_for=model_for, concurrency=1)
    budget.close()
    return out


async def test_spending_when_a_model_has_a_price_is_told_by_condition_and_node(out: Path) -> None:
    """Calls and tokens of each node; the money adds up to what the budget counted."""
    found = {(s.condition, s.node): s for s in spending(PlanLog(out))}
    assert {at: (s.calls, s.tokens) for at, s in found.items()} == {
        ("none", "think"): (4, 4 * sum(THINK)),
        ("agg", "think"): (4, 4 * sum(THINK)),
        ("agg", "reflect"): (4, 4 * sum(REFLECT)),
    }
    spent = read_spent(out / SPENT)
    assert spent is not None
    dollars = [s.dollars for s in found.values()]
    assert sum(each or 0.0 for each in dollars) == pytest.approx(spent["dollars"], rel=1e-12)
    reflect = found["agg", "reflect"].dollars
    assert reflect == pytest.approx(4 * (200 * 0.3 + 31 * 1.7) / 1e6, rel=1e-12)


async def test_status_when_asked_shows_what_was_spent(out: Path) -> None:
    """A table for people, the same numbers for programs."""
    shown = CliRunner().invoke(app, ["status", str(out)]).output
    assert "Spent" in shown
    assert "reflect" in shown
    told = json.loads(CliRunner().invoke(app, ["status", str(out), "--json"]).output)
    by = {(row["condition"], row["node"]): row for row in told["spent_by"]}
    assert by["agg", "reflect"]["calls"] == 4
    assert sum(row["dollars"] for row in by.values()) == pytest.approx(told["spent"]["dollars"])


async def test_spending_when_results_say_nothing_is_empty(tmp_path: Path) -> None:
    """A study whose items hold no usage has nothing to tell, and says nothing."""
    study = ChainStudy()
    await run_plan(prepare(study, chain_plan()), tmp_path / "out", model_for=study.simulated_model)
    assert spending(PlanLog(tmp_path / "out")) == ()
    shown = CliRunner().invoke(app, ["status", str(tmp_path / "out")]).output
    assert "Spent" not in shown


async def test_usages_when_texts_look_like_them_are_those_of_the_results(out: Path) -> None:
    """What is read of a line without the rest of it is what the whole line holds."""
    log = PlanLog(out)
    for run in log.graph:
        assert list(used(run_folder(log.path, run) / "items.jsonl")) == [
            each["usage"] for each in log.results(run.name)
        ]
