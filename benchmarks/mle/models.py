"""The models of a plan's agents: cached, capped and retried as that of the plan itself is."""

from typing import Final, TypeAlias

from langchain_core.language_models import BaseChatModel

from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.harness.study import SIMULATED
from langgraft.benchmarks.mle.agents.settings import AgentSettings
from langgraft.benchmarks.mle.plan import MlePlan

Models: TypeAlias = tuple[BaseChatModel, BaseChatModel | None]
"""The model that acts, and the one for feedback; `None` where that is the same."""

_SHARED: Final = ("responses", "budget", "retry", "timing")
"""What an agent's own models have in common with that of the plan."""

_Named: TypeAlias = tuple[str, str | None]
"""A model's name, and where its server listens."""


def models_of(plan: MlePlan, agent: AgentSettings, model: BaseChatModel) -> Models:
    """Make an agent's models.

    Args:
        plan: Names them, where the agent's section does not.
        agent: The section.
        model: The model of the plan.

    Raises:
        InputError: One cannot be set up.
    """
    acting, feedback = _acting(plan, agent), _feedback(plan, agent)
    return (
        model if acting is None else _made(plan, agent, acting, model),
        None if feedback is None else _made(plan, agent, feedback, model),
    )


def check_models(plan: MlePlan) -> None:
    """See whether the models that agents have beside that of the plan can be made.

    Raises:
        InputError: One cannot be set up.
    """
    for agent in plan.agents:
        for named in (_acting(plan, agent), _feedback(plan, agent)):
            if named is not None:
                _made(plan, agent, named, None)


def _acting(plan: MlePlan, agent: AgentSettings) -> _Named | None:
    """Return the model that acts, unless it is that of the plan."""
    if plan.model == SIMULATED:
        return None
    if agent.model is None and plan.temperature_of(agent) == plan.temperature:
        return None
    return agent.model or plan.model, agent.base_url or plan.base_url


def _feedback(plan: MlePlan, agent: AgentSettings) -> _Named | None:
    """Return the model for feedback, unless it is the one that acts."""
    for named in (agent, plan):
        if named.feedback_model is not None:
            return named.feedback_model, named.feedback_base_url or plan.base_url
    return None


def _made(
    plan: MlePlan, agent: AgentSettings, named: _Named, model: BaseChatModel | None
) -> BaseChatModel:
    name, url = named
    temperature = plan.temperature_of(agent)
    made = make_model(
        name,
        base_url=url,
        temperature=temperature,
        max_tokens=plan.max_tokens,
        call_seconds=plan.call_seconds,
        reply_bytes=plan.reply_bytes,
    )
    if not isinstance(model, MeteredChatModel):
        return made
    return made.model_copy(update={shared: getattr(model, shared) for shared in _SHARED})
