"""MLAB in a study: MLAgentBench's agent of six fields, with the tools that MLE-bench gives it."""

from typing import ClassVar, Final

from typing_extensions import override

from langgraft.benchmarks.mle.agents.base import Graph, Parts, Place, must_be
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings, MlabSettings
from langgraft.benchmarks.mle.agents.steps import StepAgent, limited
from langgraft.nodes.mlab.tools import BLOCKS

INSIDE_CALLS: Final = 2 * (BLOCKS + 1)
"""Calls beside the reply at the most: a file is read in blocks and put together, and what was seen
is shortened in the same way. One that is too long for the model is asked in short, which is more."""


class MlabAgent(StepAgent):
    """Reflects, plans and calls one tool a step, seeing its last three."""

    name: ClassVar[AgentName] = "mlab"
    title: ClassVar[str] = "MLAB (MLAgentBench)"
    prompts: ClassVar[tuple[str, ...]] = (
        "mlab_task",
        "mlab_turn",
        "mlab_format",
        "mlab_repair",
        "mlab_edit",
        "mlab_edit_repair",
        "mlab_understand",
        "mlab_understand_all",
        "mlab_summarize",
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
        """Return a reply, its corrections, and what a tool asks."""
        return 1 + must_be(settings, MlabSettings).retries + INSIDE_CALLS

    @override
    def graph(self, parts: Parts, place: Place) -> Graph:
        """Build MLAB; it shows nothing while it goes on."""
        from langgraft.graphs.mlab import build_mlab_agent  # noqa: PLC0415  (not for plans)

        section = must_be(parts.settings, MlabSettings)
        return build_mlab_agent(
            parts.model,
            window=section.window,
            retries=section.retries,
            **parts.arguments(place),
            **limited(section),
        )
