"""Memory beside a run: recalled as an attempt begins, taught of failures and of what put them right."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import make_episode
from tree_cases import FIX, feedback, reviewing, toy
from workbench_cases import HandRun, desk_of, performer, sandbox, workspaces

from langgraft import CodingMemory, InsightMemory
from langgraft._core.errors import SettingsError
from langgraft.memory.forgetting import USES
from langgraft.memory.model import ErrorRecord, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.coding import coding_preset
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.dialogue import Node
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.log import (
    RECALL,
    RECOVERY,
    RESOLUTION,
    Action,
    Observation,
    RunState,
    append_events,
    steps_of,
)
from langgraft.nodes.workbench.memory import (
    Execution,
    after_acting,
    diagnose_run_node,
    judge_run_node,
    memory_needs,
    recall_run_node,
    remember_run_node,
    retries,
)
from langgraft.nodes.workbench.start import (
    arestore_run_memory,
    restore_run_memory,
    run_bank,
    start_run_node,
)

BROKEN = "def fit(eta):\n    return eta\nfit(eta={eta}, rate=1)\n"
WORKS = "def fit(eta):\n    return eta\nprint(fit(eta={eta}))\n"


def model() -> Any:
    """Make a model that diagnoses by what it is shown, and calls every error new."""

    def rule(text: str, sample: str) -> str:
        return '{"action": "add"}' if sample.endswith("/judge") else feedback(text, sample)

    return reviewing(rule)


def coding() -> CodingMemory:
    """Make an empty memory that speaks at the start of attempts."""
    return CodingMemory(InMemoryStore(), settings=coding_preset("described"))


class Taught:
    """A run whose observations are given, with the nodes of memory."""

    def __init__(self, deps: RunDeps, memory: MemoryProvider[Any], *, aside: bool = False) -> None:
        asked = model()
        self.deps, self.memory, self.aside = deps, memory, aside
        self.nodes = [
            diagnose_run_node(deps, asked),
            judge_run_node(deps, memory, asked),
            remember_run_node(deps, memory),
        ]
        bank = deps.keep(memory.content().to_json())
        begun: Any = {"episode_id": "run", "preview": "", "bank": bank}
        self.state: RunState = {"episode_id": "run", "log": "", "begun": begun}

    def saw(self, program: str, error: str = "", thought: str = "", **given: Any) -> str:
        """Note a cell and what came of it; return what memory is taught of it."""
        number = len(self.deps.log(self.state).events)
        action = Action(
            id=number,
            source="agent",
            name="run_python",
            arguments={"code": program},
            thought=thought,
        )
        name, _, message = error.partition(": ")
        seen = Observation(
            id=number + 1,
            cause=number,
            **{"text": f"Exception: {error}" if error else "fine", **given},
            failed=bool(error),
            executed=True,
            program=program,
            exception=name,
            message=message,
        )
        log = append_events(self.deps.artifacts, self.state["log"], [action, seen])
        self.state = {**self.state, "log": log}
        kind = after_acting(self.deps, self.state)
        if kind != "other":
            self.teach()
        return kind

    def edited(self, name: str, given: dict[str, Any], thought: str, *, failed: bool) -> None:
        """Note an action that runs nothing."""
        number = len(self.deps.log(self.state).events)
        action = Action(id=number, source="agent", name=name, arguments=given, thought=thought)
        seen = Observation(id=number + 1, cause=number, text="told", failed=failed)
        log = append_events(self.deps.artifacts, self.state["log"], [action, seen])
        self.state = {**self.state, "log": log}

    def teach(self) -> None:
        """Run memory's nodes, sync or async."""
        for node in self.nodes:
            self.go(node)

    def go(self, node: Node[RunState]) -> None:
        """Run a node and take its update."""
        update = asyncio.run(node.ainvoke(self.state)) if self.aside else node.invoke(self.state)
        self.state = {**self.state, **update}  # type: ignore[typeddict-item]


