"""One run of the continual study: the ReAct agent on a stream of task instances."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore

from langgraft._core.canonical import JSON
from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.harness.study import SIMULATED, BankPlace, ItemOutcome, RunSpec
from langgraft.benchmarks.harness.usage import metered, replicate_scope
from langgraft.environments.text import TextWorldFactory
from langgraft.graphs.react import build_react_agent
from langgraft.memory.controls import REPLACEMENTS
from langgraft.memory.model import MemoryDelta, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.nodes.state import AgentInput

_DISTILLING = ("compared_with", "validation", "dropped")
"""What is logged of distilling by outcome, where there is anything."""


class ContinualSession:
    """A stream of episodes with one memory."""

    def __init__(
        self,
        plan: ContinualPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        *,
        world: TextWorldFactory,
        place: BankPlace,
    ) -> None:
        self._memory = build_memory(plan, run, deltas, place)
        self._frozen = run.frozen
        self._last = run.length - 1
        self._simulated = plan.model == SIMULATED
        # The same prompt in the same repetition is paid once, whatever the condition.
        self._replicate = f"seed-{run.factors['model_seed']}"
        self._before = None if self._memory is None else self._memory.content().digest
        condition = condition_of(plan, run)
        self._graph = build_react_agent(
            model,
            environment=world,
            memory=self._memory,
            learn=not run.frozen,
            distillation="plain" if condition is None else condition.distillation,
            budget=plan.budget,
            place=plan.memory_place,
            max_rounds=plan.max_rounds,
        )

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Play one episode; its id is that of the task, which a stream holds once.

        Raises:
            LanggraftError: A frozen bank is not what it was.
        """
        start = AgentInput(task_id=item_id, episode_id=item_id)
        if self._frozen:  # elsewhere memory itself knows how many episodes came before
            start["episode_index"] = index
        with replicate_scope(self._replicate), metered() as usage:
            final = await self._play(start)
        if index == self._last:  # before the commit that would finish the run
            await self._check_frozen()
        deltas = tuple(MemoryDelta.from_json(delta) for delta in final.get("deltas", []))
        return ItemOutcome(
            result={**_result(final), "usage": usage.totals()},
            deltas=deltas,
            events={"usage": usage.billing()},
        )

    async def _play(self, start: AgentInput) -> Mapping[str, Any]:
        if self._simulated:  # nothing to wait for: the sync graph takes half the time
            return self._graph.invoke(start)
        return await self._graph.ainvoke(start)

    async def aclose(self) -> None:
        """Do nothing: the run holds nothing that has to be freed."""

    async def _check_frozen(self) -> None:
        """Check that a frozen bank was not written to behind its read-only store's back."""
        if self._frozen and self._memory is not None:
            after = (await self._memory.acontent()).digest
            if after != self._before:
                msg = f"a frozen bank changed from {self._before} to {after}"
                raise LanggraftError(msg)


def condition_of(plan: ContinualPlan, run: RunSpec) -> Condition | None:
    """Return the condition whose memory a run has: of a probe, the one that retrieves."""
    name = str(run.factors["condition"]).partition("+")[0]
    name = str(run.factors.get("retrieval", name))  # a crossed probe's own name is no condition's
    return next((each for each in plan.conditions if each.name == name), None)


def build_memory(
    plan: ContinualPlan, run: RunSpec, deltas: Sequence[MemoryDelta], place: BankPlace
) -> MemoryProvider[Any] | None:
    """Build the memory of a run, holding what the deltas fold to; the baseline has none."""
    condition = condition_of(plan, run)
    if condition is None:
        return None
    control = str(run.factors["condition"]).partition("+")[2]
    memory = _provider(condition, place.store, place.namespace)
    memory.restore(fold(deltas))
    if run.frozen:
        memory = _provider(condition, ReadOnlyStore(place.store), place.namespace)
    return REPLACEMENTS[control](memory, seed=plan.seed) if control else memory


def _provider(
    condition: Condition, store: BaseStore, namespace: tuple[str, ...]
) -> MemoryProvider[Any]:
    settings = cast("Mapping[str, JSON]", condition.settings)
    return make_provider(condition.provider, store, settings=settings, namespace=namespace)


def _result(final: Mapping[str, Any]) -> dict[str, JSON]:
    steps = final["steps"]
    return {
        "task_id": final["task_id"],
        "success": final["success"],
        "score": final["score"],
        "reason": final["reason"],
        "rounds": len(steps) - 1,
        "invalid_replies": sum(not step["valid"] for step in steps),
        "recalls": final.get("receipts", []),
        "lessons": final.get("lessons", []),
        "reflection": final.get("reflection", ""),
        **{name: final[name] for name in _DISTILLING if final.get(name)},
        "judging": final.get("judging", []),
        "steps": [[step["thought"], step["action"], step["observation"]] for step in steps],
    }
