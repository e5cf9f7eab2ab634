"""What is handed in, checked: arguments by their annotations, settings by pydantic; one clear error."""

import difflib
import functools
import inspect
import re
import types
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError
from typing_extensions import get_protocol_members, is_protocol

from langgraft._core.confidential import is_secret_name, secret_places, without_secrets
from langgraft._core.errors import SettingsError

_INIT: Final = "__init__"

P = ParamSpec("P")
T = TypeVar("T")

_WORDS: Final[Mapping[object, str]] = {
    types.NoneType: "None",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "a text",
    Callable: "a function",
    Sequence: "a list",
}
_SUCH_AS: Final[Mapping[str, str]] = {
    "Connection": "ChromaStore.open('memories') makes",
    "BaseStore": "InMemoryStore()",
    "EnvironmentSessions": "EnvironmentSessions(BabyAI())",
    "MemoryProvider": "InsightMemory(InMemoryStore())",
    "Ranker": "BM25()",
    "Sandbox": "DockerSandbox()",
    "TextWorldFactory": "BabyAI()",
}
"""By name, since these are defined on the floors above."""


def check_whole(name: str, value: object, least: int = 1) -> None:
    """Refuse what is no whole number (a `bool` is none), or one below `least`.

    Raises:
        SettingsError: It is.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        msg = f"{name} must be a whole number of at least {least}, got {value!r:.80}"
        raise SettingsError(msg)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function refuse arguments that are not what its annotations say.

    What an argument is gets checked, and not what it holds: of a list nothing but that it is one.
    A class is never taken for one of its instances.

    Raises:
        SettingsError: By the function: an argument is of another kind, has a name that it does not
            take, has to be given by name, or is missing.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        parameters, in_a_row, _ = _signature(function)
        for name, value in (*zip(in_a_row, args, strict=False), *kwargs.items()):
            if name not in parameters:
                break
            hint, plain = parameters[name]
            if type(value) not in plain and not _fits(value, hint):
                check_argument(f"`{name}` of {_place(function, args)}", value, hint)
        _check_names(function, args, kwargs)
        return function(*args, **kwargs)

    return call


def _check_names(
    function: Callable[..., object], args: Sequence[object], given: Iterable[str]
) -> None:
    """Refuse arguments that a function does not take, that have no place, or that are missing.

    Raises:
        SettingsError: There is one.
    """
    parameters, in_a_row, needed = _signature(function)
    names = [*given]
    for name in names:
        if name not in parameters:
            known = [each for each in parameters if each != "self"]
            msg = f"{_place(function, args)} takes no `{name}`: {did_you_mean(name, known)}"
            raise SettingsError(msg)
    for value in args[len(in_a_row) :]:
        where = _place(function, args)
        by_name = _written(where, inspect.signature(function))
        msg = f"{where} has no place for {value!r:.80}: give it by name, {by_name}"
        raise SettingsError(msg)
    missing = [each for each in needed if each not in {*names, *in_a_row[: len(args)]}]
    if missing:
        where = _place(function, args)
        named = " and ".join(f"`{each}`" for each in missing)
        msg = f"{where} needs {named}: {_written(where, inspect.signature(function))}"
        raise SettingsError(msg)


def named(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function name arguments that are missing, misspelled or too many; kinds are not checked.

    Raises:
        SettingsError: By the function.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return function(*args, **kwargs)
        except TypeError:
            _check_names(function, args, kwargs)
            raise

    return call


def named_fields(kind: type[T]) -> type[T]:
    """Have a class of plain fields name them as `named` does."""
    setattr(kind, _INIT, named(getattr(kind, _INIT)))
    return kind


def checked_fields(kind: type[T]) -> type[T]:
    """Have a class of plain fields check them as `checked` does."""
    setattr(kind, _INIT, checked(getattr(kind, _INIT)))
    return kind


def check_argument(what: str, value: object, hint: Any) -> None:
    """Refuse a value that an annotation does not allow.

    Args:
        what: What it was given as, for the message.
        value: What was given.
        hint: The annotation.

    Raises:
        SettingsError: It is of another kind.
    """
    if _fits(value, hint):
        return
    kinds = sorted(_kinds(hint), key=lambda kind: kind is types.NoneType)
    wanted = " or ".join(dict.fromkeys(filter(None, map(_words, kinds))))
    if isinstance(value, type):
        got = f"the class {value.__name__}: give an object, {value.__name__}(…)"
    else:
        got = f"{value!r:.80}" + next(filter(None, (_form(kind, value) for kind in kinds)), "")
    raise SettingsError(f"{what} must be {wanted}, got {got}")


def did_you_mean(given: object, known: Iterable[str], otherwise: str = "") -> str:
    """Say which of the known names may have been meant; without any, `otherwise` or all of them."""
    names = list(known)
    spelled = f"{given!s:.100}"
    near = difflib.get_close_matches(spelled, names)
    if not near:  # by other capitals, or other marks between words
        alike = {_plain(each): each for each in names}
        near = [alike[each] for each in difflib.get_close_matches(_plain(spelled), alike)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return otherwise or f"there are {', '.join(names)}."


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


@functools.cache
def _signature(
    function: Callable[..., object],
) -> tuple[Mapping[str, tuple[Any, frozenset[type]]], Sequence[str], Sequence[str]]:
    """Return parameters' annotations and their types, which may go unnamed, and which are needed.

    What is of just such a type needs no other look: most calls are right, and some are frequent.
    """
    found = inspect.signature(function).parameters.values()
    hints = {each.name: Any if each.annotation is each.empty else each.annotation for each in found}
    return (
        {name: (hint, frozenset(filter(_is_plain, _kinds(hint)))) for name, hint in hints.items()},
        [each.name for each in found if each.kind is not each.KEYWORD_ONLY],
        [each.name for each in found if each.default is each.empty and each.name != "self"],
    )


def _is_plain(kind: Any) -> bool:
    return isinstance(kind, type) and get_origin(kind) is None


def _place(function: Callable[..., object], args: Sequence[object]) -> str:
    """Name a function, or the class of the object that it makes or is a method of."""
    name = function.__qualname__
    if "self" not in _signature(function)[0]:
        return name
    owner = type(args[0]).__name__
    return owner if function.__name__ == _INIT else f"{owner}.{function.__name__}"


def _kinds(hint: Any) -> Sequence[Any]:
    """Take a union apart."""
    if get_origin(hint) in (Union, types.UnionType):
        return [kind for part in get_args(hint) for kind in _kinds(part)]
    return [hint]


def _fits(value: object, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Annotated:
        return _fits(value, parts[0])
    if origin is Literal:
        return value in parts
    kind = origin or hint
    if kind is Callable:
        return callable(value)
    if not isinstance(kind, type) or kind in (Any, object, type):
        return True
    if isinstance(value, type) or (isinstance(value, bool) and kind in (int, float)):
        return False
    if is_protocol(kind):
        # Not by `isinstance`, which would ask properties for their values.
        return all(_has(value, member) for member in get_protocol_members(kind))
    if kind is Sequence and isinstance(value, str):
        return False
    return isinstance(value, (int, float) if kind is float else kind)


def _has(value: object, member: str) -> bool:
    # By `hasattr` every class has `__call__`: that of its own class, `type`.
    places = [vars(kind) for kind in type(value).__mro__]
    held = getattr(value, "__dict__", {})
    return any(member in place or "__getattr__" in place for place in (*places, held))


def _words(kind: Any) -> str:
    origin = get_origin(kind)
    if origin is Annotated:
        return str(get_args(kind)[1])
    if origin is Literal:
        return " or ".join(map(repr, get_args(kind)))
    kind = origin or kind
    if is_protocol(kind) and get_protocol_members(kind) == {"__call__"}:
        kind = Callable
    name = getattr(kind, "__name__", str(kind))
    example = f", such as {_SUCH_AS[name]}" if name in _SUCH_AS else ""
    article = "an" if name[0] in "AEIOU" else "a"
    return _WORDS.get(kind) or f"{article} {name}{example}"


def _form(kind: Any, value: object) -> str:
    """Say how an object of plain fields is written, where something plain was given for it."""
    kind = get_origin(kind) or kind
    plain = is_dataclass(kind) or hasattr(kind, "model_fields")
    told = not plain or kind.__name__ in _SUCH_AS
    if told or not isinstance(value, str | int | float | Mapping):
        return ""
    given = value if isinstance(value, Mapping) else {}
    return f": write it as {_written(kind.__name__, inspect.signature(kind), given)}"


def _written(name: str, signature: inspect.Signature, given: Container[str] = ()) -> str:
    """Write a call with the arguments that it needs, and those that are there."""
    named = [each for each in signature.parameters.values() if each.name != "self"]
    shown = [each for each in named if each.default is each.empty or each.name in given]
    return f"{name}({', '.join(f'{each.name}=…' for each in shown or named[:1])})"


CONFIDENTIAL: Final = "confidential"
"""Type of a pydantic error about a value that no message may quote."""
MOST_PROBLEMS: Final = 5
"""Problems of one value that are listed: a message is read by a person."""
_OTHER_WORDS: Final = {
    "string_unicode": "no UTF-8 text: surrogates not allowed",
}
"""Type of a pydantic error → what says more than its message."""


def check_no_secrets(value: Any, where: str = "") -> None:
    """Refuse what holds something to be kept secret, at any depth.

    Args:
        value: What is kept and shown: mappings, lists and texts.
        where: What the value is called, for the message.

    Raises:
        ValueError: It does. Nothing of it is quoted but the names that lead there.
    """
    place = next(secret_places(value, where), None)
    if place is not None:
        msg = (
            f"{_printable(place)} may be a secret, and what is given here is kept and shown: a key"
            " goes into the provider's environment variable, such as OPENAI_API_KEY"
        )
        raise PydanticCustomError(CONFIDENTIAL, "{told}", {"told": msg})


class Settings(BaseModel):
    """Frozen, printable settings.

    Raises:
        SettingsError: There is no such setting, or a value is not possible.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = describe_validation(error, type(self).model_fields)
            raise SettingsError(f"{type(self).__name__}: {problems}") from error

    # Within a larger value pydantic goes on by itself, and names the way to what is wrong.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


