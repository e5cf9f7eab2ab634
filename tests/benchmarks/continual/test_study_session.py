"""The continual study played through: results, banks, controls, and a memory of one's own."""

import asyncio
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from langgraft._core.errors import ResumeRefusedError, StudyError
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.session import build_memory
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.directory import hold_directory, places_in_memory
from langgraft.benchmarks.harness.log import PlanLog, run_folder, start_deltas
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.memory.controls import FILLER
from langgraft.memory.model import BLOCK_END, BLOCK_START, fold

STUDY = ContinualStudy()
SEQUENCES = ("A", "B", "A>B", "B>A")
RESULT_FIELDS = {
    "task_id",
    "success",
    "score",
    "reason",
    "rounds",
    "invalid_replies",
    "recalls",
    "lessons",
    "reflection",
    "judging",
    "steps",
    "usage",
}


def small_plan(**fields: Any) -> ContinualPlan:
    """Return a plan of a second or two."""
    settings: dict[str, Any] = {
        "conditions": [
            {"name": "agg", "provider": "insight"},
            {
                "name": "step",
                "provider": "insight",
                "settings": {"granularity": "individual", "top_k": 3, "requery_interval": 4},
            },
            {"name": "diary", "provider": "diary_memory:Diary", "settings": {"pages": 3}},
        ],
        "controls": [{"control": kind, "of": "agg"} for kind in ("random", "placebo", "shuffled")],
        "train_items": 3,
        "test_items": 1,
        "runs": 1,
        "baseline_runs": 1,
        "rerun": False,
    }
    return ContinualPlan.model_validate({**settings, **fields})


async def play(plan: ContinualPlan, out: Path, **settings: Any) -> PlanLog:
    """Run a plan with the simulated learner."""
    prepared = prepare(STUDY, plan)
    outcome = await run_plan(prepared, out, model_for=STUDY.simulated_model, **settings)
    assert outcome.complete
    return PlanLog(out)


