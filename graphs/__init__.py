"""Agents: one file and one `build_…` function each, wiring nodes into a compiled graph."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.graphs.chain import build_chain_agent
    from langgraft.graphs.mlab import build_mlab_agent
    from langgraft.graphs.react import build_react_agent
    from langgraft.graphs.solver import build_solver
    from langgraft.graphs.tree import build_tree_agent

__all__ = [
    "build_chain_agent",
    "build_mlab_agent",
    "build_react_agent",
    "build_solver",
    "build_tree_agent",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "build_chain_agent": "langgraft.graphs.chain",
        "build_mlab_agent": "langgraft.graphs.mlab",
        "build_react_agent": "langgraft.graphs.react",
        "build_solver": "langgraft.graphs.solver",
        "build_tree_agent": "langgraft.graphs.tree",
    },
)
