"""The suite itself: it finds faults, says what a store does not do, and asks for what it needs."""

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from langgraph.store.memory import InMemoryStore
from warm_python import Warm

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.stores.base import Mode
from langgraft.memory.testing.stores.reference import inmemory_departures
from langgraft.testing import INMEMORY_DEFECTS, ReferenceStore, StoreConformance

FAULTS = '''
import pytest
from langgraph.store.base import GetOp, PutOp, SearchOp
from langgraft.testing import ReferenceStore, StoreConformance

class Merging(ReferenceStore):
    """Keeps old fields, as a metadata upsert does."""
    def batch(self, ops):
        merged = []
        for op in ops:
            if isinstance(op, PutOp) and op.value is not None:
                old = super().batch([GetOp(op.namespace, op.key)])[0]
                op = op._replace(value={**(old.value if old else {}), **op.value})
            merged.append(op)
        return super().batch(merged)

class Textual(ReferenceStore):
    """Takes a prefix for the beginning of a text."""
    def batch(self, ops):
        return [self._one(op) for op in list(ops)]
    def _one(self, op):
        if not isinstance(op, SearchOp):
            return super().batch([op])[0]
        start = ".".join(op.namespace_prefix)
        found = super().batch([op._replace(namespace_prefix=(), limit=10**6, offset=0)])[0]
        found = [item for item in found if ".".join(item.namespace).startswith(start)]
        return found[op.offset : op.offset + op.limit]

class WritingFirst(ReferenceStore):
    """Lets a batch read what it writes."""
    def batch(self, ops):
        ops = list(ops)
        super().batch([op for op in ops if isinstance(op, PutOp)])
        return super().batch([GetOp(("x",), "x") if isinstance(op, PutOp) else op for op in ops])

class Losing(ReferenceStore):
    """Forgets to be asynchronous: every third asynchronous write is lost."""
    count = 0
    async def abatch(self, ops):
        ops = list(ops)
        Losing.count += 1
        return [None] * len(ops) if Losing.count % 3 == 0 else self.batch(ops)

class Flat(ReferenceStore):
    """Keeps the numbers among a record's fields as floats."""
    def batch(self, ops):
        return super().batch(
            [
                op._replace(value={k: v * 1.0 if type(v) is int else v for k, v in op.value.items()})
                if isinstance(op, PutOp) and op.value else op
                for op in ops
            ]
        )

class Capped(ReferenceStore):
    """Returns five records at most."""
    def batch(self, ops):
        return super().batch(
            [op._replace(limit=min(op.limit, 5)) if isinstance(op, SearchOp) else op for op in ops]
        )

def suite(kind):
    class Faulty(StoreConformance):
        examples = 10
        @pytest.fixture
        def store(self):
            return kind()
    return Faulty

TestMerging = suite(Merging)
TestTextual = suite(Textual)
TestWritingFirst = suite(WritingFirst)
TestLosing = suite(Losing)
TestFlat = suite(Flat)
TestCapped = suite(Capped)

class TestMended(StoreConformance):
    departures = {"test_batch_when_empty_does_nothing": "this was so once"}
    @pytest.fixture
    def store(self):
        return ReferenceStore()
'''

