"""Namespaces: which are allowed, that they come and go with records, and how they are listed."""

from typing import Any, cast

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    SearchOp,
)

from langgraft.memory.testing.stores.base import Calls, Namespace, StoreSuite

REFUSED: tuple[tuple[Any, ...], ...] = (
    (),
    ("",),
    ("a", ""),
    ("a.b",),
    ("a", "b.c"),
    ("langgraph",),
    ("langgraph", "a"),
    (1,),
    ("a", None),
    ("a\x00",),
)
"""Namespaces that no record can be put in."""


class NamespaceCases(StoreSuite):
    """A namespace is a path of labels, and exists while it holds a record."""

    def test_put_when_the_namespace_is_not_allowed_is_refused(self, calls: Calls) -> None:
        """Empty paths, empty labels, periods, NUL, other types and the reserved root are."""
        for namespace in REFUSED:
            with pytest.raises(InvalidNamespaceError):
                calls.put(namespace, "k", {"n": 1})
        assert calls.namespaces() == []
        assert calls.search(()) == []

    def test_label_when_reserved_at_the_root_is_allowed_below(self, calls: Calls) -> None:
        """Only the root label belongs to LangGraph."""
        calls.put(("a", "langgraph"), "k", {"n": 1})
        assert calls.value(("a", "langgraph"), "k") == {"n": 1}

    def test_search_when_given_a_prefix_finds_it_and_all_below(self, calls: Calls) -> None:
        """A prefix stands for itself and everything under it; the empty one for everything."""
        for namespace in (("a",), ("a", "b"), ("a", "b", "c"), ("b",), ("b", "a")):
            calls.put(namespace, "/".join(namespace), {"n": 1})
        assert calls.keys(("a",)) == ["a", "a/b", "a/b/c"]
        assert calls.keys(("a", "b")) == ["a/b", "a/b/c"]
        assert calls.keys(()) == ["a", "a/b", "a/b/c", "b", "b/a"]
        assert calls.keys(("c",)) == calls.keys(("a", "b", "c", "d")) == []

    def test_search_when_labels_begin_alike_compares_whole_labels(self, calls: Calls) -> None:
        """The prefix `user` does not find what belongs to `users`."""
        for namespace in (("user",), ("users",), ("user", "ada"), ("user2", "ada"), ("use",)):
            calls.put(namespace, "/".join(namespace), {"n": 1})
        assert calls.keys(("user",)) == ["user", "user/ada"]
        assert calls.keys(("user", "a")) == []

    def test_search_when_labels_hold_wildcards_takes_them_literally(self, calls: Calls) -> None:
        """No pattern language of any database leaks: tenants stay apart."""
        literal = ["user_1", "%", "*", "us?r", "[a-z]", "\\", "a\n", "$", "^a", "A|B"]
        for label in [*literal, "userX1", "anything", "usAr", "q", "a", "A"]:
            calls.put((label, "below"), label, {"n": 1})
        for label in literal:
            assert calls.keys((label,)) == [label]

    def test_search_when_labels_differ_in_case_tells_them_apart(self, calls: Calls) -> None:
        """Labels are compared exactly."""
        calls.put(("Ada",), "upper", {"n": 1})
        calls.put(("ada",), "lower", {"n": 1})
        assert calls.keys(("Ada",)) == ["upper"]
        assert calls.keys(("ada",)) == ["lower"]

    def test_search_when_the_prefix_is_a_list_does_as_with_a_tuple(self, calls: Calls) -> None:
        """A prefix read from JSON finds what it names."""
        calls.put(("a", "b"), "k", {"n": 1})
        assert calls.keys(cast("tuple[str, ...]", ["a"])) == ["k"]

    def test_reads_when_they_find_nothing_create_no_namespace(self, calls: Calls) -> None:
        """Asking leaves no trace."""
        calls.get(("nobody",), "k")
        calls.search(("nobody", "else"))
        calls.batch([GetOp(("nobody",), "k"), SearchOp(("nobody",))])
        calls.delete(("nobody",), "k")
        assert calls.namespaces() == []

    def test_namespace_when_its_last_record_is_deleted_is_gone(self, calls: Calls) -> None:
        """A namespace is listed as long as something is in it."""
        calls.fill(("a", "b"), {"k1": {"n": 1}, "k2": {"n": 2}})
        calls.put(("a",), "k", {"n": 1})
        calls.delete(("a", "b"), "k1")
        assert sorted(calls.namespaces()) == [("a",), ("a", "b")]
        calls.delete(("a", "b"), "k2")
        assert calls.namespaces() == [("a",)]
        calls.put(("a", "b"), "k3", {"n": 3})
        assert sorted(calls.namespaces()) == [("a",), ("a", "b")]


TREE: tuple[Namespace, ...] = (
    ("docs",),
    ("docs", "ada", "draft"),
    ("docs", "ada", "final"),
    ("docs", "bob", "draft"),
    ("docs", "bob", "draft", "old"),
    ("notes", "ada"),
    ("notes", "ada", "draft"),
)


