"""Agents with memory at tasks of STATE-Bench, and its recorded trajectories as episodes of memory.

for trajectory in bench.trajectories("travel"):
    memory.file(episode_of(trajectory.task, trajectory.turns))
task = bench.tasks("travel", "test")[0]
attempt = task.open()
agent = build_agent(model, attempt, recall_for(memory, task))
play(agent, attempt).value  # 1.0 or 0.0; `share` is the share of requirements met
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from langgraft._core.canonical import canonical_json
from langgraft.environments.statebench import Attempt, Score, Task, Turn
from langgraft.environments.statebench.attempts import DONE
from langgraft.memory.model import Episode, Outcome, Receipt, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.nodes.replies import encodable

MOST_STEPS: Final = 100
"""Of the graph between two things the user says: some fifty calls of tools."""


def episode_of(
    task: Task,
    turns: Sequence[Turn],
    *,
    score: Score | None = None,
    name: str = "",
    recalls: Sequence[Receipt] = (),
) -> Episode:
    """Return what was said and done at a task, recorded or played, as an episode.

    Each call of a tool is a step, and so is what the agent says, with the user's answer as its observation.

    Args:
        task: The task.
        turns: Of a recorded trajectory, or of an attempt.
        score: How it ended by the task's state requirements. That is a word of gold answers, so that
            providers take it with `feedback="oracle"` in their settings alone. `None`, or a task without
            state requirements: nobody can tell. Official learning from the benchmark's trajectories has
            no scores.
        name: The episode's id; empty: the task's.
        recalls: Receipts of what the agent was given by memory.
    """
    steps = [Step("", "", "")]  # an agent sees nothing but the task before it acts
    for turn in turns:
        for call in turn.calls:
            asked = f"{call.name}({encodable(canonical_json(dict(call.arguments)))})"
            steps.append(Step("", asked, encodable(json.dumps(call.result, ensure_ascii=False))))
        if turn.role == "assistant" and turn.text:
            steps.append(Step("", encodable(turn.text), ""))
        elif turn.role == "user" and not steps[-1].observation and len(steps) > 1:
            said = encodable(turn.text.replace(DONE, "").strip())
            steps[-1] = Step("", steps[-1].action, said)
    outcome = Outcome(success=None)
    if score is not None and score.required:
        outcome = Outcome(score.success, score=score.share, feedback="oracle")
    return Episode(
        id=name or task.id,
        domain=task.domain,
        task_id=task.id,
        task=task.opening,
        steps=tuple(steps),
        outcome=outcome,
        recalls=tuple(recalls),
    )


def recall_for(memory: MemoryProvider[Any], task: Task, budget: Budget | None = None) -> Recall:
    """Return what a provider recalls for a task, before anything is done at it."""
    context = RecallContext(domain=task.domain, task_id=task.id, episode_id=f"at {task.id}")
    return memory.provide(task.opening, context, budget)


def build_agent(model: BaseChatModel, attempt: Attempt, recall: Recall | None = None) -> Any:
    """Return an agent of `create_agent` for one attempt.

    Args:
        model: Any LangChain chat model that calls tools.
        attempt: Its tools are over that attempt's database.
        recall: What memory gives; it stands behind the system prompt, and in no message.
    """
    prompt = attempt.system_prompt
    if recall:
        prompt = f"{prompt}\n\n{recall.text}"
    return create_agent(model, tools=attempt.tools, system_prompt=prompt)


def play(agent: Any, attempt: Attempt) -> Score:
    """Let an agent serve the user of an attempt to the end; return the score of what it left.

    Raises:
        Exception: Whatever the agent's graph raises; the attempt stands as it was then.
    """
    messages: list[Any] = [HumanMessage(attempt.opening)]
    while True:
        state = agent.invoke({"messages": messages}, {"recursion_limit": MOST_STEPS})
        said = attempt.answer(state["messages"][-1].text)
        if said is None:
            return attempt.score()
        messages = [*state["messages"], HumanMessage(said)]


@dataclass(frozen=True, slots=True)
class Served:
    """What came of an attempt at a task."""

    score: Score
    episode: Episode
    """For memory to file. It does not tell the score, which is a word of gold answers."""


def serve(
    memory: MemoryProvider[Any],
    model: BaseChatModel,
    task: Task,
    *,
    name: str = "",
    budget: Budget | None = None,
) -> Served:
    """Have a model with memory make an attempt at a task; memory is asked, and nothing is filed.

    Args:
        memory: Any provider; `NoMemory` recalls nothing.
        model: Any LangChain chat model that calls tools.
        task: The task.
        name: The episode's id; empty: the task's.
        budget: Room for recalled text; `None`: that of `Budget()`.
    """
    attempt = task.open()
    recall = recall_for(memory, task, budget)
    score = play(build_agent(model, attempt, recall), attempt)
    return Served(score, episode_of(task, attempt.turns, name=name, recalls=[recall.receipt]))


class Learnings:
    """Serves the benchmark's hook `retrieve_learnings` from a provider; reads, and never writes.

    ```python
    class MemoryAgent(
        StateBenchAgent
    ):  # of `state_bench.agents.state_bench`, in its folder `agents/`
        learnings = Learnings(memory, "travel")

        def retrieve_learnings(self, query: str, top_k: int = 3) -> list[str]:
            return self.learnings.retrieve_learnings(query, top_k)
    ```

    Args:
        memory: Any provider, over a bank made of the benchmark's training trajectories.
        domain: The domain that asks.
        budget: How much room there is; `None`: that of `Budget()`.
    """

    def __init__(
        self, memory: MemoryProvider[Any], domain: str, budget: Budget | None = None
    ) -> None:
        self._memory, self._domain, self._budget = memory, domain, budget

    def retrieve_learnings(self, query: str, top_k: int = 3) -> list[str]:
        """Return the texts of what memory recalls, best first, `top_k` at most."""
        context = RecallContext(domain=self._domain, task_id="", episode_id="")
        recall = self._memory.provide(query, context, self._budget)
        return [item.text for item in recall.items[:top_k]]
