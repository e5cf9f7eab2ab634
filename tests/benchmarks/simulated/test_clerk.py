"""The simulated clerk: it follows what it is shown, knows nothing else, and reads messages only."""

import inspect
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.simulated import clerk
from langgraft.benchmarks.simulated.clerk import SimulatedClerk
from langgraft.benchmarks.statebench.agents import build_agent, play, recall_for
from langgraft.benchmarks.statebench.retrieval import file_trajectories
from langgraft.environments.statebench import StateBench, Task
from langgraft.memory.controls import Placebo
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import Recall, render_block

pytestmark = pytest.mark.matrix  # the learner of one more world, by its shares

EXAMPLE = """Task: Please cancel BK-7, my flight of June 3.
Action: get_user_reservations({"user_id":"user_001"})
Observation: {"user_id": "user_001", "booking_ids": ["BK-7", "BK-9"]}
Action: get_booking({"booking_id":"BK-7"})
Observation: {"booking_id": "BK-7", "cabin_class": "economy", "departure": "2026-06-03"}
Action: cancel_booking({"booking_id":"BK-7","confirm":false})
Observation: {"status": "preview", "fee": 50, "refund_amount": 250}
Action: That is 50 dollars. Shall I?
Observation: Yes.
Action: refund({"amount":250,"method":"card","date":"2026-06-03","booking_id":"BK-7"})
Observation: {"status": "done"}
Action: It is done.
"""
TOOLS = ("get_user_reservations", "get_booking", "cancel_booking", "refund")
SYSTEM = "You are an agent. You are currently helping customer user_042. Use tools."


def asked(request: str, *notes: str, said: Sequence[BaseMessage] = ()) -> AIMessage:
    """Return the clerk's next message."""
    model = SimulatedClerk().bind_tools(
        [{"type": "function", "function": {"name": n, "parameters": {}}} for n in TOOLS]
    )
    block = render_block(notes)
    answer = model.invoke([SystemMessage(f"{SYSTEM}\n\n{block}"), HumanMessage(request), *said])
    assert isinstance(answer, AIMessage)
    return answer


def served(request: str, results: Sequence[object], *notes: str) -> list[AIMessage]:
    """Return all that the clerk does, given what its calls return."""
    said: list[BaseMessage] = []
    left = iter(results)
    for _ in range(20):
        answer = asked(request, *notes, said=said)
        said.append(answer)
        if answer.tool_calls:
            call = answer.tool_calls[0]
            said.append(ToolMessage(json.dumps(next(left)), tool_call_id=call["id"]))
        elif "Shall I" in answer.text:
            said.append(HumanMessage("Yes."))
        else:
            break
    return [message for message in said if isinstance(message, AIMessage)]


RESULTS = (
    {"user_id": "user_042", "booking_ids": ["BK-3", "BK-5"]},
    {"booking_id": "BK-5", "cabin_class": "business", "departure": "2026-07-21"},
    {"status": "preview", "fee": 10, "refund_amount": 990},
    {"status": "done"},
)


def test_clerk_when_shown_a_like_task_then_does_it_with_its_own_values() -> None:
    """Ids and dates of the request, amounts of its own results; the method as in the example."""
    done = served("I want to cancel BK-5 on July 21, please.", RESULTS, EXAMPLE)
    assert [(m.tool_calls[0]["name"], m.tool_calls[0]["args"]) for m in done if m.tool_calls] == [
        ("get_user_reservations", {"user_id": "user_042"}),
        ("get_booking", {"booking_id": "BK-5"}),
        ("cancel_booking", {"booking_id": "BK-5", "confirm": False}),
        (
            "refund",
            {"amount": 990, "method": "card", "date": "2026-07-21", "booking_id": "BK-5"},
        ),
    ]
    assert done[3].text.endswith("Shall I go ahead with the next step?")
    assert done[-1].text == "That is done."


