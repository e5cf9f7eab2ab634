"""A node of a graph: one name, and one function with its async twin, or one program for both."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langgraft._core.effects import Effect, Program, ado, arun, do, run

Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""

S = TypeVar("S")


class Node(Runnable[S, Update], Generic[S]):
    """A node made of a function and its async twin; without one, the function runs in a thread.

    LangGraph takes one function or the other; a `RunnableLambda` takes both and costs more than
    most nodes do.
    """

    def __init__(
        self,
        name: str,
        call: Callable[[S], Update],
        acall: Callable[[S], Awaitable[Update]] | None = None,
    ) -> None:
        self.name = name
        self._call = call
        self._acall = acall

    @classmethod
    def running(
        cls, name: str, begin: Callable[[S], Program[Effect, Update]], *, in_threads: bool = False
    ) -> "Node[S]":
        """Make the node that runs a program about the state; what it returns is the update.

        Args:
            name: Its name in traces.
            begin: Begins the program.
            in_threads: Whether it reads and writes contents between its effects; see `arun`.
        """

        def call(state: S) -> Update:
            return run(begin(state), do)

        async def acall(state: S) -> Update:
            return await arun(begin(state), ado, in_threads=in_threads)

        return cls(name, call, acall)

    @override
    def invoke(self, input: S, config: RunnableConfig | None = None, **kwargs: Any) -> Update:
        """Run the node."""
        return self._call(input)

    @override
    async def ainvoke(
        self, input: S, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Update:
        """Run the node's async twin, or the node in a thread."""
        if self._acall is None:
            return await super().ainvoke(input, config, **kwargs)
        return await self._acall(input)
