"""Memory as LangChain has it: two tools for an agent that asks by itself, and a retriever.

    agent = create_agent(model, tools=[*memory_tools(memory), *tools])
    chain = {"notes": MemoryRetriever(memory=memory, k=3), …} | prompt | model

What they return is plain text for a model to read: no receipts, no markers of a block, within a budget,
and it says of itself that notes are data and no instructions.

A note that an agent remembers is filed as an episode like any other: one lesson, which is also all that
was seen. So memory that keeps notes, lessons or rules keeps it as its own kind of item, and memory that
keeps trajectories as one of a single observation. Nobody judged it: where only successes are kept, it
is not, and the tool says so. Memory of error records has no use for free notes; `memory_tools` refuses it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, TypeAlias

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import ensure_config
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, Field, SkipValidation, StringConstraints
from typing_extensions import override

from langgraft._core.arguments import check_argument, checked, validation_as
from langgraft._core.canonical import digest
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import SettingsError
from langgraft.memory.model import Add, Episode, Lesson, MemoryDelta, Outcome, Step, strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import render_lesson
from langgraft.memory.recall import Budget, Recall, RecallContext, without_markers
from langgraft.memory.sources import combined, host_of, source
from langgraft.nodes.dialogue import responding
from langgraft.nodes.identity import memory_of_call
from langgraft.nodes.judge import answering_all
from langgraft.nodes.memory import filed, provided, questions_about
from langgraft.nodes.redaction import Redact, redacted, redactor
from langgraft.nodes.replies import encodable

Runtime: TypeAlias = ToolRuntime[Any, Any]
MemoryOf: TypeAlias = MemoryProvider[Any] | Callable[[Runtime], MemoryProvider[Any]]
"""A memory, or what says which one it is: that of the user who asks."""

SEARCH_MEMORY: Final = "search_memory"
REMEMBER: Final = "remember"
"""Names of the tools."""

FOUND_NOTHING: Final = "Nothing is remembered about that."
REMEMBERED: Final = "Remembered."
NOT_KEPT: Final = "This memory keeps no notes of that kind: nothing was remembered."
"""What the tools say where there is nothing to show."""

LONGEST_NOTE: Final = 4_000
"""Most characters of a note: about 1,000 tokens, of the 8,000 a block has room for."""
MOST_FOUND: Final = 20
"""Most notes that a model may ask for at once."""

_FOLLOWS: Final = "langgraft_follows"
"""In the artifact of what a tool of memory says: what that follows from."""

_Answer: TypeAlias = tuple[str, dict[str, list[str]]]
_Said = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Search(BaseModel):
    query: _Said = Field(description="What to look for: the task or the question at hand.")
    limit: int = Field(default=5, ge=1, le=MOST_FOUND, description="Most notes to return.")


class _Note(BaseModel):
    text: _Said = Field(
        max_length=LONGEST_NOTE, description="What to remember, so that it can be read by itself."
    )
    when_to_use: str = Field(
        default="",
        max_length=LONGEST_NOTE,
        description="When it is of use: the situation or the task it will be looked for in.",
    )


@checked
def memory_tools(
    memory: MemoryOf,
    *,
    domain: str = "chat",
    budget: Budget | None = None,
    remember: bool = True,
    redact: Redact | None = None,
) -> list[BaseTool]:
    """Make the tools `search_memory` and `remember`, for an agent that asks and notes by itself.

    A search is a recall: how many notes there are at most is the provider's to say (its `top_k`), and
    no more than `limit` are shown. A note is filed once for each call of the tool, however often that
    call is run; called without an id, what says the same is filed once a thread.

    ```python
    def of_user(runtime: ToolRuntime) -> MemoryProvider:
        return SimpleRAG(runtime.store, namespace=("users", runtime.server_info.user.identity))


    agent = create_agent(model, tools=memory_tools(of_user), store=store, context_schema=Context)
    ```

    Args:
        memory: The provider, or a function of the tool's runtime (state, context, config, store) that
            returns it: so many users share one agent.
        domain: The task family that notes are filed under.
        budget: Most tokens of what a search returns; `None`: those of `Budget()`.
        remember: Whether there is the tool `remember`, too.
        redact: A function of a text, or LangChain's `RedactionRule`s. Queries and notes go through it.

    Raises:
        SettingsError: The provider learns from error records, which no note is; or, when a tool is
            called, the function returns something else than a provider.
    """
    budget, apply = budget or Budget(), redactor(redact, "`redact` of memory_tools")

    def search_of(query: str, limit: int, runtime: Runtime) -> Program[Call, _Answer]:
        found = _memory_of(memory, runtime)
        query = query if apply is None else apply(query)
        recalled = yield from provided(found, query, _asking(domain, query), budget)
        return _shown(recalled, limit, budget), {_FOLLOWS: [*recalled.receipt.sources]}

    def note_of(text: str, when_to_use: str, runtime: Runtime) -> Program[Call, _Answer]:
        kept_by = _memory_of(memory, runtime)
        _check_keeps_notes(kept_by)
        noted = redacted(_episode(domain, text, when_to_use, runtime), apply)
        if kept_by.settings.trust is not None:
            state = runtime.state if isinstance(runtime.state, Mapping) else {}
            sources = combined([source("tool", REMEMBER)], tools_in(state.get("messages", ())))
            noted = replace(noted, sources=sources)
        return (yield from _noting(kept_by, noted)), {_FOLLOWS: []}

    tools = [_tool(SEARCH_MEMORY, _SEARCHES, _Search, search_of)]
    if remember:
        if isinstance(memory, MemoryProvider):
            _check_keeps_notes(memory)
        tools.append(_tool(REMEMBER, _REMEMBERS, _Note, note_of))
    return tools


_SEARCHES: Final = (
    "Search the notes kept from earlier conversations and tasks. Use it before you answer from"
    " scratch, ask the user again, or begin a task that may have come up before."
)
_REMEMBERS: Final = (
    "Keep a note for later conversations and tasks: a preference, a fact, or what worked. Say when"
    " it will be of use. Do not keep what concerns this conversation alone, nor secrets."
)


class _MemoryTool(StructuredTool):
    """A tool that always has a runtime: a graph's, or outside of one what the call tells."""

    @override
    def run(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        return super().run(self._with_runtime(tool_input, kwargs), *args, **kwargs)

    @override
    async def arun(self, tool_input: str | dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        return await super().arun(self._with_runtime(tool_input, kwargs), *args, **kwargs)

    def _with_runtime(
        self, tool_input: str | dict[str, Any], call: dict[str, Any]
    ) -> dict[str, Any]:
        held = tool_input if isinstance(tool_input, dict) else {next(iter(self.args)): tool_input}
        # A reply may hold lone surrogates, which pydantic would refuse in words that tell a model nothing.
        given = {k: encodable(each) if isinstance(each, str) else each for k, each in held.items()}
        if given.get("runtime") is not None:
            return given
        runtime = ToolRuntime[Any, Any](
            state={},
            context=None,
            config=ensure_config(call.get("config")),
            stream_writer=lambda _: None,
            tool_call_id=call.get("tool_call_id"),
            store=None,
        )
        return {**given, "runtime": runtime}


def _tool(
    name: str,
    description: str,
    schema: type[BaseModel],
    begin: Callable[..., Program[Call, _Answer]],
) -> BaseTool:
    def call(runtime: ToolRuntime, **arguments: Any) -> _Answer:
        return run(begin(**arguments, runtime=runtime), do)

    async def acall(runtime: ToolRuntime, **arguments: Any) -> _Answer:
        return await arun(begin(**arguments, runtime=runtime), ado)

    return _MemoryTool(
        name=name,
        description=description,
        args_schema=schema,
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
    )


def _memory_of(memory: MemoryOf, runtime: Runtime) -> MemoryProvider[Any]:
    if isinstance(memory, MemoryProvider):
        return memory
    found = memory_of_call(memory, runtime)
    check_argument("what `memory` of memory_tools returns", found, MemoryProvider)
    return found


def _check_keeps_notes(memory: MemoryProvider[Any]) -> None:
    if "errors" in memory.needs:
        msg = (
            f"{type(memory).__name__} learns from error records, and a note is none: diagnose in a"
            " node of your own, and make memory_tools with remember=False"
        )
        raise SettingsError(msg)


def _asking(domain: str, query: str) -> RecallContext:
    # The first of its stream: memory that speaks up every few episodes answers who asks it outright.
    return RecallContext(
        domain=domain, task_id="", episode_id="search", episode_index=0, observation=query
    )


def _shown(recalled: Recall, limit: int, budget: Budget) -> str:
    """Write what was recalled for a model, within the budget by any counter."""
    texts = [without_markers(item.text) for item in recalled.items[:limit]]
    while texts:
        text = without_markers("\n\n".join(filter(None, (budget.introduction, *texts))))
        if budget.tokens is None or budget.count(text) <= budget.tokens:
            return text
        texts.pop()
    return FOUND_NOTHING


def tools_in(messages: Iterable[Any]) -> set[str]:
    """Return the tools and pages whose output messages hold, as sources.

    For a tool of memory what it found stands in its place. It is known by its artifact: anybody's tool
    may have its name.
    """
    found: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            told = message.artifact.get(_FOLLOWS) if isinstance(message.artifact, dict) else None
            if message.name not in (SEARCH_MEMORY, REMEMBER) or told is None:
                told = [source("tool", encodable(message.name or "unnamed"))]
            found.update(told)
        elif isinstance(message, AIMessage):
            found.update(_of_server(message))
    return found


def _of_server(message: AIMessage) -> Iterator[str]:
    """Yield the tools that a model's provider ran within a reply, and the hosts of pages it cites."""
    try:
        blocks = message.content_blocks
    except Exception:  # noqa: BLE001 - translators of many providers read what a server sent
        yield source("tool", "unnamed")
        return
    for block in blocks:
        match block:
            case {"type": "server_tool_call" | "server_tool_call_chunk"}:
                yield source("tool", encodable(str(block.get("name") or "unnamed")))
            case {"type": "text", "annotations": list(notes)}:
                for note in notes:
                    url = note.get("url") if isinstance(note, dict) else None
                    if url:
                        yield source("web", encodable(host_of(str(url)) or str(url)))


def _episode(domain: str, text: str, when_to_use: str, runtime: Runtime) -> Episode:
    """Make the episode of a note; the call names it, and what it says, as ids of calls may come again."""
    text, when = (strip_block(each).strip() for each in (text, when_to_use))
    thread = str(runtime.config.get("configurable", {}).get("thread_id", ""))
    said = digest([text, when])[:12]
    parts = (REMEMBER, thread, runtime.tool_call_id or "", said)
    identity = encodable("/".join(filter(None, parts)))
    return Episode(
        id=identity,
        domain=domain,
        task_id=identity,
        task=when or text,
        steps=(Step("", "", text),) if when else (),
        outcome=Outcome(success=None),
        lessons=(Lesson(text, when),),
    )


def _noting(memory: MemoryProvider[Any], episode: Episode) -> Program[Call, str]:
    questions = yield from questions_about(memory, episode)
    # The agent has judged: rules turn its note into the answer that adds it.
    said = render_lesson(episode.lessons[0]).removeprefix("- ")
    judged = yield from responding(answering_all(questions, [said]), None)
    verdicts = tuple(verdict for judgment in judged for verdict in judgment.verdicts)
    delta = yield from filed(memory, replace(episode, verdicts=verdicts))
    kept = _adds(delta) if delta else (yield from _holds(memory, episode))
    return REMEMBERED if kept else NOT_KEPT


def _adds(delta: MemoryDelta) -> bool:
    return any(isinstance(change, Add) for change in delta)


def _holds(memory: MemoryProvider[Any], episode: Episode) -> Program[Call, bool]:
    """Say whether the bank holds something of an episode that was filed before."""
    content = yield Call(memory.content, memory.acontent)
    return any(item.episode_id == episode.id for item in content.items.values())


class MemoryRetriever(BaseRetriever):
    """A memory as a LangChain retriever: what it recalls, as documents with ids.

    A document's metadata are its `score`, where the item was learned (`type`, `source_domain`,
    `episode_id`, `task_id`, `success`, `order_index`), and the item's own.

    ```python
    retriever = MemoryRetriever(memory=memory, k=3)
    retriever.invoke("the wifi is down")
    retriever.invoke("the wifi is down", k=1)
    ```

    Raises:
        SettingsError: There is no such argument, or a value is not possible.
    """

    memory: MemoryProvider[Any]
    """The provider that is asked."""
    k: int = Field(default=4, ge=1)
    """Most documents; the provider's own settings (`top_k`) may allow fewer."""
    domain: str = "chat"
    """The task family that asks."""
    budget: SkipValidation[Budget] = Budget()
    """Most tokens of all documents together, as of a recall."""

    def __init__(self, **fields: Any) -> None:
        with validation_as(SettingsError, "MemoryRetriever: ", type(self).model_fields):
            super().__init__(**fields)
        check_argument("`budget` of MemoryRetriever", self.budget, Budget)

    @override
    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return run(self._found(query, k), do)

    @override
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await arun(self._found(query, k), ado)

    def _found(self, query: str, k: int | None) -> Program[Call, list[Document]]:
        query = encodable(query)
        most = self.k if k is None else k
        if most < 1:
            msg = f"`k` of MemoryRetriever must be at least 1, got {most}"
            raise SettingsError(msg)
        context = _asking(self.domain, query)
        recalled = yield from provided(self.memory, query, context, self.budget)
        scored = zip(recalled.items[:most], recalled.scores, strict=False)
        return [
            Document(
                id=item.id,
                page_content=without_markers(item.text),
                metadata={
                    **item.metadata,
                    "score": score,
                    **item.model_dump(exclude={"id", "text", "key", "metadata"}),
                },
            )
            for item, score in scored
        ]
