"""Memory for a chain: a chat model, or `prompt | model | parser`, that recalls and is remembered.

    chain = with_memory(prompt | model | StrOutputParser(), memory)
    chain.invoke({"question": "The office wifi is down"})

A call of the chain is a turn, as between two nodes of a graph (`langgraft.nodes.chat`): memory is asked
about the question, what it recalls goes behind the text of the last human message, and question and
answer are filed as one episode. Of a sequence the block goes into what its last prompt template makes,
so that nothing before it sees memory: a retriever is asked with the question alone.
"""

import logging
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, Literal, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForChainRun, CallbackManagerForChainRun
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue
from langchain_core.prompts import BasePromptTemplate
from langchain_core.runnables import Runnable, RunnableConfig, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase
from pydantic import BaseModel
from typing_extensions import override

from langgraft._core.arguments import check_argument, checked
from langgraft._core.canonical import canonical_json
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError
from langgraft.memory.model import strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.chat import JudgeOutcome, recall_for_messages, remember_messages
from langgraft.nodes.dialogue import ChatModel
from langgraft.nodes.replies import reply_text
from langgraft.nodes.turns import is_question

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
) -> Runnable[Any, Any]:
    """Give a chain memory; it is called, streamed and piped as before.

    What is recalled is in what the chain's model is sent, and in nothing that comes out: as the model of a
    node of any `StateGraph`, it leaves no trace in the graph's state.

    Chunks pass as they come, and the turn is filed when the stream has ended: one that breaks off or is
    abandoned is not, and neither is a reply that calls tools, as the turn goes on. The id of the last
    human message, or else that of the run, names the episode, with what was asked and answered: a call
    that is made again with the same (`config={"run_id": …}`) and gets the same answer is filed once.

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
        model: Writes drafts, reflects and judges, for providers that need it.
        on_error: Whether a fault of memory (a store that is down, an embedder, a model that reflects) is
            logged and costs no answer, or is raised.

    Raises:
        SettingsError: The provider needs what is not there; see `recall_for_messages` and
            `remember_messages`. Of a function this is raised when the chain is called, also where
            it returns something else than a provider.

    The chain raises `InputError` where it finds no question, or no human message to put memory in.
    """

    def nodes_of(memory: MemoryProvider[Any]) -> _Nodes:
        recall = recall_for_messages(memory, domain=domain, budget=budget, model=model)
        if not remember:
            return recall, None
        filing = remember_messages(memory, domain=domain, outcome=outcome, model=model)
        return recall, filing

    if isinstance(memory, MemoryProvider):
        nodes = nodes_of(memory)
        return _WithMemory(runnable, lambda _: nodes, input_key, output_key, on_error)

    def nodes_for(config: RunnableConfig) -> _Nodes:
        found = memory(config)
        check_argument("what `memory` of with_memory returns", found, MemoryProvider)
        return nodes_of(found)

    return _WithMemory(runnable, nodes_for, input_key, output_key, on_error)


_Node: TypeAlias = Runnable[Any, dict[str, Any]]
_Nodes: TypeAlias = tuple[_Node, _Node | None]
"""What recalls, and what remembers, if anything does."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A call of a chain, once memory was asked."""

    prompt: Any
    """What the chain is given, with what was recalled."""
    messages: Sequence[BaseMessage]
    """The question, with its receipts, and what came after it."""
    remember: _Node | None


