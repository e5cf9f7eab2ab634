"""JSON and YAML of others, read within bounds; Python of others, parsed one program at a time; model text.

A small file must not become gigabytes or minutes: what is out of bounds is refused before it is
built. A value takes some 100 bytes once it is built, so that the bound on their number is one on
memory.
"""

import ast
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar

import yaml

from langgraft._core.errors import LanggraftError
from langgraft._core.forks import renewed

P = ParamSpec("P")
T = TypeVar("T")

MOST_BYTES: Final = 1 << 24
"""Of a JSON text, once it is decompressed."""
MOST_VALUES: Final = 1_000_000
"""Values of a JSON text; of longer ones (logs), one in `_BYTES_A_VALUE` bytes."""
MOST_DEPTH: Final = 100
"""Lists and mappings within each other."""
MOST_PROGRAM: Final = 200_000
"""Characters of a program that are parsed: its tree takes some 400 bytes for each."""
LONGEST_REPLY: Final = 400_000
"""Characters of a model's reply that are read: the longest that models write are of this size."""
MOST_YAML_BYTES: Final = 1 << 20
MOST_YAML_VALUES: Final = 20_000

_BYTES_A_VALUE: Final = 16
_MOST_DIGITS: Final = 1000
_GZIP: Final = b"\x1f\x8b"
_Yaml: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_most(path: Path, most: int = MOST_BYTES) -> bytes:
    """Read a file of at most `most` bytes.

    Raises:
        OSError: It cannot be read.
        ValueError: It is larger.
    """
    with path.open("rb") as file:
        data = file.read(most + 1)
    _refuse_larger(data, most)
    return data


def unzipped(data: bytes, most: int = MOST_BYTES) -> bytes:
    """Return what was compressed with gzip, at most `most` bytes; anything else as it is.

    Raises:
        ValueError: There is more, or it is damaged.
    """
    if not data.startswith(_GZIP):
        return data
    try:
        with gzip.open(io.BytesIO(data)) as file:
            found = file.read(most + 1)
    except (OSError, EOFError, zlib.error) as error:
        msg = f"damaged: {error}"
        raise ValueError(msg) from error
    _refuse_larger(found, most)
    return found


def load_json(data: bytes, most: int = MOST_BYTES) -> Any:
    """Read a JSON text of at most `most` bytes.

    Raises:
        ValueError: It is not JSON, or out of bounds; one line says how.
    """
    _refuse_larger(data, most)
    check_number(data)
    try:
        value = json.loads(data)
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if data.count(b"[") + data.count(b"{") > MOST_DEPTH:
        check_depth(value)
    return value