def logs(out: Path) -> dict[Path, bytes]:
    """Return the committed items of all runs, byte by byte."""
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("items.jsonl")}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Run the small plan."""
    return asyncio.run(play(small_plan(), tmp_path_factory.mktemp("study") / "run"))


def recalls(result: Mapping[str, Any]) -> list[Any]:
    """Return the receipts of an episode."""
    found = result["recalls"]
    assert isinstance(found, list)
    return found


def test_results_when_committed_then_say_how_each_episode_went(log: PlanLog) -> None:
    """Every result has the same fields, and they agree with each other."""
    for run in log.runs:
        results = log.results(run.name)
        assert [result["task_id"] for result in results] == list(run.item_ids)
        for result in results:
            steps, usage = result["steps"], result["usage"]
            assert isinstance(steps, list)
            assert isinstance(usage, dict)
            assert set(result) == RESULT_FIELDS
            assert result["rounds"] == len(steps) - 1 <= 20
            assert (result["reason"] == "goal reached") is result["success"]
            reflected = bool(result["reflection"])
            assert usage["replies"] == result["rounds"] + reflected
            assert usage["replies_without_usage"] == 0
            asked = {node: use["replies"] for node, use in usage["by_node"].items()}
            expected = {"think": result["rounds"], **({"reflect": 1} if reflected else {})}
            assert asked == expected


def test_directory_when_finished_then_verifies(log: PlanLog) -> None:
    """The harness finds nothing wrong with what the study left."""
    assert verify_directory(log.path) == []


def test_baseline_when_played_then_remembers_and_recalls_nothing(log: PlanLog) -> None:
    """Without memory there is no recall, no reflection and no delta."""
    for task in "AB":
        name = f"none/0/test {task}"
        assert not any(log.deltas(name))
        for result in log.results(name):
            assert (result["recalls"], result["lessons"], result["reflection"]) == ([], [], "")


@pytest.mark.parametrize("memory", ["agg", "step", "diary"])
def test_training_when_played_then_each_episode_adds_to_the_bank(log: PlanLog, memory: str) -> None:
    """Successful or not, every episode is filed once, and what it left is of its family."""
    for sequence in SEQUENCES:
        name = f"{memory}/0/train {sequence}"
        run = next(run for run in log.runs if run.name == name)
        filed = {item.episode_id for item in log.bank(name).items.values()}
        assert set(run.item_ids) <= filed
        assert len(filed) == 3 * (1 + sequence.count(">"))


@pytest.mark.parametrize("memory", ["agg", "step", "diary"])
@pytest.mark.parametrize(("first", "second"), [("A", "A>B"), ("B", "B>A")])
def test_cross_task_when_played_then_starts_from_the_sources_bank(
    log: PlanLog, memory: str, first: str, second: str
) -> None:
    """The second phase's memory holds exactly what folding the first phase's deltas gives."""
    plan, run = small_plan(), log.graph[f"{memory}/0/train {second}"]
    source = log.bank(f"{memory}/0/train {first}")
    start = start_deltas(log.path, log.graph, run)
    built = build_memory(plan, run.spec, start, places_in_memory().of(run))
    assert built is not None
    assert built.content() == source == fold(start)
    own = [delta for deltas in log.deltas(run.name) for delta in deltas]
    assert log.bank(run.name) == fold([*start, *own])
    assert set(source.items) < set(log.bank(run.name).items)
    opening = recalls(log.results(run.name)[0])[0]
    assert opening["item_ids"]
    assert set(opening["item_ids"]) <= set(source.items)


@pytest.mark.parametrize("memory", ["agg", "step", "diary"])
def test_scratch_when_played_then_its_first_episode_recalls_nothing(
    log: PlanLog, memory: str
) -> None:
    """An empty bank has nothing to say."""
    for task in "AB":
        first, *later = log.results(f"{memory}/0/train {task}")
        assert all(receipt["item_ids"] == [] for receipt in recalls(first))
        assert any(receipt["item_ids"] for result in later for receipt in recalls(result))


def test_evaluations_when_played_then_recall_from_a_bank_that_stays(log: PlanLog) -> None:
    """A test recalls what its source left, and leaves no delta and no reflection."""
    for planned in log.graph:
        run = planned.spec
        if not run.frozen or run.source is None:
            continue
        content = log.bank(run.source.run)
        assert not any(log.deltas(run.name))
        assert log.bank(run.name).digest == content.digest
        for result in log.results(run.name):
            assert result["reflection"] == ""
            asked = [receipt["item_ids"] for receipt in recalls(result)]
            assert asked[0]
            assert {item for ids in asked for item in ids} <= set(content.items)


def test_step_when_played_then_asks_again_every_four_steps(log: PlanLog) -> None:
    """Cond-Step recalls at steps 0, 4, 8 …; the others at the start alone (Table 8)."""
    for run in log.runs:
        memory = str(run.factors["condition"])
        for result in log.results(run.name):
            steps = [receipt["step"] for receipt in recalls(result)]
            rounds = result["rounds"]
            assert isinstance(rounds, int)
            if memory == "step":
                assert steps == [*range(0, rounds, 4)]
            else:
                assert steps == ([] if memory == "none" else [0])


def test_placebo_when_played_then_takes_the_place_of_the_same_items(log: PlanLog) -> None:
    """The placebo is asked as the condition is, and gives as many tokens for the same items."""
    for sequence in ("A>B", "B>A"):
        for task in "AB":
            name = f"test {task} after {sequence}"
            real, fake = log.results(f"agg/0/{name}"), log.results(f"agg+placebo/0/{name}")
            for left, right in zip(real, fake, strict=True):
                for receipt, other in zip(recalls(left), recalls(right), strict=True):
                    for field in ("query", "step", "item_ids", "scores", "tokens"):
                        assert receipt[field] == other[field]


@pytest.mark.parametrize("control", ["random", "shuffled"])
def test_control_when_played_then_recalls_as_many_other_items(log: PlanLog, control: str) -> None:
    """Real items of the same bank, none that the condition found."""
    for sequence in ("A>B", "B>A"):
        bank = log.bank(f"agg/0/train {sequence}")
        for task in "AB":
            name = f"test {task} after {sequence}"
            real, other = log.results(f"agg/0/{name}"), log.results(f"agg+{control}/0/{name}")
            for left, right in zip(real, other, strict=True):
                found, given = recalls(left)[0]["item_ids"], recalls(right)[0]["item_ids"]
                assert len(found) == len(given) == 1
                assert set(given) <= set(bank.items) - set(found)


class Listener(SimulatedBabyAI):
    """The simulated learner, keeping the notes it was shown."""

    def __init__(self, heard: list[str], **settings: Any) -> None:
        super().__init__(**settings)
        self._heard = heard

    def _generate(self, messages: list[BaseMessage], *args: Any, **settings: Any) -> Any:
        shown = "\n".join(message.text for message in messages)
        self._heard.append(shown.partition(BLOCK_START)[2].partition(BLOCK_END)[0])
        return super()._generate(messages, *args, **settings)


@pytest.mark.parametrize("condition", ["agg", "agg+random", "agg+placebo", "agg+shuffled", "none"])
async def test_model_when_asked_then_is_shown_what_the_condition_recalls(
    log: PlanLog, condition: str
) -> None:
    """Insights with the memory, weather with the placebo, another's insights, or no notes at all."""
    after = "" if condition == "none" else " after A>B"
    run = log.graph[f"{condition}/0/test A{after}"]
    heard: list[str] = []
    model: BaseChatModel = Listener(heard, seed=42)
    start = start_deltas(log.path, log.graph, run)
    session = STUDY.open(small_plan(), run.spec, start, model, places_in_memory().of(run))
    outcome = await session.run_item(0, run.spec.item_ids[0])
    await session.aclose()
    again = {**outcome.result, "usage": None}
    assert again == {**log.results(run.name)[0], "usage": None}
    if condition == "none":
        assert set(heard) == {""}
        return
    bank = log.bank("agg/0/train A>B")
    (shown,) = set(heard)
    (item,) = recalls(outcome.result)[0]["item_ids"]
    assert (bank.items[item].text in shown) is (condition != "agg+placebo")
    assert any(sentence[:-1] in shown for sentence in FILLER) is (condition == "agg+placebo")