class _WithMemory(Runnable[Any, Any]):
    """A chain with memory around it."""

    name = "with_memory"

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        nodes: Callable[[RunnableConfig], _Nodes],
        input_key: str | None,
        output_key: str | None,
        on_error: str,
    ) -> None:
        self._head, self._tail = _split(runnable)
        self._on_error = on_error
        self._nodes = nodes
        self._input_key, self._output_key = input_key, output_key

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
        run(self._end(turn, output, config), do)
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
        await arun(self._end(turn, output, config), ado)
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
        run(self._end(turn, _whole(chunks), config), do)

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
        await arun(self._end(turn, _whole(chunks), config), ado)

    def _begin(self, given: Any, config: RunnableConfig, run_id: str) -> Program[Call, _Turn]:
        recall, remember = self._nodes(config)
        key = _key(given, self._input_key, _INPUT) if isinstance(given, Mapping) else None
        question, rest = _question(given if key is None else given[key])
        text = strip_block(reply_text(question))
        asked = HumanMessage(text, id=question.id or run_id)
        state = {"messages": [asked, *rest]}
        block = ""
        try:
            update = yield Call(recall.invoke, recall.ainvoke, state, _apart(config))
        except Exception as error:  # noqa: BLE001 - whatever its store, embedder or model raises
            self._fault("nothing was recalled", error)
        else:
            asked = update["messages"][-1]
            block = str(asked.content).removesuffix(text)
        prompt = given
        if self._head is not None:
            prompt = yield Call(self._head.invoke, self._head.ainvoke, given, config)
            prompt = _placed(prompt, block)
        elif key is None:
            prompt = _placed(prompt, block)
        else:
            prompt = {**given, key: _placed(given[key], block)}
        return _Turn(prompt, [asked, *rest], remember)

    def _end(self, turn: _Turn, output: Any, config: RunnableConfig) -> Program[Call, None]:
        replies = _replies(output, self._output_key)
        if turn.remember is None or not replies:
            return
        if isinstance(replies[-1], AIMessage) and replies[-1].tool_calls:
            return
        state = {"messages": [*turn.messages, *replies]}
        try:
            yield Call(turn.remember.invoke, turn.remember.ainvoke, state, _apart(config))
        except Exception as error:  # noqa: BLE001 - whatever its store or model raises
            self._fault("the turn was not filed", error)

    def _fault(self, what: str, error: Exception) -> None:
        if self._on_error == "raise":
            raise error
        logger.warning(
            "Memory failed, the chain goes on: %s (%s: %s)", what, type(error).__name__, error
        )


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


def _apart(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration of a node of ours, which is no node of the graph that a chain may be in."""
    thread = config.get("configurable", {}).get("thread_id")
    return {**config, "configurable": {} if thread is None else {"thread_id": thread}}


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


def _question(given: Any) -> tuple[HumanMessage, Sequence[BaseMessage]]:
    """Return the last thing a user said, and what came after it."""
    messages = [HumanMessage(given)] if isinstance(given, str) else _messages(given)
    position = _last_human(messages)
    question = messages[position]
    assert isinstance(question, HumanMessage)
    return question, messages[position + 1 :]


def _messages(given: Any) -> list[BaseMessage]:
    if isinstance(given, PromptValue):
        return given.to_messages()
    if isinstance(given, BaseMessage):
        return [given]
    if isinstance(given, list | tuple):
        return convert_to_messages(given)
    msg = f"a chain with memory is given a text, messages or a prompt value, got {given!r:.80}"
    raise InputError(msg)


def _last_human(messages: Sequence[BaseMessage]) -> int:
    humans = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if humans:
        return next((n for n in reversed(humans) if is_question(messages[n])), humans[-1])
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
    asked = messages[position]
    ours = {"type": "text", "text": block}
    content = asked.content
    told: Any = f"{content}\n\n{block}" if isinstance(content, str) else [*content, ours]
    messages[position] = asked.model_copy(update={"content": told})
    if isinstance(prompt, PromptValue):
        return ChatPromptValue(messages=messages)
    return messages[0] if isinstance(prompt, BaseMessage) else messages


def _replies(output: Any, key: str | None) -> Sequence[BaseMessage]:
    """Return what a chain said, as messages; nothing where it said nothing."""
    if isinstance(output, Mapping) and (key or len(output) == 1 or _OUTPUT in output):
        output = output[_key(output, key, _OUTPUT)]
    if output is None:
        return []
    if isinstance(output, BaseMessage):
        output = [output]
    if isinstance(output, list) and output and all(isinstance(o, BaseMessage) for o in output):
        return output
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
