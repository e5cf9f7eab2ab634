"""Records and namespaces: what is put is what is found, until it is replaced, deleted or expires.

Namespaces come and go with their records, and are listed.
"""

import hashlib
import math
import time
from datetime import datetime
from typing import Any, cast

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)

from langgraft.memory.testing.base import needs
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


NAMESPACE = ("records",)


class RecordCases(StoreSuite):
    """What is put is what is found."""

    def test_get_when_nothing_was_put_finds_nothing(self, calls: Calls) -> None:
        """A record that is not there is `None`, not an error."""
        assert calls.get(NAMESPACE, "k") is None

    def test_record_when_put_is_found_as_it_was(self, calls: Calls) -> None:
        """A record comes back with its value, key and namespace, as an `Item`."""
        calls.put(("a", "b"), "k", {"text": "hello", "n": 1})
        item = calls.found(("a", "b"), "k")
        assert isinstance(item, Item)
        assert (item.namespace, item.key) == (("a", "b"), "k")
        assert item.value == {"text": "hello", "n": 1}
        assert isinstance(item.namespace, tuple)

    def test_record_when_put_again_is_replaced_as_a_whole(self, calls: Calls) -> None:
        """There is one record afterwards, and no field of the old value is left."""
        calls.put(NAMESPACE, "k", {"old": 1, "both": {"x": 1, "y": 2}})
        calls.put(NAMESPACE, "k", {"both": {"x": 3}})
        assert calls.value(NAMESPACE, "k") == {"both": {"x": 3}}
        assert [item.value for item in calls.search(NAMESPACE)] == [{"both": {"x": 3}}]

    def test_record_when_deleted_is_gone(self, calls: Calls) -> None:
        """A deleted record is neither got nor found, and its neighbor is."""
        calls.fill(NAMESPACE, {"k": {"n": 1}, "other": {"n": 2}})
        calls.delete(NAMESPACE, "k")
        assert calls.get(NAMESPACE, "k") is None
        assert calls.keys(NAMESPACE) == ["other"]

    def test_record_when_nothing_is_put_as_its_value_is_deleted(self, calls: Calls) -> None:
        """A `PutOp` of `None` deletes."""
        calls.put(NAMESPACE, "k", {"n": 1})
        assert calls.batch([PutOp(NAMESPACE, "k", None)]) == [None]
        assert calls.get(NAMESPACE, "k") is None

    def test_delete_when_nothing_is_there_changes_nothing(self, calls: Calls) -> None:
        """Deleting twice is deleting once."""
        calls.put(NAMESPACE, "other", {"n": 2})
        calls.delete(NAMESPACE, "k")
        calls.delete(("elsewhere",), "other")
        assert calls.keys(()) == ["other"]

    def test_records_when_keys_are_equal_and_namespaces_differ_are_different(
        self, calls: Calls
    ) -> None:
        """A record is named by its namespace and its key together."""
        namespaces = [("a",), ("b",), ("a", "b"), ("b", "a"), ("a", "b", "a")]
        for namespace in namespaces:
            calls.put(namespace, "k", {"of": list(namespace)})
        for namespace in namespaces:
            assert calls.value(namespace, "k") == {"of": list(namespace)}
        calls.delete(("a",), "k")
        assert [calls.get(namespace, "k") is None for namespace in namespaces] == [
            True,
            *[False] * 4,
        ]

    def test_record_when_put_again_keeps_when_it_was_created(self, calls: Calls) -> None:
        """Overwriting is no second creation."""
        calls.put(NAMESPACE, "k", {"n": 0})
        created = calls.found(NAMESPACE, "k").created_at
        self._put_until_later(calls)
        assert calls.found(NAMESPACE, "k").created_at == created

    def test_record_when_put_again_moves_when_it_was_updated(self, calls: Calls) -> None:
        """The time of the update never goes back, and goes on."""
        calls.put(NAMESPACE, "k", {"n": 0})
        first = calls.found(NAMESPACE, "k").updated_at
        assert self._put_until_later(calls) > first

    def _put_until_later(self, calls: Calls) -> datetime:
        """Put a record again until its update is told as later; return when that was."""
        first = last = calls.found(NAMESPACE, "k").updated_at
        given_up = time.monotonic() + 10  # some databases tell whole seconds
        late = False  # so that one is put after that time, however long this process was held up
        while last == first and not late:
            late = time.monotonic() >= given_up
            calls.put(NAMESPACE, "k", {"n": 1})
            updated = calls.found(NAMESPACE, "k").updated_at
            assert updated >= last
            last = updated
        return last

    def test_record_when_deleted_and_put_again_is_a_new_one(self, calls: Calls) -> None:
        """What comes after a deletion was created after it."""
        calls.put(NAMESPACE, "k", {"n": 1})
        old = calls.found(NAMESPACE, "k")
        calls.delete(NAMESPACE, "k")
        calls.put(NAMESPACE, "k", {"n": 2})
        new = calls.found(NAMESPACE, "k")
        assert new.value == {"n": 2}
        assert new.created_at >= old.updated_at

    def test_times_when_read_are_in_order_and_know_their_zone(self, calls: Calls) -> None:
        """Nothing is updated before it is created; times of different machines compare."""
        calls.put(NAMESPACE, "k", {"n": 1})
        item = calls.found(NAMESPACE, "k")
        assert item.created_at <= item.updated_at
        assert item.created_at.utcoffset() is not None
        assert item.updated_at.utcoffset() is not None

    def test_record_when_found_by_search_is_the_one_that_is_got(self, calls: Calls) -> None:
        """Both ways to read agree in all they say."""
        calls.put(("a", "b"), "k", {"n": [1, {"x": None}]})
        (found,) = calls.search(("a",))
        item = calls.found(("a", "b"), "k")
        assert (found.namespace, found.key, found.value) == (item.namespace, item.key, item.value)
        assert (found.created_at, found.updated_at) == (item.created_at, item.updated_at)


