"""What is chosen on build problems, before anything is evaluated: settings, and items of memory.

*Selection* (memory-transplants §3.1, *code-selected*): of a system's grid each domain takes the candidate whose
builds solved the most of its build problems, over all draws; of equals the first. No model is called.

*Admission* (§8; SEDM, arXiv:2509.09498): a bank is tried on build problems of the target domain. Each
item that is recalled for a problem is shown alone, and once nothing is: it is *better* where only the
attempt with it succeeds, *worse* where only the one without does. Items that are better more often than
worse stay. An item that is recalled for none of the problems has not been shown to help, and goes.
"""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from langchain_core.language_models import BaseChatModel

from langgraft._core.canonical import JSON
from langgraft._core.errors import StudyError
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSpec
from langgraft.benchmarks.harness.usage import metered, replicate_scope
from langgraft.benchmarks.transplant.domains import open_domain
from langgraft.benchmarks.transplant.plan import TransplantPlan
from langgraft.benchmarks.transplant.session import (
    TRANSPLANTED,
    Architecture,
    own_model,
    received,
)
from langgraft.environments.problems.domain import Problem
from langgraft.memory.model import BankContent, MemoryDelta, MemoryItem, SetState, fold
from langgraft.memory.recall import Budget, Found, Recall, RecallContext, make_recall
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.nodes.dialogue import read_response
from langgraft.nodes.problem import solve_messages, solve_prompt

MOST_REPLAYED: Final = 10
"""Items of a recall that are replayed: the first ones."""
_REPLAYS: Final = "replays"
"""Bookkeeping while items are tried: item → how often it was better and worse."""


class SelectionSession:
    """Reads the builds of all candidates, and leaves the bank of the one that is selected."""

    def __init__(self, plan: TransplantPlan, run: RunSpec, place: BankPlace) -> None:
        system = plan.system_of(run)
        assert system is not None
        self._candidates = system.candidates
        # Candidate by candidate, the draws of each.
        listed = [place.earlier[name] for name in run.reads]
        self._builds = [listed[n : n + plan.seeds] for n in range(0, len(listed), plan.seeds)]
        self._draw = cast("int", run.factors["draw"])

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Select."""
        del index, item_id
        solved = [
            sum(bool(result["success"]) for build in builds for result in build.results)
            for builds in self._builds
        ]
        best = solved.index(max(solved))
        result: dict[str, JSON] = {
            "chosen": self._candidates[best],
            "tried": sum(len(build.results) for build in self._builds[best]),
            "solved": [
                {"candidate": candidate, "solved": count}
                for candidate, count in zip(self._candidates, solved, strict=True)
            ],
        }
        return ItemOutcome(result, tuple(self._builds[best][self._draw].deltas))

    async def aclose(self) -> None:
        """Do nothing."""


class AdmissionSession:
    """Tries the items of a bank on problems, and leaves those that help."""

    def __init__(
        self,
        plan: TransplantPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> None:
        architecture = Architecture.of(plan, run, place)
        if architecture is None:
            msg = "has no memory whose items could be tried"
            raise StudyError(msg, run=run.name)
        self._architecture = architecture
        self._first = MemoryDelta()
        self._content = fold(deltas)
        if TRANSPLANTED not in self._content.state:
            _, _, self._first = received(architecture, self._content)
            self._content = fold([self._first], self._content)
        architecture.memory(place.store, place.namespace).restore(self._content)
        self._memory = architecture.memory(ReadOnlyStore(place.store), place.namespace)
        self._domain = open_domain(plan.target)
        self._budget = Budget(cast("int", run.factors["budget"]))
        self._model = own_model(plan, run, model)
        self._replicate = f"seed-{run.factors['model_seed']}"
        self._template = solve_prompt()
        self._last = run.length - 1

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Replay one problem without memory, and with each item that is recalled for it."""
        problem = self._domain.problems[item_id]
        context = RecallContext(
            domain=self._domain.name,
            task_id=problem.id,
            episode_id=problem.id,
            episode_index=index,
            type="strategic",
        )
        with replicate_scope(self._replicate), metered() as usage:
            recalled = await self._memory.aprovide(problem.text, context, self._budget)
            without = await self._solves(problem, "")
            alone = {
                item.id: await self._solves(problem, self._alone(item, recalled, context).text)
                for item in recalled.items[:MOST_REPLAYED]
            }
        tally = _tally(self._content)
        for name, solved in alone.items():
            better, worse = tally.get(name, (0, 0))
            tally[name] = (better + (solved > without), worse + (solved < without))
        delta = MemoryDelta((SetState(_REPLAYS, {k: list(v) for k, v in tally.items()}),))
        first = (self._first,) if index == 0 and self._first else ()
        result: dict[str, JSON] = {
            "problem": problem.id,
            "template": self._template.sha256,
            "without": without,
            "alone": dict(alone),
        }
        self._content = fold([delta], self._content)
        deltas = (*first, delta)
        if index == self._last:
            kept = [item for item in self._content.items.values() if _helps(tally, item)]
            result |= {"offered": len(self._content.items), "admitted": len(kept)}
            deltas = (*deltas, received(self._architecture, self._content, kept)[2])
        return ItemOutcome(
            {**result, "usage": usage.totals()}, deltas, events={"usage": usage.billing()}
        )

    def _alone(self, item: MemoryItem, recalled: Recall, context: RecallContext) -> Recall:
        found = Found(((item, 0.0),))
        return make_recall(recalled.receipt.query, context, self._budget, found)

    async def _solves(self, problem: Problem, recalled: str) -> bool:
        """Say whether a problem is solved with this block of memory; equal prompts are paid once."""
        messages = solve_messages(self._template, problem.text, recalled)
        reply = read_response(await self._model.ainvoke(messages)).text
        return self._domain.grade(reply, problem).correct

    async def aclose(self) -> None:
        """Do nothing: the bank is what the log says."""


def _tally(content: BankContent) -> dict[str, tuple[int, int]]:
    """Return how often each item was better and worse so far."""
    kept = cast("Mapping[str, Sequence[int]]", content.state.get(_REPLAYS) or {})
    return {name: (better, worse) for name, (better, worse) in kept.items()}


def _helps(tally: Mapping[str, tuple[int, int]], item: MemoryItem) -> bool:
    better, worse = tally.get(item.id, (0, 0))
    return better > worse
