"""One run of the transplant study: a solver at a stream of problems, with a memory as its cell has it.

And its attempts as conversations, read back from the log.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import Any, Final, Self, cast

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, text_digest
from langgraft._core.errors import InputError, LanggraftError
from langgraft._core.texts import Prompt
from langgraft.benchmarks.harness.conversations import (
    Conversation,
    Message,
    PlayedEpisode,
    Recalled,
    Split,
    up_to_the_last_learned,
)
from langgraft.benchmarks.harness.log import deltas_before
from langgraft.benchmarks.harness.models import make_model, shared_by
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    ItemOutcome,
    PlanLogReader,
    RunSpec,
)
from langgraft.benchmarks.harness.usage import metered, replicate_scope
from langgraft.benchmarks.transplant.domains import open_domain
from langgraft.benchmarks.transplant.plan import (
    GATE,
    NOISE,
    Side,
    Solver,
    TransplantPlan,
)
from langgraft.graphs.solver import build_solver
from langgraft.memory.controls import REPLACEMENTS, Framing, Frozen, WriteOnly
from langgraft.memory.model import BankContent, MemoryDelta, MemoryItem, SetState, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import OVER_BUDGET, OVER_SHARE, Budget, render_block
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.transplanting import Transplant, in_place_of, transplant_items
from langgraft.nodes.problem import solve_prompt
from langgraft.nodes.state import AgentInput

TRANSPLANTED: Final = "transplanted"
"""Bookkeeping of a bank that goes on after a transplant: the digest of what came."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """A memory system under settings: those of a domain, with what it selected."""

    provider: str
    settings: Mapping[str, JSON]

    @classmethod
    def of(cls, plan: TransplantPlan, run: RunSpec, place: BankPlace) -> Self | None:
        """Return the architecture of a run; `None` where it has no memory.

        What was selected stands in the log of the run that it reads; a build has it in its factors.
        """
        factors, system = run.factors, plan.system_of(run)
        if system is None:
            return None
        chosen = factors.get("chosen")
        for name in run.reads:
            chosen = place.earlier[name].results[0]["chosen"]
        settings = system.settings_of(
            cast("Side", factors["architecture"]), cast("Mapping[str, JSON] | None", chosen)
        )
        gate = GATE if factors["remedy"] == "gated" else {}
        return cls(system.provider, {**settings, **gate})

    def memory(self, store: BaseStore, namespace: tuple[str, ...]) -> MemoryProvider[Any]:
        """Return a provider of this architecture."""
        return make_provider(self.provider, store, settings=self.settings, namespace=namespace)


def received(
    architecture: Architecture, donor: BankContent, items: Sequence[MemoryItem] | None = None
) -> tuple[BankContent, Transplant, MemoryDelta]:
    """Transplant a donor's items into an empty bank of an architecture.

    Args:
        architecture: The recipient's.
        donor: What another run left.
        items: Those of its items that come; `None`: all.

    Returns:
        The recipient's bank, what came of the transplant, and what turns the donor's bank into it.
    """
    recipient = architecture.memory(InMemoryStore(), ("transplant",))
    done = transplant_items(donor.items.values() if items is None else items, recipient)
    mark = MemoryDelta((SetState(TRANSPLANTED, done.digest),))
    return recipient.content(), done, in_place_of(donor, done) + mark


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
        built_of = cast("Side", factors["architecture"])
        side: Side = built_of if factors["kind"] == "build" else "target"
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
        architecture = Architecture.of(plan, run, place)
        if architecture is None:
            return None
        if run.source is not None:
            content = self._received(run, architecture, content)
        memory = architecture.memory(place.store, place.namespace)
        memory.restore(content)
        if run.frozen:
            memory = architecture.memory(ReadOnlyStore(place.store), place.namespace)
        control = str(run.factors["control"])
        return _controlled(memory, control, plan.seed, learn=not run.frozen)

    def _received(
        self, run: RunSpec, architecture: "Architecture", donor: BankContent
    ) -> BankContent:
        """Return the bank that the architecture makes of what another run left."""
        if TRANSPLANTED in donor.state:  # this run's own first item has done it
            return donor
        content, self._transplant, first = received(architecture, donor)
        if run.frozen:
            return content
        self._first = first
        return fold([first], donor)

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
    return make_model(
        solver.model,
        base_url=solver.base_url or plan.base_url,
        temperature=plan.temperature,
        max_tokens=plan.max_tokens,
        settings=plan.model_settings,
        call_seconds=plan.call_seconds,
        reply_bytes=plan.reply_bytes,
        **shared_by(model),
    )


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


# Read back from a log --------------------------------------------------------------------------


def played_attempts(plan: TransplantPlan, log: PlanLogReader) -> Iterator[PlayedEpisode]:
    """Yield the attempts of a log, run by run: builds and evaluations.

    A condition is named by its system, `expel/FULL~placebo`; the split is `train` for builds. A step is
    the reply, the answer in it, and what the grader said.
    """
    for run in log.runs:
        if run.factors["kind"] in _PLAYED:
            growing = _Growing(log, run)
            for index, result in enumerate(log.results(run.name)):
                yield _attempt(plan, run, result, partial(growing.at, index))


_PLAYED: Final = {"build": "train", "eval": "evaluate"}
"""Kinds of runs whose items are attempts, and what they are to memory."""


class _Growing:
    """The items that a run's bank may hold: those it starts from, and those that each item adds."""

    def __init__(self, log: PlanLogReader, run: RunSpec) -> None:
        self._log, self._run = log, run

    @cached_property
    def _start(self) -> list[MemoryDelta]:
        return deltas_before(self._log, self._run)

    @cached_property
    def _deltas(self) -> list[tuple[MemoryDelta, ...]]:
        return self._log.deltas(self._run.name)

    def at(self, index: int) -> Mapping[str, MemoryItem]:
        """Return the items of the bank before an item of the run, or at its very beginning."""
        own = list(chain.from_iterable(self._deltas[:index]))
        if not index and self._deltas:  # the first item may have brought a transplant with it
            own = list(self._deltas[0][:1])
        return {**fold(self._start).items, **fold([*self._start, *own]).items}


