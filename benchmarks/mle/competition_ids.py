"""The competitions that a plan names: by ids, or many by one word."""

from collections.abc import Sequence
from typing import Any, Final

from langgraft.environments.competitions.layout import is_competition_id
from langgraft.environments.competitions.registry import Registry

_FAMILIES: Final = ("shipped", "lite")


def shipped_competitions() -> tuple[str, ...]:
    """Return the ids of the competitions that ship."""
    return tuple(Registry().get_shipped_competition_ids())


def named_competitions(given: Any) -> Any:
    """Return the ids that `shipped` or `lite` stands for; what is no word is returned as it is.

    Raises:
        ValueError: It is another word.
    """
    if not isinstance(given, str):
        return given
    if given not in _FAMILIES:
        msg = f"give a list of ids, or one of {', '.join(_FAMILIES)}; got {given!r:.80}"
        raise ValueError(msg)
    if given == "lite":
        return tuple(Registry().get_lite_competition_ids())
    return shipped_competitions()


def check_ids(ids: Sequence[str]) -> None:
    """Refuse what cannot be an id, and one that is given twice.

    Raises:
        ValueError: There is one.
    """
    if len(set(ids)) < len(ids):
        msg = f"each may be given once, got {list(ids)}"
        raise ValueError(msg)
    for each in ids:
        if not is_competition_id(each):
            msg = f"{each!r:.80} cannot be the id of a competition"
            raise ValueError(msg)
