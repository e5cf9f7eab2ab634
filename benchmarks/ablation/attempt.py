"""One attempt at one task: the agent is run, what it was sent and what memory gave it is noted, and it is scored.

What an agent is given is an `ObservedMemory`. It recalls as the memory of the condition does, in the name of
the task at hand; what the agent's graph files is caught, because how the attempt ended is known later.
"""

import asyncio
import inspect
import json
import uuid
from collections.abc import Coroutine, Mapping, Sequence
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
from langgraft._core.effects import SystemClock, ado, arun
from langgraft._core.errors import InfrastructureError, InputError, LanggraftError, causes
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
from langgraft.nodes.turns import check_provider, episode_of_turn, learning

MOST_STALE: Final = 64
"""Connections of a closed event loop that a client may have kept."""

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


_WHAT_FILING_NEEDS: Final[frozenset[Need]] = frozenset({"errors", "facts", "lessons", "verdicts"})

_UNDER_WAY: ContextVar[Attempt | None] = ContextVar("langgraft_attempt", default=None)


class ObservedMemory(Control):
    """What the agent of a run is given in the place of its memory.

    Args:
        inner: The memory of the run, or a control.
        budget: Room for recalled text, whatever the agent says.
        learn: Whether attempts are to be filed, so that the agent has ready what that needs.
        reflects: Whether the agent draws lessons and verdicts itself, before it is known how the attempt
            ended; else that is done once it is scored.
    """

    name: ClassVar[str] = "observed"

    def __init__(
        self, inner: MemoryProvider[Any], budget: Budget, *, learn: bool, reflects: bool = True
    ) -> None:
        super().__init__(inner, learn=learn)
        self.budget, self.reflects = budget, reflects

    @property
    @override
    def needs(self) -> frozenset[Need]:
        # An agent that diagnoses files errors; others need not.
        return super().needs - ({"errors"} if self.reflects else _WHAT_FILING_NEEDS)

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
        if not self.reflects:
            return program(())
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
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.sent: list[Sequence[BaseMessage]] = []
        self.replies = self.simulated = self.prompt_tokens = self.completion_tokens = 0
        self.refused = False
        """Whether a call raised."""

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

    @override
    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.refused = True

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
        self._takes_messages = _takes_messages(self._made)

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
            output, error = await self._output(attempt, calls)
        finally:
            _UNDER_WAY.reset(tokens[0])
            _CALLS.reset(tokens[1])
        # Outside: what a judge is asked is none of the agent's calls.
        score = 0.0 if error else await self._scored(attempt.task, output)
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
        asked = chat_model(self._model, "`model` of the experiment")
        if attempt.filed:
            episode = attempt.filed[-1]
            if episode.outcome.success is None:
                episode = replace(episode, outcome=outcome)
            if asked is None or episode.lessons:  # the agent has reflected itself
                return await memory.afile(episode)
        else:
            episode = episode_of_turn(
                attempt.domain,
                attempt.task.text,
                _after_question(output),
                outcome,
                name=attempt.episode,
                task_id=attempt.task.id,
                receipts=[recall.receipt.to_json() for recall in attempt.recalls],
            )
        check_provider(memory, "the experiment")
        return await arun(learning(memory, episode, asked, prompt("reflect")), ado)

    async def _output(self, attempt: Attempt, calls: _Calls) -> tuple[Any, str]:
        """Run the agent; what goes wrong there is its own doing, unless the world failed."""
        try:
            return await self._run_fresh(attempt, calls), ""
        except (LanggraftError, asyncio.CancelledError):
            raise
        except Exception as error:
            # A page that a tool does not find is not a model that there is not.
            failed = _world_failed(error, permanent=calls.refused or not calls.sent)
            if failed is not None:
                raise failed from error
            return None, f"{type(error).__name__}: {one_line(error)}"

    async def _run_fresh(self, attempt: Attempt, calls: _Calls) -> Any:
        """Run the agent; again, where its client kept a connection of an event loop that is closed.

        Clients that LangChain shares between models keep connections of an earlier `asyncio.run`, or of
        a cell of a notebook; a call that meets one fails, and discards it.
        """
        for _ in range(MOST_STALE):
            try:
                return await self._run(attempt)
            except Exception as error:
                if not any(str(each) == "Event loop is closed" for each in causes(error)):
                    raise
            attempt.recalls.clear()
            attempt.filed.clear()
            calls.forget()
        msg = "the agent's client keeps connections of an event loop that is closed: make it in `build`"
        raise InfrastructureError(msg)

    async def _run(self, attempt: Attempt) -> Any:
        given = attempt.task.input
        # Of its own, so that a checkpointer that several agents share, or that outlives a crash, has
        # nothing of another attempt.
        config = {"configurable": {"thread_id": str(uuid.uuid4())}}
        if callable(given):
            return await self._tested(given, config)
        return await self._called(given, config)

    async def _called(self, given: Any, config: dict[str, Any]) -> Any:
        made = self._made
        if isinstance(made, Runnable):
            if self._takes_messages and isinstance(given, str):
                given = {"messages": [HumanMessage(given)]}
            return await made.ainvoke(given, cast("Any", config))
        if inspect.iscoroutinefunction(made):
            return await made(given)
        found = await asyncio.to_thread(made, given)
        return await found if inspect.isawaitable(found) else found

    async def _tested(self, test: Any, config: dict[str, Any]) -> Any:
        """Run a test function, which calls the agent and asserts."""
        outputs: list[Any] = []

        async def called(given: Any) -> Any:
            outputs.append(await self._called(given, config))
            return outputs[-1]

        try:
            if inspect.iscoroutinefunction(test):
                found = await test(called)
            else:
                loop = asyncio.get_running_loop()

                def agent(given: Any) -> Any:
                    return asyncio.run_coroutine_threadsafe(called(given), loop).result()

                found = await asyncio.to_thread(test, agent)
                found = await found if inspect.isawaitable(found) else found
        except AssertionError as error:
            return _Tested(0.0, outputs, str(error))
        return _Tested(1.0 if found is None else found, outputs)

    async def _scored(self, task: Task, output: Any) -> float:
        if isinstance(output, _Tested):
            return number_of(output.score, task)
        score = self._experiment.score
        assert score is not None
        try:
            if inspect.iscoroutinefunction(score):
                found = await _evaluated(score, task, output)
            else:  # a judge may wait for a model
                found = await asyncio.to_thread(_evaluated, score, task, output)
                found = await found if inspect.isawaitable(found) else found
        except AssertionError:
            return 0.0
        except (LanggraftError, asyncio.CancelledError):
            raise
        except Exception as error:
            told = f"the score of task {task.id!r} raised {type(error).__name__}: {one_line(error)}"
            raise _world_failed(error, permanent=True) or InputError(told) from error
        return number_of(1.0 if found is None else found, task)


