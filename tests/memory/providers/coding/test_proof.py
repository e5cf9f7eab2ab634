"""Proof that a fix works: when an entry has it, and what becomes of it on the way to another bank."""

from pathlib import Path

from langgraph.store.memory import InMemoryStore

from langgraft import CodingMemory, Episode, ErrorRecord, Outcome, RecallContext
from langgraft.memory.deltas import fold
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
    asking = RecallContext("mle/melanoma", "melanoma", "r/9", stage="debug", observation=ERROR)
    return [item.metadata["fix"] for item in bank.provide("", asking).items]


PROVEN = ErrorRecord("pandas", ERROR, "Fill the column.", verified=True)
ADVISED = ErrorRecord("pandas", ERROR, "Drop the column.")


def test_proof_when_the_record_came_with_it_travels_with_the_entry(tmp_path: Path) -> None:
    """A repair that ran proves its fix in every bank; what was only advised is proven in none."""
    first, second = memory(), memory()
    first.take_in(episode("r/0", ADVISED))
    first.take_in(episode("r/1", PROVEN))
    first.export_items(tmp_path / "bank.jsonl")
    delta = second.import_items(tmp_path / "bank.jsonl")
    assert fixes(first) == fixes(second) == ["Fill the column."]
    assert fold([delta]) == second.content()


def test_proof_when_it_came_later_stays_with_the_bank_that_saw_it(tmp_path: Path) -> None:
    """It is a note, which no export has; in a bank folded from deltas it is there."""
    first, second, third = memory(), memory(), memory()
    deltas = [first.take_in(episode("r/0", ADVISED))]
    deltas.append(first.take_in(episode("r/1", resolves=("r/0",))))
    first.export_items(tmp_path / "bank.jsonl")
    second.import_items(tmp_path / "bank.jsonl")
    third.restore(fold(deltas))
    assert fixes(first) == fixes(third) == ["Drop the column."]
    assert fixes(second) == []


def test_proof_when_the_fix_was_left_out_is_none() -> None:
    """A fix that needs the network is not kept, so that nothing is proven."""
    bank = memory()
    bank.take_in(episode("r/0", ErrorRecord("timm", ERROR, "pip install timm", verified=True)))
    (item,) = bank.content().items.values()
    assert "verified" not in item.metadata
    assert fixes(bank) == []