@pytest.fixture
def deps(tmp_path: Path) -> Iterator[RunDeps]:
    """Return the deps of a run in a real sandbox that nothing is run in."""
    competition = toy(tmp_path)
    with sandbox(competition) as place:
        run = HandRun(workspaces(place, perform=performer(competition)))
        yield desk_of(competition, run)


@pytest.mark.parametrize("aside", [False, True])
def test_success_when_it_tries_a_failure_again_then_memory_has_the_proven_fix(
    deps: RunDeps, *, aside: bool
) -> None:
    """In the words beside the repair; another success afterwards proves nothing more."""
    taught = Taught(deps, coding(), aside=aside)
    error = "TypeError: fit() got an unexpected keyword argument 'rate'"
    assert taught.saw(BROKEN.format(eta=1), error) == "failed"
    assert taught.saw("print('something else altogether')") == "other"
    assert taught.saw(WORKS.format(eta=1), thought=f"{FIX} So it runs. And more.") == "resolving"
    assert taught.saw(WORKS.format(eta=2), thought="Again.") == "other"
    log = deps.log(taught.state)
    first, *others = steps_of(log)
    assert first.error is not None
    assert "unexpected keyword" in str(first.error["error"])
    assert all(step.error is None for step in others)
    noted = [each for each in log.events if isinstance(each, Action) and each.name == RESOLUTION]
    assert [each.arguments["resolves"] for each in noted] == [0]
    assert taught.state["spent"]["prompt_tokens"] > 0
    bank = taught.memory.content().to_json()
    assert f"{FIX} So it runs." in str(bank)
    assert "And more" not in str(bank)


AGAIN = BROKEN.format(eta=1)
EDIT = {"command": "str_replace", "path": "fit.py"}
ASKED: dict[str, Any] = {"input": {"edit_instruction": FIX}}


@pytest.mark.parametrize(
    ("name", "given", "thought", "failed", "program", "fix"),
    [
        ("edit_file", EDIT, FIX, False, AGAIN, FIX),
        ("edit_file", EDIT, FIX, True, AGAIN, ""),
        ("edit_file", {"command": "view", "path": "fit.py"}, FIX, False, AGAIN, ""),
        ("edit_file", EDIT, "", False, AGAIN, "Run it again."),
        ("edit_file", EDIT, "Note it down.", False, WORKS.format(eta=1), "Run it again."),
        ("Edit Script (AI)", ASKED, "", False, AGAIN, FIX),
        ("Undo Edit Script", {"input": {}}, "Go back.", False, AGAIN, "Go back."),
    ],
)
def test_fix_when_a_file_was_changed_in_between_then_it_is_what_was_said_of_the_change(
    name: str,
    given: dict[str, Any],
    thought: str,
    program: str,
    fix: str,
    *,
    failed: bool,
    deps: RunDeps,
) -> None:
    """Unless what was run at last is another program itself; where nothing was changed, none."""
    taught = Taught(deps, coding())
    assert taught.saw(AGAIN, "TypeError: fit() got 'rate'") == "failed"
    taught.edited("edit_file", EDIT, "An earlier one.", failed=True)
    taught.edited(name, given, thought, failed=failed)
    assert taught.saw(program, thought="Run it again.") == "resolving"
    fixes = [each.metadata["fix"] for each in taught.memory.content().items.values()]
    assert list(filter(None, fixes)) == [fix] * bool(fix)


def test_success_when_its_program_had_worked_before_the_failure_then_nothing_is_put_right(
    deps: RunDeps,
) -> None:
    """Running again what works is no repair of what does not."""
    taught = Taught(deps, coding())
    assert taught.saw(WORKS.format(eta=1)) == "other"
    assert taught.saw(BROKEN.format(eta=1), "TypeError: fit() got 'rate'") == "failed"
    assert taught.saw(WORKS.format(eta=1), thought="Run it again.") == "other"


def test_success_when_it_shows_an_error_all_the_same_then_nothing_is_put_right(
    deps: RunDeps,
) -> None:
    """`python fit.py | tail` ends well whatever the program did."""
    taught = Taught(deps, coding())
    assert taught.saw(BROKEN.format(eta=1), "TypeError: fit() got 'rate'") == "failed"
    shown = 'Traceback (most recent call last):\n  File "fit.py", line 3, in <module>\nKeyError: 1'
    assert taught.saw(BROKEN.format(eta=2), thought="Look at the end.", text=shown) == "other"
    assert taught.saw(WORKS.format(eta=1), thought=FIX) == "resolving"


