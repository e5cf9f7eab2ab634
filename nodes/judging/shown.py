"""What a question shows, and what is ruled on it."""

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict

from langgraft._core.canonical import JSON
from langgraft.memory.questions import By
from langgraft.nodes.structured import Reader

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Ruling:
    """One judgment; with the question's id it is a `langgraft.memory.questions.Verdict`."""

    action: str
    item_id: str | None = None
    text: str = ""
    by: By = "model"


class Shown(BaseModel):
    """What a question of one kind shows; fields it does not know are left alone."""

    model_config = ConfigDict(frozen=True)

    prompt: ClassVar[str]
    """Name of the prompt that ships for this kind."""

    @abstractmethod
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        """Return what fills in the prompt."""

    @abstractmethod
    def reader(self) -> Reader[list[Ruling]]:
        """Return what reads a model's reply, and refuses whatever was not shown."""

    @abstractmethod
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Rule without a model; always the same for the same question."""

    @property
    def needless(self) -> str:
        """Why there is nothing to ask a model; empty where there is."""
        return ""


def as_text(value: Any) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else one_line(value)


def one_line(value: JSON) -> str:
    """Write JSON on one line, so that nothing in it can pass for the prompt's own words."""
    # `splitlines` also breaks at these, and so may whoever reads the prompt.
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def by_line(values: Iterable[JSON]) -> str:
    """Write JSON, one value a line."""
    return "\n".join(map(one_line, values)) or "(none)"


def identified(items: Mapping[str, JSON]) -> list[JSON]:
    """Put the id of each item into it; a bare text becomes the item's `text`."""
    return [
        {"id": name} | (dict(item) if isinstance(item, Mapping) else {"text": item}) | {"id": name}
        for name, item in items.items()
    ]


def same_words(text: str) -> str:
    """Return a text without what makes no difference: case, space, a mark at the end."""
    return _SPACE.sub(" ", text).strip().rstrip(".!").casefold()


def _lowered(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


Lowered = BeforeValidator(_lowered)
"""Reads `Agree` as `agree`."""

Text = Annotated[str, BeforeValidator(as_text)]
"""A text, or other JSON written as one."""
