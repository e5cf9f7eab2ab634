"""A node of a graph: one name, one function, and its async twin where there is one."""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import override

Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""

S = TypeVar("S")


class GraphNode(Runnable[S, Update], Generic[S]):
    """A node made of a function and its async twin; without one, the function runs in a thread."""

    def __init__(
        self,
        name: str,
        call: Callable[[S], Update],
        acall: Callable[[S], Awaitable[Update]] | None = None,
    ) -> None:
        self.name = name
        self._call = call
        self._acall = acall

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
