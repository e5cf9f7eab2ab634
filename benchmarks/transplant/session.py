"""One run of the transplant study: a solver at a stream of problems, with a memory as its cell has it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON
from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.harness.cache import replicate_scope
from langgraft.benchmarks.harness.models import make_model, sharing
from langgraft.benchmarks.harness.study import SIMULATED, BankPlace, ItemOutcome, RunSpec
from langgraft.benchmarks.harness.usage import metered
from langgraft.benchmarks.transplant.domains import open_domain
from langgraft.benchmarks.transplant.plan import (
    NOISE,
    NONE,
    Side,
    Solver,
    System,
    TransplantPlan,
)
from langgraft.graphs.solver import build_solver
from langgraft.memory.controls import REPLACEMENTS, Framing, Frozen, WriteOnly
from langgraft.memory.model import BankContent, MemoryDelta, SetState, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import OVER_BUDGET, OVER_SHARE, Budget
from langgraft.memory.stores.forked import ReadOnlyStore
from langgraft.memory.transplanting import Transplant, in_place_of, transplant_items
from langgraft.nodes.problem import solve_prompt
from langgraft.nodes.state import AgentInput

_TRANSPLANTED = "transplanted"
"""Bookkeeping of a bank that goes on after a transplant: the digest of what came."""


class TransplantSession:
    """A stream of attempts, with one memory or none."""

    def __init__(
        self,
        plan: TransplantPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> None:
        factors = run.factors
        side: Side = "target"
        if factors["kind"] == "build" and factors["architecture"] == "source":
            side = "source"
        self._domain = open_domain(plan.domain_of(side))
        self._frozen = run.frozen
        self._last = run.length - 1
        self._simulated = plan.model == SIMULATED and solver_of(plan, run).model is None
        # At temperature 0 the same prompt is paid once; the noise arm pays each time.
        noise = f"/noise-{factors['seed']}" if factors["condition"] == NOISE else ""
        self._replicate = f"seed-{factors['model_seed']}{noise}"
        self._template = solve_prompt()
        self._first: MemoryDelta = MemoryDelta()
        self._transplant: Transplant | None = None
        self._memory = self._build_memory(plan, run, fold(deltas), place)
        self._before = None if self._memory is None else self._memory.content().digest
        self._graph = build_solver(
            own_model(plan, run, model),
            domain=self._domain,
            memory=self._memory,
            learn=not run.frozen,
            budget=Budget(cast("int", factors["budget"])),
            prompt=self._template,
        )

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Attempt one problem; its episode has its id, which a stream holds once.

        Raises:
            LanggraftError: A frozen bank is not what it was.
        """
        start = AgentInput(task_id=item_id, episode_id=item_id, episode_index=index)
        with replicate_scope(self._replicate), metered() as usage:
            if self._simulated:  # nothing to wait for: the sync graph takes half the time
                final = self._graph.invoke(start)
            else:
                final = await self._graph.ainvoke(start)
        if index == self._last:
            await self._check_frozen()
        first = (self._first,) if index == 0 and self._first else ()
        deltas = tuple(MemoryDelta.from_json(delta) for delta in final.get("deltas", []))
        return ItemOutcome(
            result={**self._result(final), **self._imported(index), "usage": usage.totals()},
            deltas=(*first, *deltas),
            events={"usage": usage.billing()},
        )

    async def aclose(self) -> None:
        """Do nothing: graders are shared by the runs of a process."""

    def _build_memory(
        self, plan: TransplantPlan, run: RunSpec, content: BankContent, place: BankPlace
    ) -> MemoryProvider[Any] | None:
        factors = run.factors
        system = next((each for each in plan.systems if each.name == factors["system"]), None)
        if system is None or system.provider == NONE or factors["architecture"] == NONE:
            return None
        side = cast("Side", factors["architecture"])
        if run.source is not None:
            content = self._received(run, system, side, content)
        memory = _provider(system, side, place.store, place.namespace)
        memory.restore(content)
        if run.frozen:
            memory = _provider(system, side, ReadOnlyStore(place.store), place.namespace)
        return _controlled(memory, str(factors["control"]), plan.seed, learn=not run.frozen)

    def _received(
        self, run: RunSpec, system: System, side: Side, donor: BankContent
    ) -> BankContent:
        """Return the bank that the architecture makes of what another run left."""
        if _TRANSPLANTED in donor.state:  # this run's own first item has done it
            return donor
        recipient = _provider(system, side, InMemoryStore(), ("transplant",))
        self._transplant = transplant_items(donor.items.values(), recipient)
        if run.frozen:
            return recipient.content()
        mark = MemoryDelta((SetState(_TRANSPLANTED, self._transplant.digest),))
        self._first = in_place_of(donor, self._transplant) + mark
        return fold([self._first], donor)

    def _imported(self, index: int) -> dict[str, JSON]:
        if index or self._transplant is None:
            return {}
        return {"imported": self._transplant.to_json()}

    def _result(self, final: Mapping[str, Any]) -> dict[str, JSON]:
        problem = self._domain.problems[final["task_id"]]
        receipts = final.get("receipts", [])
        dropped = [each["reason"] for receipt in receipts for each in receipt["dropped"]]
        return {
            "problem": problem.id,
            "kind": problem.kind,
            "level": problem.level,
            "success": final["success"],
            "answer": final["steps"][-1]["action"],
            "stage": final["stage"],
            "reason": final["reason"],
            "by_last_token": final["by_last_token"],
            "template": self._template.sha256,
            "prompt": final["asked"],
            "asked": self._memory is not None,
            "recalled": sum(len(receipt["item_ids"]) for receipt in receipts),
            "tokens": sum(receipt["tokens"] for receipt in receipts),
            "lacked_room": sum(reason in (OVER_BUDGET, OVER_SHARE) for reason in dropped),
            "recalls": receipts,
            "lessons": final.get("lessons", []),
            "reflection": final.get("reflection", ""),
            "judging": final.get("judging", []),
            "reply": final["said"],
        }

    async def _check_frozen(self) -> None:
        if self._frozen and self._memory is not None:
            after = (await self._memory.acontent()).digest
            if after != self._before:
                msg = f"a frozen bank changed from {self._before} to {after}"
                raise LanggraftError(msg)


def solver_of(plan: TransplantPlan, run: RunSpec) -> Solver:
    """Return the solver of a run."""
    return next(each for each in plan.solvers if each.name == run.factors["solver"])


def own_model(plan: TransplantPlan, run: RunSpec, model: BaseChatModel) -> BaseChatModel:
    """Return the model of a run: the plan's, or the solver's own with the same cache and caps."""
    solver = solver_of(plan, run)
    if solver.model is None:
        return model
    made = make_model(
        solver.model,
        base_url=solver.base_url or plan.base_url,
        temperature=plan.temperature,
        max_tokens=plan.max_tokens,
        call_seconds=plan.call_seconds,
        reply_bytes=plan.reply_bytes,
    )
    return sharing(made, model)


def _provider(
    system: System, side: Side, store: BaseStore, namespace: tuple[str, ...]
) -> MemoryProvider[Any]:
    settings = system.settings_of(side)
    return make_provider(system.provider, store, settings=settings, namespace=namespace)


def _controlled(
    memory: MemoryProvider[Any], control: str, seed: int, *, learn: bool
) -> MemoryProvider[Any]:
    match control:
        case "":
            return memory
        case "write_only":
            return WriteOnly(memory)
        case "frozen":
            return Frozen(memory, provide=False)
        case "framing":
            return Framing(memory, learn=learn)
        case _:
            return REPLACEMENTS[control](memory, seed=seed, learn=learn)
