"""Changes by hand, where a provider keeps more of an item than the item; the suite has the rest."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item
from provider_variants import REGISTERED

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory.bank_format import write_items
from langgraft.memory.controls import Placebo, WriteOnly
from langgraft.memory.forgetting import SUCCESSES, USES, VOTES
from langgraft.memory.model import Episode, ErrorRecord, Lesson, Outcome, Verdict
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import (
    PROVIDERS,
    CodingMemory,
    ExpeL,
    InsightMemory,
    SimpleRAG,
    TrajectoryMemory,
    make_provider,
    open_provider,
)
from langgraft.memory.testing.providers.content import CANARY, stored


def made(name: str, **settings: Any) -> MemoryProvider[Any]:
    """Make a provider over an empty store."""
    return make_provider(name, InMemoryStore(), settings=settings)


def texts(memory: MemoryProvider[Any]) -> dict[str, str]:
    """Return what a bank's items say, by their ids."""
    return {identity: item.text for identity, item in memory.content().items.items()}


# Insight ----------------------------------------------------------------------------------

LESSONS = (Lesson("toggle it", "a door is shut"), Lesson(f"ask {CANARY}"), Lesson("look around"))


def adaptive() -> MemoryProvider[Any]:
    """Return a memory that keeps each lesson twice, and attempts; it learned of one episode."""
    memory = made("insight", granularity="adaptive", top_k=2, attempts=3)
    memory.file(make_episode("e", lessons=LESSONS))
    return memory


def test_lesson_when_forgotten_leaves_the_bundle_that_held_it() -> None:
    """The others stay in it; when the last one goes, so does the bundle."""
    memory = adaptive()
    memory.forget("e/lesson-1")
    assert texts(memory)["e/lessons"] == "- When a door is shut: toggle it\n- look around"
    assert CANARY not in memory.content().to_bytes().decode()
    memory.forget("e/lesson-0")
    memory.forget("e/lesson-2")
    assert texts(memory) == {}


def test_lesson_when_edited_is_edited_in_its_bundle() -> None:
    """One by one, whichever of them is recalled."""
    memory = adaptive()
    memory.edit("e/lesson-1", text="- ask twice\n- and wait")
    assert texts(memory)["e/lessons"].splitlines()[1:3] == ["- ask twice", "- and wait"]
    assert CANARY not in memory.content().to_bytes().decode()
    memory.forget("e/lesson-1")
    assert texts(memory)["e/lessons"] == "- When a door is shut: toggle it\n- look around"


def test_lesson_when_another_says_the_same_leaves_that_one_in_the_bundle() -> None:
    """Each is an item of its own."""
    memory = made("insight", granularity="adaptive")
    memory.file(make_episode("e", lessons=(Lesson("wait"), Lesson("wait"))))
    memory.forget("e/lesson-0")
    assert texts(memory) == {"e/lessons": "- wait", "e/lesson-1": "- wait"}


def test_bundle_when_forgotten_takes_its_lessons_and_is_not_edited_by_itself() -> None:
    """What it says is theirs."""
    memory = adaptive()
    before = memory.content().digest
    with pytest.raises(InputError, match=r"made of the lessons 'e/lesson-0', .*edit those"):
        memory.edit("e/lessons", text="- something else")
    with pytest.raises(InputError, match="`unit` of item 'e/lessons' cannot be edited"):
        memory.edit("e/lessons", metadata={"unit": None})
    assert memory.content().digest == before
    memory.file(make_episode("other"))
    memory.forget("e/lessons")
    assert set(texts(memory)) == {"other/lessons", "other/lesson-0", "other/lesson-1"}


def test_attempt_when_its_lesson_is_forgotten_is_compared_with_no_more() -> None:
    """It is no item, so nobody could forget it by an id; others are still there."""
    memory = InsightMemory(InMemoryStore(), settings=adaptive().settings)
    for name in ("e", "other"):
        memory.file(make_episode(name, lessons=LESSONS))
    failed = make_episode("now", outcome=Outcome(success=False))
    found = memory.counterpart(failed)
    assert found is not None
    memory.forget(f"{found.episode_id}/lesson-0")
    (left,) = {"e", "other"} - {found.episode_id}
    now = memory.counterpart(failed)
    assert now is not None
    assert now.episode_id == left
    memory.edit(f"{left}/lesson-0", metadata={"checked": True})
    assert memory.counterpart(failed) == now
    memory.edit(f"{left}/lesson-0", text="- knock first")
    assert memory.counterpart(failed) is None
    memory.file(make_episode("later"))
    assert memory.counterpart(failed)


