"""Where LangGraph's `InMemoryStore` departs from what its own documentation leads one to expect.

Verified against langgraph-checkpoint 4.3.2. The suite runs on `InMemoryStore` with exactly the
cases below expected to fail: when upstream mends one, our tests say so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Defect:
    """One thing that `InMemoryStore` does and the reference does not."""

    what: str
    """What happens."""
    why: str
    """Why the reference departs."""
    tests: Sequence[str]
    """The cases of the suite that show it."""


INMEMORY_DEFECTS: Final[Sequence[Defect]] = (
    Defect(
        "A batch with two equal texts to be indexed raises ValueError and writes nothing"
        " (langgraph#8822).",
        "Whether two records say the same is not the caller's to find out; each alone is taken.",
        ("test_texts_when_equal_in_one_batch_are_both_indexed",),
    ),
    Defect(
        "`created_at` is set anew by every overwrite.",
        "`Item` documents it as the time of creation, and the database stores keep it.",
        ("test_record_when_put_again_keeps_when_it_was_created",),
    ),
    Defect(
        "The vector of a text stays when the record is overwritten without that text.",
        "A record is replaced as a whole: it must not be found by what it no longer says.",
        ("test_query_when_a_text_is_gone_does_not_rank_by_it",),
    ),
    Defect(
        "`get`, and a deletion of nothing, create the namespace they name.",
        "Reading must not change what is listed.",
        ("test_reads_when_they_find_nothing_create_no_namespace",),
    ),
    Defect(
        "A namespace stays listed after its last record was deleted.",
        "In the database stores a namespace is what records are in, and nothing else.",
        (
            "test_namespace_when_its_last_record_is_deleted_is_gone",
            "test_operations_when_drawn_at_random_do_as_the_reference",
        ),
    ),
    Defect(
        "Values are kept and handed out by reference: changing one changes the store.",
        "A store that serializes cannot do so, and code that relies on it loses data there.",
        (
            "test_value_when_changed_after_it_was_put_is_stored_as_it_was",
            "test_value_when_changed_after_it_was_got_is_stored_as_it_was",
            "test_value_when_changed_after_it_was_searched_is_stored_as_it_was",
        ),
    ),
    Defect(
        "`$gt`, `$gte`, `$lt` and `$lte` raise for a record whose field is missing or no number.",
        "One record of another shape must not make a namespace unsearchable.",
        (
            "test_comparison_when_the_field_is_missing_leaves_the_record_out",
            "test_comparison_when_the_field_holds_a_text_leaves_the_record_out_of_numbers",
        ),
    ),
    Defect(
        "A search whose prefix is a list silently finds nothing.",
        "The listing of namespaces takes lists; a prefix that was read from JSON is one.",
        ("test_search_when_the_prefix_is_a_list_does_as_with_a_tuple",),
    ),
)


def inmemory_departures() -> Mapping[str, str]:
    """Return the cases that `InMemoryStore` fails, each with what happens."""
    return {test: defect.what for defect in INMEMORY_DEFECTS for test in defect.tests}
