"""The runs of an ablation: banks made, conditions tried, items left out, changes held against what was."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore

from langgraft._core.canonical import JSON
from langgraft._core.effects import ado, arun
from langgraft._core.errors import StudyError
from langgraft.benchmarks.ablation.attempt import Agent, Attempt, ObservedMemory
from langgraft.benchmarks.ablation.credit import VARIANTS, Without, next_replays
from langgraft.benchmarks.ablation.experiment import Experiment
from langgraft.benchmarks.ablation.plan import (
    AGAINST,
    NONE,
    RERUN,
    AblationPlan,
    guard_differences,
    pair,
)
from langgraft.benchmarks.comparison.verdicts import guard_decision
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSpec
from langgraft.benchmarks.harness.usage import metered, replicate_scope
from langgraft.memory.controls import Framing, Placebo, RandomRetrieval, WriteOnly
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import Episode, MemoryDelta, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.providers.baselines import NoMemory
from langgraft.memory.recall import Budget
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.nodes.dialogue import chat_model
from langgraft.nodes.prompts import prompt
from langgraft.nodes.turns import learning


class AblationSession:
    """One run under way.

    Args:
        plan: The plan.
        run: The run.
        deltas: Of its bank so far.
        model: The harness's model; `None` where the agent has its own.
        place: Where the bank lies, and what earlier runs found.
        experiment: The agent, its tasks and its score.
        against: The earlier bank of a guard.
        logged: Outcomes of an earlier run of a guard, by pair of task and replicate.
    """

    def __init__(
        self,
        plan: AblationPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel | None,
        place: BankPlace,
        *,
        experiment: Experiment,
        against: Path | None,
        logged: Mapping[str, float],
    ) -> None:
        self._plan, self._run, self._place = plan, run, place
        self._experiment, self._model = experiment, model
        self._against, self._logged = against, logged
        self._kind = cast("str", run.factors["kind"])
        self._number = cast("int", run.factors["run"])
        self._memory = self._opened(place.store, deltas)
        self._budget = Budget(plan.budget)
        self._tasks = experiment.tasks
        self._episodes = {each.id: each for e in experiment.episodes.values() for each in e}
        self._decided = plan.guard is not None and self._is_decided()
        self._replays = self._chosen() if self._kind == "credit" else []
        self._agent: Agent | None = None

    def _opened(self, store: BaseStore, deltas: Sequence[MemoryDelta]) -> MemoryProvider[Any]:
        name = cast("str", self._run.factors["memory"])
        if name in (NONE, RERUN):
            return NoMemory()
        spec, namespace = self._plan.memory(name), self._place.namespace

        def made(over: BaseStore) -> MemoryProvider[Any]:
            return make_provider(spec.provider, over, settings=spec.settings, namespace=namespace)

        memory = made(store)
        memory.restore(fold(deltas))
        return made(ReadOnlyStore(store)) if self._run.frozen else memory

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Work through one item.

        Raises:
            InfrastructureError: The world failed; nothing is committed.
            InputError: The agent or its score cannot be used.
        """
        if self._decided:
            return ItemOutcome({"skipped": True})
        kind = RERUN if self._run.factors["memory"] == RERUN else "run"
        with replicate_scope(f"{kind}-{self._number}"), metered() as usage:
            outcome = await self._worked(index, item_id)
        return replace(outcome, events={"usage": usage.billing()})

    async def _worked(self, index: int, item_id: str) -> ItemOutcome:
        match self._kind:
            case "build":
                return await self._build(index, item_id)
            case "credit":
                return await self._replay(index)
            case "guard":
                return await self._guarded(index, item_id)
            case _:
                return await self._test(index, item_id)

    async def aclose(self) -> None:
        """Do nothing: the bank is what the log says."""

    # A bank -------------------------------------------------------------------------------

    async def _build(self, index: int, item_id: str) -> ItemOutcome:
        against = self._run.factors["condition"] == AGAINST
        if against or self._plan.made == "imported":
            path = self._against if against else self._experiment.bank
            assert path is not None
            delta = await self._memory.aimport_items(path, ImportChoices())
            return ItemOutcome({"imported": len(delta.changes)}, (delta,))
        if self._plan.made == "filed":
            delta = await self._filed(self._episodes[item_id])
            return ItemOutcome({"episode": item_id}, (delta,))
        observed = self._observed(self._memory, learn=True)
        attempt = self._attempt(item_id, index, "train")
        agent = self._agent_of(observed)
        result, output = await agent.attempt(attempt)
        delta = await agent.file(self._memory, attempt, output, result)
        return ItemOutcome(result, (delta,))

    async def _filed(self, episode: Episode) -> MemoryDelta:
        model = chat_model(self._model, "`model` of the experiment")
        return await arun(learning(self._memory, episode, model, prompt("reflect")), ado)

    def _attempt(self, task: str, index: int, phase: str) -> Attempt:
        return Attempt(self._tasks[task], f"{phase}/{self._number}/{task}", index)

    def _observed(self, memory: MemoryProvider[Any], *, learn: bool = False) -> ObservedMemory:
        # Where the harness has a model, it reflects on an attempt once that is scored.
        return ObservedMemory(memory, self._budget, learn=learn, reflects=self._model is None)

    def _agent_of(self, memory: MemoryProvider[Any]) -> Agent:
        """Return the agent of this run, around its one memory."""
        if self._agent is None:
            self._agent = Agent(self._experiment, memory, self._model)
        return self._agent

    # A condition --------------------------------------------------------------------------

    async def _test(self, index: int, item_id: str) -> ItemOutcome:
        learns = not self._run.frozen
        observed = self._observed(self._controlled(), learn=learns)
        attempt = self._attempt(item_id, index, "test")
        agent = self._agent_of(observed)
        result, output = await agent.attempt(attempt)
        if not learns:
            return ItemOutcome(result)
        delta = await agent.file(self._memory, attempt, output, result)
        return ItemOutcome(result, (delta,))

    def _controlled(self) -> MemoryProvider[Any]:
        control, memory = cast("str", self._run.factors["control"]), self._memory
        seed = self._plan.seed + self._number
        match control:
            case "":
                return memory
            case "write_only":
                return WriteOnly(memory)
            case "instructions":
                return Framing(memory)
            case "random":
                return RandomRetrieval(memory, seed=seed)
            case "placebo":
                return Placebo(memory, seed=seed)
            case _:
                return VARIANTS[control](memory)

    # Items left out -----------------------------------------------------------------------

    def _earlier(self) -> list[Sequence[Mapping[str, Any]]]:
        return [
            cast("Sequence[Mapping[str, Any]]", self._place.earlier[name].results)
            for name in self._run.reads
        ]

    def _chosen(self) -> list[tuple[int, str] | None]:
        test, *earlier = self._earlier()
        return next_replays(test, earlier, self._run.length)

    async def _replay(self, index: int) -> ItemOutcome:
        chosen = self._replays[index]
        if chosen is None:
            return ItemOutcome({"skipped": True})
        position, item = chosen
        seen = self._earlier()[0][position]
        observed = self._observed(Without(self._memory, [item]))
        # Its own agent: another item is left out in each.
        agent = Agent(self._experiment, observed, self._model)
        result, _ = await agent.attempt(self._attempt(str(seen["task"]), position, "test"))
        return ItemOutcome(
            {
                "task": seen["task"],
                "without": item,
                "score": result["score"],
                "with": seen["score"],
                "changed": result["answer"] != seen["answer"],
                "answer": result["answer"],
                "usage": result["usage"],
            }
        )

    # A change held against what was -----------------------------------------------------------

    def _is_decided(self) -> bool:
        rounds = self._earlier()
        if not rounds:
            return False
        return guard_decision(guard_differences(rounds), self._plan.margin).verdict != "open"

    async def _guarded(self, index: int, item_id: str) -> ItemOutcome:
        observed = self._observed(self._memory)
        attempt = self._attempt(item_id, index, "test")
        result, _ = await self._agent_of(observed).attempt(attempt)
        before: dict[str, JSON] = {}
        name = pair(item_id, self._number)
        if self._logged:
            if name not in self._logged:
                msg = "the earlier run has no outcome of it"
                raise StudyError(msg, run=self._run.name, item=item_id)
            before = {"before": self._logged[name]}
        side = self._run.factors["condition"]
        return ItemOutcome({**result, **before, "pair": name, "side": side})
