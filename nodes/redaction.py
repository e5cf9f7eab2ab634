"""Redaction of what memory writes: a function, or LangChain's rules for personal data."""

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from langgraft._core.errors import SettingsError
from langgraft.memory.model import Episode, Verdict


@runtime_checkable
class Rule(Protocol):
    """LangChain's `RedactionRule`, whose package takes long to import."""

    def resolve(self) -> Any:
        """Return the rule with its detector; its `apply` returns a text and what was found in it."""


Redact: TypeAlias = Callable[[str], str] | Sequence[Rule]
"""A function of a text, or rules such as `[RedactionRule(pii_type="email")]`, applied in their order."""

Redactor: TypeAlias = Callable[[str], str]

_NAMES: Final = frozenset(
    {
        "id",
        "domain",
        "task_id",
        "item_id",
        "item_ids",
        "question_id",
        "resolves",
        "sources",
        "feedback",
        "type",
        "kind",
        "by",
        "at",
        "since",
        "until",
    }
)
"""Fields of an episode and its parts that are names, not texts."""


def redactor(redact: Redact | None, what: str) -> Redactor | None:
    """Return the function that redacts a text.

    Args:
        redact: A function, or rules; `None`: nothing is redacted.
        what: What it was given as, for the message.

    Raises:
        SettingsError: It is neither, or a rule names a kind of data that LangChain has no detector for.
    """
    if redact is None or callable(redact):
        return redact
    try:
        rules = [rule.resolve() for rule in redact]
    except (AttributeError, TypeError, ValueError) as error:
        msg = f"{what} is a function of a text, or a list of LangChain's RedactionRule; {error}"
        raise SettingsError(msg) from error

    def apply(text: str) -> str:
        for rule in rules:
            text, _ = rule.apply(text)
        return text

    return apply


def redacted(episode: Episode, redact: Redactor | None) -> Episode:
    """Return an episode with every text redacted; names, ids and numbers stay."""
    return episode if redact is None else cast("Episode", _within(episode, redact))


def _within(value: Any, redact: Redactor) -> Any:
    if isinstance(value, str):
        return redact(value) if value else value
    if isinstance(value, tuple | list):
        return type(value)(_within(each, redact) for each in value)
    if isinstance(value, dict):
        return {key: _within(each, redact) for key, each in value.items()}
    if isinstance(value, Verdict):
        return replace(value, text=redact(value.text))
    if is_dataclass(value) and not isinstance(value, type):
        texts = {
            field.name: _within(getattr(value, field.name), redact)
            for field in fields(value)
            if field.init and field.name not in _NAMES
        }
        return replace(value, **texts)
    return value
