"""The agents of the study, one object each: what a plan, a run and a user need of it.

base        what every agent is to them (`Agent`), and what came of a run (`Came`)
settings    an agent's section of a plan
tree        the search over programs (AIDE)
steps       what agents that work step by step have in common
chain       the chain of actions (OpenHands' CodeActAgent)
mlab        the six-field agent (MLAgentBench)
"""

from typing import TYPE_CHECKING

from langgraft.benchmarks.mle.agents.settings import AgentName

if TYPE_CHECKING:
    from langgraft.benchmarks.mle.agents.base import Agent

__all__ = ["AgentName", "agent_named"]


def agent_named(name: AgentName) -> "Agent":
    """Return an agent by its name in plans; graphs are imported when one is built."""
    from langgraft.benchmarks.mle.agents.chain import ChainAgent  # noqa: PLC0415  (plans are light)
    from langgraft.benchmarks.mle.agents.mlab import MlabAgent  # noqa: PLC0415
    from langgraft.benchmarks.mle.agents.tree import TreeAgent  # noqa: PLC0415

    found: dict[AgentName, Agent] = {
        "tree": TreeAgent(),
        "chain": ChainAgent(),
        "mlab": MlabAgent(),
    }
    return found[name]