def test_limit_when_the_run_had_less_time_left_then_memory_is_taught_nothing(deps: RunDeps) -> None:
    """Its own end is no error of the program; the usual limit is."""
    taught = Taught(deps, coding())
    stopped = "TimeoutError: the program was stopped"
    assert taught.saw("fit()", stopped, timed_out=True, allowed=deps.seconds / 2) == "other"
    assert taught.saw("fit()", stopped, timed_out=True, allowed=deps.seconds) == "failed"


def test_limit_when_it_ended_an_execution_then_the_error_is_of_resources(deps: RunDeps) -> None:
    """Whatever a model calls it; and what a run of nothing but messages shows is no failure."""
    taught = Taught(deps, coding())
    assert after_acting(deps, taught.state) == "other"
    number = len(deps.log(taught.state).events)
    action = Action(id=number, source="agent", name="run_python", arguments={"code": "x"})
    seen = Observation(
        id=number + 1, cause=number, text="TIMEOUT", failed=True, executed=True, program="x",
        exception="TimeoutError", message="the program was stopped", timed_out=True,
    )  # fmt: skip
    log = append_events(deps.artifacts, "", [action, seen])
    taught.state = {**taught.state, "log": log}
    taught.teach()
    (step,) = steps_of(deps.log(taught.state))
    assert step.error is not None
    assert step.error["kind"] == "resource"


ERRORS = ("", "ValueError: no eta", "TypeError: fit() got 'rate'", "KeyError: 'target'")