@contextmanager
def validation_as(
    error: Callable[[str], Exception], where: str = "", known: Iterable[str] = ()
) -> Iterator[None]:
    """Raise what pydantic refuses within the block as an error of ours, in one line.

    Args:
        error: Makes the error of its message.
        where: What the message begins with.
        known: The fields there are, as for `describe_validation`.
    """
    try:
        yield
    except ValidationError as refused:
        raise error(where + describe_validation(refused, known)) from refused


def describe_validation(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Put a pydantic error into one line: each field with what is wrong and what it got.

    Of many, the first are listed. The value of a problem of type `CONFIDENTIAL` is not shown.

    Args:
        error: What pydantic raised.
        known: The fields there are: for one that is misspelt, the nearest are suggested.
    """
    parts = []
    problems = error.errors(include_url=False, include_context=False)
    for problem in problems[:MOST_PROBLEMS]:
        where = ".".join(_printable(str(part)) for part in problem["loc"])
        said = problem["msg"].removeprefix("Value error, ")
        said = _OTHER_WORDS.get(problem["type"], said[:1].lower() + said[1:])
        if not where and problem["type"] in {"value_error", CONFIDENTIAL}:
            parts.append(said)  # about several fields, which it names
            continue
        if known and problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            parts.append(f"there is no {where}: {did_you_mean(where, known)}")
            continue
        shown = problem["type"] not in {"missing", CONFIDENTIAL}
        if isinstance(problem["input"], str) and any(
            is_secret_name(str(part)) for part in problem["loc"]
        ):
            shown = False
        # Hidden before it is cut: of half a key nobody could tell what it is.
        got = f" (got {without_secrets(repr(problem['input'])):.80})" if shown else ""
        parts.append(f"{where or 'value'}: {said}{got}")
    if len(problems) > MOST_PROBLEMS:
        parts.append(f"and {len(problems) - MOST_PROBLEMS:,} more")
    return "; ".join(parts)


def _printable(name: str) -> str:
    """Write a name so that it can stand in a message of one line, whatever it holds."""
    return f"{name if name.isprintable() else ascii(name):.80}"
