"""The whole suite in one class."""

from langgraft.memory.testing.stores.concurrency import (
    BatchCases,
    ConcurrencyCases,
    PersistenceCases,
)
from langgraft.memory.testing.stores.differential import DifferentialCases
from langgraft.memory.testing.stores.namespaces import ListingCases, NamespaceCases
from langgraft.memory.testing.stores.records import (
    IsolationCases,
    LifetimeCases,
    RecordCases,
    ValueCases,
)
from langgraft.memory.testing.stores.searching import FilterCases, SearchCases
from langgraft.memory.testing.stores.semantics import SemanticCases


class StoreConformance(
    RecordCases,
    ValueCases,
    IsolationCases,
    BatchCases,
    NamespaceCases,
    ListingCases,
    FilterCases,
    SearchCases,
    ConcurrencyCases,
    PersistenceCases,
    LifetimeCases,
    SemanticCases,
    DifferentialCases,
):
    """What a LangGraph `BaseStore` must do; each test says its property in a sentence.

    ```python
    class TestMyStore(StoreConformance):
        persistent = True

        @pytest.fixture
        def store(self, tmp_path):
            return MyStore(tmp_path)

        @pytest.fixture
        def reopen(self, tmp_path, store):
            return lambda: MyStore(tmp_path)
    ```

    Each case runs synchronously and asynchronously. Optional capabilities are class attributes
    (`modes`, `persistent`, `semantic`, `nul_characters`, `dotted_filters`, `sync_inside_loop`);
    `departures` names the cases that the store fails and why: they must fail. A store that has
    to be opened in an event loop takes the fixture `runner` and opens itself there.

    Ranking is not part of the contract, nor is the order in which a search without a query lists
    records, beyond being the same each time.
    """
