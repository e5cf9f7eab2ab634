"""`CodingMemory`: what is kept of errors, what is asked about them, and what is recalled."""

import asyncio
import itertools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, episodes, make_episode, texts

from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import (
    Episode,
    ErrorKind,
    ErrorRecord,
    MemoryDelta,
    Question,
    Verdict,
    fold,
)
from langgraft.memory.providers import CodingMemory, CodingSettings, make_provider
from langgraft.memory.providers.coding.entries import fix_needs
from langgraft.memory.recall import RecallContext

STOPPING = "TypeError: train() got an unexpected keyword argument 'early_stopping_rounds'"
METRIC = "TypeError: XGBClassifier.fit() got an unexpected keyword argument 'eval_metric'"
CALLBACKS = "Use callbacks=[lgb.early_stopping(50)]"


def memory_with(**fields: object) -> CodingMemory:
    """Make a provider with settings."""
    return CodingMemory(InMemoryStore(), settings=CodingSettings.model_validate(fields))


def record(
    error: str = STOPPING, fix: str = CALLBACKS, package: str = "lightgbm", **fields: Any
) -> ErrorRecord:
    """Make an error record."""
    return replace(ErrorRecord(package, error, fix), **fields)


def failed(identity: str, *errors: ErrorRecord, task: str = "leaf", **fields: Any) -> Episode:
    """Make an episode that failed with errors."""
    return make_episode(identity, task_id=task, lessons=(), errors=errors, **fields)


def debugging(error: str, task: str = "leaf", **fields: object) -> RecallContext:
    """Make the context of an agent that debugs a task."""
    return asking(task_id=task, stage="debug", observation=error, **fields)


def recalled(memory: CodingMemory, context: RecallContext) -> list[str]:
    """Return the ids of what is recalled."""
    return [item.id for item in memory.provide("do the task", context).items]


def asked(memory: CodingMemory, episode: Episode) -> Question:
    """Return the one question about an episode."""
    (question,) = memory.questions(episode)
    return question


def answered(memory: CodingMemory, episode: Episode, action: str, item: str | None) -> Episode:
    """Return the episode with the one question about it answered."""
    verdict = Verdict(asked(memory, episode).id, action, item)
    return replace(episode, verdicts=(*episode.verdicts, verdict))


# What is kept -----------------------------------------------------------------------------


def test_error_when_filed_is_an_item_of_its_task_and_package() -> None:
    """The entry has the paper's five parts; the embedding is that of its key."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    (item,) = memory.content().items.values()
    assert (item.id, item.type, item.task_id) == ("e1/error-0", "error_trace", "leaf")
    assert item.metadata == {
        "package": "lightgbm",
        "error": STOPPING,
        "fix": CALLBACKS,
        "kind": "code",
        "by": "model",
    }
    assert item.key == f"{STOPPING}\n{CALLBACKS}"
    assert item.text == f"Package: lightgbm\nError: {STOPPING}\nFix: {CALLBACKS}"


def test_error_when_no_package_owns_it_is_general_and_one_that_says_nothing_is_not_kept() -> None:
    """An empty package is `general`; a record without an error leaves no item."""
    memory = memory_with()
    memory.file(failed("e1", record(package=" "), record(error=" \n")))
    assert [i.metadata["package"] for i in memory.content().items.values()] == ["general"]


def test_error_when_it_comes_as_a_traceback_is_kept_canonical() -> None:
    """What differs from run to run is not kept."""
    seen = 'Traceback (most recent call last):\n  File "/home/{}/run.py", line {}, in <module>\n'
    memory = memory_with()
    for name, line in (("ann", 3), ("bob", 77)):
        text = seen.format(name, line) + f"ValueError: /home/{name}/train.csv has {line} rows"
        memory.file(failed(name, record(text, "")))
    (item,) = memory.content().items.values()
    assert item.metadata["error"] == "ValueError: <path>/train.csv has <n> rows"
    assert memory.content().notes == {item.id: {"seen": 2}}


@pytest.mark.parametrize(
    ("fix", "needs"),
    [
        ("pip install lightgbm==3.3", "a new package"),
        ("Upgrade scikit-learn to 1.4.", "a new package"),
        ("Install the missing package and try again", "a new package"),
        ("Download the weights first", "the network"),
        ("Fetch it from https://example.org/x.bin", "the network"),
        ("git clone the repository", "the network"),
        ("Set pretrained=False in timm.create_model", ""),
        ("Avoid downloading weights; read the local file", ""),
        ("Use callbacks instead of downloading another version", ""),
        ("pandas is already installed, so use read_csv", ""),
        ("", ""),
    ],
)
def test_fix_when_it_needs_packages_or_a_network_is_left_out_and_the_error_stays(
    fix: str, needs: str
) -> None:
    """The paper's rule (Fig. 5), checked at filing whoever wrote the fix."""
    assert fix_needs(fix) == needs
    memory = memory_with()
    memory.file(failed("e1", record(fix=fix)))
    (item,) = memory.content().items.values()
    assert item.metadata["error"] == STOPPING
    assert item.metadata["fix"] == ("" if needs else fix)
    assert item.metadata.get("fix_left_out") == (f"it needs {needs}" if needs else None)
    assert fix not in item.text or not needs