@dataclass(frozen=True, slots=True)
class _Tested:
    """A test function came to its end, or an assertion failed."""

    score: Any
    outputs: Sequence[Any]
    """What the agent gave back, call by call."""
    why: str = ""
    """What the assertion said."""


def _world_failed(error: Exception, *, permanent: bool) -> LanggraftError | None:
    """Return what to raise where something other than the agent failed.

    Args:
        error: What was raised.
        permanent: Whether a refusal for good is taken for a model's.
    """
    failure = classify(error, now=SystemClock().time())
    told = f"{type(error).__name__}: {one_line(error)}"
    if failure.kind is FailureKind.PROVIDER_TRANSIENT:
        return InfrastructureError(told)
    if failure.kind is FailureKind.PROVIDER_PERMANENT and permanent:
        return InputError(f"{told}; {failure.hint}")
    return None


def _made(
    build: Build, memory: MemoryProvider[Any], model: BaseChatModel | None, *, both: bool
) -> Any:
    try:
        made = build(memory, model) if both and model is not None else build(memory)
    except LanggraftError:
        raise
    except Exception as error:
        msg = f"`build` raised {type(error).__name__}: {one_line(error)}"
        raise InputError(msg) from error
    if isinstance(made, Coroutine):
        made.close()
        msg = "`build` is async: let it be a plain function that returns the agent, which may be async"
        raise InputError(msg)
    if not (isinstance(made, Runnable) or callable(made)):
        msg = f"`build` returned {made!r:.80}, which is neither a graph or other Runnable nor a function"
        raise InputError(msg)
    return made


def _takes_messages(made: Any) -> bool:
    """Whether an agent's input is a state with messages, as a graph's is."""
    if not isinstance(made, Runnable):
        return False
    schema = made.get_input_jsonschema()
    named = str(schema.get("$ref", "")).rpartition("/")[2]
    return "messages" in schema.get("$defs", {}).get(named, schema).get("properties", {})


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
    if isinstance(output, _Tested):
        return "\n".join(filter(None, (*map(answer_of, output.outputs), output.why)))
    if isinstance(output, Mapping) and output.get("messages"):
        output = output["messages"][-1]
    if isinstance(output, BaseMessage):
        return output.text
    if output is None:
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
    if isinstance(output, _Tested):
        return [each for one in output.outputs for each in _after_question(one)] or [AIMessage("")]
    messages = output.get("messages") if isinstance(output, Mapping) else None
    if not messages:
        return [AIMessage(answer_of(output))]
    asked = [n for n, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return list(messages[asked[0] + 1 if asked else 0 :])
