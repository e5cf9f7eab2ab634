"""Memory: items and episodes, the provider contract, providers, stores and rankers.

episodes, recall          the words: what is stored, filed and recalled
deltas, bank              memory as the fold of its changes, over any LangGraph store; one writer at a time
provider                  the contract, and the base class that fulfills it
forgetting                what upkeep removes, and the credit that it goes by
providers/                memory systems
controls/                 controls that wrap any provider
rankers/, stores/         what orders records, and what keeps them: two separate things
embedders/                vectors for rankers, asked for once
bank_format               canonical JSONL, the form in which content travels
bundle, importing         content with where it comes from; what an import makes of a file
converters/               memory that other systems wrote
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.bank_format import item_schema, read_items, write_items
    from langgraft.memory.bundle import (
        Bundle,
        Manifest,
        Provenance,
        read_bundle,
        write_bundle,
    )
    from langgraft.memory.controls import (
        Frozen,
        Placebo,
        RandomRetrieval,
        Shuffled,
        WriteOnly,
    )
    from langgraft.memory.deltas import (
        Add,
        Annotate,
        BankContent,
        MemoryDelta,
        MemoryItem,
        Remove,
        SetState,
        fold,
    )
    from langgraft.memory.episodes import Episode, ErrorRecord, Lesson, Outcome, Step
    from langgraft.memory.importing import ImportChoices
    from langgraft.memory.provider import MemoryProvider
    from langgraft.memory.questions import Question, Verdict
    from langgraft.memory.recall import (
        Budget,
        Found,
        Recall,
        RecallContext,
        Receipt,
        strip_block,
    )
    from langgraft.memory.settings import ProviderSettings, RankedSettings

__all__ = [
    "Add",
    "Annotate",
    "BankContent",
    "Budget",
    "Bundle",
    "Episode",
    "ErrorRecord",
    "Found",
    "Frozen",
    "ImportChoices",
    "Lesson",
    "Manifest",
    "MemoryDelta",
    "MemoryItem",
    "MemoryProvider",
    "Outcome",
    "Placebo",
    "Provenance",
    "ProviderSettings",
    "Question",
    "RandomRetrieval",
    "RankedSettings",
    "Recall",
    "RecallContext",
    "Receipt",
    "Remove",
    "SetState",
    "Shuffled",
    "Step",
    "Verdict",
    "WriteOnly",
    "fold",
    "item_schema",
    "read_bundle",
    "read_items",
    "strip_block",
    "write_bundle",
    "write_items",
]

_MODULES = {
    "bank_format": ("item_schema", "read_items", "write_items"),
    "bundle": ("Bundle", "Manifest", "Provenance", "read_bundle", "write_bundle"),
    "controls": ("Frozen", "Placebo", "RandomRetrieval", "Shuffled", "WriteOnly"),
    "deltas": (
        "Add",
        "Annotate",
        "BankContent",
        "MemoryDelta",
        "MemoryItem",
        "Remove",
        "SetState",
        "fold",
    ),
    "episodes": ("Episode", "ErrorRecord", "Lesson", "Outcome", "Step"),
    "importing": ("ImportChoices",),
    "provider": ("MemoryProvider",),
    "questions": ("Question", "Verdict"),
    "settings": ("ProviderSettings", "RankedSettings"),
    "recall": ("Budget", "Found", "Recall", "RecallContext", "Receipt", "strip_block"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
