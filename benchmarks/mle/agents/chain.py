"""The chain agent of a study: action after action, as OpenHands' CodeActAgent."""

from typing import ClassVar

from typing_extensions import override

from langgraft.benchmarks.mle.agents.base import Graph, Parts, Place, must_be
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings, ChainSettings
from langgraft.benchmarks.mle.agents.steps import StepAgent, limited


class ChainAgent(StepAgent):
    """Runs commands and cells, edits files, and looks at what came of each."""

    name: ClassVar[AgentName] = "chain"
    title: ClassVar[str] = "chain of actions (OpenHands CodeAct)"
    prompts: ClassVar[tuple[str, ...]] = (
        "chain_system",
        "chain_task",
        "chain_continue",
        "chain_recovery",
        "bounds",
        "use_all_time",
        "may_finish",
        "diagnose",
        "judge_novelty",
        "judge_novelty_message",
        "repair",
    )
    ignorance: ClassVar[float] = 1.6

    @override
    def calls_a_step(self, settings: AgentSettings) -> int:
        """Return one: a reply is a step whatever it says, and one that is too long is cut down."""
        del settings
        return 1

    @override
    def graph(self, parts: Parts, place: Place) -> Graph:
        """Build the chain; it shows nothing while it goes on."""
        from langgraft.graphs.chain import build_chain_agent  # noqa: PLC0415  (not for plans)

        section = must_be(parts.settings, ChainSettings)
        return build_chain_agent(
            parts.model,
            context=section.context,
            on_stuck=section.on_stuck,
            recoveries=section.recoveries,
            **parts.arguments(place),
            **limited(section),
        )
