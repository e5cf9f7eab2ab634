"""`act`: take the action in the world."""

from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft.memory.recall import strip_block
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.sessions import EnvironmentSessions
from langgraft.nodes.state import AgentState, Node, StepState, Update

OUT_OF_ROUNDS = "out of rounds"
GOAL_REACHED = "goal reached"
ENDED = "ended by the world"


@checked
def act_node(sessions: EnvironmentSessions) -> Runnable[AgentState, Update]:
    """Make the node that takes the chosen action.

    A reply without one costs its round too, and is answered with what was wrong and the form.
    """
    repair = shipped("act_repair")

    def act(state: AgentState) -> Update:
        if not state["valid"]:
            observation = repair.render(problem=state["reason"]).strip()
            return _after(
                state, observation, done=False, success=state["success"], reward=state["score"]
            )
        taken = [step["action"] for step in state["steps"][1:] if step["valid"]]
        result = sessions.step(state["episode_id"], state["task_id"], taken, state["action"])
        return _after(
            state,
            result.observation,
            done=result.done,
            success=result.success,
            reward=result.reward,
        )

    def _after(
        state: AgentState, observation: str, *, done: bool, success: bool, reward: float
    ) -> Update:
        exhausted = len(state["steps"]) >= state["max_rounds"]
        if exhausted and not done:
            sessions.end(state["episode_id"])
        step = StepState(
            said=state["said"],
            thought=strip_block(state["thought"]),
            action=state["action"],
            observation=observation,
            valid=state["valid"],
        )
        return {
            "steps": [step],
            "done": done or exhausted,
            "success": success,
            "score": reward,
            "reason": _reason(done=done, success=success, exhausted=exhausted),
        }

    return Node("act", act)


def _reason(*, done: bool, success: bool, exhausted: bool) -> str:
    if success:
        return GOAL_REACHED
    if done:
        return ENDED
    return OUT_OF_ROUNDS if exhausted else ""
