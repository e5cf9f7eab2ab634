"""A node of a graph: one function with its async twin, or one program for both; names of its calls.

Two drafts of a search may have the very same prompt, and a cache of replies would hand out the
first one's again. Every model call of a search or run therefore carries a name in its metadata that
says whose it is. Caches add it to their keys, simulated models to their random numbers, and traces
show it.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

from langgraft._core.effects import Effect, Program, ado, arun, do, run

Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""

SAMPLE: Final = "langgraft_sample"
"""Metadata of a model call: `<episode_id>/<node id>/<what>`."""

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


def sample_config(episode_id: str, node_id: str, what: str) -> RunnableConfig:
    """Return the settings of a model call that name its sample.

    Args:
        episode_id: The search or run.
        node_id: The program or step that the call is about.
        what: What the call is for: `write`, `review`, `diagnose`, `judge` …
    """
    return RunnableConfig(metadata={SAMPLE: f"{episode_id}/{node_id}/{what}"})