@given(
    st.lists(st.sampled_from(["a", "b", "c d", "e"]), min_size=1, max_size=5),
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "- f", "- g\n- h", "- i\n"]))),
)
def test_bundle_when_its_lessons_change_says_what_they_say(
    said: list[str], changes: list[tuple[int, str]]
) -> None:
    """Whatever is forgotten and edited, in whatever order; the same texts side by side included."""
    memory = made("insight", granularity="adaptive")
    memory.file(make_episode("e", lessons=tuple(map(Lesson, said))))
    for number, text in changes:
        change(memory, f"e/lesson-{number}", text)
    held = texts(memory)
    bundle = held.pop("e/lessons", "")
    assert sorted(bundle.split("\n")) == sorted("\n".join(held.values()).split("\n"))


def change(memory: MemoryProvider[Any], identity: str, text: str) -> None:
    """Edit an item, or without a text forget it, if it is there."""
    if identity in texts(memory):
        memory.edit(identity, text=text) if text else memory.forget(identity)


# Coding -----------------------------------------------------------------------------------


def broken(identity: str, fix: str, **fields: Any) -> Episode:
    """Return an episode that met an error."""
    error = ErrorRecord("torch", "ValueError: bad shape", fix)
    return make_episode(identity, task_id="t", errors=(error,), **fields)


def test_error_when_its_text_is_edited_is_kept_as_it_now_reads() -> None:
    """Fields and key are read off it, and no field is edited by itself."""
    memory = CodingMemory(InMemoryStore())
    memory.file(broken("e", CANARY))
    (identity,) = texts(memory)
    with pytest.raises(InputError, match=r"`fix` of item .* cannot be edited: it is derived"):
        memory.edit(identity, metadata={"fix": "guess"})
    with pytest.raises(InputError, match=r"`key` of item .* cannot be edited: it is derived"):
        memory.edit(identity, key="found by this")
    memory.edit(identity, text="Package: torch\nError: ValueError: bad shape\nFix: flip it\nand go")
    item = memory.content().items[identity]
    assert (item.metadata["fix"], item.metadata["error"]) == (
        "flip it\nand go",
        "ValueError: bad shape",
    )
    assert item.key == "ValueError: bad shape\nflip it\nand go"
    assert CANARY not in memory.content().to_bytes().decode()
    assert not memory.questions(broken("f", "flip it\nand go"))  # it is that very entry
    memory.edit(identity, text="never flip")
    item = memory.content().items[identity]
    assert item.retrieval_key == "never flip"
    assert "fix" not in item.metadata
    assert item.metadata["package"] == "torch"


@pytest.mark.parametrize("change", ["forget", "edit"])
def test_fix_when_it_is_another_is_not_proven_by_what_proved_the_old(change: str) -> None:
    """Neither a proof that is there nor one that comes later says anything about it."""
    memory = CodingMemory(InMemoryStore())
    memory.file(broken("e", "reshape"))
    memory.file(make_episode("works", resolves=("e",)))
    (identity,) = texts(memory)
    assert memory.content().notes[identity]["verified"] is True
    if change == "forget":
        memory.forget(identity)
    else:
        memory.edit(identity, text=texts(memory)[identity].replace("reshape", "flip"))
    memory.file(make_episode("works again", resolves=("e",)))
    assert "verified" not in str(memory.content().notes)
    assert identity not in str(memory.content().state)


# Notes, queues, keys ----------------------------------------------------------------------


def test_rule_when_edited_keeps_its_votes() -> None:
    """They are the rule's; a judge is shown its new words."""
    memory = make_provider("expel", InMemoryStore(), settings={"votes": {}})
    episode = make_episode("e")
    (question,) = memory.questions(episode)
    memory.file(replace(episode, verdicts=(Verdict(question.id, "add", text=f"say {CANARY}"),)))
    memory.edit("e/rule-0", text="say please")
    assert memory.content().notes["e/rule-0"] == {VOTES: 2}
    (question,) = memory.questions(make_episode("f"))
    assert question.shows["rules"] == {"e/rule-0": {"text": "say please", "votes": 2}}


def test_uses_when_the_text_is_edited_start_afresh() -> None:
    """Another text earned them; what is edited beside the text leaves them."""
    memory = made("trajectory", credit=True)
    memory.file(make_episode("e"))
    recall = memory.provide("open the red door", asking())
    memory.file(make_episode("f", task="wait", recalls=(recall.receipt,)))
    memory.edit("e/trajectory", metadata={"seen": "yes"})
    assert memory.content().notes["e/trajectory"] == {USES: 1, SUCCESSES: 1}
    memory.edit("e/trajectory", text="Task: wait")
    assert "e/trajectory" not in memory.content().notes


def test_key_when_it_stood_in_the_old_text_follows_the_new() -> None:
    """What is edited out of a text is found by it no more, long tasks included; other keys stay."""
    memory = SimpleRAG(InMemoryStore())
    for number, task in enumerate((f"call {CANARY}", "x" * 500 + f" {CANARY}")):
        memory.file(make_episode(f"e{number}", task=task, lessons=()))
        memory.edit(f"e{number}/note", text="knock on wood")
        assert memory.content().items[f"e{number}/note"].retrieval_key == "knock on wood"
    assert CANARY not in memory.content().to_bytes().decode()
    memory.edit("e0/note", key="a shut door")
    memory.edit("e0/note", text="knock twice")
    assert memory.content().items["e0/note"].key == "a shut door"
    (found,) = memory.provide("shut", asking()).items
    assert found.id == "e0/note"