@settings(max_examples=12)
@given(steps=st.lists(st.tuples(st.sampled_from(ERRORS), st.integers(0, 2)), max_size=7))
def test_bank_when_restored_from_the_log_then_it_is_the_one_that_was_lived(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever failed and was put right; and what was filed twice is there once."""
    competition = toy(tmp_path_factory.getbasetemp() / "toy")
    run = HandRun(workspaces(sandbox(competition)), MemoryArtifacts())
    taught = Taught(desk_of(competition, run), coding())
    for error, number in steps:
        program = (BROKEN if error else WORKS).format(eta=number)
        taught.saw(program, error, thought=f"Take eta {number}.")
    lived = taught.memory.content()
    assert run_bank(run.artifacts, taught.state).digest == lived.digest
    other = coding()
    restore_run_memory(other, run.artifacts, taught.state)
    assert other.content().digest == lived.digest
    taught.go(taught.nodes[-1])
    asyncio.run(arestore_run_memory(taught.memory, run.artifacts, taught.state))
    assert taught.memory.content().digest == lived.digest


def test_recall_when_an_attempt_begins_then_memory_is_asked_once(deps: RunDeps) -> None:
    """And again after a recovery; what it says is in the log and belongs to the steps."""
    taught = Taught(deps, coding(), aside=True)
    taught.saw(BROKEN.format(eta=1), "TypeError: fit() got an unexpected keyword 'rate'")
    node = recall_run_node(deps, taught.memory)

    def recall() -> int:
        taught.go(node)
        events = deps.log(taught.state).events
        return sum(isinstance(each, Action) and each.name == RECALL for each in events)

    assert [recall(), recall()] == [1, 1]
    log = deps.log(taught.state)
    begun = Action(id=len(log.events), source="environment", name=RECOVERY, arguments={"rule": ""})
    taught.state["log"] = append_events(deps.artifacts, log.reference, [begun])
    taught.state["attempt"] = 1
    assert recall() == 2
    taught.saw("print(1)")
    step = steps_of(deps.log(taught.state))[-1]
    assert "rate" in step.recalled
    assert step.attempt == 1
    assert step.recalled_kinds == ("code",)


def test_recall_when_failures_follow_it_then_what_it_gave_counts_as_used_once_an_attempt(
    deps: RunDeps,
) -> None:
    """However many executions of the attempt are filed; one before any recall counts nothing."""
    counting = coding_preset("described").model_copy(update={"credit": True})
    taught = Taught(deps, CodingMemory(InMemoryStore(), settings=counting))
    taught.saw(BROKEN.format(eta=1), "TypeError: fit() got an unexpected keyword 'rate'")
    (told,) = taught.memory.content().items
    node = recall_run_node(deps, taught.memory)

    def uses() -> object:
        return taught.memory.content().notes.get(told, {}).get(USES, 0)

    assert uses() == 0
    for attempt in (1, 2):
        taught.go(node)
        for _ in range(2):
            taught.saw(BROKEN.format(eta=attempt), "TypeError: fit() got 'rate'")
        assert uses() == attempt
        log = deps.log(taught.state)
        begun = Action(id=len(log.events), source="environment", name=RECOVERY)
        taught.state["log"] = append_events(deps.artifacts, log.reference, [begun])
        taught.state["attempt"] = attempt


def test_memory_needs_when_memory_wants_what_no_step_gives_then_it_is_refused() -> None:
    """Lessons are no errors; read without learning it may be."""
    insights = InsightMemory(InMemoryStore())
    with pytest.raises(SettingsError, match="learn=False"):
        memory_needs(insights, learn=True)
    assert memory_needs(insights, learn=False) == frozenset()
    assert "errors" in memory_needs(coding(), learn=True)
    assert memory_needs(None, learn=True) == frozenset()


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        (("run_bash", "python train.py", ""), ("run_bash", "python train.py", ""), True),
        (("run_bash", "python train.py", ""), ("run_bash", "python -u ./train.py 1", "x"), True),
        (("run_bash", "ls a", ""), ("run_bash", "ls b", ""), False),
        (("run_python", "a = 1", "a = 1"), ("run_bash", "python b.py", "a = 2; b"), False),
        (("run_python", "", "a b c d"), ("run_python", "x", "a b c d e"), True),
        (("run_python", "x", "a b c d"), ("run_python", "y", "a e f g"), False),
    ],
)
def test_retries_when_something_runs_again_then_it_is_known_by_command_script_or_words(
    before: tuple[str, str, str], now: tuple[str, str, str], *, same: bool
) -> None:
    """Half of all words shared is a repair; less is another program."""

    def made(number: int, given: tuple[str, str, str]) -> Execution:
        name, what, program = given
        key = "command" if name == "run_bash" else "code"
        action = Action(id=number, source="agent", name=name, arguments={key: what})
        seen = Observation(id=number + 1, cause=number, text="", executed=True, program=program)
        return Execution(action, seen)

    assert retries(made(0, before), made(2, now)) is same


def test_start_when_a_thread_goes_on_with_its_run_then_only_what_ended_it_is_forgotten(
    deps: RunDeps,
) -> None:
    """Another name begins anew, with the bank as it is then."""
    memory = coding()
    node = start_run_node(deps, memory=memory)
    fresh: Any = {"episode_id": "run"}
    begun: Any = node.invoke(fresh)
    error = ErrorRecord("numpy", "ValueError: no eta", "Take eta 1.")
    memory.file(make_episode("e1", outcome=Outcome(success=False), errors=(error,)))
    assert (begun["log"], begun["steps"], begun["spent"]["seconds"]) == ("", 0, 0.0)
    log = append_events(deps.artifacts, "", [Action(id=0, source="agent", name="finish")])
    later: Any = {**begun, "log": log, "steps": 1, "attempt": 2, "ended": "steps", "done": True}
    again = {**later, **node.invoke(later)}
    assert (again["log"], again["steps"], again["attempt"]) == (log, 1, 2)
    assert (again["ended"], again["done"]) == ("", False)
    renamed: Any = {**later, "episode_id": "other"}
    other = {**later, **asyncio.run(node.ainvoke(renamed))}
    assert (other["log"], other["steps"], other["attempt"]) == ("", 0, 0)
    banks = [state["begun"]["bank"] for state in (begun, again, other)]
    assert banks[0] == banks[1] != banks[2]
