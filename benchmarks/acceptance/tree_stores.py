"""The memories under which programs are written, to see what timeouts in a store do.

none        no memory
seeded      a store of errors, all of it told in every stage (preset `implied`)
by stage    the same store with preset `kinds_by_stage`: timeouts are told to debugging alone
no limits   the store without its timeouts, preset `implied`
placebo     filler as long as what `seeded` tells

Three of seven entries of the store are timeouts of boosted trees and forests, as in the paper's
dog-breed runs (mle-agent-memory §4.6: 40.7 % of the entries).
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from langgraph.store.memory import InMemoryStore

from langgraft.environments.competitions.competition import Competition
from langgraft.memory.controls import Placebo
from langgraft.memory.episodes import Episode, ErrorRecord, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.coding import CodingMemory, coding_preset
from langgraft.nodes.competing import domain

Memory: TypeAlias = MemoryProvider[Any] | None

_CODE: Final[tuple[tuple[str, str, str], ...]] = (
    ("pandas", "KeyError: 'wind_speed'", "Use the column wind of the data."),
    ("numpy", "AttributeError: module 'numpy' has no attribute 'float'", "Write float instead."),
    ("general", "FileNotFoundError: ./data/train.csv", "Read ./input/train.csv."),
    ("pandas", "ValueError: columns overlap but no suffix specified", "Join on the id."),
)
_LIMITS: Final[tuple[tuple[str, str, str], ...]] = tuple(
    (
        package,
        f"TimeoutError: the program was stopped while fitting {model}",
        "Use a lighter model.",
    )
    for package, model in (
        ("sklearn", "RandomForestClassifier"),
        ("xgboost", "XGBClassifier"),
        ("lightgbm", "LGBMClassifier"),
    )
)


def memories(competition: Competition) -> Mapping[str, Memory]:
    """Make a memory for each condition, each in a bank of its own."""
    return {
        "none": None,
        "seeded": seeded(competition, "implied"),
        "by stage": seeded(competition, "kinds_by_stage"),
        "no limits": seeded(competition, "implied", limits=False),
        "placebo": Placebo(seeded(competition, "implied")),
    }


def seeded(competition: Competition, preset: str, *, limits: bool = True) -> CodingMemory:
    """Make a memory with the store's entries, errors of code and timeouts in turn."""
    memory = CodingMemory(InMemoryStore(), settings=coding_preset(preset))
    records: list[ErrorRecord] = []
    for number, told in enumerate(_CODE):
        records.append(ErrorRecord(*told))
        if limits and number:
            records.append(ErrorRecord(*_LIMITS[number - 1], kind="resource"))
    for record in records:
        name = f"earlier/{record.package}: {record.error}"
        how = Outcome(success=False)
        memory.file(
            Episode(name, domain(competition), competition.id, "", (), how, errors=(record,))
        )
    return memory