def test_record_when_it_holds_a_lone_surrogate_is_refused_before_anything_is_filed() -> None:
    """Asking and filing refuse it alike, in one line with the episode's name."""
    memory = memory_with()
    bad = failed("bad", record(error="ValueError: \ud800"))
    for call in (memory.questions, memory.file):
        with pytest.raises(InputError, match="episode 'bad' cannot be remembered: "):
            call(bad)
    assert not memory.content().state


# What is asked ----------------------------------------------------------------------------


def test_question_when_there_are_neighbors_shows_them_by_id() -> None:
    """The five nearest of the same task and package; nothing is asked where there are none."""
    memory = memory_with()
    first = failed("e0", record("ValueError: number zero"))
    assert memory.questions(first) == []
    for number, word in enumerate(["zero", "one", "two", "three", "four", "five", "six"]):
        memory.file(failed(f"e{number}", record(f"ValueError: number {word}", "")))
    memory.file(failed("other task", record("ValueError: number six", ""), task="dogs"))
    memory.file(failed("other package", record("ValueError: number six", "", "xgboost")))
    question = asked(memory, failed("new", record("ValueError: the number six", "")))
    assert question.kind == "novelty"
    shown = question.shows["neighbours"]
    assert isinstance(shown, dict)
    assert len(shown) == 5
    assert "e6/error-0" in shown
    assert not {"other task/error-0", "other package/error-0"} & set(shown)
    assert shown["e6/error-0"]["error"] == "ValueError: number six"


def test_question_when_an_equal_entry_is_there_or_the_episode_is_filed_is_not_asked() -> None:
    """What is exactly the same needs no judge."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    again, similar = failed("e2", record()), failed("e3", record(METRIC, package="lightgbm"))
    assert memory.questions(again) == []
    assert memory.questions(similar)
    memory.file(again)
    memory.file(similar)
    assert memory.questions(similar) == []
    assert memory.content().notes == {"e1/error-0": {"seen": 2}}


def test_question_when_only_the_same_message_is_to_count_says_so() -> None:
    """Figure 6 as a setting: the judge is asked for the message, and its answer is taken."""
    memory = memory_with(novelty="message")
    memory.file(failed("e1", record()))
    episode = failed("e2", record(METRIC))
    assert asked(memory, episode).shows["same"] == "message"
    memory.file(answered(memory, episode, "none", "e1/error-0"))
    assert memory.content().notes == {"e1/error-0": {"seen": 2}}
    assert "same" not in asked(memory_with_one(), episode).shows


def memory_with_one() -> CodingMemory:
    """Make a memory of one entry, as it is by default."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    return memory


def test_error_when_the_judge_says_none_counts_for_the_entry_that_is_named() -> None:
    """NONE leaves no item; the entry stands for one record more."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    memory.file(answered(memory, failed("e2", record(METRIC)), "none", "e1/error-0"))
    assert list(memory.content().items) == ["e1/error-0"]
    assert memory.content().notes == {"e1/error-0": {"seen": 2}}


def test_error_when_the_judge_names_nothing_counts_for_the_nearest() -> None:
    """NONE without an id is about the nearest entry; NONE with an unknown id is no answer."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    memory.file(answered(memory, failed("e2", record(METRIC)), "none", None))
    assert memory.content().notes == {"e1/error-0": {"seen": 2}}
    memory.file(answered(memory, failed("e3", record(METRIC)), "none", "made up"))
    assert list(memory.content().items) == ["e1/error-0", "e3/error-0"]


