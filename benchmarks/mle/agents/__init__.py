"""The agents of the study, one object each: what a plan, a run and a user need of it.

base        what every agent is to them (`Agent`), and what came of a run (`AgentResult`)
settings    an agent's section of a plan
tree        the search over programs (AIDE)
steps       agents that work step by step: the chain of actions (OpenHands' CodeActAgent) and the
            six-field agent (MLAgentBench)
"""

import importlib
from typing import TYPE_CHECKING

from langgraft.benchmarks.mle.agents.settings import AgentName

if TYPE_CHECKING:
    from langgraft.benchmarks.mle.agents.base import Agent

__all__ = ["AgentName", "agent_named"]

_CLASSES: dict[AgentName, tuple[str, str]] = {
    "tree": ("tree", "TreeAgent"),
    "chain": ("steps", "ChainAgent"),
    "mlab": ("steps", "MlabAgent"),
}


def agent_named(name: AgentName) -> "Agent":
    """Return an agent by its name in plans; it is imported then, and its graph when one is built."""
    module, kind = _CLASSES[name]
    found: Agent = getattr(importlib.import_module(f"{__name__}.{module}"), kind)()
    return found
