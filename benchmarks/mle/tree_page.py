"""The page of a tree search: one HTML file with its programs as a tree, and all there is of each.

    write_tree_page(journal, Path("tree.html"), lower_is_better=True, chosen="007")

Nothing is fetched, and without scripts every program is a link away; the script that is there
walks the tree with the arrow keys and zooms. What comes from the journal is escaped, cut to a
bounded length, and shows characters that would be unseen. The same journal gives the same bytes.
"""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from langgraft._core.errors import InputError
from langgraft.benchmarks.mle.markup import Markup, classed, joined, tag
from langgraft.benchmarks.mle.tree_drawing import draw_legend, draw_tree
from langgraft.benchmarks.mle.tree_panels import draw_panel, shortened
from langgraft.benchmarks.mle.tree_view import TreeView, number
from langgraft.nodes.search.journal import Journal


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
    picture, its_style = draw_tree(view)
    style = _file("tree.css") + its_style
    script = _file("tree.js")
    heading = shortened(title or journal.task, 300)
    tree = tag(
        "section",
        classed("div", "zoom", *(_button(*each) for each in _BUTTONS)),
        tag("div", picture, attributes={"class": "tree", "tabindex": "-1"}),
        attributes={"aria-label": "Tree of programs", "class": "picture"},
    )
    panels = (draw_panel(view, position) for position in range(len(view.nodes)))
    body = [
        classed(
            "div",
            "screen",
            tag(
                "header", tag("h1", heading), *_notice(simulated=simulated), *_summary(view, report)
            ),
            draw_legend(view),
            classed("main", "sides", tree, _aside(joined(panels))),
        ),
        _table(view),
    ]
    return "<!doctype html>\n" + tag(
        "html",
        tag("head", *_head(heading, style, script)),
        tag("body", *body, tag("script", Markup(script))),
        attributes={"lang": "en"},
    )


_BUTTONS = (("out", "-", "Smaller"), ("in", "+", "Larger"), ("fit", "fit", "Fit to the width"))


def _button(name: str, sign: str, word: str) -> Markup:
    return tag(
        "button",
        sign,
        attributes={"data-zoom": name, "title": word, "aria-label": word, "type": "button"},
    )


def _head(heading: str, style: str, script: str) -> Iterator[Markup]:
    yield tag("meta", attributes={"charset": "utf-8"})
    yield tag(
        "meta", attributes={"name": "viewport", "content": "width=device-width, initial-scale=1"}
    )
    yield tag("meta", attributes={"name": "color-scheme", "content": "light"})
    policy = (
        f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)};"
        " base-uri 'none'; form-action 'none'"
    )
    # No attribute of ours holds a quote that has to be escaped: this one has single ones.
    yield Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">')
    yield tag("title", heading)
    yield tag("style", Markup(style))


def _source(text: str) -> str:
    """Name a style or script by its digest, so that no other one is obeyed."""
    found = base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{found}'"


def _file(name: str) -> str:
    folder = resources.files(__package__).joinpath("tree_templates")
    return folder.joinpath(name).read_text(encoding="utf-8").replace("\r\n", "\n")


def _notice(*, simulated: bool) -> Iterator[Markup]:
    if simulated:
        text = "A rule-based learner wrote these programs; it is no language model."
        yield classed("p", "notice", tag("strong", "The model is simulated."), " ", text)


def _summary(view: TreeView, report: Mapping[str, Any] | None) -> Iterator[Markup]:
    nodes, failed = len(view.nodes), len(view.journal.buggy)
    words = [f"{nodes} program{'s' * (nodes != 1)}"]
    words += [
        f"{view.stages.count(stage)} {word}" for stage, word in _STAGES if stage in view.stages
    ]
    words.append(f"{failed} failed")
    recalled = sum(bool(node.recalled) for node in view.nodes)
    words += [f"{recalled} written with recalled memory"] if recalled else []
    yield classed("p", "sub", " · ".join(words))
    marked: list[str] = []
    for name, position in (("Best metric", view.best), ("Chosen", view.chosen_position)):
        if position is not None:
            score = view.score(position)
            told = f"{name}: " if score is None else f"{name}: {number(score)}, "
            link = tag(
                "a", f"step {view.nodes[position].step}", attributes={"href": f"#n{position}"}
            )
            marked += [told, link, ". "]
    if report is not None:
        marked.append(_graded(report))
    if marked:
        yield classed("p", "marked", *marked)
    if report:
        rows = [
            tag(
                "tr",
                tag("th", str(k), attributes={"scope": "row"}),
                tag("td", shortened(str(v), 300)),
            )
            for k, v in report.items()
        ]
        yield tag(
            "details", tag("summary", "Report of the grader"), classed("table", "facts", *rows)
        )


_STAGES = (("draft", "drafts"), ("debug", "debugged"), ("improve", "improved"))


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


def _aside(panels: Markup) -> Markup:
    """Hold the panels; the one that the address names is shown."""
    hint = (
        "Click a program in the tree, or walk with the arrow keys: up and down its line, left and"
        " right along its row, Home and End to the first and the last step."
    )
    return tag(
        "aside", classed("p", "note hint", hint), panels, attributes={"aria-label": "Program"}
    )


def _table(view: TreeView) -> Markup:
    """List all programs in order, for readers who do not see the picture."""
    head = tag(
        "tr",
        *(
            tag("th", name, attributes={"scope": "col"})
            for name in ("step", "kind", "from", "how it went", "metric")
        ),
    )
    rows = [_line(view, position) for position in range(len(view.nodes))]
    table = classed("table", "list", tag("thead", head), tag("tbody", *rows))
    return tag("details", tag("summary", "All programs as a list"), table)


def _line(view: TreeView, position: int) -> Markup:
    node, parent, score = view.nodes[position], view.parents[position], view.score(position)
    how = "; ".join(node.reasons) or node.exc_type or "failed" if node.is_buggy else "ran"
    link = tag("a", str(node.step), attributes={"href": f"#n{position}"})
    cells = [
        link,
        view.stages[position],
        "" if parent is None else str(view.nodes[parent].step),
        shortened(how, 200),
        "" if score is None else number(score),
    ]
    return tag("tr", *(tag("td", cell) for cell in cells))