class ListingCases(StoreSuite):
    """Every namespace that holds a record is listed once."""

    @pytest.fixture
    def tree(self, calls: Calls) -> Calls:
        """Return a store with a few namespaces."""
        for namespace in TREE:
            calls.fill(namespace, {"k1": {"n": 1}, "k2": {"n": 2}})
        return calls

    def test_listing_when_the_store_is_empty_is_empty(self, calls: Calls) -> None:
        """No records, no namespaces."""
        assert calls.namespaces() == []

    def test_listing_when_unconstrained_has_each_namespace_once(self, tree: Calls) -> None:
        """Only namespaces that hold records themselves, as tuples."""
        listed = tree.namespaces()
        assert sorted(listed) == sorted(TREE)
        assert all(isinstance(namespace, tuple) for namespace in listed)

    def test_listing_when_given_a_prefix_has_it_and_all_below(self, tree: Calls) -> None:
        """Prefixes count whole labels."""
        assert sorted(tree.namespaces(prefix=("docs", "bob"))) == sorted(TREE[3:5])
        assert sorted(tree.namespaces(prefix=("notes",))) == sorted(TREE[5:])
        assert tree.namespaces(prefix=("doc",)) == []

    def test_listing_when_given_a_suffix_has_what_ends_in_it(self, tree: Calls) -> None:
        """Suffixes count whole labels, from the end."""
        drafts = [TREE[1], TREE[3], TREE[6]]
        assert sorted(tree.namespaces(suffix=("draft",))) == sorted(drafts)
        assert sorted(tree.namespaces(suffix=("ada", "draft"))) == sorted([TREE[1], TREE[6]])
        assert tree.namespaces(suffix=("raft",)) == []

    def test_listing_when_given_both_has_what_meets_both(self, tree: Calls) -> None:
        """Conditions add up; they may overlap in a short namespace."""
        assert tree.namespaces(prefix=("docs", "ada"), suffix=("draft",)) == [TREE[1]]
        assert tree.namespaces(prefix=("docs",), suffix=("docs",)) == [TREE[0]]
        assert tree.namespaces(prefix=("notes", "ada"), suffix=("notes", "ada")) == [TREE[5]]

    def test_listing_when_given_a_wildcard_takes_it_for_any_one_label(self, tree: Calls) -> None:
        """A star stands for exactly one label."""
        assert sorted(tree.namespaces(prefix=("*", "ada"))) == sorted([*TREE[1:3], *TREE[5:]])
        assert sorted(tree.namespaces(suffix=("docs", "*", "draft"))) == sorted([TREE[1], TREE[3]])
        assert sorted(tree.namespaces(prefix=("docs", "*"))) == sorted(TREE[1:5])
        assert tree.namespaces(prefix=("*", "*", "*", "*")) == [TREE[4]]

    def test_listing_when_a_condition_is_longer_than_a_namespace_leaves_it_out(
        self, tree: Calls
    ) -> None:
        """A label that is not there matches nothing, a star included."""
        assert tree.namespaces(prefix=("docs", "*", "*", "*", "*")) == []
        assert tree.namespaces(suffix=("x", "docs")) == []

    def test_listing_when_labels_hold_wildcards_takes_all_but_the_star_literally(
        self, calls: Calls
    ) -> None:
        """No pattern language of any database leaks."""
        literal = ["user_1", "%", "us?r", "[a-z]", "\\d", "a\n", "^a$", "A|B"]
        for label in [*literal, "userX1", "usAr", "q", "7", "a", "A"]:
            calls.put(("r", label, "s"), "k", {"n": 1})
        for label in literal:
            assert calls.namespaces(prefix=("r", label)) == [("r", label, "s")]
            assert calls.namespaces(suffix=(label, "s")) == [("r", label, "s")]

    def test_listing_when_given_a_depth_cuts_and_lists_each_once(self, tree: Calls) -> None:
        """What is equal after the cut is one."""
        assert sorted(tree.namespaces(max_depth=1)) == [("docs",), ("notes",)]
        assert sorted(tree.namespaces(max_depth=2)) == [
            ("docs",),
            ("docs", "ada"),
            ("docs", "bob"),
            ("notes", "ada"),
        ]
        assert sorted(tree.namespaces(max_depth=9)) == sorted(TREE)

    def test_listing_when_given_a_depth_compares_conditions_before_the_cut(
        self, tree: Calls
    ) -> None:
        """The conditions are about namespaces that exist."""
        assert tree.namespaces(suffix=("old",), max_depth=2) == [("docs", "bob")]

    def test_pages_when_put_together_are_the_listing(self, tree: Calls) -> None:
        """Limit and offset cut one order, with a depth and without."""
        for depth in (None, 2):
            whole = tree.namespaces(max_depth=depth)
            pages = [
                tree.namespaces(max_depth=depth, limit=2, offset=offset)
                for offset in range(0, len(whole) + 2, 2)
            ]
            assert [namespace for page in pages for namespace in page] == whole
        assert tree.namespaces(limit=0) == []
        assert tree.namespaces(offset=100) == []

    def test_listing_when_conditions_are_lists_does_as_with_tuples(self, tree: Calls) -> None:
        """Conditions read from JSON list what they name."""
        assert sorted(tree.namespaces(prefix=["docs", "bob"])) == sorted(TREE[3:5])
        assert tree.namespaces(suffix=["old"]) == [TREE[4]]

    def test_listing_when_one_batch_asks_twice_answers_each(self, tree: Calls) -> None:
        """The listings of a batch do not share conditions."""
        first = ListNamespacesOp((MatchCondition("suffix", ("old",)),))
        second = ListNamespacesOp((MatchCondition("prefix", ("notes",)),), limit=1)
        one, other = tree.batch([first, second])
        assert one == [TREE[4]]
        assert len(other) == 1  # type: ignore[arg-type]