def test_error_when_nobody_answers_or_the_bank_moved_is_added() -> None:
    """A verdict on neighbors that are no longer the nearest does not answer any more."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    late = answered(memory, failed("late", record(METRIC)), "none", "e1/error-0")
    memory.file(failed("e2", record(METRIC, "another fix")))
    assert len(memory.questions(late)) == 1
    memory.file(late)
    assert list(memory.content().items) == ["e1/error-0", "e2/error-0", "late/error-0"]


def judged(memory: CodingMemory, episode: Episode) -> Episode:
    """Answer what is asked, by a stated rule: the same error is NONE, whatever the fix."""
    verdicts = []
    for question in memory.questions(episode):
        new, near = question.shows["record"], question.shows["neighbours"]
        assert isinstance(new, dict)
        assert isinstance(near, dict)
        same = [name for name, kept in near.items() if kept["error"] == new["error"]]
        verdicts.append(Verdict(question.id, *(("none", same[0]) if same else ("add", None))))
    return replace(episode, verdicts=(*episode.verdicts, *verdicts))


BRANCHES = [
    failed("b1", record(fix="one")),
    failed("b2", record(fix="two")),
    failed("b3", record(METRIC, "three", "xgboost")),
    failed("b4", record(fix="four"), record(METRIC, "five", "xgboost")),
]


@pytest.mark.parametrize("ranker", ["dense", "bm25", "term_overlap"])
def test_error_when_a_ranker_sees_many_like_it_is_still_known_to_be_there(ranker: str) -> None:
    """Six that differ by case alone are as near to each other, and only five are looked at."""
    memory = memory_with(ranker=ranker)
    errors = [f"KeyError: {name!r}" for name in ("sex", "Sex", "sEx", "seX", "SEx", "SEX")]
    for number, error in enumerate(errors):
        memory.file(failed(f"e{number}", record(error, package="pandas")))
    for number, error in enumerate(errors):
        again = failed(f"again-{number}", record(error, package="pandas"))
        assert memory.questions(again) == []
        memory.file(again)
    content = memory.content()
    assert len(content.items) == len(errors)
    assert all(notes == {"seen": 2} for notes in content.notes.values())


def test_error_without_words_when_other_tasks_have_it_is_known_in_each() -> None:
    """However many tasks met it, each keeps it once."""
    memory = memory_with()
    for time in "ab":
        for task in range(7):
            memory.file(failed(f"{task}{time}", record("???", ""), task=f"task {task}"))
    assert len(memory.content().items) == 7


def test_branches_when_they_finish_in_any_order_make_the_same_bank() -> None:
    """Branches ask when they are done, one node files them in order and asks again."""
    banks = set()
    for order in itertools.permutations(BRANCHES):
        memory = memory_with()
        memory.file(failed("before", record("ValueError: before", "")))
        early = {episode.id: judged(memory, episode) for episode in order}
        for episode in sorted(early.values(), key=lambda each: each.id):
            memory.file(judged(memory, episode))
        banks.add(memory.content().digest)
        assert set(memory.content().items) == {"before/error-0", "b1/error-0", "b3/error-0"}
        assert memory.content().notes["b1/error-0"] == {"seen": 3}
    assert len(banks) == 1


async def test_neighbors_when_asked_for_are_the_same_either_way() -> None:
    """Sync and async, of one task or of all, nearest first."""
    memory = memory_with()
    memory.file(failed("e1", record()))
    memory.file(failed("e2", record("ValueError: x", "")))
    memory.file(failed("e3", record(), task="dogs"))
    new = record(fix="")
    near = memory.neighbours(new, k=5, task_id="leaf")
    assert near == await memory.aneighbours(new, k=5, task_id="leaf")
    assert [item.id for item in near] == ["e1/error-0", "e2/error-0"]
    assert {item.id for item in memory.neighbours(new, k=2)} == {"e1/error-0", "e3/error-0"}
    assert memory.neighbours(record(package="torch")) == []
    assert memory.neighbours(record(error="")) == []
    with pytest.raises(InputError, match="at least 1"):
        memory.neighbours(new, k=0)


# Verified fixes ---------------------------------------------------------------------------


def test_fix_when_a_descendant_ran_is_verified_also_where_the_record_was_merged() -> None:
    """`resolves` reaches the entries that stand for the earlier episodes' errors."""
    memory = memory_with(verified_only=True)
    memory.file(failed("e1", record()))
    memory.file(answered(memory, failed("e2", record(METRIC)), "none", "e1/error-0"))
    memory.file(failed("e3", record("ValueError: x", "")))
    assert recalled(memory, debugging(STOPPING)) == []
    memory.file(failed("ran", resolves=("e2", "e3", "nobody knows")))
    assert memory.content().notes["e1/error-0"] == {"seen": 2, "verified": True}
    assert recalled(memory, debugging(STOPPING)) == ["e1/error-0"]
    assert recalled(memory, asking(task_id="leaf", stage="improve")) == ["e1/error-0"]


