"""Attempts: databases of their own, tools, the scripted user, scores by the benchmark's rule."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.environments.statebench import Attempt, ScriptedUser, StateBench, Task
from langgraft.environments.statebench.attempts import DONE

NAME = "travel/1-cancel_economy_domestic"


@pytest.fixture
def task(statebench: StateBench) -> Task:
    """Return a task that asks for two bookings to be canceled."""
    return statebench.task(NAME)


def cancel(attempt: Attempt, *bookings: str) -> None:
    """Cancel bookings."""
    for booking in bookings:
        attempt.call("cancel_booking", {"booking_id": booking, "confirm": True})


def test_score_when_more_is_done_then_more_requirements_are_met(task: Task) -> None:
    """Success is all of them and nothing else."""
    attempt = task.open()
    assert (attempt.score().success, attempt.score().share) == (False, 0)
    cancel(attempt, "BK-1000")
    half = attempt.score()
    assert (half.value, half.met, half.required) == (0, 3, 6)
    assert half.share == 0.5
    cancel(attempt, "BK-1001")
    assert (attempt.score().value, attempt.score().share) == (1, 1)


def test_score_when_a_record_was_to_be_made_then_is_met_by_making_it(
    statebench: StateBench,
) -> None:
    """A requirement that names no record counts as unmet as long as none fits."""
    task = statebench.task("travel/46-adversarial_impatient_booking")
    attempt = task.open()
    assert (attempt.score().met, attempt.score().required) == (0, 1)
    wanted = task.requirements[0]["match_fields"]
    assert isinstance(wanted, dict)
    made = attempt.call("create_booking", wanted)
    assert attempt.score().value == 1, made


def test_score_when_something_else_was_changed_then_is_no_success(task: Task) -> None:
    """The share tells of requirements alone."""
    attempt = task.open()
    attempt.call("update_booking", {"booking_id": "BK-1000", "add_wifi": True, "confirm": True})
    cancel(attempt, "BK-1000", "BK-1001")
    scored = attempt.score()
    assert (scored.success, scored.share) == (False, 1)
    assert "unexpected_assertions=1" in scored.reason


def test_score_when_a_task_asks_for_no_change_then_any_change_fails(statebench: StateBench) -> None:
    """Restraint is scored, too."""
    task = next(t for t in statebench.tasks("shopping_assistant") if not t.requirements)
    attempt = task.open()
    assert (attempt.score().success, attempt.score().required) == (True, 0)
    found = attempt.call("search_products", {"in_stock_only": True})
    assert isinstance(found, dict)
    products = found["products"]
    customer = attempt.system_prompt.partition("customer ")[2].partition(".")[0]
    for product in products if isinstance(products, list) else ():
        assert isinstance(product, dict)
        attempt.call("add_to_cart", {"customer_id": customer, "product_id": product["product_id"]})
    assert not attempt.score().success
    assert attempt.score().share == 0


def test_score_when_a_like_folder_is_in_the_working_directory_then_is_the_same(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The benchmark's code would look there first."""
    attempt = task.open()
    cancel(attempt, "BK-1000", "BK-1001")
    decoy = tmp_path / "state_bench/domains/travel/task_envs/1-cancel_economy_domestic.json"
    decoy.parent.mkdir(parents=True)
    decoy.write_text(json.dumps({"bookings": []}))
    monkeypatch.chdir(tmp_path)
    assert attempt.score().success
    assert task.open().score().required == 6


def test_attempts_when_at_once_then_share_nothing(task: Task) -> None:
    """Each in a thread, each with a database of its own."""

    def one(number: int) -> tuple[int, float]:
        attempt = task.open()
        cancel(attempt, *["BK-1000", "BK-1001"][: number % 3])
        return number % 3, attempt.score().share

    with ThreadPoolExecutor(8) as pool:
        assert {*pool.map(one, range(48))} == {(0, 0.0), (1, 0.5), (2, 1.0)}


def test_trajectories_when_replayed_in_threads_then_are_the_same(statebench: StateBench) -> None:
    """Nothing in the benchmark's code is shared between attempts."""
    recorded = statebench.trajectories("customer_support")
    with ThreadPoolExecutor(8) as pool:
        assert [replay.different for replay, _ in pool.map(lambda t: t.replay(), recorded)] == [
            ()
        ] * len(recorded)


