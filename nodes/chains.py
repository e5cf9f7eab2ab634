"""Memory for a chain: a chat model, or `prompt | model | parser`, that recalls and is remembered.

    chain = with_memory(prompt | model | StrOutputParser(), memory)
    chain.invoke({"question": "The office wifi is down"})

A call of the chain is a turn: memory is asked about the question, what it recalls goes behind the text
of the last human message, and question and answer are filed as one episode. Where a turn is more than one
call, or may be left without an answer, as in a graph, `MemoryMiddleware` keeps account of it.

Of a sequence the block goes into what its last prompt template makes, so that nothing before it sees
memory: a retriever is asked with the question alone.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from langgraph.pregel.protocol import PregelProtocol
from pydantic import BaseModel
from typing_extensions import override

from langgraft._core.arguments import check_argument, checked
from langgraft._core.canonical import canonical_json
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.model import Episode
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.conversation import (
    FromPerson,
    Turn,
    current_turn,
    episode_id,
    is_from_person,
    question_id,
    questions_in,
    turn_id,
    with_block,
)
from langgraft.nodes.dialogue import ChatModel, Model
from langgraft.nodes.identity import memory_of_call
from langgraft.nodes.memory import Filings
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.redaction import Redact, Redactor, redacted, redactor
from langgraft.nodes.turns import (
    JudgeOutcome,
    begun_in,
    check_provider,
    context_of,
    ending,
    episode_of_turn,
    fault_of_memory,
    learning,
    memory_model,
    present,
    recalling,
    told_by,
    warn_of_notes,
)

MemoryOf: TypeAlias = MemoryProvider[Any] | Callable[[RunnableConfig], MemoryProvider[Any]]
"""A memory, or what says by the configuration of a call which one it is: that of the user who asks."""

logger = logging.getLogger(__name__)

_INPUT: Final = "input"
_OUTPUT: Final = "output"
"""Keys that are meant where there are several and nobody says which, as in LangChain's histories."""


@checked
def with_memory(
    runnable: Runnable[Any, Any],
    memory: MemoryOf,
    *,
    input_key: str | None = None,
    output_key: str | None = None,
    domain: str = "chat",
    budget: Budget | None = None,
    remember: bool = True,
    outcome: JudgeOutcome | None = None,
    model: ChatModel | None = None,
    on_error: Literal["warn", "raise"] = "warn",
    now: Callable[[], datetime] | None = None,
    from_person: FromPerson | None = None,
    redact: Redact | None = None,
) -> Runnable[Any, Any]:
    """Give a chain memory; it is called, streamed and piped as before.

    What is recalled is in what the chain's model is sent, and in nothing that comes out.

    Chunks pass as they come, and the turn is filed when the stream has ended: one that breaks off or is
    abandoned is not, and neither is a reply that calls tools, as the turn goes on. The id of the last
    human message, or else that of the run, names the episode, with what was asked and answered: a call
    that is made again with the same (`config={"run_id": …}`) and gets the same answer is filed once. What
    could not be filed a later call over the same bank files, in this process.

    ```python
    def of_user(config: RunnableConfig) -> MemoryProvider:
        return TrajectoryMemory(store, namespace=("users", config["configurable"]["user_id"]))


    chain = with_memory(prompt | model, of_user)
    chain.invoke({"question": "…"}, {"configurable": {"user_id": "ada"}})
    ```

    Args:
        runnable: A chat model, or a chain: it takes a text, messages, a prompt value, or a mapping that
            holds one of them. Of a mapping for a chain without a prompt template of its own, memory
            goes into the value of `input_key`.
        memory: The provider, or a function of the call's configuration that returns it.
        input_key: Where in a mapping the question is; `None`: its only key, or `input`.
        output_key: Where in a mapping that comes out the answer is; `None`: its only key, or `output`,
            or else all of it.
        domain: The task family, where an application has several.
        budget: Room for recalled text; `None`: that of `Budget()`.
        remember: Whether turns are filed.
        outcome: Says how the turn ended, from `{"messages": [question, …, answer]}`: an `Outcome`, or
            whether it succeeded. `None`: nobody can tell.
        model: Writes drafts, reflects and judges, for providers that need it. Without it, such a provider
            gets the turn itself as a plain note.
        on_error: `warn`: a fault of memory (a store that is down, an embedder, a model that reflects) is logged,
            and the chain answers without memory. `raise`: it is raised.
        now: What time it is, for memory that keeps facts in time; `None`: by the system's clock.
        from_person: Says whether a human message was written by a person. `None`: all are, except those that
            bear a known mark of software.
        redact: A function of a text, or LangChain's `RedactionRule`s. Every text goes through it before memory
            is asked about it or writes it. A turn that cannot be redacted is not filed.

    Raises:
        SettingsError: The provider learns from error records, which a turn has not; or what is to have memory
            is a graph. For a function this is raised when the chain is called, also where it returns something
            other than a provider.

    The chain raises `InputError` where it finds no question, or no human message to put memory in.
    """
    if isinstance(runnable, PregelProtocol):
        msg = (
            "with_memory is for chat models and chains: the state of an agent or a graph would hold what"
            " was recalled. Give an agent MemoryMiddleware, and a graph its nodes"
        )
        raise SettingsError(msg)
    asked = memory_model(model, "`model` of with_memory")

    def of_call(config: RunnableConfig) -> MemoryProvider[Any]:
        found = memory if isinstance(memory, MemoryProvider) else memory_of_call(memory, config)
        check_argument("what `memory` of with_memory returns", found, MemoryProvider)
        if remember:
            check_provider(found, "with_memory")
            warn_of_notes(found, asked, "with_memory")
        return found

    if isinstance(memory, MemoryProvider):
        of_call({})
    apply = redactor(redact, "`redact` of with_memory")
    grafted = _Grafted(
        of_call, domain, budget, asked, remember, outcome, on_error, now, from_person, apply
    )
    return _WithMemory(runnable, grafted, input_key, output_key)