@pytest.mark.parametrize(
    "notes",
    [
        (),
        ("When a customer wants to cancel, preview and then confirm.",),
        (f"{EXAMPLE}Result: failure",),
        (EXAMPLE.replace("cancel_booking", "undo_booking"),),
        (EXAMPLE.replace("cancel", "upgrade"),),
        (EXAMPLE.replace("Action: ", "Then ").replace("Task: ", "About "),),
    ],
    ids=["nothing", "advice", "a failure", "other tools", "another workflow", "another form"],
)
def test_clerk_when_shown_nothing_it_can_follow_then_looks_up_and_changes_nothing(
    notes: tuple[str, ...],
) -> None:
    """That is its ignorance, as declared."""
    done = served("I want to cancel BK-5 on July 21, please.", RESULTS, *notes)
    calls = [m.tool_calls[0]["name"] for m in done if m.tool_calls]
    assert calls == ["get_user_reservations", "get_booking"]
    assert "changed nothing" in done[-1].text


def test_clerk_when_a_call_fails_that_did_not_then_stops() -> None:
    """It does not go on blindly."""
    done = served("I want to cancel BK-5.", [RESULTS[0], {"error": "not found"}], EXAMPLE)
    assert len(done) == 3
    assert "cannot take this any further" in done[-1].text


def test_clerk_when_nothing_stands_for_an_id_then_stops() -> None:
    """An id of the example is never used for another customer."""
    done = served("I want to cancel my flight.", [{"user_id": "user_042"}], EXAMPLE)
    assert [bool(m.tool_calls) for m in done] == [True, False]


@given(text=st.text(max_size=300), notes=st.text(max_size=300))
def test_clerk_when_told_anything_then_answers_the_same_again(text: str, notes: str) -> None:
    """Whatever stands in messages."""
    first, second = (asked(text, notes, EXAMPLE) for _ in range(2))
    assert (first.text, first.tool_calls) == (second.text, second.tool_calls)


def test_clerk_when_read_names_no_condition_provider_or_task(statebench: StateBench) -> None:
    """Its source cannot tell in which study it is."""
    source = inspect.getsource(clerk)
    words = [*(task.id.partition("/")[2] for task in statebench.tasks()), "TrajectoryMemory"]
    words += ["placebo", "SimpleRAG", "customer_support", "shopping_assistant"]
    assert [word for word in words if word in source] == []


def solved(tasks: Sequence[Task], memory: MemoryProvider[Any] | None = None) -> int:
    """Count the tasks that ask for a change and are solved with what memory recalls."""
    count = 0
    for task in tasks:
        attempt = task.open()
        recall: Recall | None = None if memory is None else recall_for(memory, task)
        count += play(build_agent(SimulatedClerk(), attempt, recall), attempt).success
    return count


def test_clerk_when_memory_holds_its_very_tasks_then_solves_what_the_recorded_model_did(
    statebench: StateBench,
) -> None:
    """Transfer is planted: without memory or with a placebo it solves none of them."""
    recorded = (t.task for t in statebench.trajectories("travel") if t.replay()[1].success)
    tasks = [task for task in recorded if task.requirements][:12]
    memory = make_provider("trajectory", InMemoryStore(), settings={"feedback": "oracle"})
    file_trajectories(memory, statebench, "travel")
    assert solved(tasks) == 0
    assert solved(tasks, Placebo(memory)) == 0
    assert solved(tasks, memory) >= 10


def test_clerk_when_tasks_are_held_out_then_some_transfer(statebench: StateBench) -> None:
    """Of customer support's tasks that ask for a change: none without memory, some with it."""
    tasks = [t for t in statebench.tasks("customer_support", "test") if t.requirements][:24]
    memory = make_provider("trajectory", InMemoryStore(), settings={"feedback": "oracle"})
    file_trajectories(memory, statebench)
    assert solved(tasks) == 0
    assert solved(tasks, memory) >= 3
