"""Contract suites for parts of your own: subclass one in a test file and give it your part.

```python
import pytest
from langgraft.testing import ProviderConformance, StoreConformance


class TestMyStore(StoreConformance):
    @pytest.fixture
    def store(self):
        return MyStore()


class TestMyMemory(ProviderConformance):
    @pytest.fixture
    def make(self):
        return MyMemory
```

`ProviderConformance` what a `MemoryProvider` promises, case by case
`StoreConformance`    what LangGraph's `BaseStore` promises, case by case
`ReferenceStore`      the reference it compares with: a corrected `InMemoryStore`
`INMEMORY_DEFECTS`    where LangGraph's `InMemoryStore` departs from it, and why
`word_index`          the `index` its semantic cases want a store to be opened with

Needs `pip install 'langgraft[testing]'`.
"""

from typing import TYPE_CHECKING

import langgraft.memory.testing  # noqa: F401 - says what is not installed
from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.testing.conformance import ProviderConformance, StoreConformance
    from langgraft.memory.testing.stores.reference import INMEMORY_DEFECTS, Defect, ReferenceStore
    from langgraft.memory.testing.stores.searching import word_index

__all__ = [
    "INMEMORY_DEFECTS",
    "Defect",
    "ProviderConformance",
    "ReferenceStore",
    "StoreConformance",
    "word_index",
]

_MODULES = {
    "conformance": ("ProviderConformance", "StoreConformance"),
    "stores.reference": ("INMEMORY_DEFECTS", "Defect", "ReferenceStore"),
    "stores.searching": ("word_index",),
}

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        name: f"langgraft.memory.testing.{module}"
        for module, names in _MODULES.items()
        for name in names
    },
)
