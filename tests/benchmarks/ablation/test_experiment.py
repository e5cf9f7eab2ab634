"""What an experiment is given: tasks, scores and agents in every form, and what is refused."""

import functools
import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ablation_cases import (
    AGENTS,
    MEMORY,
    Clerk,
    answer,
    asked,
    bank_file,
    experiment,
    function,
    is_right,
    lookups,
    results,
    tried,
)
from langchain_core.messages import HumanMessage
from langsmith.schemas import Example
from memory_cases import make_episode

from langgraft._core.errors import InputError
from langgraft.benchmarks.ablation import Task, ablate, preview_ablation
from langgraft.memory.providers.trajectory import TrajectoryMemory


def frame(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a frame of pandas."""
    return pytest.importorskip("pandas", reason="pip install pandas").DataFrame(rows)


def jsonl(folder: Path, *rows: str) -> Path:
    """Write lines to a file."""
    path = folder / "tasks.jsonl"
    path.write_text("\n".join(rows) + "\n")
    return path


def example(**fields: Any) -> Example:
    """Make an example as `client.list_examples` gives it."""
    plain: dict[str, Any] = {
        "dataset_id": uuid.UUID(int=1),
        "created_at": datetime(2026, 1, 1, tzinfo=UTC),
    }
    return Example(id=uuid.UUID(int=7), **plain, **fields)


# Tasks ------------------------------------------------------------------------------------

WANTED = (Task("t1", "what?", "k", 3), Task("t2", "why?", "", None))
ROWS: list[dict[str, Any]] = [
    {"id": "t1", "input": "what?", "kind": "k", "reference": 3},
    {"id": "t2", "input": "why?", "kind": None, "reference": None},
]


@pytest.mark.parametrize("form", ["tasks", "mappings", "other names", "file", "frame", "generator"])
def test_tasks_in_any_form_when_read_then_are_the_same(tmp_path: Path, form: str) -> None:
    """Lists, JSONL, frames with gaps, and the names that other tools give to fields."""
    names = {"id": "task_id", "input": "question", "kind": "category", "reference": "answer"}
    forms: dict[str, Any] = {
        "tasks": lambda: WANTED,
        "mappings": lambda: ROWS,
        "other names": lambda: [{names[k]: v for k, v in row.items()} for row in ROWS],
        "file": lambda: jsonl(tmp_path, json.dumps(ROWS[0]), "", json.dumps(ROWS[1])),
        "frame": lambda: frame(ROWS),
        "generator": lambda: (row for row in ROWS),
    }
    assert experiment(test=forms[form]()).test == WANTED


def test_examples_of_langsmith_when_read_then_only_their_kind_is_of_metadata() -> None:
    """Whatever metadata hold, id, inputs and outputs are the example's own."""
    metadata = {"id": "other", "input": "other", "reference": "other", "category": "k"}
    given = example(inputs={"question": "what?"}, outputs={"answer": 3}, metadata=metadata)
    wanted = Task(str(uuid.UUID(int=7)), {"question": "what?"}, "k", {"answer": 3})
    assert experiment(test=[given]).test == (wanted,)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("what?", "what?"),
        ({"messages": [HumanMessage("one"), HumanMessage("two")]}, "two"),
        ({"messages": [("human", "what?")]}, "what?"),
        ({"messages": [{"role": "user", "content": "what?"}]}, "what?"),
        ({"question": "what?"}, '{"question": "what?"}'),
    ],
)
def test_task_when_memory_is_asked_with_it_then_is_what_a_person_asks(
    given: Any, text: str
) -> None:
    """Of messages it is the last; of other mappings, their JSON."""
    assert Task("t", given).text == text


def test_experiment_when_copied_with_a_change_then_is_the_same_otherwise() -> None:
    """What it has read is read again: `dataclasses.replace`, and fields given to `ablate`."""
    first = experiment(train={"a": lookups("ada")})
    for given in (
        first,
        experiment(),
        experiment(bank="a.jsonl"),
        experiment(episodes=[make_episode()]),
    ):
        again = replace(given, replicates=5)
        assert (again.train, again.test, again.bank) == (given.train, given.test, given.bank)
        assert again.replicates == 5


def test_sources_when_they_share_tasks_then_are_both_trained_on() -> None:
    """Half of the tasks against all of them is an experiment."""
    shared = lookups("ada", "bob")
    found = experiment(train={"half": shared[:1], "all": shared})
    assert [len(each) for each in found.train.values()] == [1, 2]
    assert len(found.tasks) == 5


# Test functions ---------------------------------------------------------------------------


