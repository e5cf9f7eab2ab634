"""One attempt at one task: the agent is run, what it was sent and what memory gave it is noted, and it is scored.

What an agent is given is an `ObservedMemory`. It recalls as the memory of the condition does, in the name of
the task at hand; what the agent's graph files is caught, because how the attempt ended is known later.
"""

import asyncio
import inspect
import json
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, cast

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables import Runnable
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import override

from langgraft._core.canonical import JSON, text_digest
from langgraft._core.clock import SystemClock
from langgraft._core.effects import ado, arun
from langgraft._core.errors import InfrastructureError, InputError, LanggraftError
from langgraft.benchmarks.ablation.experiment import Build, Experiment, Task
from langgraft.benchmarks.harness.failures import FailureKind, classify, one_line
from langgraft.benchmarks.harness.replies import SIMULATED_FINGERPRINT
from langgraft.memory.controls import Control
from langgraft.memory.model import Episode, MemoryDelta, Outcome, Question, strip_block
from langgraft.memory.provider import MemoryProvider, Need, program
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.stores.programs import Program
from langgraft.nodes.dialogue import chat_model
from langgraft.nodes.prompts import prompt
from langgraft.nodes.turns import check_remembers, episode_of_turn, learning

MOST_SHOWN: Final = 20_000
"""Characters of a prompt, and of an answer, that a log keeps."""

TASKS: Final = "tasks"
"""The domain of tasks that are of no kind."""


@dataclass(slots=True)
class Attempt:
    """An attempt under way."""

    task: Task
    episode: str
    index: int
    recalls: list[Recall] = field(default_factory=list)
    filed: list[Episode] = field(default_factory=list)
    """What the agent's graph would have filed."""

    @property
    def domain(self) -> str:
        """What items learned in it are of."""
        return self.task.kind or TASKS

    def named(self, episode: Episode) -> Episode:
        """Return what a graph filed as the episode of this attempt."""
        return replace(episode, id=self.episode, task_id=self.task.id, domain=self.domain)


_UNDER_WAY: ContextVar[Attempt | None] = ContextVar("langgraft_attempt", default=None)


