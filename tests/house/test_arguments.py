"""Arguments, checked against annotations."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import pytest

from langgraft._core.arguments import checked, did_you_mean
from langgraft._core.errors import SettingsError


class Lamp(Protocol):
    """Something to be lit."""

    @property
    def lit(self) -> bool:
        """Whether it is."""
        ...

    def light(self) -> None:
        """Light it."""
        ...


class Torch:
    """A lamp that must not be looked at."""

    @property
    def lit(self) -> bool:
        """Whether it is."""
        raise AssertionError

    def light(self) -> None:
        """Light it."""


class Remote:
    """Has whatever is asked for, at some other place."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError


@checked
def door(
    count: int = 1,
    *,
    share: float = 0.5,
    names: Sequence[str] | None = None,
    on: bool = True,
    mode: Literal["a", "b"] = "a",
    call: Callable[[], None] | None = None,
    lamp: Lamp | None = None,
    plain: Any = None,
    forward: "Lamp | None" = None,
) -> int:
    """Return what is counted."""
    return count


@pytest.mark.parametrize(
    "given",
    [
        {"count": 0},
        {"share": 1},
        {"names": []},
        {"names": ("a",)},
        {"mode": "b"},
        {"call": Torch},
        {"lamp": Torch()},
        {"lamp": Remote()},
        {"plain": Torch},
        {"forward": 3},
    ],
)
def test_argument_when_it_is_what_the_annotation_says_passes(given: dict[str, Any]) -> None:
    """A protocol is looked for on the class, so that no property is asked for its value."""
    assert door(**given) == given.get("count", 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"count": True}, "`count` of door must be a whole number, got True"),
        ({"count": 1.0}, "`count` of door must be a whole number, got 1.0"),
        ({"share": False}, "`share` of door must be a number, got False"),
        ({"names": "abc"}, "`names` of door must be a list or None, got 'abc'"),
        ({"on": 1}, "`on` of door must be True or False, got 1"),
        ({"mode": "c"}, "`mode` of door must be 'a' or 'b', got 'c'"),
        ({"call": 3}, "`call` of door must be a function or None, got 3"),
        ({"lamp": "x"}, "`lamp` of door must be a Lamp or None, got 'x'"),
        ({"lamp": Torch}, "got the class Torch: give an object, Torch(…)"),
        ({"nams": "x"}, "door takes no `nams`: did you mean 'names'?"),
        ({"plain": 1, "zzz": 2}, "door takes no `zzz`: there are count, share, names"),
    ],
)
def test_argument_when_it_is_something_else_is_refused(given: dict[str, Any], said: str) -> None:
    """The message has the argument, what it must be, and what it is."""
    with pytest.raises(SettingsError) as caught:
        door(**given)
    assert said in str(caught.value)


def test_arguments_when_they_are_too_many_are_asked_for_by_name() -> None:
    """Python would count them."""
    given: list[Any] = [1, 0.5]
    with pytest.raises(SettingsError, match=r"no place for 0.5: give it by name, door\(count=…\)"):
        door(*given)


def test_value_when_it_is_long_is_cut_short() -> None:
    """A message is one line."""
    count: Any = "x" * 1000
    with pytest.raises(SettingsError) as caught:
        door(count)
    assert len(str(caught.value)) < 200


def test_name_when_nothing_is_near_has_what_follows_instead() -> None:
    """Where the known ones are too many to be listed."""
    assert did_you_mean("aple", ["apple", "pear"]) == "did you mean 'apple'?"
    assert did_you_mean("xyz", ["apple", "pear"]) == "there are apple, pear."
    assert did_you_mean("xyz", ["apple"], "look there") == "look there"


def test_argument_when_it_is_missing_is_asked_for() -> None:
    """In the words of every other refusal, and with the call as it is written."""

    @checked
    def call(count: int, *, lamp: Torch, names: str = "") -> None:
        del count, lamp, names

    open_call: Any = call
    with pytest.raises(SettingsError, match=r"needs `count` and `lamp`: .*count=…, lamp=…\)"):
        open_call(names="x")
    with pytest.raises(SettingsError, match="needs `lamp`: "):
        open_call(1)
