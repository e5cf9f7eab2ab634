"""The page of a tree search: one HTML file with its programs as a tree, and all there is of each.

    write_tree_page(journal, Path("tree.html"), lower_is_better=True, chosen="007")

Nothing is fetched, and without scripts every program is a link away; the script that is there
walks the tree with the arrow keys and zooms. What comes from the journal is escaped, cut to a
bounded length, and shows characters that would be unseen. The same journal gives the same bytes.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

from langgraft._core.errors import InputError
from langgraft.benchmarks.mle.tree_picture import (
    DIAMOND,
    HEXAGON,
    RAMP,
    STAR,
    TreeView,
    corners,
    number,
    picture_of,
    px,
)
from langgraft.benchmarks.reporting.pages import environment, trusted
from langgraft.benchmarks.reporting.words import LONGEST_TEXT, shortened
from langgraft.nodes.search.journal import Journal, JournalNode, Stage

LONGEST_CODE: Final = 30_000
"""Most characters of a program that a page shows; what is beyond is said to be left out."""
MOST_CODE: Final = 6_000_000
"""Most characters of all programs; each has an equal share."""
COMPARED: Final = 600
"""Lines of two programs that are compared, at most: comparing takes their product."""


def write_tree_page(
    journal: Journal,
    path: Path,
    *,
    title: str = "",
    lower_is_better: bool | None = None,
    chosen: str = "",
    report: Mapping[str, Any] | None = None,
    simulated: bool = False,
) -> Path:
    """Write the page of a search; an existing file is replaced.

    Args:
        journal: The run: of ours, or AIDE's.
        path: The file; its folder is made if there is none.
        title: Above the page; empty: the task.
        lower_is_better: The metric's direction; `None`: not known, so that none is best.
        chosen: Id of the program whose submission was handed in.
        report: The grader's report on that submission, as `mlebench grade` writes it.
        simulated: The model was no language model, and the page says so.

    Returns:
        The file.

    Raises:
        InputError: The file cannot be written, or the journal has no program `chosen`.
    """
    page = render_tree_page(
        journal,
        title=title,
        lower_is_better=lower_is_better,
        chosen=chosen,
        report=report,
        simulated=simulated,
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror or error}"
        raise InputError(msg) from error
    return path


def render_tree_page(
    journal: Journal,
    *,
    title: str = "",
    lower_is_better: bool | None = None,
    chosen: str = "",
    report: Mapping[str, Any] | None = None,
    simulated: bool = False,
) -> str:
    """Return the page of a search; see `write_tree_page`."""
    view = TreeView(journal, lower_is_better, chosen)
    pages = environment(
        __package__ or "",
        metric=number,
        px=px,
        corners=corners,
        shortened=shortened,
        sha256=_sha256,
    )
    picture = picture_of(view)
    page: str = pages.get_template("tree.html.jinja").render(
        view=view,
        picture=picture,
        panels=[_panel(view, position) for position in range(len(view.nodes))],
        title=shortened(title or journal.task, 300),
        summary=list(_summary(view)),
        simulated=simulated,
        report=report,
        graded="" if report is None else _graded(report),
        grades=[(str(name), shortened(str(each), 300)) for name, each in (report or {}).items()],
        style=trusted(pages.get_template("tree.css").render(picture=picture)),
        script=trusted(pages.get_template("tree.js").render()),
        hexagon=HEXAGON,
        diamond=DIAMOND,
        star=STAR,
        ramp=RAMP,
    )
    return page


def _sha256(text: str) -> str:
    """Name a style or script by its digest, so that no other one is obeyed."""
    found = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"sha256-{found}"


def _summary(view: TreeView) -> Iterator[str]:
    nodes = len(view.nodes)
    yield f"{nodes} program{'s' * (nodes != 1)}"
    for stage, word in _STAGES.items():
        if stage in view.stages:
            yield f"{view.stages.count(stage)} {word}"
    yield f"{len(view.journal.buggy)} failed"
    if recalled := sum(bool(node.recalled) for node in view.nodes):
        yield f"{recalled} written with recalled memory"


_STAGES: Final[Mapping[Stage, str]] = {
    "draft": "drafts",
    "debug": "debugged",
    "improve": "improved",
    "merge": "merged",
}


def _graded(report: Mapping[str, Any]) -> str:
    """Say in a sentence what a grader's report says."""
    score = report.get("score")
    if isinstance(score, int | float) and not isinstance(score, bool):
        medal = next(
            (m for m in ("gold", "silver", "bronze") if report.get(f"{m}_medal") is True), ""
        )
        place = f"{medal} medal" if medal else "no medal"
        above = ", above the median" if report.get("above_median") is True else ""
        return f"Graded: {number(score)}, {place}{above}."
    return "Graded: no valid submission."


