"""`SimulatedALFWorld` in the real environment: in process and behind HTTP, under every convention."""

from typing import Any, get_args

import pytest
from alfworld_cases import needs_alfworld
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langgraph.store.memory import InMemoryStore
from pydantic import SecretStr

from langgraft.benchmarks.simulated import SimulatedALFWorld, serve
from langgraft.environments.alfworld.environment import GeneratedALFWorld
from langgraft.environments.alfworld.games import FAMILIES
from langgraft.environments.alfworld.semantics import Semantics
from langgraft.graphs.react import build_react_agent
from langgraft.memory.model import Episode, Lesson, Outcome
from langgraft.memory.providers import InsightMemory

pytestmark = needs_alfworld

ADVICE = {
    "pick_and_place": "Check likely places first.",
    "look_at_obj": "Hold it, go to the lamp, and use the lamp.",
    "pick_clean_then_place": "Clean it with the sinkbasin before you put it down.",
    "pick_heat_then_place": "Heat it with the microwave before you put it down.",
    "pick_cool_then_place": "Cool it with the fridge before you put it down.",
    "pick_two_obj": "Carry one at a time.",
}


def played(model: BaseChatModel, task_id: str, advice: str = "", **settings: Any) -> dict[str, Any]:
    """Play an episode, told one thing or nothing."""
    memory = InsightMemory(InMemoryStore())
    if advice:
        goal = GeneratedALFWorld()(task_id).game.goal
        told = Episode("e", "d", "t", goal, (), Outcome(success=True), (Lesson(advice),))
        memory.file(told)
    agent = build_react_agent(
        model, environment=GeneratedALFWorld(**settings), memory=memory, learn=False
    )
    return dict(agent.invoke({"task_id": task_id}))


@pytest.mark.parametrize("family", FAMILIES)
def test_learner_when_told_the_step_wins_most_games_of_every_kind(family: str) -> None:
    """It lacks nothing but what it declares to lack."""
    worlds = GeneratedALFWorld()
    tasks = worlds.tasks(f"alfworld-generated/{family}", "train")[:2]
    model = SimulatedALFWorld(seed=905)
    won = [played(model, task.id, ADVICE[family], max_rounds=60)["success"] for task in tasks]
    assert all(won)


@pytest.mark.parametrize("semantics", get_args(Semantics))
def test_learner_under_every_convention_plays_the_same_game(semantics: Semantics) -> None:
    """It needs no list of actions, and is not confused by one."""
    task = GeneratedALFWorld().tasks("alfworld-generated/pick_and_place", "train")[0]
    assert played(SimulatedALFWorld(seed=905), task.id, semantics=semantics, max_rounds=40)[
        "success"
    ]


async def test_learner_behind_http_plays_as_in_process() -> None:
    """The same messages and the same seed give the same steps."""
    worlds = GeneratedALFWorld()
    task = worlds.tasks("alfworld-generated/pick_clean_then_place", "train")[1]
    model = SimulatedALFWorld(seed=906, mimicry=0.4)
    async with serve(model) as server:
        remote = ChatOpenAI(
            model=model.model_name, base_url=server.base_url, api_key=SecretStr("none"), seed=906
        )
        agent = build_react_agent(remote, environment=worlds)
        told = await agent.ainvoke({"task_id": task.id})
    assert told["steps"] == played(model, task.id)["steps"]