CAUGHT = {
    "TestMerging": "test_record_when_put_again_is_replaced_as_a_whole[sync]",
    "TestTextual": "test_search_when_labels_begin_alike_compares_whole_labels[async]",
    "TestWritingFirst": (
        "test_reads_when_writes_come_first_in_the_batch_see_the_state_before_it[sync]"
    ),
    "TestLosing": "test_records_when_put_by_tasks_are_all_there",
    "TestFlat": "test_numbers_when_of_different_types_keep_them[async]",
    "TestCapped": "test_search_when_limited_returns_that_many_of_them[sync]",
    "TestMended": "test_batch_when_empty_does_nothing[async]",
}


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """Run the suite on stores with a planted fault; return the failed tests by class."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "test_faults.py").write_text(FAULTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "report.xml"
    given = ["-q", "-p", "no:cacheprovider", "-p", "no:asyncio", f"--junitxml={report}"]
    given += [f"test_faults.py::{kind}::{test.partition('[')[0]}" for kind, test in CAUGHT.items()]
    with Warm(pytest.main, given, folder=folder) as testing:
        testing.ended()
    failed: dict[str, set[str]] = {}
    for case in ET.parse(report).iter("testcase"):
        if case.find("failure") is not None:
            kind = case.get("classname", "").rpartition(".")[2]
            failed.setdefault(kind, set()).add(case.get("name", ""))
    return failed


@pytest.mark.matrix
@pytest.mark.parametrize("kind", CAUGHT)
def test_store_when_a_fault_is_planted_fails_the_case_about_it(
    failures: dict[str, set[str]], kind: str
) -> None:
    """Faults that stores have had are found, and a mended departure is told; no plugin is needed."""
    assert CAUGHT[kind] in failures[kind]
    if kind == "TestMended":
        assert failures[kind] == {f"test_batch_when_empty_does_nothing[{n}]" for n in _MODES}


_MODES = ("sync", "async")


def test_departure_when_it_names_no_test_is_refused() -> None:
    """A table cannot go on naming what was renamed."""
    with pytest.raises(SettingsError, match=r"names no test of the suite.*test_no_such"):
        type("TestWrong", (StoreConformance,), {"departures": {"test_no_such[sync]": "why"}})


def test_suite_when_a_capability_is_missing_collects_only_what_applies() -> None:
    """What a store does not do is not tested, and can be asked for."""

    class AsyncOnly(StoreConformance):
        modes: ClassVar[Sequence[Mode]] = ("async",)
        nul_characters = False
        departures = {"test_batch_when_empty_does_nothing[async]": "it counts"}  # noqa: RUF012

    class Both(AsyncOnly):
        modes: ClassVar[Sequence[Mode]] = ("sync", "async")
        persistent = True

    assert AsyncOnly.test_records_when_put_by_threads_are_all_there is None
    assert AsyncOnly.test_text_when_it_holds_nul_comes_back_unchanged is None
    assert AsyncOnly.test_text_when_it_holds_nul_is_refused_and_nothing_is_changed is not None
    assert AsyncOnly.test_store_when_reopened_goes_on is None
    assert Both.test_records_when_put_by_threads_are_all_there is not None
    assert Both.test_store_when_reopened_goes_on is not None
    assert AsyncOnly.describe() == {
        "modes": ["async"],
        "persistent": False,
        "semantic": False,
        "nul_characters": False,
        "dotted_filters": False,
        "sync_inside_loop": True,
        "departures": {"test_batch_when_empty_does_nothing[async]": "it counts"},
    }


def test_defects_when_read_say_what_why_and_where_they_show() -> None:
    """Each defect is shown by a test of the suite, and no test shows two."""
    shown = [test for defect in INMEMORY_DEFECTS for test in defect.tests]
    assert sorted(shown) == sorted(inmemory_departures())
    assert all(hasattr(StoreConformance, test) for test in shown)
    assert all(
        defect.what.endswith(".") and defect.why.endswith(".") for defect in INMEMORY_DEFECTS
    )


def test_reference_when_asked_to_do_less_is_still_an_in_memory_store() -> None:
    """The reference is LangGraph's own store, corrected, not another one."""
    assert issubclass(ReferenceStore, InMemoryStore)


@pytest.mark.parametrize("package", ["pytest", "hypothesis"])
def test_testing_when_a_package_is_missing_names_the_extra(package: str, tmp_path: Path) -> None:
    """Without pytest or hypothesis the import says how to get them."""
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from langgraft._core.errors import MissingExtraError\n"
        "try:\n    import langgraft.testing\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert "pip install 'langgraft[testing]'" in done.stdout
    assert package in done.stdout