TEXTS = (
    "",
    " ",
    "line\nbreak\ttab\r\n",
    "\x01\x1f\x7f\x85",
    "\u2028\u2029\ufeff\ufffd\uffff",
    "\u202eright to left",
    "é vs e\u0301",
    "日本語",
    "👩\u200d🔬🜁",
    "'; DROP TABLE store; --",
    '"quotes" \\ back\\slash \\u0041 \\n',
    "%_*?[a-z]$.",
    "null",
    "NaN",
)
"""Texts that something on the way to a disk tends to change."""


class ValueCases(StoreSuite):
    """What is put is what is found, to the type of a number."""

    def test_value_when_nested_comes_back_equal(self, calls: Calls) -> None:
        """Lists, mappings and scalars of all kinds survive at any depth."""
        deep: Any = "bottom"
        for n in range(30):
            deep = {"in": [deep, n]}
        value = {"deep": deep, "list": [[], [[]], {}], "none": None, "flags": [True, False]}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_value_when_empty_is_no_deletion(self, calls: Calls) -> None:
        """An empty value is a record."""
        calls.put(NAMESPACE, "k", {})
        assert calls.value(NAMESPACE, "k") == {}
        assert calls.keys(NAMESPACE) == ["k"]

    def test_texts_when_hostile_come_back_unchanged(self, calls: Calls) -> None:
        """Controls, quotes, wildcards and astral characters are text like any other."""
        value = {f"field {n} {text}": text for n, text in enumerate(TEXTS)}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_keys_and_labels_when_hostile_name_different_records(self, calls: Calls) -> None:
        """Any text without NUL is a key; any without NUL and period is a label."""
        keys = [f"{n}{text}" for n, text in enumerate(TEXTS)]
        for key in keys:
            calls.put((*NAMESPACE, f"l{key.replace('.', '')}"), key, {"key": key})
        for key in keys:
            assert calls.value((*NAMESPACE, f"l{key.replace('.', '')}"), key) == {"key": key}
        assert calls.keys(NAMESPACE) == sorted(keys)

    def test_integers_when_beyond_64_bits_come_back_exact(self, calls: Calls) -> None:
        """JSON sets no limit to an integer."""
        value = {"n": [0, -1, 2**53 + 1, -(2**63), 2**64, 10**30]}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_numbers_when_of_different_types_keep_them(self, calls: Calls) -> None:
        """`1`, `1.0` and `True` are three things, and a float is the nearest it was."""
        numbers = [1, 1.0, True, 0, 0.0, False, 0.1, -2.5e-300, 123456.789]
        value = {"n": numbers, **{f"f{i}": number for i, number in enumerate(numbers)}}
        calls.put(NAMESPACE, "k", value)
        stored = calls.found(NAMESPACE, "k").value
        assert stored == value
        for found in (stored["n"], [stored[f"f{i}"] for i in range(len(numbers))]):
            assert [type(n) for n in found] == [type(n) for n in numbers]

    def test_floats_when_whole_and_large_or_negative_zero_stay_floats(self, calls: Calls) -> None:
        """What a number is does not depend on how it is written."""
        calls.put(NAMESPACE, "k", {"n": [1e16, -1e300, -0.0]})
        large, larger, zero = calls.found(NAMESPACE, "k").value["n"]
        assert (large, larger) == (1e16, -1e300)
        assert isinstance(large, float)
        assert isinstance(larger, float)
        assert math.copysign(1, zero) == -1

    def test_value_when_large_comes_back_whole(self, calls: Calls) -> None:
        """A megabyte of text and a thousand fields are a value."""
        value = {"text": "läng " * 200_000, **{f"f{n}": n for n in range(1000)}}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    def test_key_when_long_names_its_record(self, calls: Calls) -> None:
        """A key may be as long as a text."""
        key = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(200))
        calls.put(NAMESPACE, key, {"n": 1})
        assert calls.value(NAMESPACE, key) == {"n": 1}
        assert calls.get(NAMESPACE, key[:-1]) is None

    @needs("nul_characters")
    def test_text_when_it_holds_nul_comes_back_unchanged(self, calls: Calls) -> None:
        """NUL is a character of JSON like any other."""
        value = {"text": "a\x00b", "in\x00key": ["\x00"]}
        calls.put(NAMESPACE, "k", value)
        assert calls.value(NAMESPACE, "k") == value

    @needs("nul_characters", value=False)
    def test_text_when_it_holds_nul_is_refused_and_nothing_is_changed(self, calls: Calls) -> None:
        """What cannot be kept is not kept in part, nor without a word."""
        calls.put(NAMESPACE, "k", {"n": 1})
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the store's to say
            calls.batch(
                [PutOp(NAMESPACE, "new", {"n": 2}), PutOp(NAMESPACE, "k", {"text": "a\x00b"})]
            )
        assert calls.value(NAMESPACE, "k") == {"n": 1}
        assert calls.keys(NAMESPACE) == ["k"]

    def test_value_when_json_cannot_hold_it_is_kept_or_refused_with_its_batch(
        self, calls: Calls
    ) -> None:
        """A store keeps Python values as they are or refuses them before anything is changed."""
        calls.put(NAMESPACE, "k", {"n": 1})
        ops = [PutOp(NAMESPACE, "new", {"n": 2}), PutOp(NAMESPACE, "k", {"of": {1, 2}})]
        try:
            calls.batch(ops)
        except Exception:  # noqa: BLE001 - which one is the store's to say
            assert calls.value(NAMESPACE, "k") == {"n": 1}
            assert calls.keys(NAMESPACE) == ["k"]
        else:
            assert calls.value(NAMESPACE, "k") == {"of": {1, 2}}
            assert calls.value(NAMESPACE, "new") == {"n": 2}


