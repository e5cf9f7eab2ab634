"""`select`: which programs to write next, several where branches work side by side."""

from collections.abc import Sequence

from langgraph.types import Send

from langgraft._core.arguments import checked
from langgraft._core.errors import InputError
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.policy import Expansion, SearchPolicy
from langgraft.nodes.search.state import BranchState, TreeState, Work


@checked
def select_node(
    place: Place, policy: SearchPolicy, *, steps: int, width: int
) -> GraphNode[TreeState]:
    """Make the node that asks the policy for the programs of the next wave.

    Args:
        place: The competition, and where contents are kept.
        policy: Chooses; it is told what the wave already holds.
        steps: Programs in all.
        width: Programs of a wave; the last may have fewer.
    """

    def select(state: TreeState) -> Update:
        nodes = place.nodes(state["journal"])
        wave: list[Expansion] = []
        while len(wave) < min(width, steps - len(nodes)):
            expansion = policy.choose(
                nodes,
                step=len(nodes) + len(wave),
                seed=state["seed"],
                lower_is_better=place.lower_is_better,
                under_way=tuple(wave),
            )
            _check(expansion, nodes)
            wave.append(expansion)
        first = len(nodes)
        return {"wave": [_work(first + n, expansion) for n, expansion in enumerate(wave)]}

    return GraphNode("select", select)


def branches(state: TreeState) -> list[Send] | str:
    """Send the programs of a wave to branches; without any, the search is at its end."""
    if not state["wave"]:
        return "choose"
    return [
        Send(
            "branch",
            BranchState(
                episode_id=state["episode_id"],
                preview=state["begun"]["preview"],
                journal=state["journal"],
                work=work,
            ),
        )
        for work in state["wave"]
    ]


def node_id(step: int) -> str:
    """Name the program of a step: the same in every run."""
    return f"{step:03d}"


def _work(step: int, expansion: Expansion) -> Work:
    return Work(step=step, id=node_id(step), stage=expansion.stage, parent_id=expansion.parent_id)


def _check(expansion: Expansion, nodes: Sequence[JournalNode]) -> None:
    """Refuse what no branch can do: a policy may be anybody's.

    Raises:
        InputError: It repairs or betters nothing, or a draft has a parent.
    """
    known = {node.id for node in nodes}
    drafts = expansion.stage == "draft" and expansion.parent_id is None
    grows = expansion.stage in ("debug", "improve") and expansion.parent_id in known
    if not (drafts or grows):
        msg = (
            f"the policy chose {expansion!r}: a draft has no parent, and `debug` and `improve`"
            f" name a program of the journal, which has {len(nodes)}"
        )
        raise InputError(msg)
