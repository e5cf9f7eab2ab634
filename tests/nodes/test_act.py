"""Acting on replies that hold no action."""

from toy_world import Corridors

from langgraft.nodes import AgentState, EnvironmentSessions, act_node


def test_reply_when_unreadable_does_not_take_back_what_was_reached() -> None:
    """A world may call a goal reached and go on; a slip of the pen after that loses nothing."""
    act = act_node(EnvironmentSessions(Corridors()))
    state = AgentState(
        task_id="toy/1",
        episode_id="e",
        steps=[{"said": "", "thought": "", "action": "", "observation": "start", "valid": True}],
        said="hm",
        thought="hm",
        action="",
        valid=False,
        reason="no action",
        success=True,
        score=0.9,
        max_rounds=5,
        done=False,
    )
    after = act.invoke(state)
    assert after["success"] is True
    assert after["score"] == 0.9