def _value() -> dict[str, Any]:
    return {"n": 1, "list": [1, 2], "inner": {"x": [1]}}


class IsolationCases(StoreSuite):
    """Changing what was put, or what was read, changes nothing in the store."""

    def test_value_when_changed_after_it_was_put_is_stored_as_it_was(self, calls: Calls) -> None:
        """The caller may go on to use what it put."""
        value = _value()
        calls.put(NAMESPACE, "k", value)
        value["n"] = 2
        value["list"].append(3)
        value["inner"]["x"].clear()
        assert calls.value(NAMESPACE, "k") == _value()

    def test_value_when_changed_after_it_was_got_is_stored_as_it_was(self, calls: Calls) -> None:
        """The caller may change what it got, at any depth."""
        calls.put(NAMESPACE, "k", _value())
        got = calls.found(NAMESPACE, "k").value
        got["new"] = True
        got["list"].append(3)
        got["inner"]["x"].clear()
        assert calls.value(NAMESPACE, "k") == _value()

    def test_value_when_changed_after_it_was_searched_is_stored_as_it_was(
        self, calls: Calls
    ) -> None:
        """The caller may change what it found, at any depth."""
        calls.put(NAMESPACE, "k", _value())
        (found,) = calls.search(NAMESPACE)
        found.value["new"] = True
        found.value["list"].append(3)
        found.value["inner"]["x"].clear()
        assert calls.value(NAMESPACE, "k") == _value()

    def test_item_when_read_before_an_overwrite_stays_as_it_was_read(self, calls: Calls) -> None:
        """A result is a picture of its moment."""
        calls.put(NAMESPACE, "k", _value())
        before = calls.found(NAMESPACE, "k")
        calls.put(NAMESPACE, "k", {"n": 2})
        assert before.value == _value()


class LifetimeCases(StoreSuite):
    """A store that does not support a time to live refuses one; it never forgets it silently."""

    def test_put_when_given_a_time_to_live_is_kept_or_refused(self, calls: Calls) -> None:
        """A record with an hour to live is there now; without support, nothing is written."""
        if calls.store.supports_ttl:
            calls.put(NAMESPACE, "k", {"n": 1}, ttl=60)
            assert calls.value(NAMESPACE, "k") == {"n": 1}
            assert calls.keys(NAMESPACE, refresh_ttl=True) == ["k"]
            calls.put(NAMESPACE, "k", {"n": 2}, ttl=None)
            assert calls.value(NAMESPACE, "k") == {"n": 2}
        else:
            with pytest.raises(NotImplementedError):
                calls.put(NAMESPACE, "k", {"n": 1}, ttl=60)
            assert calls.get(NAMESPACE, "k") is None

    def test_read_when_it_refreshes_changes_no_update_time(self, calls: Calls) -> None:
        """Reading is not writing."""
        calls.put(NAMESPACE, "k", {"n": 1})
        before = calls.found(NAMESPACE, "k").updated_at
        calls.search(NAMESPACE, refresh_ttl=True)
        assert calls.found(NAMESPACE, "k").updated_at == before
