"""What the page of a search shows of one program: why it is there, what it is, how it went."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Final

from langgraft.benchmarks.mle.markup import Markup, classed, joined, tag
from langgraft.benchmarks.mle.tree_view import TreeView, number
from langgraft.nodes.search.journal import JournalNode

LONGEST_CODE: Final = 30_000
"""Most characters of a program that a page shows; what is beyond is said to be left out."""
MOST_CODE: Final = 6_000_000
"""Most characters of all programs; each has an equal share."""
LONGEST_TEXT: Final = 6_000
"""Characters of any other text."""
COMPARED: Final = 600
"""Lines of two programs that are compared, at most: comparing takes their product."""


def draw_panel(view: TreeView, position: int) -> Markup:
    """Return all that is known of a program."""
    node = view.nodes[position]
    parts = [
        tag("h2", f"Step {node.step}: {view.stages[position]}"),
        tag("p", *_chips(view, position)),
        _facts(view, position),
        *_section("Plan", node.plan),
        *_section("Review", node.analysis),
        *_error(node),
        *_recalled(node),
        *_output(node),
        _code(view, position),
        *_asked(node),
    ]
    first = view.best if view.chosen_position is None else view.chosen_position
    css = {"class": "first"} if position == (first or 0) else {}
    attributes = css | {"id": f"n{position}", "tabindex": "-1", "data-row": _row(view, position)}
    return tag("article", *parts, attributes=attributes)


def _row(view: TreeView, position: int) -> str:
    """Name the parent and children, for keys that walk the tree."""
    parent = view.parents[position]
    return " ".join(map(str, ["" if parent is None else parent, *view.children[position]]))


def _chips(view: TreeView, position: int) -> Iterator[Markup]:
    node = view.nodes[position]
    yield (
        classed("span", "chip bad", "✗ failed")
        if node.is_buggy
        else classed("span", "chip good", "✓ ran")
    )
    if position == view.best:
        yield classed("span", "chip mark", "★ best metric")
    if position == view.chosen_position:
        yield classed("span", "chip mark", "◎ chosen")
    for known, word in ((node.timed_out, "out of time"), (node.oom, "out of memory")):
        if known:
            yield classed("span", "chip", word)


def _facts(view: TreeView, position: int) -> Markup:
    node, parent = view.nodes[position], view.parents[position]
    facts: list[tuple[str, str]] = []
    if node.metric is not None:
        facts.append(("metric", number(node.metric)))
    if node.reasons:
        facts.append(("failed because", "; ".join(node.reasons)))
    if node.exc_type:
        facts.append(
            ("exception", shortened(": ".join(filter(None, (node.exc_type, node.exc_value))), 600))
        )
    if node.submission:
        facts.append(("submission", node.submission))
    if parent is not None:
        facts.append(("written from", _link(view, parent)))
    if below := view.children[position]:
        facts.append(("led to", joined(_spaced([_link(view, child) for child in below]))))
    facts.append(("id", node.id))
    return classed("table", "facts", *(_fact(name, value) for name, value in facts))


def _fact(name: str, value: str) -> Markup:
    return tag("tr", tag("th", name, attributes={"scope": "row"}), tag("td", value))


def _spaced(parts: Sequence[Markup]) -> Iterator[str]:
    for number_, part in enumerate(parts):
        yield from (", ", part) if number_ else (part,)


def _link(view: TreeView, position: int) -> Markup:
    return tag("a", f"step {view.nodes[position].step}", attributes={"href": f"#n{position}"})


def _section(title: str, text: str) -> Iterator[Markup]:
    if text.strip():
        yield tag("h3", title)
        yield classed("p", "words", shortened(text.strip()))


def _error(node: JournalNode) -> Iterator[Markup]:
    if node.error:
        yield tag("h3", "Error record")
        names = [
            name
            for name in ("package", "error", "fix", "kind", "verified", "by")
            if name in node.error
        ]
        yield classed("table", "facts", *(_fact(name, _value(node.error[name])) for name in names))


def _recalled(node: JournalNode) -> Iterator[Markup]:
    if node.recalled.strip():
        kinds = Counter(kind or "no kind" for kind in node.recalled_kinds)
        yield tag("h3", "Recalled memory")
        if kinds:
            told = ", ".join(f"{kind} ({count})" for kind, count in kinds.items())
            yield classed("p", "note", f"Kinds of the entries: {told}.")
        yield _text(shortened(node.recalled))
    elif node.receipt is not None:
        yield tag("h3", "Recalled memory")
        yield classed("p", "note", "Memory was asked, and had nothing to say.")


def _output(node: JournalNode) -> Iterator[Markup]:
    if node.output.strip():
        yield _folded("Output", _text(_ends(node.output)), opened=node.is_buggy)


def _code(view: TreeView, position: int) -> Markup:
    node, parent = view.nodes[position], view.parents[position]
    room = min(LONGEST_CODE, MOST_CODE // len(view.nodes))
    lines = node.code.count("\n") + 1
    title = f"Code, {lines} line{'s' * (lines > 1)}"
    if parent is None or not node.code.strip():
        return _folded(title, _text(shortened(node.code, room)), opened=True)
    note = f"Marked: what step {view.nodes[parent].step} does not have."
    marked = _marked(view.nodes[parent].code, shortened(node.code, room))
    return _folded(title, joined([classed("p", "note", note), _text(marked)]), opened=True)


def _marked(before: str, after: str) -> Markup:
    """Mark the lines of a program that the one before does not have."""
    old, new = before.splitlines(), after.splitlines(keepends=True)
    if max(len(old), len(new)) > COMPARED:
        known = set(old)
        return joined(_by(new, [line.rstrip("\r\n") in known for line in new]))
    same = [False] * len(new)
    matcher = SequenceMatcher(None, old, [line.rstrip("\r\n") for line in new], autojunk=False)
    for block in matcher.get_matching_blocks():
        same[block.b : block.b + block.size] = [True] * block.size
    return joined(_by(new, same))


def _by(lines: Sequence[str], same: Sequence[bool]) -> Iterator[str]:
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or same[at] != same[start]:
            text = "".join(lines[start:at])
            yield text if same[start] else tag("mark", text)
            start = at


def _asked(node: JournalNode) -> Iterator[Markup]:
    if node.asked:
        rows = [_fact(name, _value(told)) for name, told in node.asked.items()]
        yield _folded("Model calls", classed("table", "facts", *rows))
    if node.receipt is not None and node.receipt.get("item_ids"):
        yield _folded("Receipt of the recall", classed("table", "facts", *_receipt(node.receipt)))


def _receipt(receipt: Mapping[str, Any]) -> Iterator[Markup]:
    names = ("searched", "item_ids", "scores", "tokens", "dropped", "tied")
    return (_fact(name, _value(receipt[name])) for name in names if receipt.get(name))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return shortened(value, 2_000)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return shortened(
            "; ".join(f"{name}: {_value(each)}" for name, each in value.items()), 2_000
        )
    return shortened(json.dumps(value, ensure_ascii=False, default=str), 2_000)


def _folded(title: str, content: Markup, *, opened: bool = False) -> Markup:
    return tag("details", tag("summary", title), content, attributes={"open": ""} if opened else {})


def _text(text: str) -> Markup:
    return tag("pre", text, attributes={"tabindex": "0"})


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the beginning of a text, and say how much is left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} […{len(text) - limit:,} more characters]"


def _ends(text: str) -> str:
    """Return both ends of what a program printed, as errors come last."""
    if len(text) <= LONGEST_TEXT:
        return text
    half = LONGEST_TEXT // 2
    return f"{text[:half]}\n[…{len(text) - 2 * half:,} characters left out…]\n{text[-half:]}"