def test_fix_when_there_is_none_has_nothing_to_verify() -> None:
    """An entry without a fix, or whose fix was left out, stays unverified."""
    memory = memory_with()
    memory.file(failed("e1", record(fix=""), record(METRIC, "pip install x")))
    memory.file(failed("ran", record("ValueError: y", "z", verified=True), resolves=("e1",)))
    assert memory.content().notes == {"ran/error-0": {"verified": True}}


def test_fix_when_another_one_worked_is_not_verified_by_that() -> None:
    """A judge merges what is the same error; what is proven of one fix says nothing of another."""
    memory = memory_with()
    memory.file(failed("e1", record(fix="pass a callback")))
    for name, verified in (("e2", True), ("e3", False)):
        other = record(METRIC, "leave the argument out", verified=verified)
        memory.file(answered(memory, failed(name, other), "none", "e1/error-0"))
    memory.file(failed("ran", resolves=("e2", "e3")))
    assert memory.content().notes == {"e1/error-0": {"seen": 3}}
    memory.file(failed("ran too", resolves=("e1",)))
    assert memory.content().notes == {"e1/error-0": {"seen": 3, "verified": True}}


def test_uses_when_the_error_is_met_again_are_counted_all_the_same() -> None:
    """What an episode says of an entry leaves alone the credit that the entry earns by it."""
    memory = memory_with(credit=True)
    memory.file(failed("e0", record()))
    for number in range(1, 5):
        asked = replace(debugging(STOPPING), episode_id=f"e{number}")
        receipt = memory.provide("classify leaves", asked).receipt
        assert receipt.item_ids == ("e0/error-0",)
        memory.file(replace(failed(f"e{number}", record()), recalls=(receipt,)))
    notes = memory.content().notes["e0/error-0"]
    assert notes == {"seen": 5, "uses": 4, "successes": 4}


def test_entry_when_an_import_replaced_it_is_not_verified_in_its_place(tmp_path: Path) -> None:
    """A name says nothing: what is verified is the very entry that was filed."""
    memory, path = memory_with(), tmp_path / "bank.jsonl"
    memory.file(failed("e1", record()))
    other = memory_with()
    other.file(failed("e1", record("ValueError: x", "another fix")))
    other.export_items(path)
    memory.import_items(path, ImportChoices(on_conflict="replace"))
    memory.file(failed("ran", resolves=("e1",)))
    assert memory.content().notes == {"e1/error-0": {"imported": True}}


def test_entry_when_it_has_gone_meanwhile_is_not_verified() -> None:
    """What forgetting took does not come back."""
    memory = memory_with(forgetting=({"policy": "capacity", "limit": 1},))
    memory.file(failed("e1", record()))
    memory.file(failed("e2", record("ValueError: x")))
    kept = list(memory.content().items)
    assert len(kept) == 1
    memory.file(failed("ran", resolves=("e1", "e2")))
    assert memory.content().notes == {kept[0]: {"verified": True}}


# What is recalled -------------------------------------------------------------------------