async def test_items_when_run_one_after_another_then_are_the_same_bytes(
    log: PlanLog, tmp_path: Path
) -> None:
    """One item at a time commits what sixteen side by side commit, item by item."""
    plan = small_plan(conditions=small_plan().conditions[:1], controls=[])
    again = await play(plan, tmp_path / "run", concurrency=1)
    assert len(logs(again.path)) == 2 + 4 + 6
    assert logs(again.path).items() <= logs(log.path).items()


async def test_items_when_resumed_in_the_middle_then_are_the_same_bytes(
    log: PlanLog, tmp_path: Path
) -> None:
    """A stream cut after its first item goes on from the bank that item left."""
    copy = tmp_path / "run"
    shutil.copytree(log.path, copy)
    for name in ("agg/0/train A>B", "diary/0/train B", "step/0/test A after A>B"):
        folder = run_folder(copy, log.graph[name])
        (folder / "DONE.json").unlink()
        first = (folder / "items.jsonl").read_bytes().splitlines(keepends=True)[0]
        (folder / "items.jsonl").write_bytes(first)
    again = await play(small_plan(), copy)
    assert logs(again.path) == logs(log.path)


def test_own_memory_when_named_by_its_path_then_is_a_condition_like_any_other(
    log: PlanLog,
) -> None:
    """A provider outside of the package learns, is carried over, and is recalled in tests."""
    notes = log.bank("diary/0/train A>B").items.values()
    assert [note.order_index for note in notes] == [*range(6)]
    assert all(note.text.startswith("I was told to ") for note in notes)
    for result in log.results("diary/0/test B after A>B"):
        (receipt,) = recalls(result)
        assert len(receipt["item_ids"]) == 3
        assert all("find_obj" in item for item in receipt["item_ids"])


def test_own_memory_when_its_code_changes_then_the_directory_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study is not gone on with by other code than it was begun with."""
    module = tmp_path / "own_memory.py"
    code = "import diary_memory\nclass Own(diary_memory.Diary):\n    name = 'own'\n"
    module.write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    plan = small_plan(
        conditions=[{"name": "own", "provider": "own_memory:Own"}], controls=[], sequences=["A>B"]
    )
    out = tmp_path / "run"
    for _ in range(2):
        with hold_directory(out, prepare(STUDY, plan)):
            pass
    module.write_text(code + "# improved\n")
    with (
        pytest.raises(ResumeRefusedError, match="architectures"),
        hold_directory(out, prepare(STUDY, plan)),
    ):
        pass


@pytest.mark.parametrize(
    ("provider", "says"),
    [("Scribbler", "read-only: refused to put 'asked'"), ("Sneak", "a frozen bank changed from ")],
)
async def test_frozen_bank_when_a_memory_writes_to_it_then_the_study_stops(
    provider: str, says: str, tmp_path: Path
) -> None:
    """No evaluation is finished on a bank that did not stay as it was."""
    condition = {"name": "bad", "provider": f"diary_memory:{provider}"}
    plan = small_plan(conditions=[condition], controls=[], train_items=1, sequences=["A>B"])
    with pytest.raises(StudyError, match=says) as caught:
        await play(plan, tmp_path / "run", concurrency=1)
    assert caught.value.run == "bad/0/test A after A"
    log = PlanLog(tmp_path / "run")
    run = log.graph[caught.value.run]
    assert len(log.results(run.name)) < run.length
