"""The whole suite in one class."""

from langgraft.memory.testing.providers.asking import AskingCases
from langgraft.memory.testing.providers.budgets import BudgetCases
from langgraft.memory.testing.providers.concurrency import ConcurrencyCases
from langgraft.memory.testing.providers.filing import FilingCases
from langgraft.memory.testing.providers.folding import FoldingCases
from langgraft.memory.testing.providers.judging import JudgingCases
from langgraft.memory.testing.providers.moving import MovingCases
from langgraft.memory.testing.providers.receipts import ReceiptCases
from langgraft.memory.testing.providers.sameness import SamenessCases


class ProviderConformance(
    FilingCases,
    FoldingCases,
    AskingCases,
    BudgetCases,
    JudgingCases,
    ReceiptCases,
    ConcurrencyCases,
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