def test_test_functions_when_they_assert_then_are_scored_and_show_answers(tmp_path: Path) -> None:
    """Sync and async functions, one that returns a score, and what the agent said in them."""

    def fay(agent: Any) -> None:
        """What fay is."""
        assert agent("what is the code of fay?") == "the code of fay is 106"

    async def ada(agent: Any) -> None:
        assert "101" in await agent("what is the code of ada?"), "no code"

    def half(agent: Any) -> float:
        agent("what is the code of bob?")
        return 0.5

    found = tried(
        tmp_path,
        test=[fay, ada, Task("half", half, "k")],
        train=[fay_again],
        score=None,
        replicates=1,
    )
    none = {each["task"]: each for each in results(found, "none")}
    assert {name: each["score"] for name, each in none.items()} == {"fay": 1, "ada": 0, "half": 0.5}
    assert none["fay"]["answer"] == "the code of fay is 106"
    assert none["ada"]["answer"].startswith("the code of ada is 0\nno code")
    assert none["half"]["solved"]
    (item,) = found.bank(MEMORY)
    assert "the code of fay is 106" in item.text, "memory learns what the agent said"


def fay_again(agent: Any) -> None:
    """Say what fay is."""
    assert "106" in agent("what is the code of fay?")


# Scores -----------------------------------------------------------------------------------


async def later(task: Task, output: Any) -> bool:
    """Score asynchronously."""
    return is_right(task, output)


def evaluator(*, inputs: str, outputs: str, reference_outputs: int) -> dict[str, Any]:
    """Score as an evaluator of openevals does."""
    assert "code of" in inputs
    return {"key": "right", "score": outputs.endswith(f" is {reference_outputs}"), "comment": None}


def asserting(task: Task, output: Any) -> None:
    """Assert, and return nothing."""
    assert is_right(task, output)


def any_arguments(outputs: str, **kwargs: Any) -> float:
    """Take what there is."""
    return 1.0 if outputs.endswith(f" is {kwargs['reference_outputs']}") else 0.25


@pytest.mark.parametrize(
    ("score", "wrong"),
    [
        (is_right, 0),
        (later, 0),
        (evaluator, 0),
        (asserting, 0),
        (any_arguments, 0.25),
        (functools.partial(lambda of, task, output: of(task, output), is_right), 0),
    ],
)
def test_score_in_any_form_when_asked_then_is_a_number(
    tmp_path: Path, score: Any, wrong: float
) -> None:
    """Booleans, numbers, evaluators of openevals, assertions; at once or later."""
    found = tried(tmp_path, score=score, replicates=1, test=asked("ada", "fay"))
    assert [each["score"] for each in results(found, "none")] == [wrong, 1]
    assert [each["score"] for each in results(found, MEMORY)] == [1, 1]


def test_judge_that_asks_a_model_when_it_scores_then_is_none_of_the_agents_calls(
    tmp_path: Path,
) -> None:
    """What it sends is in no prompt and no count of tokens of the agent."""
    judge = Clerk()

    def score(task: Task, output: Any) -> bool:
        judge.invoke("a very long question of the judge's: what is the code of ada?")
        return is_right(task, output)

    def silent(memory: Any) -> Any:
        return lambda text: "nothing"

    found = tried(tmp_path / "asks", score=score, replicates=1)
    assert {each["usage"]["replies"] for each in results(found, "none")} == {1}
    found = tried(tmp_path / "silent", score=score, build=silent, model=None, replicates=1)
    assert {each["usage"]["replies"] for each in results(found, "none")} == {0}
    assert {each["prompt"] for each in results(found, "none")} == {""}


@pytest.mark.parametrize("score", ["yes", 7, -0.1, float("nan"), {"score": None}, [True]])
def test_score_that_is_none_when_given_then_is_refused_by_task(tmp_path: Path, score: Any) -> None:
    """A message names the task and what came instead of a score."""
    with pytest.raises(InputError, match=r"score of task '[\w-]+' is .*a score is"):
        tried(tmp_path / "out", score=lambda task, output: score)


def test_score_that_raises_when_asked_then_is_told_as_the_scores_fault(tmp_path: Path) -> None:
    """A bug in it is no bug of ours, and no 0."""

    def score(task: Task, output: Any) -> bool:
        return bool(output["nothing"])

    with pytest.raises(InputError, match=r"score of task '[\w-]+' raised TypeError: string ind"):
        tried(tmp_path / "out", score=score, train=lookups("ada"))


# Agents -----------------------------------------------------------------------------------