def _attempt(
    plan: TransplantPlan,
    run: RunSpec,
    result: Mapping[str, Any],
    bank: Callable[[], Mapping[str, MemoryItem]],
) -> PlayedEpisode:
    factors = run.factors
    split = cast("Split", _PLAYED[str(factors["kind"])])
    side = cast("Side", factors["architecture"]) if split == "train" else "target"
    spec = plan.domain_of(side)
    control = f"~{factors['control']}" if factors["control"] else ""

    @cache
    def task() -> str:
        problem = open_domain(spec).problems.get(result["problem"])
        if problem is None:
            msg = (
                f"domain {spec.name!r} has no problem {result['problem']!r}, which the log tells of"
            )
            raise InputError(msg)
        return problem.text

    @cache
    def shown() -> tuple[Recalled, ...]:
        return tuple(
            _recalled(run, result, task(), receipt, bank()) for receipt in result["recalls"]
        )

    def conversations(with_memory: bool) -> tuple[Conversation, ...]:
        recalled = "".join(each.text for each in shown()) if with_memory else ""
        asked = _template(result).render(memory=recalled, task=task())
        reply = Message("assistant", result["reply"], learned=bool(result["answer"]))
        return up_to_the_last_learned([Message("user", asked), reply])

    return PlayedEpisode(
        run=run.name,
        condition=f"{factors['system']}/{factors['condition']}{control}",
        split=split,
        domain=spec.name,
        task=result["problem"],
        success=result["success"],
        score=None,
        steps=[(result["reply"], result["answer"], result["reason"])],
        recalled=shown,
        conversations=conversations,
    )


def _template(result: Mapping[str, Any]) -> Prompt:
    template = solve_prompt()
    if result["template"] != template.sha256:
        msg = (
            "the prompt 'solve' is not what the attempts were made with, so that their conversations"
            " cannot be made again as the solver saw them; `trajectories` without memory needs no prompt"
        )
        raise InputError(msg)
    return template


def _recalled(
    run: RunSpec,
    result: Mapping[str, Any],
    task: str,
    receipt: Mapping[str, Any],
    bank: Mapping[str, MemoryItem],
) -> Recalled:
    """Put what was recalled together again; the digest of the prompt says whether it is that.

    Raises:
        InputError: It is not.
    """
    ids = receipt["item_ids"]
    items = [bank[each] for each in ids if each in bank]
    texts = [each.text for each in items]
    frame = [""] if receipt["tokens"] and not ids else []
    for block in (render_block(texts or frame), render_block(texts[::-1])):
        if text_digest(_template(result).render(memory=block, task=task)) == result["prompt"]:
            found = tuple(item.to_json() for item in items)
            return Recalled(0, receipt["query"], block, found, tuple(receipt["scores"]))
    msg = (
        f"run {run.name!r}, problem {result['problem']!r}: what memory recalled cannot be made again"
        " exactly, as a placebo's filler cannot; leave it out (--without-memory), or choose other"
        " conditions (--condition)"
    )
    raise InputError(msg)
