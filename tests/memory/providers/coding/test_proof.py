"""Proof that a fix works: when an entry has it, and what becomes of it on the way to another bank."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langgraft import CodingMemory, Episode, ErrorRecord, Outcome, RecallContext
from langgraft.memory.model import Remove, Verdict, fold
from langgraft.memory.providers.coding import coding_preset

ERROR = "KeyError: 'sex'"


def memory() -> CodingMemory:
    """Make a memory that recalls only what is proven."""
    return CodingMemory(InMemoryStore(), settings=coding_preset("verified"))


def episode(name: str, *errors: ErrorRecord, resolves: tuple[str, ...] = ()) -> Episode:
    """Make the episode of a program."""
    how = Outcome(success=not errors)
    return Episode(name, "mle/melanoma", "melanoma", "", (), how, errors=errors, resolves=resolves)


def fixes(bank: CodingMemory) -> list[object]:
    """Return the fixes that are recalled when the error is debugged."""
    asking = RecallContext(
        domain="mle/melanoma",
        task_id="melanoma",
        episode_id="r/9",
        stage="debug",
        observation=ERROR,
    )
    return [item.metadata["fix"] for item in bank.provide("", asking).items]


PROVEN = ErrorRecord("pandas", ERROR, "Fill the column.", verified=True)
ADVISED = ErrorRecord("pandas", ERROR, "Drop the column.")


def test_proof_when_the_record_came_with_it_travels_with_the_entry(tmp_path: Path) -> None:
    """A repair that ran proves its fix in every bank; what was only advised is proven in none."""
    first, second = memory(), memory()
    first.file(episode("r/0", ADVISED))
    first.file(episode("r/1", PROVEN))
    first.export_items(tmp_path / "bank.jsonl")
    delta = second.import_items(tmp_path / "bank.jsonl")
    assert fixes(first) == fixes(second) == ["Fill the column."]
    assert fold([delta]) == second.content()


def test_proof_when_it_came_later_stays_with_the_bank_that_saw_it(tmp_path: Path) -> None:
    """It is a note, which no export has; in a bank folded from deltas it is there."""
    first, second, third = memory(), memory(), memory()
    deltas = [first.file(episode("r/0", ADVISED))]
    deltas.append(first.file(episode("r/1", resolves=("r/0",))))
    first.export_items(tmp_path / "bank.jsonl")
    second.import_items(tmp_path / "bank.jsonl")
    third.restore(fold(deltas))
    assert fixes(first) == fixes(third) == ["Drop the column."]
    assert fixes(second) == []


def entries(bank: CodingMemory) -> list[tuple[object, Mapping[str, Any]]]:
    """Return the fixes that are kept, with their notes."""
    content = bank.content()
    return [(i.metadata["fix"], content.notes.get(i.id, {})) for i in content.items.values()]


UNSOLVED = ErrorRecord("pandas", ERROR, "")


def test_fix_when_the_error_had_none_takes_the_place_of_the_entry_without() -> None:
    """Nobody is asked, what the entry stood for is counted on, and the bank is still the fold."""
    bank = memory()
    deltas = [bank.file(episode(f"r/{n}", UNSOLVED)) for n in range(2)]
    repaired = episode("r/2", PROVEN, resolves=("r/0", "r/1"))
    assert bank.questions(repaired) == []
    deltas.append(bank.file(repaired))
    assert entries(bank) == [("Fill the column.", {"seen": 3, "verified": True})]
    assert fold(deltas) == bank.content()
    removed = next(change for change in deltas[-1] if isinstance(change, Remove))
    assert (removed.id, removed.reason.split(": ")[1]) == ("r/0/error-0", "r/2/error-0")


@pytest.mark.parametrize("records", list(permutations([PROVEN, ADVISED, UNSOLVED])))
def test_fix_when_it_comes_twice_in_one_episode_is_kept_in_whatever_order(
    records: tuple[ErrorRecord, ...],
) -> None:
    """Two records of one failure, with a fix each, after one that had none."""
    bank = memory()
    deltas = [bank.file(episode("r/0", UNSOLVED))]
    deltas.append(bank.file(episode("r/1", *records)))
    assert fold(deltas) == bank.content()
    assert sum(notes.get("seen", 1) for _, notes in entries(bank)) == 4
    assert ("Fill the column.", True) in [
        (fix, notes.get("verified")) for fix, notes in entries(bank)
    ]


def test_fix_when_a_judge_calls_the_error_known_is_not_lost() -> None:
    """A proven fix takes the place of a guess at the same error, and never the other way round."""
    for first, second, left in ((ADVISED, PROVEN, PROVEN), (PROVEN, ADVISED, PROVEN)):
        bank = memory()
        bank.file(episode("r/0", first))
        (question,) = bank.questions(episode("r/1", second))
        verdict = Verdict(question.id, "none", None)
        bank.file(replace(episode("r/1", second), verdicts=(verdict,)))
        assert entries(bank) == [(left.fix, {"seen": 2, "verified": True})]


def test_proof_when_the_fix_was_left_out_is_none() -> None:
    """A fix that needs the network is not kept, so that nothing is proven."""
    bank = memory()
    bank.file(episode("r/0", ErrorRecord("timm", ERROR, "pip install timm", verified=True)))
    (item,) = bank.content().items.values()
    assert "verified" not in item.metadata
    assert fixes(bank) == []


def test_proof_when_the_fix_that_ran_takes_the_place_of_the_advice_folds() -> None:
    """The episode that proves another fix for an error resolves the one whose advice it drops."""
    bank = memory()
    deltas = [bank.file(episode("r/0", ADVISED))]
    repaired = episode("r/1", PROVEN, resolves=("r/0",))
    (question,) = bank.questions(repaired)
    deltas.append(bank.file(replace(repaired, verdicts=(Verdict(question.id, "none"),))))
    assert [fix for fix, _ in entries(bank)] == ["Fill the column."]
    assert fold(deltas) == bank.content()


def test_proof_when_another_fix_is_told_to_have_worked_is_not_of_the_advice() -> None:
    """The repair did something else: what was advised when the error came up is a guess still."""
    bank = memory()
    bank.file(episode("r/0", ADVISED))
    bank.file(episode("r/1", PROVEN, resolves=("r/0",)))
    assert len(bank.content().items) == 2
    assert fixes(bank) == ["Fill the column."]