@pytest.mark.parametrize("build", AGENTS.values(), ids=AGENTS)
def test_agent_of_any_form_when_tried_then_learns_and_recalls(tmp_path: Path, build: Any) -> None:
    """Middleware, graphs, chains, functions: each gets the text in its form, files once, and is helped."""
    found = tried(tmp_path, build=build, replicates=1)
    assert [each["score"] for each in results(found, "none")] == [0, 0, 1]
    assert [each["score"] for each in results(found, MEMORY)] == [1, 1, 1]
    assert [item.task_id for item in found.bank(MEMORY)] in (
        ["train-ada", "train-bob"],
        ["train-bob", "train-ada"],
    )
    assert all(item.success for item in found.bank(MEMORY))


def test_build_with_a_default_when_called_then_is_not_given_the_model(tmp_path: Path) -> None:
    """A second parameter with a default is the builder's own, unless it is called `model`."""
    seen: list[Any] = []

    def build(memory: Any, size: int = 3) -> Any:
        seen.append(size)
        return str

    def with_model(memory: Any, model: Any = None) -> Any:
        seen.append(model)
        return str

    tried(tmp_path / "a", build=build, model=None, replicates=1)
    assert set(seen) == {3}
    seen.clear()
    tried(tmp_path / "b", build=with_model, replicates=1)
    assert None not in seen


# What is refused --------------------------------------------------------------------------

T = {"id": "t", "input": "what?"}
REFUSED: Mapping[str, tuple[dict[str, Any], str]] = {
    "no test": ({"test": []}, "no `test` tasks"),
    "tests of a number": ({"test": 3}, "`test` is a list of tasks"),
    "no file": ({"test": "/nowhere/tasks.jsonl"}, "tasks.jsonl: cannot be read"),
    "no task": ({"test": [3]}, "test, task 1: expected a task"),
    "no input": ({"test": [T, {"id": "u"}]}, "test, task 2: has no 'input'"),
    "no id": ({"test": [{"input": "x"}]}, "test, task 1: has no 'id'"),
    "hash in id": ({"test": [{**T, "id": "a#1"}]}, "its id is a text without '#'"),
    "kind of a number": ({"test": [Task("t", "x", 3)]}, "its kind is a text"),  # type: ignore[arg-type]
    "surrogate": ({"test": [Task("t", "\ud800")]}, "no UTF-8 text"),
    "twice": ({"test": [T, T]}, "task 't' is given twice"),
    "train and test": ({"train": [T], "test": [T]}, "task 't' is given twice"),
    "sources apart": (
        {"train": {"a": [T], "b": [{**T, "input": "y"}]}},
        "different tasks of the id",
    ),
    "name of a source": ({"train": {"a@b": [T]}}, "a source of `train` is named"),
    "empty source": ({"train": {"a": []}}, "source 'a': is empty"),
    "nothing to learn": ({"train": ()}, "nothing to make a memory of"),
    "two banks": ({"bank": "b.jsonl", "train": [T]}, "both given"),
    "episodes": ({"train": (), "episodes": [3]}, "expected episodes, got 3"),
    "episodes of a number": ({"train": (), "episodes": 3}, "`episodes` is a list"),
    "no bank": ({"train": (), "bank": "/nowhere/b.jsonl"}, "b.jsonl: "),
    "no score": ({"score": None}, "`score` is needed"),
    "no score to train": ({"score": None, "test": [fay_again]}, "`score` is needed.*'train-ada'"),
    "score of a number": ({"score": 3}, "`score` must be a function"),
    "build of a number": ({"build": 3}, "`build` must be a function"),
    "build fails": ({"build": lambda memory, model: 1 / 0}, "`build` raised ZeroDivisionError"),
    "build returns": ({"build": lambda memory, model: None}, "`build` returned None"),
    "no model": ({"model": None}, "`build` takes a model: give the experiment one"),
    "model itself": ({"model": Clerk()}, "Clerk itself belongs into `build`"),
    "no chat model": ({"model": lambda seed: "gpt"}, "makes a chat model, and made 'gpt'"),
    "unknown model": ({"model": "opnai:gpt"}, "'opnai' is no provider"),
    "condition": ({"conditions": ["rndom"]}, "there is no condition 'rndom'; there are random"),
    "condition twice": ({"conditions": ["random", "random"]}, "'random' is named twice"),
    "condition alone": ({"conditions": "random"}, "`conditions` must be a list"),
    "memory": ({"memory": "trajectry"}, "unknown provider 'trajectry'"),
    "memory itself": ({"memory": TrajectoryMemory}, "`memory` is a provider by name"),
    "no memory": ({"memory": {}}, "names no memory"),
    "memory called none": ({"memory": {"none": "trajectory"}}, "other than 'none'"),
    "sign in memory": ({"memory": {"a~b": "trajectory"}}, "a name without '~'"),
    "setting": ({"memory": {"a": {"provider": "trajectory", "settings": {"top": 3}}}}, "top"),
    "feedback": ({"feedback": "gold"}, "`feedback` must be 'environment' or"),
    "replicates": ({"replicates": 0}, "replicates must be a whole number of at least 1"),
    "margin": ({"margin": 1.5}, "`margin` and `solved` are shares"),
    "margin of a text": ({"margin": "x"}, "`margin` must be a number"),
    "budget": ({"budget": -3}, "budget must be a whole number"),
    "credit": ({"credit": -1}, "credit_calls: .*greater than or equal to 0"),
    "guard with credit": ({"against": __file__, "credit": 3}, "a guard tries one memory alone"),
    "batch": ({"against": __file__, "batch": 0}, "batch must be a whole number"),
    "no bank to hold against": ({"against": __file__}, "test_experiment.py, row 1: not JSON"),
}


