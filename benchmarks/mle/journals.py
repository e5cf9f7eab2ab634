"""Journals of AIDE's tree search: every program of a run, and how it fared.

Two forms are read, plain or compressed with gzip: a list of nodes that name their parents, and
AIDE's own `journal.json` (an object with `nodes` and `node2parent`, metrics as objects, output in
`_term_out`).
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langgraft._core.arguments import validation_as
from langgraft._core.errors import InputError
from langgraft._core.untrusted import load_json, read_most, unzipped
from langgraft.nodes.search.journal import Journal, JournalNode

_RUN = re.compile(r"^(?P<task>.+)-[0-9a-f]{8}$")
_ENDINGS: Final = (".json.gz", ".json")
MOST_NODES: Final = 2_000
"""Of a journal: searches are of hundreds, and a page of more would be of no use."""


def read_journals(folder: Path) -> list[Journal]:
    """Read all journals of a folder, in the order of their names.

    Raises:
        InputError: There are none, or one of them cannot be read.
    """
    paths = sorted(path for path in folder.glob("*") if path.name.endswith(_ENDINGS))
    if not paths:
        msg = f"{folder}: no journals here; they are named <task>-<8 hex digits>.json.gz or .json"
        raise InputError(msg)
    return [read_journal(path) for path in paths]


def read_journal(path: Path, *, task: str | None = None) -> Journal:
    """Read one journal.

    Args:
        path: The file.
        task: The competition; `None` takes it from the file's name, `<task>-<8 hex digits>`.

    Raises:
        InputError: The file cannot be read, or is no journal; the message names the node.
    """
    run = path.name
    for ending in _ENDINGS:
        run = run.removesuffix(ending)
    match = _RUN.match(run)
    named = task or (match["task"] if match else run)
    listed = _listed(path)
    if len(listed) > MOST_NODES:
        msg = f"{path}: holds {len(listed):,} nodes; a journal has at most {MOST_NODES:,}"
        raise InputError(msg)
    nodes = [_node(path, number, value) for number, value in enumerate(listed)]
    return Journal(run, named, tuple(_in_order(path, nodes)))


def told_direction(path: Path) -> bool | None:
    """Say whether lower is better, as AIDE's own metrics tell; `None` where none or both do.

    A model said so, in a review: where the competition is known, its board says it better.

    Raises:
        InputError: The file cannot be read, or is no journal.
    """
    told = set()
    for node in _listed(path):
        metric = node.get("metric") if isinstance(node, Mapping) else None
        if isinstance(metric, Mapping) and isinstance(metric.get("maximize"), bool):
            told.add(not metric["maximize"])
    return told.pop() if len(told) == 1 else None


def _listed(path: Path) -> list[Any]:
    """Return the nodes as they are written, each naming its parent."""
    value = _load(path)
    if isinstance(value, Mapping) and isinstance(value.get("nodes"), list):
        parents = value.get("node2parent") or {}
        if not isinstance(parents, Mapping):
            msg = f"{path}: `node2parent` maps nodes to parents, got {parents!r:.80}"
            raise InputError(msg)
        return [_own_form(node, parents) for node in value["nodes"]]
    if not isinstance(value, list):
        msg = f"{path}: a journal is a list of nodes, or an object with `nodes`; got {value!r:.80}"
        raise InputError(msg)
    return value


def _own_form(node: Any, parents: Mapping[str, Any]) -> Any:
    if not isinstance(node, Mapping):
        return node
    printed = node.get("_term_out") or ()
    info = node.get("exc_info")
    arguments = info.get("args") if isinstance(info, Mapping) else None
    return {
        "parent_id": parents.get(str(node.get("id"))),
        "output": "".join(map(str, printed)) if isinstance(printed, list | tuple) else printed,
        "exc_value": str(arguments[0]) if isinstance(arguments, list) and arguments else None,
        **{key: value for key, value in node.items() if key != "parent"},
    }


def _load(path: Path) -> Any:
    try:
        return load_json(unzipped(read_most(path)))
    except OSError as error:
        msg = f"{path}: cannot be read: {error.strerror or error}"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"{path}: not JSON, plain or compressed with gzip, or it is cut off: {error}"
        raise InputError(msg) from error


def _node(path: Path, number: int, value: Any) -> JournalNode:
    with validation_as(InputError, f"{path}: node {number} (counted from 0): "):
        return JournalNode.model_validate(value)


def _in_order(path: Path, nodes: Sequence[JournalNode]) -> list[JournalNode]:
    """Put nodes in the order of their steps, and check that they make trees."""
    ordered = sorted(nodes, key=lambda node: node.step)
    seen: set[str] = set()
    for node in ordered:
        if node.id in seen:
            msg = f"{path}: two nodes have the id {node.id!r:.80}"
            raise InputError(msg)
        for parent in node.parent_ids:
            if parent not in seen:
                msg = (
                    f"{path}: node {node.id!r:.80} (step {node.step}) names the parent"
                    f" {parent!r:.80}, which is no node of an earlier step"
                )
                raise InputError(msg)
        seen.add(node.id)
    return ordered
