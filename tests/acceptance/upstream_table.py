"""Which of LangGraph's own store tests ours fail, and why: exactly these, in every run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_NEAREST = (
    "The test wants records that share no word with the query, as the nearest by vectors of"
    " characters. A `RankedStore` ranks by its own ranker, here BM25, and returns what matches."
)
_COSINES = (
    "The test compares scores with the cosines of its vectors, one vector a field. A"
    " `RankedStore` scores by its own ranker, here BM25, and takes the fields for one text."
)
_LABELS = (
    "The test wants labels checked in `batch` too, where namespaces are one text with dots. Ours"
    " keeps labels apart, so that no label can be taken for two."
)
_LABELS_BELOW = (
    "The test wants labels checked in `batch` too. A `RankedStore` leaves that to the store it"
    " wraps, and `InMemoryStore`, which keeps labels apart, does not check them."
)
_PRIVATE = "The test looks at attributes of LangGraph's own classes."
_ANY_KEY = (
    "The test wants SQLite's error for a filter key with quotes in it. To ours it is a key like"
    " any other, which no record has; nothing is read as a query language."
)
_IN_LOOP = (
    "The test wants synchronous calls refused in an event loop, where LangGraph's asynchronous"
    " stores would hang. Ours can be called both ways."
)


@dataclass(frozen=True, slots=True)
class Upstream:
    """Tests of one of LangGraph's packages, run on one of our stores."""

    store: str
    """The store, as the shim names it."""
    title: str
    """The store, in words."""
    package: str
    """The package on PyPI that the tests come with."""
    folder: str
    """The package's folder in a checkout of LangGraph."""
    failures: Mapping[str, str]
    """Test function → why it fails; in at least one of its cases, and no other test does."""
    files: tuple[str, ...] = ("tests/test_store.py",)
    without: str = ""
    """Names of tests that are left out, as pytest's `-k` takes them."""


UPSTREAM: Final[tuple[Upstream, ...]] = (
    Upstream(
        "ranked",
        "`RankedStore` over `InMemoryStore`",
        "langgraph-checkpoint",
        "checkpoint",
        {
            "test_vector_store_initialization": _PRIVATE,
            "test_vector_search_with_filters": _NEAREST,
            "test_async_vector_search_with_filters": _NEAREST,
            "test_async_batched_vector_search_concurrent": _NEAREST,
            "test_embed_with_path": _COSINES,
        },
    ),
    Upstream(
        "ranked",
        "`RankedStore` over `InMemoryStore`",
        "langgraph-checkpoint-sqlite",
        "checkpoint-sqlite",
        {
            "test_batch_rejects_invalid_namespace_labels": _LABELS_BELOW,
            "test_abatch_rejects_invalid_namespace_labels": _LABELS_BELOW,
            "test_sync_methods_reject_invalid_namespace_labels": _LABELS_BELOW,
            "test_embed_with_path": _COSINES,
            "test_embed_with_path_operation_config": _NEAREST,
            "test_filter_keys_with_hyphens_and_digits": (
                "A search without a query goes to the wrapped store, and `InMemoryStore` knows no"
                " dotted paths in filters."
            ),
            "test_no_running_loop": _IN_LOOP,
            "test_nonnull_migrations": _PRIVATE,
            "test_scores": _COSINES,
            "test_sql_injection_vulnerability": _ANY_KEY,
            "test_vector_search_with_filters": _NEAREST,
            "test_vector_store_initialization": _PRIVATE,
        },
        files=("tests/test_store.py", "tests/test_async_store.py"),
    ),
    Upstream(
        "chroma",
        "`ChromaStore`, embedded",
        "langgraph-checkpoint",
        "checkpoint",
        {"test_vector_store_initialization": _PRIVATE},
    ),
    Upstream(
        "chroma",
        "`ChromaStore`, embedded",
        "langgraph-checkpoint-sqlite",
        "checkpoint-sqlite",
        {
            "test_batch_rejects_invalid_namespace_labels": _LABELS,
            "test_abatch_rejects_invalid_namespace_labels": _LABELS,
            "test_sync_methods_reject_invalid_namespace_labels": _LABELS,
            "test_no_running_loop": _IN_LOOP,
            "test_nonnull_migrations": _PRIVATE,
            "test_sql_injection_vulnerability": _ANY_KEY,
            "test_vector_store_initialization": _PRIVATE,
        },
        files=("tests/test_store.py", "tests/test_async_store.py"),
    ),
    Upstream(
        "postgres",
        "`RankedStore` over `PostgresStore`",
        "langgraph-checkpoint-postgres",
        "checkpoint-postgres",
        {
            "test_store_ttl": (
                "The test expects a query that no record matches to return records. A ranked"
                " search returns what matches."
            ),
        },
        without="vector or embed or scores or ascii",  # all that need pgvector
    ),
)
