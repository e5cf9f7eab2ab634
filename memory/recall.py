"""What memory gives an agent: a `Recall`, the block of text it becomes, and its receipt."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import SettingsError
from langgraft._core.tokens import TokenCounter, count_tokens_approximately
from langgraft.memory.items import ItemType, MemoryItem
from langgraft.memory.questions import Verdict

BLOCK_START = "<recalled_memory>"
BLOCK_END = "</recalled_memory>"
BLOCK_INTRODUCTION = (
    "Notes from earlier episodes, possibly of other tasks. Use what fits the task at hand."
)

_BLOCK = re.compile(rf"{re.escape(BLOCK_START)}.*?(?:{re.escape(BLOCK_END)}\n?|\Z)", re.DOTALL)
_MARKERS = re.compile(rf"<(/?{re.escape(BLOCK_START[1:-1])})>")


@dataclass(frozen=True, slots=True)
class Budget:
    """How much recalled text an agent has room for."""

    tokens: int | None = None
    """Most tokens of the whole block, frame included; `None` sets no limit."""
    count: TokenCounter = count_tokens_approximately

    def __post_init__(self) -> None:
        if self.tokens is not None and self.tokens < 0:
            msg = f"a budget of {self.tokens} tokens is not possible; give 0 or more, or None"
            raise SettingsError(msg)


@dataclass(frozen=True, slots=True)
class RecallContext:
    """Where the agent stands when it asks."""

    domain: str
    task_id: str
    episode_id: str
    episode_index: int | None = None
    """Position of the episode in its stream, from 0; `None`: as many as were taken in."""
    stage: str = "start"
    """What the agent is about to do: `start`, `step`, `draft`, `debug`, `improve` …"""
    step: int = 0
    """Rounds so far, those lost to a reply without an action included."""
    observation: str = ""
    """What the agent sees now."""
    type: ItemType | None = None
    """The kind of item wanted, where the agent can say."""
    draft: str = ""
    """A tentative answer, for providers that look for contradictions."""
    verdicts: tuple[Verdict, ...] = ()
    """Answers to the provider's questions about the draft."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a provider found in its bank."""

    items: tuple[tuple[MemoryItem, float], ...] = ()
    """Items with their scores, best first."""
    query: str = ""
    """The text that was compared with the keys; empty: the query as given."""
    tied: int = 0
    """How many items of the bank share the best score: 1 is no tie, 0 is not known, or nothing
    found."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof of what was recalled; takes effect in the next `take_in`, once."""

    id: str
    query: str
    step: int
    item_ids: tuple[str, ...]
    scores: tuple[float, ...]
    tokens: int
    dropped: tuple[str, ...] = ()
    """Ids of items that were found and did not fit the budget."""
    searched: str = ""
    """The text that was compared with the keys of the bank."""
    tied: int = 0
    """How many items of the bank shared the best score; 0: not known, or nothing found."""

    def __post_init__(self) -> None:
        for name in ("item_ids", "scores", "dropped"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def to_json(self) -> dict[str, JSON]:
        """Return the receipt as JSON."""
        return {
            "id": self.id,
            "query": self.query,
            "step": self.step,
            "item_ids": list(self.item_ids),
            "scores": list(self.scores),
            "tokens": self.tokens,
            "dropped": list(self.dropped),
            "searched": self.searched,
            "tied": self.tied,
        }


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer to one `provide`."""

    items: tuple[MemoryItem, ...]
    scores: tuple[float, ...]
    text: str
    """The demarcated block for the prompt; empty when nothing is recalled."""
    tokens: int
    """Length of `text` by the budget's counter."""
    dropped: tuple[str, ...]
    """Ids of items that were found and did not fit the budget."""
    receipt: Receipt

    def __bool__(self) -> bool:
        return bool(self.items)


def render_block(texts: Sequence[str]) -> str:
    """Put recalled texts into one demarcated block; no texts give no block at all.

    A text that holds the block's own markers has them defused, so that nothing stored in
    memory can end the block early.
    """
    if not texts:
        return ""
    body = "\n\n".join(_MARKERS.sub(r"[\1]", text) for text in texts)
    return f"{BLOCK_START}\n{BLOCK_INTRODUCTION}\n\n{body}\n{BLOCK_END}\n"


def strip_block(text: str) -> str:
    """Take recalled blocks out of a text, so that memory never feeds on itself.

    Of a block that is not ended, such as one quoted in a reply that was cut, all is taken.
    """
    return _BLOCK.sub("", text)


def make_recall(
    query: str,
    context: RecallContext,
    budget: Budget,
    found: Found,
) -> Recall:
    """Fit what was found into the budget, best first, and render it.

    Items are taken whole. One that does not fit is dropped and a later, shorter one may still
    be taken; the limit holds for the block as rendered.
    """
    kept: list[tuple[MemoryItem, float]] = []
    dropped: list[str] = []
    block, tokens = "", 0
    for item, score in found.items:
        candidate = render_block([*(other.text for other, _ in kept), item.text])
        size = budget.count(candidate)
        if budget.tokens is not None and size > budget.tokens:
            dropped.append(item.id)
            continue
        kept.append((item, score))
        block, tokens = candidate, size
    items = tuple(item for item, _ in kept)
    scores = tuple(score for _, score in kept)
    ids = tuple(item.id for item in items)
    receipt = Receipt(
        id=_receipt_id(query, context, ids),
        query=query,
        step=context.step,
        item_ids=ids,
        scores=scores,
        tokens=tokens,
        dropped=tuple(dropped),
        searched=found.query or query,
        tied=found.tied,
    )
    return Recall(items, scores, block, tokens, tuple(dropped), receipt)


def _receipt_id(query: str, context: RecallContext, ids: Sequence[str]) -> str:
    asked: list[JSON] = [context.episode_id, context.step, query]
    return digest([*asked, list(ids)])[:16]