def filled(**fields: object) -> CodingMemory:
    """Make a memory of two tasks and all kinds."""
    memory = memory_with(**fields)
    kinds: Sequence[ErrorKind] = ("code", "environment", "resource")
    for task in ("leaf", "dogs"):
        for kind in kinds:
            error = f"RuntimeError: {kind} trouble with {task}"
            memory.file(failed(f"{task} {kind}", record(error, kind=kind), task=task))
    return memory


def test_recall_when_an_error_is_in_sight_brings_the_nearest_of_the_task() -> None:
    """The error is compared in canonical form, whatever it is wrapped in."""
    memory = filled(top_k=1)
    output = "epoch 1\nTraceback (most recent call last):\n  File 'x', line 3\nRuntimeError: resource trouble"
    assert recalled(memory, debugging(output)) == ["leaf resource/error-0"]
    assert recalled(memory, debugging(output, "dogs")) == ["dogs resource/error-0"]
    improving = asking(task_id="leaf", stage="improve", observation=output)
    assert recalled(memory, improving) == ["leaf resource/error-0"]


def test_recall_when_no_error_is_in_sight_brings_the_newest_of_the_task() -> None:
    """There is nothing to compare with."""
    memory = filled(top_k=2)
    recall = memory.provide("classify", asking(task_id="leaf", stage="improve"))
    assert [item.id for item in recall.items] == [
        "leaf resource/error-0",
        "leaf environment/error-0",
    ]
    assert recalled(memory, debugging("")) == [item.id for item in recall.items]


def test_tasks_when_they_are_the_same_never_mix_and_all_of_them_do() -> None:
    """Cross-task recall is a setting; the task that asks can be left out of it."""
    near_other = "RuntimeError: code trouble with dogs"
    assert all(name.startswith("leaf ") for name in recalled(filled(), debugging(near_other)))
    every = filled(tasks="all", top_k=6)
    assert len(recalled(every, debugging(near_other))) == 6
    assert len(recalled(every, asking(task_id="leaf", stage="improve"))) == 6
    others = filled(tasks="all", same_task="exclude", top_k=6)
    for context in (debugging(near_other), asking(task_id="leaf", stage="improve")):
        assert {name.split()[0] for name in recalled(others, context)} == {"dogs"}


def test_tasks_when_their_names_differ_by_what_filters_cannot_see_do_not_mix() -> None:
    """NUL looks like its replacement in a filter, and is another task all the same."""
    memory = memory_with()
    memory.file(failed("e1", record(), task="a\x00"))
    memory.file(failed("e2", record(), task="a\ufffd"))
    assert not memory.content().notes
    for task, name in (("a\x00", "e1/error-0"), ("a\ufffd", "e2/error-0")):
        assert recalled(memory, debugging(STOPPING, task)) == [name]


def test_stages_and_steps_when_out_of_scope_recall_nothing() -> None:
    """By default drafts see nothing; early steps are a setting."""
    memory = filled()
    assert recalled(memory, asking(task_id="leaf", stage="draft")) == []
    assert recalled(memory, asking(task_id="leaf", stage="start"))
    assert recalled(filled(stages=["draft"]), asking(task_id="leaf", stage="draft"))
    later = filled(from_step=5)
    assert recalled(later, debugging("RuntimeError: x", step=4)) == []
    assert recalled(later, debugging("RuntimeError: x", step=5))


@pytest.mark.parametrize("error", ["RuntimeError: resource trouble", ""])
def test_kinds_when_barred_from_a_stage_are_not_recalled_there(error: str) -> None:
    """Timeouts need not steer improvements (§4.6), and still help to debug."""
    bars = {"improve": ["code", "environment"], "start": ["code"], "draft": []}
    memory = filled(kinds_by_stage=bars, stages=["start", "draft", "improve", "debug"])
    kinds = {}
    for stage in ("start", "draft", "improve", "debug"):
        context = asking(task_id="leaf", stage=stage, observation=error)
        found = memory.provide("x", context).items
        kinds[stage] = sorted(str(item.metadata["kind"]) for item in found)
    assert kinds == {
        "start": ["code"],
        "draft": [],
        "improve": ["code", "environment"],
        "debug": ["code", "environment", "resource"],
    }