@dataclass(frozen=True, slots=True)
class _Grafted:
    """What a chain was given beside its own parts; see `with_memory`."""

    memory_of: Callable[[RunnableConfig], MemoryProvider[Any]]
    domain: str
    budget: Budget | None
    model: Model | None
    remember: bool
    outcome: JudgeOutcome | None
    on_error: str
    now: Callable[[], datetime] | None
    from_person: FromPerson | None
    redact: Redactor | None


@dataclass(frozen=True, slots=True)
class _Turn:
    """A call of a chain, once memory was asked."""

    memory: MemoryProvider[Any]
    thread: str
    turn: Turn
    receipts: Sequence[Mapping[str, Any]]
    prompt: Any
    """What the chain is given, with what was recalled."""
    at: str
    told: Sequence[str]
    """Tools and pages in the messages that it is given."""
    generation: str | None
    """The bank's generation when it began."""


class _WithMemory(Runnable[Any, Any]):
    """A chain with memory around it."""

    name = "with_memory"

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        grafted: _Grafted,
        input_key: str | None,
        output_key: str | None,
    ) -> None:
        self._head, self._tail = _split(runnable)
        self._whole, self._grafted = runnable, grafted
        self._input_key, self._output_key = input_key, output_key
        self._filings: Filings[tuple[Episode, str | None]] = Filings()

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        """Return the same model with memory, bound to tools; agents such as `create_react_agent` ask for it.

        Raises:
            SettingsError: What has memory is no model that tools can be bound to.
        """
        bind = getattr(self._whole, "bind_tools", None)
        if bind is None:
            msg = (
                f"tools cannot be bound to {type(self._whole).__name__} with memory: bind them to the model"
                " of the chain, before with_memory"
            )
            raise SettingsError(msg)
        bound = bind(tools, **kwargs)
        return _WithMemory(bound, self._grafted, self._input_key, self._output_key)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._call_with_config(self._invoke, input, config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await self._acall_with_config(self._ainvoke, input, config, **kwargs)

    @override
    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        yield from self.transform(iter([input]), config, **kwargs)

    @override
    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async def one() -> AsyncIterator[Any]:
            yield input

        async for chunk in self.atransform(one(), config, **kwargs):
            yield chunk

    @override
    def transform(
        self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[Any]:
        yield from self._transform_stream_with_config(input, self._stream, config, **kwargs)

    @override
    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        async for chunk in self._atransform_stream_with_config(
            input, self._astream, config, **kwargs
        ):
            yield chunk

    # A turn -------------------------------------------------------------------------------

    def _invoke(
        self,
        given: Any,
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        turn = run(self._begin(given, config, str(run_manager.run_id)), do)
        output = self._tail.invoke(turn.prompt, config, **kwargs)
        run(self._end(turn, output), do)
        return output

    async def _ainvoke(
        self,
        given: Any,
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Any:
        turn = await arun(self._begin(given, config, str(run_manager.run_id)), ado)
        output = await self._tail.ainvoke(turn.prompt, config, **kwargs)
        await arun(self._end(turn, output), ado)
        return output

    def _stream(
        self,
        given: Iterator[Any],
        run_manager: CallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> Iterator[Any]:
        turn = run(self._begin(_whole(given), config, str(run_manager.run_id)), do)
        chunks = []
        for chunk in self._tail.stream(turn.prompt, config, **kwargs):
            chunks.append(chunk)
            yield chunk
        run(self._end(turn, _whole(chunks)), do)

    async def _astream(
        self,
        given: AsyncIterator[Any],
        run_manager: AsyncCallbackManagerForChainRun,
        config: RunnableConfig,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        whole = _whole([chunk async for chunk in given])
        turn = await arun(self._begin(whole, config, str(run_manager.run_id)), ado)
        chunks = []
        async for chunk in self._tail.astream(turn.prompt, config, **kwargs):
            chunks.append(chunk)
            yield chunk
        await arun(self._end(turn, _whole(chunks)), ado)

    def _begin(self, given: Any, config: RunnableConfig, run_id: str) -> Program[Call, _Turn]:
        with_, memory = self._grafted, self._grafted.memory_of(config)
        key = _key(given, self._input_key, _INPUT) if isinstance(given, Mapping) else None
        messages = _conversation(given if key is None else given[key], run_id)
        turn = current_turn(messages, with_.from_person) or _any_human(messages)
        thread = str(config.get("configurable", {}).get("thread_id", ""))
        at, block, receipts = "", "", []
        generation = (yield from begun_in(memory)) if with_.remember else None
        try:
            at = present(memory, with_.now)
            context = context_of(
                turn.rest,
                with_.domain,
                question_id(thread, turn),
                turn_id(thread, turn),
                at=at,
                in_conversation=_earlier(messages, with_.from_person, thread, turn),
            )
            task = turn.task if with_.redact is None else with_.redact(turn.task)
            recalled = yield from recalling(memory, task, context, with_.budget, with_.model)
        except Exception as error:  # noqa: BLE001 - whatever its store, embedder or model raises
            self._fault("nothing was recalled", error)
        else:
            block, receipts = recalled.text, [recalled.receipt.to_json()]
        prompt = given
        if self._head is not None:
            prompt = yield Call(self._head.invoke, self._head.ainvoke, given, config)
            prompt = _placed(prompt, block)
        elif key is None:
            prompt = _placed(prompt, block)
        else:
            prompt = {**given, key: _placed(given[key], block)}
        told = told_by(None, _messages_in(prompt)) if memory.settings.trust else ()
        return _Turn(memory, thread, turn, receipts, prompt, at, told, generation)

    def _end(self, begun: _Turn, output: Any) -> Program[Call, None]:
        with_, turn, memory = self._grafted, begun.turn, begun.memory
        replies = _replies(output, self._output_key)
        if not with_.remember or not replies:
            return
        if isinstance(replies[-1], AIMessage) and replies[-1].tool_calls:
            return
        rest = [*turn.rest, *replies]
        state = {"messages": [*turn.question, *rest]}
        ended = yield from ending(with_.outcome, state, "`outcome` of with_memory", self._fault)
        episode = episode_of_turn(
            with_.domain,
            turn.task,
            rest,
            ended,
            name=episode_id(turn_id(begun.thread, turn), rest),
            task_id=question_id(begun.thread, turn),
            receipts=begun.receipts,
            sources=told_by(None, rest, begun.told) if memory.settings.trust else (),
            at=begun.at,
        )
        try:
            episode = redacted(episode, with_.redact)
        except Exception as error:  # noqa: BLE001 - the application's own code, and rules that block
            kind = type(error).__name__  # its message may quote the text
            logger.warning("A turn was not filed, since it could not be redacted (%s)", kind)
            return
        yield from self._catch_up(memory)
        yield from self._filed(memory, episode, begun.generation)

    def _catch_up(self, memory: MemoryProvider[Any]) -> Program[Call, None]:
        """File what could not be in earlier calls, until memory fails again."""
        for its_own, (episode, generation) in self._filings.missed(memory.namespace):
            if not (yield from self._filed(its_own, episode, generation)):
                return

    def _filed(
        self, memory: MemoryProvider[Any], episode: Episode, generation: str | None
    ) -> Program[Call, bool]:
        place = memory.namespace, episode.id
        try:
            with_ = self._grafted
            yield from learning(
                memory,
                episode,
                with_.model,
                shipped("reflect"),
                redact=with_.redact,
                generation=generation,
            )
        except Exception as error:  # noqa: BLE001 - whatever its store or model raises
            self._filings.miss(place, memory, (episode, generation))
            self._fault("the turn was not filed, a later call files it", error)
            return False
        self._filings.drop(place)
        return True

    def _fault(self, what: str, error: Exception) -> None:
        fault_of_memory(logger, self._grafted.on_error, what, error)


def _split(runnable: Runnable[Any, Any]) -> tuple[Runnable[Any, Any] | None, Runnable[Any, Any]]:
    """Take a sequence apart behind its last prompt template; what has none is all tail."""
    steps = runnable.steps if isinstance(runnable, RunnableSequence) else [runnable]
    ends = [n for n, step in enumerate(steps, 1) if isinstance(_bare(step), BasePromptTemplate)]
    if not ends or ends[-1] == len(steps):
        return None, runnable
    return _joined(steps[: ends[-1]]), _joined(steps[ends[-1] :])


def _bare(step: Runnable[Any, Any]) -> Runnable[Any, Any]:
    while isinstance(step, RunnableBindingBase):
        step = step.bound
    return step


def _joined(steps: Sequence[Runnable[Any, Any]]) -> Runnable[Any, Any]:
    return RunnableSequence(*steps) if len(steps) > 1 else steps[0]


def _key(given: Mapping[str, Any], key: str | None, usual: str) -> str:
    """Say which value of a mapping is meant.

    Raises:
        InputError: It is not there, or nobody says which it is.
    """
    found = key or (next(iter(given)) if len(given) == 1 else usual)
    if found not in given:
        names = ", ".join(map(repr, given)) or "nothing"
        told = (
            f"holds no {key!r}" if key else "does not tell which the question is: give `input_key`"
        )
        msg = f"what a chain with memory was given {told}; there is {names}"
        raise InputError(msg)
    return found


def _conversation(given: Any, run_id: str) -> list[AnyMessage]:
    """Return what a chain is given as messages; the run names a last human message without an id."""
    messages: list[BaseMessage] = (
        [HumanMessage(given)] if isinstance(given, str) else [*_messages(given)]
    )
    place = _last_human(messages)
    if not messages[place].id:
        messages[place] = messages[place].model_copy(update={"id": run_id})
    return cast("list[AnyMessage]", messages)


def _any_human(messages: list[AnyMessage]) -> Turn:
    """Return the turn of the last human message, where software wrote all of them."""
    place = _last_human(messages)
    return Turn([messages[place]], messages[place + 1 :], place)


def _earlier(
    messages: list[AnyMessage], judge: FromPerson | None, thread: str, turn: Turn
) -> Iterator[str]:
    """Yield the names of the questions before a turn's."""
    for each in questions_in(messages, judge):
        if each.place < turn.place:
            yield question_id(thread, each)


def _messages(given: Any) -> list[BaseMessage]:
    if isinstance(given, PromptValue):
        return given.to_messages()
    if isinstance(given, BaseMessage):
        return [given]
    if isinstance(given, list | tuple):
        return convert_to_messages(given)
    msg = f"a chain with memory is given a text, messages or a prompt value, got {given!r:.80}"
    raise InputError(msg)


def _messages_in(prompt: Any) -> Iterator[Any]:
    """Yield the messages of what a chain is given, under whatever name."""
    if isinstance(prompt, PromptValue):
        yield from prompt.to_messages()
    elif isinstance(prompt, Mapping | list | tuple):
        for each in prompt.values() if isinstance(prompt, Mapping) else prompt:
            yield from _messages_in(each)
    else:
        yield prompt


def _last_human(messages: Sequence[BaseMessage]) -> int:
    humans = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if humans:
        return next((n for n in reversed(humans) if is_from_person(messages[n])), humans[-1])
    msg = "there is no human message to recall memory for, or to put it in"
    raise InputError(msg)


def _placed(prompt: Any, block: str) -> Any:
    """Put a block behind what a user said last, and before a text, which ends with what is asked."""
    if not block:
        return prompt
    if isinstance(prompt, str):
        return block + prompt
    if isinstance(prompt, StringPromptValue):
        return StringPromptValue(text=block + prompt.text)
    messages = _messages(prompt)
    position = _last_human(messages)
    messages[position] = with_block(messages[position], block)
    if isinstance(prompt, PromptValue):
        return ChatPromptValue(messages=messages)
    return messages[0] if isinstance(prompt, BaseMessage) else messages


def _replies(output: Any, key: str | None) -> Sequence[AnyMessage]:
    """Return what a chain said, as messages; nothing where it said nothing."""
    if isinstance(output, Mapping) and (key or len(output) == 1 or _OUTPUT in output):
        output = output[_key(output, key, _OUTPUT)]
    if output is None:
        return []
    if isinstance(output, BaseMessage):
        output = [output]
    if isinstance(output, list) and output and all(isinstance(o, BaseMessage) for o in output):
        return cast("list[AnyMessage]", output)
    return [AIMessage(output if isinstance(output, str) else _written(output))]


def _written(output: Any) -> str:
    value = output.model_dump(mode="json") if isinstance(output, BaseModel) else output
    try:
        return canonical_json(value)
    except (TypeError, ValueError):
        return str(value)


def _whole(chunks: Iterable[Any]) -> Any:
    """Put chunks together; where they cannot be added up, each is all there is so far."""
    return reduce(_added, chunks, None)


def _added(held: Any, chunk: Any) -> Any:
    if held is None:
        return chunk
    try:
        return held + chunk
    except TypeError:
        return chunk
