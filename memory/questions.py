"""What only a model can judge: questions a provider asks, and the verdicts that answer them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from langgraft._core.canonical import JSON, digest

By: TypeAlias = Literal["model", "rules"]
"""Who said something: a model, or deterministic rules that stood in for one."""


@dataclass(frozen=True, slots=True)
class Question:
    """Something only a model can judge, asked by a provider and answered by a node.

    `id` is the digest of everything the question shows. An answer given before the bank
    moved therefore no longer fits, and the provider asks again (see
    `MemoryProvider.questions`).
    """

    kind: str
    """What is asked, such as `votes`, `novelty` or `contradiction`: selects the prompt of the
    node."""
    episode_id: str
    shows: Mapping[str, JSON]
    """What the judge sees, memory items by their ids."""

    @property
    def id(self) -> str:
        """Digest of the question."""
        return digest({"kind": self.kind, "episode": self.episode_id, "shows": dict(self.shows)})


@dataclass(frozen=True, slots=True)
class Verdict:
    """One judgment in answer to a question; a question may have several."""

    question_id: str
    action: str
    """What to do, in the provider's words: `add`, `agree`, `edit`, `remove`, `none` …"""
    item_id: str | None = None
    """The item concerned. A verdict on an item that has gone meanwhile is ignored."""
    text: str = ""
    """New text, where the action carries one."""
    by: By = "model"
