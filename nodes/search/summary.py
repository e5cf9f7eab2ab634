"""AIDE's summary of a search: what a prompt says of the attempts that worked."""

from collections.abc import Sequence
from typing import Final

from langgraft.nodes.search.aide_policy import best_node
from langgraft.nodes.search.journal import JournalNode

MOST: Final = 12_000
"""Characters of a summary, about 3,000 tokens: some 15 to 25 attempts of usual length."""

_LONGEST: Final = 1_200
"""Characters of one plan or result: three to five sentences have a third of that."""
_NONE: Final = "No attempt has worked so far."


def summarize(nodes: Sequence[JournalNode], *, lower_is_better: bool, most: int = MOST) -> str:
    """Sum up the attempts that worked, for drafts and improvements.

    As AIDE has it: of every working program its plan, its result and its metric, in the order of
    the steps, and nothing of failures. AIDE's grows without limit. Here, where not all fit, the
    best attempt stays, then the newest do, and a first line says how many are left out; a plan or
    result of unusual length is cut.

    Args:
        nodes: All programs of the search, in the order of their steps.
        lower_is_better: The metric's direction, from the competition's board.
        most: Characters at most. The best attempt is told even where it alone is longer.
    """
    working = [node for node in nodes if not node.is_buggy]
    best = best_node(working, lower_is_better=lower_is_better)
    if best is None:
        return _NONE
    told = {node.id: _told(node) for node in working}
    kept = {best.id}
    room = most - len(told[best.id]) - len(_left_out(len(working)))
    for node in reversed(working):
        if node.id in kept:
            continue
        room -= len(told[node.id]) + 2
        if room < 0:
            break
        kept.add(node.id)
    missing = [_left_out(len(working) - len(kept))] if len(kept) < len(working) else []
    return "\n\n".join([*missing, *(told[node.id] for node in working if node.id in kept)])


def _left_out(count: int) -> str:
    return f"({count} older attempts that worked are left out.)"


def _told(node: JournalNode) -> str:
    metric = "none" if node.metric is None else f"{node.metric:.6g}"
    return f"Plan: {_cut(node.plan)}\nResult: {_cut(node.analysis)}\nValidation metric: {metric}"


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rstrip()} …"