def test_start_when_cold_recalls_only_what_the_bank_took_in_itself(tmp_path: Path) -> None:
    """Imported items carry a note; a warm start uses them from the first step on."""
    filled().export_items(tmp_path / "bank.jsonl")
    for start, count in (("cold", 1), ("warm", 3)):
        memory = memory_with(start=start)
        deltas = [memory.import_items(tmp_path / "bank.jsonl")]
        assert {note["imported"] for note in memory.content().notes.values()} == {True}
        deltas.append(memory.file(failed("own", record("RuntimeError: our own"))))
        for context in (debugging("RuntimeError: trouble"), asking(task_id="leaf", stage="start")):
            assert len(recalled(memory, context)) == count
        assert fold(deltas) == memory.content()


def test_settings_when_they_are_described_can_be_read_back_and_hashed() -> None:
    """Architectures are printable, hashable, and checked."""
    settings = CodingSettings.model_validate(
        {"kinds_by_stage": {"improve": ["code"], "draft": []}, "top_k": 2}
    )
    assert CodingSettings.model_validate(settings.describe()) == settings
    assert hash(settings) == hash(CodingSettings.model_validate(settings.describe()))
    assert make_provider("coding", InMemoryStore(), settings=settings.describe()).needs == {
        "errors",
        "verdicts",
    }
    with pytest.raises(SettingsError, match="leaves nothing to recall"):
        CodingSettings(same_task="exclude")


# Under load, and with anything ------------------------------------------------------------


def test_errors_when_filed_by_sixteen_threads_lose_nothing() -> None:
    """Equal errors of many threads are one entry that counts them all."""
    memory = memory_with()
    listed = [failed(f"e{n}", record(fix=f"fix {n % 4}")) for n in range(64)]
    with ThreadPoolExecutor(16) as pool:
        deltas = list(pool.map(memory.file, [*listed, *listed]))
    content = memory.content()
    assert len([delta for delta in deltas if delta]) == 64
    assert sorted(str(note["seen"]) for note in content.notes.values()) == ["16"] * 4
    assert len(content.items) == 4

    async def more() -> None:
        await asyncio.gather(*(memory.afile(failed(f"a{n}", record())) for n in range(16)))

    asyncio.run(more())
    assert len(memory.content().items) == 5


@given(listed=st.lists(episodes(), max_size=5), question=texts)
def test_bank_when_fed_anything_is_the_fold_and_asking_changes_nothing(
    listed: list[Episode], question: str
) -> None:
    """Hostile texts in records, verdicts and questions."""
    memory = memory_with(tasks="all")
    deltas = []
    for episode in listed:
        memory.questions(episode)
        deltas.append(memory.file(judged(memory, episode)))
        before = memory.content().to_bytes()
        for stage in ("debug", "improve"):
            memory.provide(question, asking(stage=stage, observation=question))
        assert not memory.file(episode)
        assert memory.content().to_bytes() == before
    logged = [MemoryDelta.from_json(delta.to_json()) for delta in deltas]
    assert fold(logged).to_bytes() == memory.content().to_bytes()


def test_errors_when_ten_thousand_are_equal_are_one_entry() -> None:
    """A run that fails in one way all the time fills no bank."""
    memory = memory_with()
    errors = tuple(record() for _ in range(10_000))
    memory.file(failed("e1", *errors))
    assert memory.content().notes == {"e1/error-0": {"seen": 10_000}}


@pytest.mark.parametrize("error", ["\u2026", "\x00", "!?", "\u202e"])
def test_error_when_it_has_no_words_is_known_again(error: str) -> None:
    """What no embedder can place is compared as it is."""
    memory = memory_with()
    memory.file(failed("e1", record(error, "")))
    memory.file(failed("e2", record(error, "")))
    assert memory.content().notes == {"e1/error-0": {"seen": 2}}


def test_item_when_an_imported_one_has_its_id_is_found_and_verified_by_its_own(
    tmp_path: Path,
) -> None:
    """The bookkeeping names entries as the bank does."""
    source = memory_with()
    source.file(failed("e1", record("ValueError: of the other bank")))
    source.export_items(tmp_path / "bank.jsonl")
    memory = memory_with()
    memory.import_items(tmp_path / "bank.jsonl")
    memory.file(failed("e1", record()))
    memory.file(failed("ran", resolves=("e1",)))
    notes = memory.content().notes
    assert notes == {"e1/error-0": {"imported": True}, "e1/error-0~2": {"verified": True}}