@pytest.mark.parametrize(("fields", "told"), REFUSED.values(), ids=REFUSED)
def test_experiment_when_something_is_wrong_then_is_refused_before_anything_is_written(
    tmp_path: Path, fields: dict[str, Any], told: str
) -> None:
    """One clear error in one line, and no run directory."""
    with pytest.raises(InputError, match=told) as refused:
        tried(tmp_path / "out", **fields)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [("{", "line 2: is no JSON"), ("3", "task 2: expected a task"), ("[]", "task 2: expected")],
)
def test_file_of_tasks_when_a_line_is_wrong_then_is_named(
    tmp_path: Path, line: str, told: str
) -> None:
    """The file and the line, or which task it is."""
    path = jsonl(tmp_path, json.dumps(T), line)
    with pytest.raises(InputError, match=told):
        experiment(test=path)


def test_cap_when_the_harness_makes_no_model_then_is_refused(tmp_path: Path) -> None:
    """A cap that nothing holds would be worse than none."""
    with pytest.raises(InputError, match="cap a model by name"):
        ablate(experiment(), out=tmp_path / "out", max_calls=3)
    assert not (tmp_path / "out").exists()


# Preview ----------------------------------------------------------------------------------


def test_preview_when_asked_then_counts_the_attempts_that_are_made(tmp_path: Path) -> None:
    """Attempts as they are made later, money at prices, and how many tasks an effect takes."""
    calls: list[str] = []

    def build(memory: Any, model: Any) -> Any:
        agent = function(memory, model)

        def counted(text: str) -> str:
            calls.append(text)
            return agent(text)

        return counted

    chosen = {"build": build, "conditions": ("random", "full_history"), "replicates": 2}
    told = preview_ablation(experiment(**chosen), harm=True, credit=9, prices=(1.0, 2.0))
    assert not calls
    tried(tmp_path, harm=True, credit=9, **chosen)
    # Of the nine, items of two tasks in two replicates, each without the one that was recalled.
    assert told.attempts - 9 <= len(calls) <= told.attempts
    assert told.cost == pytest.approx((told.prompt_tokens + 2 * told.completion_tokens) / 1e6)
    assert f"{told.attempts} attempts" in str(told)
    wide = preview_ablation(experiment(replicates=5))
    few, many = wide.tests_for(0.3), wide.tests_for(0.1)
    assert few is not None
    assert many is not None
    assert few < many
    assert preview_ablation(experiment(replicates=1)).tests_for(0.3) is None


def test_preview_of_a_guard_when_asked_then_says_how_long_it_may_take(tmp_path: Path) -> None:
    """It has two sides, and too few pairs here."""
    bank = bank_file(tmp_path / "b.jsonl", one="the code of ada is 101")
    told = preview_ablation(experiment(bank=bank), against=bank)
    assert told.attempts == 2 * 2 * 3
    assert "losses may be missed" in str(told)


def test_fields_when_given_to_ablate_then_make_the_experiment(tmp_path: Path) -> None:
    """Without an `Experiment`, and beside one."""
    found = ablate(
        build=lambda memory: lambda text: text,
        train=[T],
        test=[{**T, "id": "u"}],
        score=lambda task, output: output == answer(task.input),
        conditions=(),
        replicates=1,
        out=tmp_path,
    )
    assert found.verdicts == {MEMORY: "not tested"}
