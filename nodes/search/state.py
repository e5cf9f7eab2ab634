"""The state of a tree search: references and numbers, so that no checkpoint grows with the steps.

Programs, outputs, submissions and records are contents in `Artifacts`; the journal is a chain of
records there, and the state holds the reference of its head.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Generic, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict, override

from langgraft.nodes.search.journal import Stage


class Work(TypedDict, total=False):
    """One program on its way through a branch: what is known of it so far."""

    step: int
    id: str
    """Name of the program in the journal."""
    stage: Stage
    parent_id: str | None
    recalled: str
    """Reference of what memory said."""
    written: str
    """Reference of plan and code."""
    executed: str
    """Reference of what came of the program."""
    reviewed: str
    """Reference of what the review made of that."""
    diagnosed: str
    """Reference of the error record."""
    reflected: str
    """Reference of the lessons."""


class TreeInput(TypedDict, total=False):
    """What a tree search is invoked with."""

    episode_id: str
    """Unique name of the search; made up where it is not given."""
    seed: int
    """Of the policy's chance; 0 where it is not given."""


class TreeOutput(TypedDict, total=False):
    """What a tree search gives back."""

    episode_id: str
    journal: str
    """Reference of the journal's last record, for `read_search`; empty without a program."""
    chosen: str
    """The program whose submission counts; empty where none is valid."""
    metric: float | None
    """Its validation metric."""
    submission: str
    """Reference of its submission, or empty."""
    candidates: list[dict[str, Any]]
    """The programs looked at before submitting, as `langgraft.nodes.search.selection.Candidate`."""
    done: bool


class BranchOutput(TypedDict, total=False):
    """What a branch gives back to the search."""

    finished: list[Work]


def gathered(kept: list[Work], new: list[Work] | None) -> list[Work]:
    """Add what branches finished, in the order of their steps; `None` empties the list."""
    if new is None:
        return []
    done = {work["step"]: work for work in (*kept, *new)}
    return [done[step] for step in sorted(done)]


class TreeState(TreeOutput, total=False):
    """State of a tree search: plain JSON, of the same size at every step."""

    seed: int
    begun: str
    """The `episode_id` begun last: one that a later input of the same thread does not replace is
    left over from it."""
    preview: str
    """Reference of the data preview."""
    bank: str
    """Reference of what memory held at the start, where the search teaches it."""
    wave: list[Work]
    """The programs being written now, at most `width` of them."""
    finished: Annotated[list[Work], gathered]
    """Programs that branches of this wave have brought so far."""
    queue: list[Work]
    """Programs that are to be filed, in the order of their steps."""
    judged: str
    """Reference of the answers to what memory asked about the first of them."""


class BranchState(BranchOutput, total=False):
    """State of a branch, which brings one program from recall to review."""

    episode_id: str
    seed: int
    preview: str
    journal: str
    """Reference of the journal as it was when the branch began."""
    work: Work


Update = dict[str, Any]
"""What a node returns: new values for some keys of the state."""

S = TypeVar("S", bound="TreeState | BranchState")


class SearchNode(Runnable[S, Update], Generic[S]):
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