def check_number(data: bytes, most: int = MOST_VALUES) -> None:
    """Check that a JSON text, or lines of them, hold no more values than memory is good for.

    Args:
        data: The text.
        most: So many values are fine however short they are.

    Raises:
        ValueError: They may.
    """
    most = max(most, len(data) // _BYTES_A_VALUE)
    if len(data) > most and sum(map(data.count, (b",", b":", b"[", b"{"))) > most:
        msg = f"holds more than {most:,} values"
        raise ValueError(msg)


def load_yaml(text: str) -> Any:
    """Read YAML as a plan holds it: without aliases, tags of its own and keys given twice.

    Raises:
        ValueError: It is not YAML, or out of bounds, or holds a value that cannot be, such as the
            99th of a month; one line says where.
    """
    if len(text) > MOST_YAML_BYTES:
        msg = f"is larger than {MOST_YAML_BYTES:,} characters"
        raise ValueError(msg)
    try:
        _check_events(yaml.parse(text, Loader=_Yaml))
        return yaml.load(text, Loader=_Yaml)  # noqa: S506  (a safe loader)
    except yaml.YAMLError as error:
        raise ValueError(_described(error)) from error


def _check_events(events: Iterable[yaml.Event]) -> None:
    """Refuse what is out of bounds while nothing of it is built.

    Of each open list or mapping it is kept how many nodes it has so far, and its keys.
    """
    opened: list[tuple[list[int], set[str] | None]] = []
    values = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise _at(event, f"aliases are not allowed (*{event.anchor})")
        if isinstance(event, yaml.CollectionEndEvent):
            opened.pop()
        if not isinstance(event, yaml.NodeEvent):
            continue
        values += 1
        if values > MOST_YAML_VALUES:
            raise _at(event, f"holds more than {MOST_YAML_VALUES:,} values")
        if opened:
            _check_key(event, *opened[-1])
        if isinstance(event, yaml.ScalarEvent):
            _check_scalar(event)
            continue
        opened.append(([0], set() if isinstance(event, yaml.MappingStartEvent) else None))
        if len(opened) > MOST_DEPTH:
            raise _at(event, _TOO_DEEP)


def _check_key(event: yaml.NodeEvent, count: list[int], keys: set[str] | None) -> None:
    count[0] += 1
    if keys is None or count[0] % 2 == 0 or not isinstance(event, yaml.ScalarEvent):
        return
    if event.value in keys:
        raise _at(event, f"the key {event.value!r:.80} is given twice")
    keys.add(event.value)


def _check_scalar(event: yaml.ScalarEvent) -> None:
    """Refuse a number that would take quadratic time to read."""
    if event.implicit[0] and len(event.value) > _MOST_DIGITS and event.value[0] in "+-.0123456789":
        raise _at(event, f"a number of {len(event.value):,} characters")


def _at(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # of libyaml's own type, where that reads
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def _described(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        # PyYAML 6.0.4 has a bound of its own, and meets it before it tells of the first bracket.
        deep = "maximum nesting depth" in str(error.problem)
        problem = _TOO_DEEP if deep else error.problem
        return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
    return " ".join(str(error).split())


_TOO_DEEP: Final = f"nested more than {MOST_DEPTH} levels deep"


def _refuse_larger(data: bytes, most: int) -> None:
    if len(data) > most:
        msg = f"is larger than {most:,} bytes"
        raise ValueError(msg)


def check_depth(value: Any) -> None:
    """Check that lists and mappings are not nested more than `MOST_DEPTH` levels deep.

    Raises:
        ValueError: They are.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        level = [
            each
            for one in level
            for each in (one.values() if isinstance(one, dict) else one)
            if isinstance(each, dict | list)
        ]
        if not level:
            return
    raise ValueError(_TOO_DEEP)


_PARSING = renewed(Lock())
"""CPython 3.11 counts the depth of all parsers of a process in one place (gh-106905): where threads
parse at once, one of them raises `SystemError` about nothing in its program."""
_PARSES: Final = 20
"""How often a program is parsed again then: libraries parse without the lock."""


def parse_program(
    code: str | bytes, filename: str = "<unknown>", *, most: int = MOST_PROGRAM
) -> ast.Module:
    """Parse a program, as `ast.parse` does, also where threads do so at once.

    Args:
        code: The program.
        filename: What messages call it.
        most: Characters that it may have.

    Raises:
        SyntaxError: It is no Python, holds a NUL, is nested too deeply, or is longer than `most`.
    """
    if len(code) > most:
        msg = f"it has more than {most:,} characters"
        raise SyntaxError(msg)
    try:
        with _PARSING:
            for _ in range(_PARSES):
                with suppress(SystemError):
                    return ast.parse(code, filename)
            return ast.parse(code, filename)
    except ValueError as error:
        raise SyntaxError(str(error)) from error
    except (RecursionError, MemoryError) as error:  # the parser's own bound, and the tree's
        msg = "it is nested too deeply"
        raise SyntaxError(msg) from error


_UNREADABLE: Final = (RecursionError, ValueError, ArithmeticError, LookupError)
"""What reading a text raises that no reader expects: nesting, numbers of thousands of digits."""

READERS: Final[list[Callable[..., Any]]] = []
"""Every reader under `unreadable_as`; a test feeds all of them hostile text."""


def unreadable_as(otherwise: Callable[..., Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Guard a reader of model text: what it cannot follow is unreadable, and never ends a run.

    Our own exceptions pass: they say what is wrong with the text. So do `MemoryError` and what
    ends a process, which are no fault of the text.

    Args:
        otherwise: Returns what counts instead, of the same arguments.
    """

    def guard(read: Callable[P, T]) -> Callable[P, T]:
        @wraps(read)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(*args, **kwargs)
            except LanggraftError:
                raise
            except _UNREADABLE:
                unreadable: T = otherwise(*args, **kwargs)
                return unreadable

        READERS.append(guarded)
        return guarded

    return guard


def bounded(text: str, most: int = LONGEST_REPLY) -> str:
    """Return a text of at most `most` characters: of a longer one its head and its tail."""
    if len(text) <= most:
        return text
    left_out = f"\n[{len(text) - most:,} characters are left out]\n"
    half = (most - len(left_out)) // 2
    return f"{text[:half]}{left_out}{text[-half:]}"
