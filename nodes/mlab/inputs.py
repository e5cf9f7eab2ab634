"""A tool's input, read from what stands in a reply: JSON, or what was meant to be JSON."""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from langgraft.nodes.json_values import cleaned, json_values
from langgraft.nodes.mlab.tools import Key, Tool

LONGEST_INPUT: Final = 100_000
"""Most characters that are read."""

_WHOLE: Final = re.compile(r"\s*[+-]?\d{1,9}\s*")
_LARGEST: Final = 10**9
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "/": "/"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)


class UnusableInputError(ValueError):
    """An input that a tool cannot be given; the message says why, to the model."""


def read_input(text: str, tool: Tool) -> dict[str, JsonValue]:
    """Read the input of a tool: an object with exactly its keys.

    Quotation marks inside a text are a common slip that makes it no JSON: where nothing can be
    read, the text between one key of the tool and the next is taken (MLAB has such a way, too).

    Raises:
        UnusableInputError: It is no object, or its keys or values are others.
    """
    value = _object(text[:LONGEST_INPUT])
    if value is None or not value.keys() & tool.keys.keys():  # none, or one inside a text
        value = _between_keys(text[:LONGEST_INPUT], list(tool.keys)) or value
    if value is None and not tool.keys:
        value = {}
    if value is None:
        raise UnusableInputError(f"the input of {tool.name} is no JSON object; {_wanted(tool)}")
    if value.keys() != tool.keys.keys():
        raise UnusableInputError(_other_keys(value, tool))
    return {name: _value(name, value[name], key) for name, key in tool.keys.items()}


def _object(text: str) -> dict[str, Any] | None:
    """Return the first JSON object in a text.

    Raises:
        UnusableInputError: It has a number that is none.
    """
    try:
        for value in json_values(text):
            if isinstance(value, dict):
                found: dict[str, Any] = cleaned(value)
                return found
    except ValueError as error:
        raise UnusableInputError(f"its input cannot be used: {error}") from error
    except RecursionError as error:
        raise UnusableInputError("its input is nested too deeply") from error
    return None


def _between_keys(text: str, names: list[str]) -> dict[str, Any] | None:
    """Return the texts between a tool's keys, in any order, where all keys are there once."""
    if not names:
        return None
    starts: list[tuple[int, int, str]] = []
    for name in names:
        found = list(re.finditer(rf'"{re.escape(name)}"\s*:\s*', text))
        if len(found) != 1:
            return None
        starts.append((found[0].start(), found[0].end(), name))
    starts.sort()
    ends = [*[start for start, _, _ in starts[1:]], _last_brace(text)]
    return {
        name: _unquoted(text[begin:end]) for (_, begin, name), end in zip(starts, ends, strict=True)
    } or None


def _last_brace(text: str) -> int:
    end = text.rfind("}")
    return len(text) if end < 0 else end


def _unquoted(text: str) -> str:
    """Return a text without the quotation marks and the comma around it."""
    inner = text.strip().removesuffix(",").strip()
    inner = inner.removeprefix('"').removesuffix('"')
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), inner)


def _value(name: str, value: Any, key: Key) -> JsonValue:
    """Return a value as its key has it; a number for a text, and the other way round, will do."""
    if key.kind == "number":
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            value = int(value)
        if isinstance(value, float) and value.is_integer() and abs(value) < _LARGEST:
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
            return value
        raise UnusableInputError(f"`{name}` is to be a whole number, and is {_shown(value)}")
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise UnusableInputError(f"`{name}` is to be a text, and is {_shown(value)}")


def _shown(value: Any) -> str:
    written = json.dumps(value, ensure_ascii=False)
    return written if len(written) <= 60 else f"{written[:60]} …"  # noqa: PLR2004


def _other_keys(value: Mapping[str, Any], tool: Tool) -> str:
    missing = [name for name in tool.keys if name not in value]
    unknown = [name for name in value if name not in tool.keys]
    parts = [f"it has no `{name}`" for name in missing]
    parts += [f"`{name[:60]}` is none of its keys" for name in unknown[:3]]
    return f"the input of {tool.name} has other keys: {', '.join(parts)}; {_wanted(tool)}"


def _wanted(tool: Tool) -> str:
    keys = ", ".join(f'"{name}": …' for name in tool.keys)
    return f"give {{{keys}}}"