# What the page shows of one program: why it is there, what it is, how it went -------------------


@dataclass(frozen=True, slots=True)
class _Panel:
    """All that is known of a program, every text of it bounded."""

    position: int
    node: JournalNode
    stage: Stage
    first: bool
    """Whether it is shown before any is chosen."""
    parent: int | None
    partner: int | None
    children: Sequence[int]
    around: str
    """Parent and children, for keys that walk the tree."""
    chips: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]
    how: str
    error: Sequence[tuple[str, str]]
    kinds: str
    output: str
    lines: int
    code: Sequence[tuple[str, bool]]
    """Pieces of the program, each with whether its parent does not have it."""
    compared: bool
    asked: Sequence[tuple[str, str]]
    receipt: Sequence[tuple[str, str]]


def _panel(view: TreeView, position: int) -> _Panel:
    node, parent = view.nodes[position], view.parents[position]
    first = view.best if view.chosen_position is None else view.chosen_position
    compared = parent is not None and bool(node.code.strip())
    code = shortened(node.code, min(LONGEST_CODE, MOST_CODE // len(view.nodes)))
    kinds = Counter(kind or "no kind" for kind in node.recalled_kinds)
    return _Panel(
        position=position,
        node=node,
        stage=view.stages[position],
        first=position == (first or 0),
        parent=parent,
        partner=view.partners[position],
        children=view.children[position],
        around=" ".join(map(str, ["" if parent is None else parent, *view.children[position]])),
        chips=list(_chips(view, position)),
        facts=list(_facts(node)),
        how="; ".join(node.reasons) or node.exc_type or "failed" if node.is_buggy else "ran",
        error=_values(node.error, ("package", "error", "fix", "kind", "verified", "by")),
        kinds=", ".join(f"{kind} ({count})" for kind, count in kinds.items()),
        output=_ends(node.output),
        lines=node.code.count("\n") + 1,
        code=_marked(view.nodes[parent].code, code)
        if compared and parent is not None
        else [(code, False)],
        compared=compared,
        asked=[(name, _value(each)) for name, each in (node.asked or {}).items()],
        receipt=list(_receipt(node)),
    )


def _chips(view: TreeView, position: int) -> Iterator[tuple[str, str]]:
    node = view.nodes[position]
    yield ("bad", "✗ failed") if node.is_buggy else ("good", "✓ ran")
    if position == view.best:
        yield "mark", "★ best metric"
    if position == view.chosen_position:
        yield "mark", "◎ chosen"
    if node.timed_out:
        yield "", "out of time"
    if node.oom:
        yield "", "out of memory"


def _facts(node: JournalNode) -> Iterator[tuple[str, str]]:
    if node.metric is not None:
        yield "metric", number(node.metric)
    if node.reasons:
        yield "failed because", "; ".join(node.reasons)
    if node.exc_type:
        raised = ": ".join(filter(None, (node.exc_type, node.exc_value)))
        yield "exception", shortened(raised, 600)
    if node.submission:
        yield "submission", node.submission


def _receipt(node: JournalNode) -> Sequence[tuple[str, str]]:
    """Return what was recalled; nothing where no item was."""
    if node.receipt is None or not node.receipt.get("item_ids"):
        return ()
    names = ("searched", "item_ids", "scores", "tokens", "dropped", "tied")
    return _values(node.receipt, [name for name in names if node.receipt.get(name)])


def _values(found: Mapping[str, Any] | None, names: Sequence[str]) -> Sequence[tuple[str, str]]:
    return [(name, _value(found[name])) for name in names if found and name in found]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        value = "; ".join(f"{name}: {_value(each)}" for name, each in value.items())
    elif not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return shortened(value, 2_000)


def _marked(before: str, after: str) -> Sequence[tuple[str, bool]]:
    """Tell the lines of a program that the one before does not have from the others."""
    old, new = before.splitlines(), after.splitlines(keepends=True)
    lines = [line.rstrip("\r\n") for line in new]
    if max(len(old), len(new)) > COMPARED:
        known = set(old)
        return list(_pieces(new, [line in known for line in lines]))
    same = [False] * len(new)
    for block in SequenceMatcher(None, old, lines, autojunk=False).get_matching_blocks():
        same[block.b : block.b + block.size] = [True] * block.size
    return list(_pieces(new, same))


def _pieces(lines: Sequence[str], same: Sequence[bool]) -> Iterator[tuple[str, bool]]:
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or same[at] != same[start]:
            yield "".join(lines[start:at]), not same[start]
            start = at


def _ends(text: str) -> str:
    """Return both ends of what a program printed, as errors come last."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[…{len(text) - 2 * half:,} characters left out…]\n{text[-half:]}"