def test_tools_when_called_give_what_the_benchmark_sends(task: Task) -> None:
    """JSON of the same result, over this attempt's database."""
    attempt = task.open()
    tools = {tool.name: tool for tool in attempt.tools}
    assert len(tools) == 17
    said = tools["cancel_booking"].invoke({"booking_id": "BK-1000", "confirm": True})
    assert json.loads(said)["refund_amount"] == 298
    assert attempt.score().met == 3
    assert [call.name for turn in attempt.turns for call in turn.calls] == ["cancel_booking"]
    assert task.open().score().met == 0


def test_tools_when_called_with_what_no_code_expects_then_answer(task: Task) -> None:
    """A model's slip is its own to mend; the attempt goes on."""
    attempt = task.open()
    tools = {tool.name: tool for tool in attempt.tools}
    said = tools["get_booking"].invoke({"booking_id": ["BK-1000"]})
    assert "get_booking cannot be called with" in said
    with pytest.raises(InputError, match="there is no tool 'fly'"):
        attempt.call("fly", {})
    assert "not found" in str(attempt.call("get_booking", {}))


def test_conversation_when_it_goes_on_then_is_kept_in_the_form_of_a_recorded_one(
    task: Task,
) -> None:
    """Calls stand with what was said after them."""
    attempt = task.open()
    cancel(attempt, "BK-1000")
    assert attempt.answer("Shall I cancel the other one?") == "Yes, please go ahead."
    cancel(attempt, "BK-1001")
    assert attempt.answer("Both are canceled.") is None
    roles = [turn.role for turn in attempt.turns]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [len(turn.calls) for turn in attempt.turns] == [0, 0, 1, 0, 1, 0]
    assert "user_002" in attempt.turns[0].text


def test_conversation_when_it_never_ends_then_is_ended(task: Task) -> None:
    """After as many turns of the agent as the benchmark allows."""
    attempt = task.open(user=lambda _: "Go on.")
    said = [attempt.answer("…") for _ in range(15)]
    assert said == ["Go on."] * 14 + [None]


def test_user_when_asked_tells_once_what_it_knows() -> None:
    """Then it does not know; when nothing is asked it is done."""
    user = ScriptedUser(["Booking BK-1."])
    assert user("Which booking is it?") == "What I know: Booking BK-1."
    assert "do not know" in user("And your meal?")
    assert user("It is done. Is there anything else?") == DONE


@pytest.mark.parametrize(
    "text",
    [
        "Shall I cancel it?",
        "If you want, I can cancel it now.",
        "Would you like me to proceed?",
        "Please confirm that I should do it.",
    ],
)
def test_user_when_asked_for_permission_gives_it_twice_for_nothing(text: str) -> None:
    """And as long as the agent works."""
    user = ScriptedUser([])
    assert [user(text), user(text), user(text)] == ["Yes, please go ahead."] * 2 + [DONE]
    assert user(text, worked=True) == "Yes, please go ahead."


@given(texts=st.lists(st.text(max_size=80), max_size=20))
def test_user_when_told_anything_is_deterministic(texts: list[str]) -> None:
    """The same conversation gets the same answers."""
    one, other = ScriptedUser(["a", "b"]), ScriptedUser(["a", "b"])
    assert [one(text) for text in texts] == [other(text) for text in texts]


def test_user_prompt_when_asked_for_is_the_benchmarks_own(task: Task) -> None:
    """For a language model that plays the user."""
    assert "You are a simulated customer" in task.open().user_prompt


def test_open_when_the_database_is_damaged_then_names_it(
    statebench: StateBench, task: Task
) -> None:
    """One clear error."""
    path = statebench.root / f"state_bench/domains/travel/task_envs/{NAME.partition('/')[2]}.json"
    kept = path.with_suffix(".kept")
    shutil.copy(path, kept)
    try:
        path.write_text('{"flights": 3}')
        with pytest.raises(InputError, match="is no database of the domain travel"):
            task.open()
    finally:
        kept.replace(path)