class ObservedMemory(Control):
    """What the agent of a run is given in the place of its memory.

    Args:
        inner: The memory of the run, or a control.
        budget: Room for recalled text, whatever the agent says.
        learn: Whether attempts are to be filed, so that the agent has ready what that needs.
    """

    name: ClassVar[str] = "observed"

    def __init__(self, inner: MemoryProvider[Any], budget: Budget, *, learn: bool) -> None:
        super().__init__(inner, learn=learn)
        self.budget = budget

    @property
    @override
    def needs(self) -> frozenset[Need]:
        return super().needs - {"errors"}  # an agent that diagnoses files them; others need not

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the architecture that it wraps."""
        return self.inner.describe()

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        attempt = _UNDER_WAY.get()
        if attempt is not None:
            context = replace(
                context,
                domain=attempt.domain,
                task_id=attempt.task.id,
                episode_id=attempt.episode,
                episode_index=attempt.index,
            )
        recall = yield from self._real(query, context, self.budget)
        if attempt is not None:
            attempt.recalls.append(recall)
        return recall

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        attempt = _UNDER_WAY.get()
        return super()._ask(episode if attempt is None else attempt.named(episode))

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        attempt = _UNDER_WAY.get()
        if attempt is not None:
            attempt.filed.append(attempt.named(episode))
        return program(MemoryDelta())


# What a model is sent ---------------------------------------------------------------------


class _Calls(BaseCallbackHandler):
    """Notes the model calls of an attempt, whichever model makes them."""

    run_inline = True

    def __init__(self) -> None:
        self.sent: list[Sequence[BaseMessage]] = []
        self.replies = self.simulated = self.prompt_tokens = self.completion_tokens = 0

    @override
    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        self.sent += messages

    @override
    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        for generation in response.generations[0][:1]:
            if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
                self.replies += 1
                usage: Mapping[str, Any] = dict(generation.message.usage_metadata or {})
                told = generation.message.response_metadata.get("system_fingerprint")
                self.simulated += told == SIMULATED_FINGERPRINT
                self.prompt_tokens += usage.get("input_tokens", 0)
                self.completion_tokens += usage.get("output_tokens", 0)

    def usage(self) -> dict[str, JSON]:
        return {
            "replies": self.replies,
            "simulated_replies": self.simulated,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
        }


_CALLS: ContextVar[_Calls | None] = ContextVar("langgraft_calls", default=None)
# By context and not by configuration: an agent that is a function passes none on.
register_configure_hook(_CALLS, inheritable=True)


def written(messages: Sequence[BaseMessage]) -> str:
    """Write a prompt as text: each message under its role."""
    return "\n\n".join(f"[{each.type}]\n{_said(each)}" for each in messages)


def without_memory(messages: Sequence[BaseMessage]) -> str:
    """Write a prompt without what memory put there: what all conditions have in common."""
    bare = ((each.type, " ".join(strip_block(_said(each)).split())) for each in messages)
    return "\n\n".join(f"[{role}]\n{text}" for role, text in bare if text)


def _said(message: BaseMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    told = [f"{call['name']}({json.dumps(call['args'], sort_keys=True)})" for call in calls]
    return "\n".join(filter(None, (message.text, *told)))


# The agent --------------------------------------------------------------------------------


class Agent:
    """An agent of one run, around its memory.

    Args:
        experiment: Says how it is made and scored.
        memory: What it is given.
        model: The harness's model; `None` where the agent has its own.

    Raises:
        InputError: `build` fails, or returns what cannot be run.
    """

    def __init__(
        self, experiment: Experiment, memory: MemoryProvider[Any], model: BaseChatModel | None
    ) -> None:
        self._experiment, self._model = experiment, model
        self._made = _made(experiment.build, memory, model, both=experiment.wants_model)

    async def attempt(self, attempt: Attempt) -> tuple[dict[str, JSON], Any]:
        """Make an attempt, score it, and return its result and what the agent gave back.

        Raises:
            InfrastructureError: Something other than the agent failed, such as its model's server.
            BudgetExceededError: A cap is reached.
            InputError: The score is none, or a model refuses for good.
        """
        calls = _Calls()
        tokens = _UNDER_WAY.set(attempt), _CALLS.set(calls)
        try:
            output, error = await self._output(attempt)
            score = 0.0 if error else await self._scored(attempt.task, output)
        finally:
            _UNDER_WAY.reset(tokens[0])
            _CALLS.reset(tokens[1])
        first = calls.sent[0] if calls.sent else ()
        items = [item for recall in attempt.recalls for item in recall.items]
        result: dict[str, JSON] = {
            "task": attempt.task.id,
            "kind": attempt.task.kind,
            "score": score,
            "solved": score >= self._experiment.solved,
            "error": error,
            "answer": answer_of(output)[:MOST_SHOWN],
            "asked": len(attempt.recalls),
            "recalled": [{"id": item.id, "of": item.source_domain} for item in items],
            "block": "".join(recall.text for recall in attempt.recalls)[:MOST_SHOWN],
            "tokens": sum(recall.tokens for recall in attempt.recalls),
            "prompt": written(first)[:MOST_SHOWN],
            "prompt_sha256": text_digest(written(first)) if first else "",
            "rest_sha256": text_digest(without_memory(first)) if first else "",
            "usage": calls.usage(),
        }
        return result, output

    async def file(
        self,
        memory: MemoryProvider[Any],
        attempt: Attempt,
        output: Any,
        result: Mapping[str, JSON],
    ) -> MemoryDelta:
        """File an attempt with its score, as the graph filed it, or else as what it gave back.

        Args:
            memory: The memory of the run, that learns.
            attempt: The attempt, once it is made.
            output: What the agent gave back.
            result: What came of it.

        Raises:
            SettingsError: The memory needs what an agent that files nothing has not.
        """
        outcome = _outcome(result, self._experiment)
        if attempt.filed:
            episode = attempt.filed[-1]
            if episode.outcome.success is None:
                episode = replace(episode, outcome=outcome)
            return await memory.afile(episode)
        asked = chat_model(self._model, "`model` of the experiment")
        check_remembers(memory, asked, "the experiment")
        episode = episode_of_turn(
            attempt.domain,
            attempt.task.text,
            _after_question(output),
            outcome,
            name=attempt.episode,
            task_id=attempt.task.id,
            receipts=[recall.receipt.to_json() for recall in attempt.recalls],
        )
        return await arun(learning(memory, episode, asked, prompt("reflect")), ado)

    async def _output(self, attempt: Attempt) -> tuple[Any, str]:
        """Run the agent; what goes wrong there is its own doing, unless the world failed."""
        try:
            return await self._run(attempt), ""
        except (LanggraftError, asyncio.CancelledError):
            raise
        except Exception as error:
            failure = classify(error, now=SystemClock().time())
            told = f"{type(error).__name__}: {one_line(error)}"
            if failure.kind is FailureKind.PROVIDER_TRANSIENT:
                raise InfrastructureError(told) from error
            if failure.kind is FailureKind.PROVIDER_PERMANENT:
                raise InputError(f"{told}; {failure.hint}") from error
            return None, told

    async def _run(self, attempt: Attempt) -> Any:
        given = attempt.task.input
        config = {"configurable": {"thread_id": attempt.episode}}
        if callable(given):
            return await self._tested(given, config)
        return await self._called(given, config)

    async def _called(self, given: Any, config: dict[str, Any]) -> Any:
        made = self._made
        if isinstance(made, Runnable):
            return await made.ainvoke(_for_graph(given), cast("Any", config))
        if inspect.iscoroutinefunction(made):
            return await made(given)
        found = await asyncio.to_thread(made, given)
        return await found if inspect.isawaitable(found) else found

    async def _tested(self, test: Any, config: dict[str, Any]) -> Any:
        """Run a test function, which calls the agent and asserts."""
        try:
            if inspect.iscoroutinefunction(test):
                found = await test(lambda given: self._called(given, config))
            else:
                loop = asyncio.get_running_loop()

                def agent(given: Any) -> Any:
                    return asyncio.run_coroutine_threadsafe(
                        self._in_context(given, config), loop
                    ).result()

                found = await asyncio.to_thread(test, agent)
        except AssertionError as error:
            return _Failed(str(error))
        return _Passed(1.0 if found is None else found)

    async def _in_context(self, given: Any, config: dict[str, Any]) -> Any:
        return await self._called(given, config)

    async def _scored(self, task: Task, output: Any) -> float:
        if isinstance(output, _Failed):
            return 0.0
        if isinstance(output, _Passed):
            return number_of(output.score, task)
        score = self._experiment.score
        assert score is not None
        try:
            found = _evaluated(score, task, output)
            found = await found if inspect.isawaitable(found) else found
        except AssertionError:
            return 0.0
        except (LanggraftError, asyncio.CancelledError):
            raise
        except Exception as error:
            msg = f"the score of task {task.id!r} raised {type(error).__name__}: {one_line(error)}"
            raise InputError(msg) from error
        return number_of(1.0 if found is None else found, task)


@dataclass(frozen=True, slots=True)
class _Failed:
    """A test function's assertion failed."""

    why: str


