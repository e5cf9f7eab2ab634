"""An attempt at a problem: `pose` begins it, `solve` asks a model once, `grade` says what came of it."""

import uuid
from typing import Final

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from langgraft._core.arguments import checked
from langgraft._core.canonical import text_digest
from langgraft._core.effects import Call, Program
from langgraft._core.errors import InputError
from langgraft._core.texts import Prompt
from langgraft.environments.problems.domain import NO_ANSWER, ProblemDomain
from langgraft.memory.model import Feedback, strip_block
from langgraft.nodes.dialogue import ChatModel, Node, Update, chat_model, read_response
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.state import AgentState, StepState, fresh_state

ORACLE: Final[Feedback] = "oracle"
"""Whose word success is: a gold answer or hidden tests, which no solver would have in earnest."""


def solve_prompt() -> Prompt:
    """Return the template of every attempt: the same for all domains, memory in one marked place."""
    return shipped("solve")


@checked
def pose_node(domain: ProblemDomain) -> Runnable[AgentState, Update]:
    """Make the node that begins an attempt at the problem `task_id`.

    Raises:
        InputError: When it runs: the domain has no such problem.
    """

    def pose(state: AgentState) -> Update:
        problem = domain.problems.get(str(state.get("task_id")))
        if problem is None:
            msg = f"domain {domain.name!r} has no problem {state.get('task_id')!r:.80}"
            raise InputError(msg)
        given = state.get("episode_id")
        shown = StepState(said="", thought="", action="", observation="", valid=True)
        episode = given if given and given != state.get("attempt") else uuid.uuid4().hex
        return {
            **fresh_state(added_to=bool(state.get("steps"))),
            "episode_id": episode,
            "attempt": episode,
            "domain": domain.name,
            "instruction": problem.text,
            "steps": Overwrite([shown]) if state.get("steps") else [shown],
            "valid": True,
            "max_rounds": 1,
        }

    return Node("pose", pose)


def solve_messages(template: Prompt, task: str, recalled: str) -> list[BaseMessage]:
    """Write what the solver is asked: without anything recalled, not a byte tells of memory."""
    return [HumanMessage(template.render(memory=recalled, task=task))]


@checked
def solve_node(model: ChatModel, *, prompt: Prompt | None = None) -> Runnable[AgentState, Update]:
    """Make the node that asks for a solution, once.

    Its update holds the reply in `said`, and in `asked` the SHA-256 of what the model was sent.

    Args:
        model: Any chat model, or the name of one.
        prompt: Template with `$memory` and `$task`; `None`: the one that ships.
    """
    template = prompt or solve_prompt()
    model = chat_model(model, "`model` of solve_node")

    def solve(state: AgentState) -> Program[Call, Update]:
        messages = solve_messages(template, state["instruction"], state["recalled"])
        message: BaseMessage = yield Call(model.invoke, model.ainvoke, messages)
        response = read_response(message)
        return {
            "said": response.text,
            "asked": text_digest(messages[0].text),
            "reason": response.failure,
        }

    return Node.running("solve", solve)


@checked
def grade_node(domain: ProblemDomain) -> Runnable[AgentState, Update]:
    """Make the node that grades the reply; it is an oracle's word, and says so (`feedback`)."""

    def grade(state: AgentState) -> Update:
        reply = strip_block(state["said"])
        graded = domain.grade(reply, domain.problems[state["task_id"]])
        reason = graded.reason
        if reason == NO_ANSWER and state["reason"]:
            reason = f"{NO_ANSWER}: {state['reason']}"
        step = StepState(
            said=state["said"],
            thought=graded.work,
            action=graded.answer,
            observation=graded.feedback,
            valid=bool(graded.answer),
        )
        return {
            "steps": [step],
            "done": True,
            "success": graded.correct,
            "score": float(graded.correct),
            "reason": reason,
            "feedback": ORACLE,
            "stage": graded.stage,
            "by_last_token": graded.by_last_token,
        }

    return Node("grade", grade)