@pytest.mark.parametrize("name", ["simple_rag", "lightweight", "expel", "recency", "agent_kb"])
def test_queue_when_an_item_is_forgotten_goes_on_without_it(name: str) -> None:
    """No place holds its name; what is oldest goes first, as before."""
    memory = made(name)
    for number in range(4):
        memory.file(make_episode(f"e{number}"))
    for identity in [each for each in texts(memory) if each.startswith("e1/")]:
        memory.forget(identity)
    assert "e1/" not in memory.content().to_bytes().decode()
    memory.file(make_episode("e4"))
    left = {name.partition("/")[0] for name in texts(memory)}
    assert left == {"e0", "e2", "e3", "e4"}
    assert memory.provide("open the red door", asking(episode_index=0))


def test_capacity_when_items_were_forgotten_is_filled_before_anything_goes() -> None:
    """What was forgotten takes no room."""
    memory = made("simple_rag", max_items=2)
    for number in range(2):
        memory.file(make_episode(f"e{number}"))
    memory.forget("e1/note")
    memory.file(make_episode("e2"))
    assert set(texts(memory)) == {"e0/note", "e2/note"}


# Whoever asks -----------------------------------------------------------------------------


def test_controls_when_they_learn_change_as_what_they_wrap() -> None:
    """Bundles included; a control that files nothing changes nothing."""
    memory = adaptive()
    control = WriteOnly(memory)
    control.forget("e/lesson-1")
    control.edit("e/lesson-0", text="- knock")
    assert texts(memory)["e/lessons"] == "- knock\n- look around"
    assert memory.provide("knock", asking()).text.count("knock") == 1
    before = memory.content().digest
    with pytest.raises(ReadOnlyStoreError):
        Placebo(memory).forget("e/lesson-0")
    with pytest.raises(InputError, match="`unit`"):
        control.edit("e/lessons", metadata={"unit": "x"})
    assert memory.content().digest == before


def test_nothing_when_imported_into_no_memory_is_forgotten_too(tmp_path: Path) -> None:
    """What it keeps can be taken out."""
    memory = made("none")
    write_items(tmp_path / "bank.jsonl", [make_item("a"), make_item("b", order_index=1)])
    memory.import_items(tmp_path / "bank.jsonl")
    memory.forget("a")
    assert set(texts(memory)) == {"b"}


def test_changes_when_made_at_once_all_count() -> None:
    """Each is one step; threads undo nothing of one another's."""
    store = InMemoryStore()
    TrajectoryMemory(store).file(make_episode("start"))
    for number in range(12):
        TrajectoryMemory(store).file(make_episode(f"e{number}"))

    def change(number: int) -> Any:
        memory = TrajectoryMemory(store)
        if number % 2:
            return memory.forget(f"e{number}/trajectory")
        return memory.edit("start/trajectory", metadata={f"n{number}": number})

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(change, range(12)))
    content = TrajectoryMemory(store).content()
    assert len(content.items) == 7
    assert len(content.items["start/trajectory"].metadata) == 6


def indexes_in(folder: Path) -> list[bytes]:
    """Read the files of indexes that are kept in a folder."""
    found = (folder / "langgraft-indexes").rglob("*")
    return [each.read_bytes() for each in found if each.is_file()]


def test_folder_when_an_item_is_forgotten_holds_none_of_its_words(tmp_path: Path) -> None:
    """The index that is kept beside the bank forgets it, too."""
    settings: dict[str, JSON] = {"granularity": "individual", "top_k": 3}
    with open_provider("insight", tmp_path, settings=settings) as memory:
        memory.file(make_episode("e", lessons=LESSONS))
        memory.file(make_episode("f"))
        assert memory.provide(CANARY, asking())
    assert any(b"zanzibar" in each for each in indexes_in(tmp_path))
    with open_provider("insight", tmp_path, settings=settings) as memory:
        memory.forget("e/lesson-1")
    assert not any(b"zanzibar" in each for each in indexes_in(tmp_path))
    with open_provider("insight", tmp_path, settings=settings) as memory:
        assert not memory.provide(CANARY, asking())
        assert "zanzibar" not in stored(memory.store)


def test_suite_when_asked_covers_every_provider() -> None:
    """Those that plans know by name all have the cases of forgetting and editing."""
    assert set(REGISTERED) == set(PROVIDERS)
    assert all(hasattr(each, "told") for each in REGISTERED.values())
    assert ExpeL.name in REGISTERED
