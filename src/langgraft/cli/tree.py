"""`langgraft tree`: the page of a tree search, from its journal."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from langgraft._core.errors import CompetitionError, InputError
from langgraft._core.untrusted import load_json, read_most
from langgraft.benchmarks.mle.journals import read_journal, told_direction
from langgraft.benchmarks.mle.tree_page import write_tree_page
from langgraft.cli.printing import say, write_json
from langgraft.environments.competitions.registry import Registry

_ENDINGS = (".html", ".htm")


def write(
    path: Path,
    *,
    out: Path | None,
    task: str | None,
    title: str,
    lower: bool | None,
    chosen: str,
    report: Path | None,
    as_json: bool,
) -> None:
    """Write the page of a journal, with the options as they were typed.

    The metric's direction is the one given, or that of the competition's board, or else what
    AIDE's own metrics tell.

    Raises:
        InputError: The journal cannot be read, or the page not be written.
    """
    journal = read_journal(path, task=task)
    if chosen and all(node.id != chosen for node in journal.nodes):
        known = ", ".join(node.id for node in journal.nodes[:3])
        msg = f"{path}: no program {chosen!r:.80}; its ids are like {known}"
        raise InputError(msg)
    if lower is None:
        lower = _board_direction(journal.task)
    if lower is None:
        lower = told_direction(path)
    page = write_tree_page(
        journal,
        _page(path, out),
        title=title,
        lower_is_better=lower,
        chosen=chosen,
        report=None if report is None else _report(report),
    )
    if as_json:
        write_json({"page": str(page), "programs": len(journal.nodes), "lower_is_better": lower})
        return
    better = {None: "its direction is not known: --lower or --higher tells it",
              True: "lower is better", False: "higher is better"}[lower]  # fmt: skip
    say(f"{page}: {len(journal.nodes)} programs, {len(journal.buggy)} failed; metric: {better}")


def _page(journal: Path, out: Path | None) -> Path:
    if out is None:
        name = journal.name.removesuffix(".gz").removesuffix(".json")
        return journal.with_name(f"{name}.html")
    if out.suffix.lower() not in _ENDINGS:
        msg = f"--out {out}: a page ends in .html"
        raise InputError(msg)
    return out


def _board_direction(task: str) -> bool | None:
    """Return the direction of a competition that is known by its id."""
    try:
        return Registry().get_competition(task).board.thresholds.lower_is_better
    except CompetitionError:
        return None


def _report(path: Path) -> Mapping[str, Any]:
    try:
        value = load_json(read_most(path))
    except OSError as error:
        msg = f"--report {path}: cannot be read: {error.strerror or error}"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"--report {path}: not JSON: {error}"
        raise InputError(msg) from error
    if not isinstance(value, dict):
        msg = f"--report {path}: a competition's report is an object, got {value!r:.80}"
        raise InputError(msg)
    return value
