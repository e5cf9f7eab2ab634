"""Episodes of a continual study as conversations, as the agent saw them.

The log holds no prompt. A conversation is put together again by the code that the agent runs
(`render_messages`), of the act prompt and the world's instructions, which must be those that the run was
started with; of the steps; and of what memory recalled: the provider is asked again, on the bank as it
stood, and has to give the receipt that was logged, item by item and score by score.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, pairwise
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError
from langgraft._core.texts import Prompt
from langgraft.benchmarks.continual.plan import PAIR, ContinualPlan
from langgraft.benchmarks.continual.session import build_memory
from langgraft.benchmarks.harness.conversations import (
    Conversation,
    Message,
    PlayedEpisode,
    Recalled,
    up_to_the_last_learned,
)
from langgraft.benchmarks.harness.log import deltas_before
from langgraft.benchmarks.harness.study import BankPlace, PlanLogReader, RunSpec
from langgraft.environments.text import TextWorldFactory
from langgraft.memory.model import MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import RecallContext
from langgraft.nodes.prompts import prompt
from langgraft.nodes.state import StepState
from langgraft.nodes.text_world import render_messages

ACT = "act"
"""The prompt that an agent acts by."""


def played_episodes(
    plan: ContinualPlan, log: PlanLogReader, rules_of: Callable[[ContinualPlan], JSON]
) -> Iterator[PlayedEpisode]:
    """Yield the episodes of a log, run by run.

    Args:
        plan: The plan.
        log: Its log.
        rules_of: Says what decides how the world of a pair plays, as the manifest has it.
    """
    worlds = {name: _World(name, part, plan, log, rules_of) for name, part in plan.parts.items()}
    for run in log.runs:
        stream = _Stream(worlds[str(run.factors.get(PAIR, ""))], run, log)
        for index in range(len(stream.results)):
            yield stream.episode(index)


@dataclass(frozen=True)
class _World:
    """The world of a pair of task families, as it was when the run was started."""

    name: str
    part: ContinualPlan
    plan: ContinualPlan
    log: PlanLogReader
    rules_of: Callable[[ContinualPlan], JSON]

    def system(self, task_id: str) -> str:
        """Return the system prompt of an episode.

        Raises:
            InputError: The act prompt or the world is not the one that the run was started with, or the
                world shows what the log does not keep.
        """
        environment = self._factory(task_id)
        try:
            if environment.reset().shown_now:
                raise InputError(_UNKEPT)
            return self._template.render(instructions=environment.instructions)
        finally:
            environment.close()

    @cached_property
    def _template(self) -> Prompt:
        template = prompt(ACT)
        prompts = cast("Mapping[str, JSON]", self._fingerprints.get("prompts", {}))
        if prompts.get(ACT) != template.sha256:
            raise InputError(_changed(f"the prompt {ACT!r}"))
        return template

    @cached_property
    def _factory(self) -> TextWorldFactory:
        part = self.part
        rules = digest(self.rules_of(part))
        world = self._fingerprints.get("world")
        then = cast("Mapping[str, JSON]", world).get(self.name) if self.plan.pairs else world
        if then != rules:
            raise InputError(_changed(f"the world of {part.tasks.A!r}"))
        return part.played_in.factory(part.semantics)

    @property
    def _fingerprints(self) -> Mapping[str, JSON]:
        return cast("Mapping[str, JSON]", self.log.manifest.get("fingerprints", {}))


_UNKEPT = (
    "the world shows at each turn what no log keeps, such as the actions of that moment, so conversations"
    " cannot be made again as the agent saw them; `trajectories` needs no prompt"
)


def _changed(what: str) -> str:
    return (
        f"{what} is not what the run was started with (see the manifest), so its conversations cannot"
        " be made again as the agent saw them; `trajectories` needs no prompt"
    )


class _Stream:
    """The episodes of one run."""

    def __init__(self, world: _World, run: RunSpec, log: PlanLogReader) -> None:
        self.results = log.results(run.name)
        self._world = world
        self._run = run
        self._log = log

    def episode(self, index: int) -> PlayedEpisode:
        result, factors = self.results[index], self._run.factors
        return PlayedEpisode(
            run=self._run.name,
            condition=str(factors["condition"]),
            split="train" if factors["kind"] == "train" else "evaluate",
            domain=str(factors["domain"]),
            task=str(result["task_id"]),
            success=bool(result["success"]),
            score=cast("float", result["score"]),
            steps=_steps(result),
            recalled=partial(self._recalled, index),
            conversations=partial(self._conversations, index),
        )

    def _recalled(self, index: int) -> tuple[Recalled, ...]:
        receipts = cast("Sequence[Mapping[str, Any]]", self.results[index].get("recalls") or ())
        if not receipts:
            return ()
        memory = self._memory(index)
        return tuple(self._recall(memory, index, receipt) for receipt in receipts)

    def _recall(
        self, memory: MemoryProvider[Any], index: int, receipt: Mapping[str, Any]
    ) -> Recalled:
        """Ask memory as it was asked then.

        Raises:
            InputError: It answers otherwise.
        """
        result, step = self.results[index], int(receipt["step"])
        task = str(result["task_id"])
        context = RecallContext(
            domain=str(self._run.factors["domain"]),
            task_id=task,
            episode_id=task,
            episode_index=index if self._run.frozen else None,
            stage="step" if step else "start",
            step=step,
            observation=_turns(_steps(result))[step]["observation"],
        )
        recall = memory.provide(str(receipt["query"]), context, self._world.part.budget)
        if recall.receipt.to_json() != dict(receipt):
            drafted = "draft" in memory.needs
            why = (
                "it was asked with a draft, which no log holds"
                if drafted
                else "its receipt differs"
            )
            msg = (
                f"run {self._run.name!r}, task {task!r}: what memory recalled at step {step} cannot be"
                f" made again exactly ({why}); leave it out (--without-memory), or choose other"
                " conditions (--condition)"
            )
            raise InputError(msg)
        items = tuple(item.to_json() for item in recall.items)
        return Recalled(step, recall.receipt.query, recall.text, items, recall.scores)

    def _memory(self, index: int) -> MemoryProvider[Any]:
        """Return the memory of an episode, holding its bank as it stood then."""
        if self._run.frozen:
            return self._frozen
        before = chain.from_iterable(self._deltas[:index])
        return self._built([*self._start, *before])

    @cached_property
    def _frozen(self) -> MemoryProvider[Any]:
        return self._built(self._start)

    @cached_property
    def _start(self) -> list[MemoryDelta]:
        return deltas_before(self._log, self._run)

    @cached_property
    def _deltas(self) -> list[tuple[MemoryDelta, ...]]:
        return self._log.deltas(self._run.name)

    def _built(self, deltas: Sequence[MemoryDelta]) -> MemoryProvider[Any]:
        from langgraph.store.memory import InMemoryStore  # noqa: PLC0415

        place = BankPlace(InMemoryStore(), ("export",))
        memory = build_memory(self._world.part, self._run, deltas, place)
        if memory is None:
            msg = f"run {self._run.name!r} has no memory, and its log tells of recalls"
            raise InputError(msg)
        return memory

    def _conversations(self, index: int, with_memory: bool) -> tuple[Conversation, ...]:
        result = self.results[index]
        system = self._world.system(str(result["task_id"]))
        shown = self._recalled(index) if with_memory else ()
        last = self._world.part.memory_place == "end"
        return conversations_of(system, shown, _steps(result), last=last)


def conversations_of(
    system: str,
    shown: Sequence[Recalled],
    steps: Sequence[tuple[str, str, str]],
    *,
    last: bool = True,
) -> tuple[Conversation, ...]:
    """Return the conversations of an episode in a text world: one for each block that was shown.

    What was recalled last replaces what was recalled before, so where memory was asked again, and gave
    another block, the agent saw another conversation from there on. It ends with the last reply made
    under the block. Replies under an earlier block are in it, and not to be learned from; those that
    held no action are in none, as the agent saw them in none.

    Args:
        system: The system prompt.
        shown: What memory recalled, in order.
        steps: Thought, action and observation of each step.
        last: Whether what was recalled later stood before the latest observation. No two replies then
            had the same beginning, and each is the end of a conversation of its own.
    """
    blocks: list[tuple[int, str, bool]] = [(0, "", False)]  # from when, what, and whether it moves
    for each in shown:
        block = each.step, each.text, bool(last and each.step and each.text)
        if each.step == blocks[-1][0]:
            blocks.pop()
        if not blocks or block[1:] != blocks[-1][1:]:
            blocks.append(block)
    turns = _turns(steps)
    ends = pairwise([*(start for start, *_ in blocks), len(turns) - 1])
    told: list[list[Message]] = []
    for (_, text, moves), (start, end) in zip(blocks, ends, strict=True):
        if moves:
            told += [
                _told(render_messages(system, text, turns[:reply], last=True), turns[reply])
                for reply in range(start + 1, end + 1)
            ]
        else:
            told.append(_told(render_messages(system, text, turns[: end + 1]), learned=start))
    return tuple(chain.from_iterable(up_to_the_last_learned(messages) for messages in told))


def _turns(steps: Sequence[tuple[str, str, str]]) -> list[StepState]:
    """Return what the world showed first and the turns taken, without replies that held no action."""
    return [
        StepState(
            said=said_in(thought, action) if number else "",
            thought=thought,
            action=action,
            observation=observation,
            valid=True,
        )
        for number, (thought, action, observation) in enumerate(steps)
        if action or not number
    ]


def said_in(thought: str, action: str) -> str:
    """Return a reply in the form that the act prompt asks for, of what the log keeps of it.

    A step keeps thought and action, and not what else there was: Markdown around the labels, blanks,
    text after the action.
    """
    return f"Thought: {thought}\nAction: {action}" if thought else f"Action: {action}"


def _told(
    messages: Sequence[BaseMessage], reply: StepState | None = None, *, learned: int = 0
) -> list[Message]:
    """Return messages with what is to be learned: the `reply` to them, or replies after the first few."""
    told: list[Message] = []
    replies = 0
    for message in messages:
        if isinstance(message, AIMessage):
            told.append(Message("assistant", message.text, reply is None and replies >= learned))
            replies += 1
        else:
            role = "system" if isinstance(message, SystemMessage) else "user"
            told.append(Message(cast("Any", role), message.text))
    return told if reply is None else [*told, Message("assistant", reply["said"], True)]


def _steps(result: Mapping[str, JSON]) -> list[tuple[str, str, str]]:
    steps = cast("Sequence[Sequence[str]]", result["steps"])
    return [(thought, action, observation) for thought, action, observation, *_ in steps]
