"""The whole suites, each in one class: for stores, and for memory providers."""

from langgraft.memory.testing.providers.content import EditingCases, MovingCases, SamenessCases
from langgraft.memory.testing.providers.filing import FilingCases, FoldingCases, SharingCases
from langgraft.memory.testing.providers.recalling import (
    AskingCases,
    BudgetCases,
    JudgingCases,
    ReceiptCases,
)
from langgraft.memory.testing.stores.concurrency import (
    BatchCases,
    ConcurrencyCases,
    PersistenceCases,
)
from langgraft.memory.testing.stores.records import (
    IsolationCases,
    LifetimeCases,
    ListingCases,
    NamespaceCases,
    RecordCases,
    ValueCases,
)
from langgraft.memory.testing.stores.reference import DifferentialCases
from langgraft.memory.testing.stores.searching import FilterCases, SearchCases, SemanticCases


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


class ProviderConformance(
    FilingCases,
    FoldingCases,
    AskingCases,
    BudgetCases,
    JudgingCases,
    ReceiptCases,
    SharingCases,
    EditingCases,
    MovingCases,
    SamenessCases,
):
    """What a `MemoryProvider` must do; each test says its property in a sentence.

    ```python
    class TestMyMemory(ProviderConformance):
        @pytest.fixture
        def make(self):
            return MyMemory
    ```

    `make` is called with a store. Stores are LangGraph's `InMemoryStore` unless a fixture
    `new_store` returns what makes others; `reopen` then opens one again. While a case runs, every
    call of a LangChain model fails it.

    The cases file a stream of episodes that hold something of everything. A provider that learns
    from something else overrides `episode`; one that learns from a judge's answers, `answers`;
    one that is asked otherwise, `asks`. What a provider does not do at all is said by class
    attributes (`learns`, `imports`, `recalls`); `departures` names the cases that it fails and
    why: they must fail. Less is tried with smaller `examples`, `episodes`, `at_once`
    and `many`.
    """
