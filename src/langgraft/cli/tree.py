"""`langgraft tree`: the page of a tree search, from its journal."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraft._core.errors import CompetitionError, InputError
from langgraft._core.untrusted import load_json, read_most
from langgraft.benchmarks.mle.journals import read_journal, told_direction
from langgraft.benchmarks.mle.tree_page import write_tree_page
from langgraft.cli.printing import say, write_json
from langgraft.environments.competitions.registry import Registry

_ENDINGS = (".html", ".htm")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for, as it was typed."""

    journal: Path
    out: Path | None = None
    task: str | None = None
    title: str = ""
    lower_is_better: bool | None = None
    chosen: str = ""
    report: Path | None = None


def write(wanted: Wanted, *, as_json: bool) -> None:
    """Write the page of a journal.

    The metric's direction is the one given, or that of the competition's board, or else what
    AIDE's own metrics tell.

    Raises:
        InputError: The journal cannot be read, or the page not be written.
    """
    journal = read_journal(wanted.journal, task=wanted.task)
    if wanted.chosen and all(node.id != wanted.chosen for node in journal.nodes):
        known = ", ".join(node.id for node in journal.nodes[:3])
        msg = f"{wanted.journal}: no program {wanted.chosen!r:.80}; its ids are like {known}"
        raise InputError(msg)
    lower = wanted.lower_is_better
    if lower is None:
        lower = _board_direction(journal.task)
    if lower is None:
        lower = told_direction(wanted.journal)
    page = write_tree_page(
        journal,
        _page(wanted),
        title=wanted.title,
        lower_is_better=lower,
        chosen=wanted.chosen,
        report=None if wanted.report is None else _report(wanted.report),
    )
    if as_json:
        write_json({"page": str(page), "programs": len(journal.nodes), "lower_is_better": lower})
        return
    better = {None: "its direction is not known: --lower or --higher tells it",
              True: "lower is better", False: "higher is better"}[lower]  # fmt: skip
    say(f"{page}: {len(journal.nodes)} programs, {len(journal.buggy)} failed; metric: {better}")


def _page(wanted: Wanted) -> Path:
    if wanted.out is not None:
        if wanted.out.suffix.lower() not in _ENDINGS:
            msg = f"--out {wanted.out}: a page ends in .html"
            raise InputError(msg)
        return wanted.out
    name = wanted.journal.name.removesuffix(".gz").removesuffix(".json")
    return wanted.journal.with_name(f"{name}.html")


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
