"""Namespaces: which are allowed, what a prefix is, and that they come and go with records."""

from typing import Any, cast

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, SearchOp

from langgraft.memory.testing.stores.calls import Calls
from langgraft.memory.testing.stores.suite import StoreSuite

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
