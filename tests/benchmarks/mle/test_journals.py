"""AIDE's journals: both forms, and what is wrong with a file that is none."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import InputError
from langgraft.benchmarks.mle.journals import read_journal, read_journals


def node(name: str = "a", step: int = 0, **fields: Any) -> dict[str, Any]:
    """Make a node as it is written."""
    plain = {"step": step, "id": name, "parent_id": None, "plan": "p", "code": "c"}
    return {**plain, "metric": None, "is_buggy": True, **fields}


def written(folder: Path, value: Any, name: str = "leaf-0123abcd.json.gz") -> Path:
    """Write a journal."""
    path = folder / name
    data = json.dumps(value).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["leaf-0123abcd.json.gz", "leaf-0123abcd.json"])
def test_journal_when_it_is_a_list_gives_nodes_in_the_order_of_their_steps(
    tmp_path: Path, name: str
) -> None:
    """Task and run come from the file's name; fields nobody asked for are passed over."""
    listed = [
        node("b", 1, parent_id="a", metric=0.5, is_buggy=False, extra=1),
        node("a", 0, exc_type="KeyError", metric=float("nan")),
    ]
    journal = read_journal(written(tmp_path, listed, name))
    assert (journal.task, journal.run) == ("leaf", "leaf-0123abcd")
    assert [each.id for each in journal.nodes] == ["a", "b"]
    assert [each.metric for each in journal.nodes] == [None, 0.5]
    assert [each.id for each in journal.buggy] == ["a"]


def test_journal_when_it_is_aides_own_form_has_output_and_parents(tmp_path: Path) -> None:
    """Metrics are objects, parents are kept apart, output is a list."""
    nodes = [
        {**node("a"), "parent": None, "_term_out": ["Trace", "back"], "exc_info": {"args": ["x"]}},
        {**node("b", 1), "metric": {"value": 0.25, "maximize": True}, "_term_out": None},
    ]
    for each in nodes:
        del each["parent_id"]
    journal = read_journal(
        written(
            tmp_path, {"nodes": nodes, "node2parent": {"b": "a"}, "__version": "2"}, "run.json"
        ),
        task="leaf",
    )
    first, second = journal.nodes
    assert (first.output, first.exc_value, first.parent_id) == ("Traceback", "x", None)
    assert (second.metric, second.parent_id, second.output) == (0.25, "a", "")
    assert (journal.task, journal.run) == ("leaf", "run")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"nothing": 1}, "a journal is a list of nodes"),
        ([node(), 3], "node 1 .counted from 0."),
        ([{"id": "a"}], "node 0 .*step.*plan"),
        ([node(is_buggy="perhaps")], "is_buggy"),
        ([node("")], "id"),
        ([node("a"), node("a", 1)], "two nodes have the id 'a'"),
        ([node("a", parent_id="z")], "names the parent 'z'"),
        ([node("a", 1), node("b", 1, parent_id="c"), node("c", 2)], "no node of an earlier step"),
        ({"nodes": [node()], "node2parent": [1]}, "`node2parent`"),
    ],
)
def test_journal_when_it_is_wrong_is_refused_with_file_and_node(
    tmp_path: Path, value: Any, said: str
) -> None:
    """One line: the file, the node, the field, the value."""
    path = written(tmp_path, value)
    with pytest.raises(InputError, match=said) as caught:
        read_journal(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_journal_when_it_is_cut_off_or_absent_is_refused(tmp_path: Path) -> None:
    """A file that ends too early, one that is not JSON, one that is not there, an empty folder."""
    path = written(tmp_path, [node()])
    whole = path.read_bytes()
    for data in (whole[:-9], whole[:30], b"", b"{", b"\xff\xfe"):
        path.write_bytes(data)
        with pytest.raises(InputError, match="cut off"):
            read_journal(path)
    with pytest.raises(InputError, match="cannot be read"):
        read_journal(tmp_path / "absent.json")
    with pytest.raises(InputError, match="no journals here"):
        read_journals(tmp_path / "nowhere")


def test_journals_when_in_a_folder_come_by_name(tmp_path: Path) -> None:
    """Other files are passed over."""
    for name in ("b-00000000.json.gz", "a-00000000.json", "notes.txt"):
        written(tmp_path, [node()], name)
    assert [journal.task for journal in read_journals(tmp_path)] == ["a", "b"]
