"""Memory: items and episodes, the provider contract, providers, stores and rankers.

model                     the words: items, episodes, questions, and deltas, of which memory is the fold
facts                     what was said of a subject, and when it holds
bank                      where that is kept: over any LangGraph store, by one writer at a time
recall                    what an agent is given of it: a block of text, and its receipt
banks                     opened by an application: one at a path, or one for each user
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
    from langgraft.memory.banks import Banks, LayeredMemory, open_memory
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
    from langgraft.memory.facts import Attribute, Fact
    from langgraft.memory.importing import ImportChoices
    from langgraft.memory.model import (
        Add,
        Annotate,
        BankContent,
        Episode,
        ErrorRecord,
        Lesson,
        MemoryDelta,
        MemoryItem,
        Outcome,
        Question,
        Receipt,
        Remove,
        SetState,
        Step,
        Verdict,
        fold,
        strip_block,
    )
    from langgraft.memory.provider import MemoryProvider
    from langgraft.memory.recall import Budget, Found, Recall, RecallContext
    from langgraft.memory.settings import ProviderSettings, RankedSettings

__all__ = [
    "Add",
    "Annotate",
    "Attribute",
    "BankContent",
    "Banks",
    "Budget",
    "Bundle",
    "Episode",
    "ErrorRecord",
    "Fact",
    "Found",
    "Frozen",
    "ImportChoices",
    "LayeredMemory",
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
    "open_memory",
    "read_bundle",
    "read_items",
    "strip_block",
    "write_bundle",
    "write_items",
]

_MODULES = {
    "bank_format": ("item_schema", "read_items", "write_items"),
    "banks": ("Banks", "LayeredMemory", "open_memory"),
    "bundle": ("Bundle", "Manifest", "Provenance", "read_bundle", "write_bundle"),
    "controls": ("Frozen", "Placebo", "RandomRetrieval", "Shuffled", "WriteOnly"),
    "facts": ("Attribute", "Fact"),
    "importing": ("ImportChoices",),
    "model": (
        "Add",
        "Annotate",
        "BankContent",
        "Episode",
        "ErrorRecord",
        "Lesson",
        "MemoryDelta",
        "MemoryItem",
        "Outcome",
        "Question",
        "Receipt",
        "Remove",
        "SetState",
        "Step",
        "Verdict",
        "fold",
        "strip_block",
    ),
    "provider": ("MemoryProvider",),
    "settings": ("ProviderSettings", "RankedSettings"),
    "recall": ("Budget", "Found", "Recall", "RecallContext"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
