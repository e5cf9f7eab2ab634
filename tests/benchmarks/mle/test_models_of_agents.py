"""Which models the agents of a plan have, and how they are asked."""

from pathlib import Path
from typing import Any

import pytest

from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import MeteredChatModel, real_model, silence
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.session import models_of

PLAN = {"study": "mle", "model": "openai:o3", "temperature": 1, "max_tokens": 1000}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def asked(plan: dict[str, Any], **section: Any) -> list[tuple[str, float, int] | None]:
    """Return name, temperature and most tokens of the model that acts, and of that for feedback."""
    read = MlePlan.model_validate({**PLAN, **plan, "agents": [{"name": "tree", **section}]})
    acting, feedback = models_of(read, read.agents[0], real_model(read, None))
    return [None if each is None else _how(each) for each in (acting, feedback)]


def _how(model: Any) -> tuple[str, float, int]:
    assert isinstance(model, MeteredChatModel)
    identity = model.identity
    return identity["model"], identity["temperature"], identity["max_tokens"]


def test_models_when_a_section_says_nothing_are_the_plans() -> None:
    """One model for all, asked in one way."""
    assert asked({}) == [("openai:o3", 1, 1000), None]


def test_models_when_a_section_has_its_own_room_are_asked_with_it() -> None:
    """What reasons before it writes gets more, and feedback of another model keeps the plan's."""
    more = asked({"feedback_model": "openai:gpt-4.1"}, max_tokens=64_000)
    assert more == [("openai:o3", 1, 64_000), ("openai:gpt-4.1", 1, 1000)]
    own = {"max_tokens": 64_000, "feedback_max_tokens": 500, "feedback_temperature": 0.5}
    assert asked({"feedback_model": "openai:gpt-4.1"}, **own)[1] == ("openai:gpt-4.1", 0.5, 500)


def test_models_when_feedback_has_a_temperature_alone_is_the_one_that_acts_at_it() -> None:
    """A review has a temperature of its own, whoever reviews."""
    assert asked({}, feedback_temperature=0) == [("openai:o3", 1, 1000), ("openai:o3", 0, 1000)]
    with_more = asked({}, max_tokens=64_000, feedback_temperature=0)
    assert with_more[1] == ("openai:o3", 0, 64_000)


def test_models_when_replies_are_replayed_need_no_key_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those for feedback answer from the same file."""
    monkeypatch.delenv("OPENAI_API_KEY")
    ResponseCache(tmp_path / "kept.sqlite").close()
    plan = {**PLAN, "feedback_model": "openai:gpt-4.1", "agents": [{"name": "tree"}]}
    read = MlePlan.model_validate(plan)
    with ResponseCache(tmp_path / "kept.sqlite", "read_only") as kept:
        acting = real_model(read, kept)
        _, feedback = models_of(read, read.agents[0], acting)
        assert isinstance(feedback, MeteredChatModel)
        assert feedback.responses is kept


def test_models_when_calls_may_take_longer_may_be_silent_as_long() -> None:
    """What is not streamed comes after all that was reasoned."""
    assert silence(MlePlan.model_validate(PLAN)) == 1800
    assert silence(MlePlan.model_validate({**PLAN, "call_seconds": 60})) == 300


def test_trees_when_they_have_other_operators_are_other_agents() -> None:
    """Both readings fit into one plan."""
    agents = ["tree", {"name": "tree", "operators": "current"}]
    agents += [{"name": "tree", "policy": "uct", "operators": "current"}]
    plan = MlePlan.model_validate({"study": "mle", "agents": agents})
    assert [each.label for each in plan.agents] == ["tree", "tree-current", "tree-uct-current"]