@dataclass(frozen=True, slots=True)
class _Passed:
    """A test function came to its end."""

    score: Any


def _made(
    build: Build, memory: MemoryProvider[Any], model: BaseChatModel | None, *, both: bool
) -> Any:
    if both and model is None:
        msg = "`build` takes a model: give the experiment one (`model=…`), or let it take the memory alone"
        raise InputError(msg)
    made = build(memory, model) if both else build(memory)
    if not (isinstance(made, Runnable) or callable(made)):
        msg = f"`build` returned {made!r:.80}, which is neither a graph or other Runnable nor a function"
        raise InputError(msg)
    return made


def _for_graph(given: Any) -> Any:
    return {"messages": [HumanMessage(given)]} if isinstance(given, str) else given


def _evaluated(score: Any, task: Task, output: Any) -> Any:
    """Ask a score, or an evaluator that names its arguments as openevals' do."""
    try:
        names = inspect.signature(score).parameters
    except (TypeError, ValueError):
        return score(task, output)
    if "outputs" not in names:
        return score(task, output)
    given = {"inputs": task.input, "outputs": output, "reference_outputs": task.reference}
    if not any(each.kind is each.VAR_KEYWORD for each in names.values()):
        given = {name: value for name, value in given.items() if name in names}
    return score(**given)


def number_of(score: Any, task: Task) -> float:
    """Return a score as a number from 0 to 1.

    Raises:
        InputError: It is none.
    """
    if isinstance(score, Mapping):
        score = score.get("score")
    try:
        number = float(score)
    except (TypeError, ValueError):
        number = float("nan")
    if isinstance(score, str) or not 0 <= number <= 1:
        msg = (
            f"the score of task {task.id!r} is {score!r:.80}; a score is true or false, or a number"
            " from 0 to 1"
        )
        raise InputError(msg)
    return number


def answer_of(output: Any) -> str:
    """Return what an agent gave back, as text: of messages the last."""
    if isinstance(output, Mapping) and output.get("messages"):
        output = output["messages"][-1]
    if isinstance(output, BaseMessage):
        return output.text
    if isinstance(output, _Failed):
        return output.why
    if output is None or isinstance(output, _Passed):
        return ""
    return output if isinstance(output, str) else json.dumps(output, default=str, sort_keys=True)


def _outcome(result: Mapping[str, JSON], experiment: Experiment) -> Outcome:
    if experiment.feedback is None:
        return Outcome(success=None)
    return Outcome(
        success=bool(result["solved"]),
        score=cast("float", result["score"]),
        feedback=experiment.feedback,
    )


def _after_question(output: Any) -> list[Any]:
    """Return the messages since the question, or one that says what came out."""
    messages = output.get("messages") if isinstance(output, Mapping) else None
    if not messages:
        return [AIMessage(answer_of(output))]
    asked = [n for n, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return list(messages[asked[0] + 1 if asked else 0 :])
