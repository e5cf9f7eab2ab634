"""JSON in what a model said: found among prose and fences, and made fit to be kept."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from langchain_core.utils.json import parse_json_markdown

from langgraft.memory.recall import BLOCK_END, BLOCK_START, strip_block
from langgraft.nodes.replies import encodable

LONGEST_INTEGER = 300
"""Digits of an integer that a float can still hold."""
MOST_BROKEN = 1000
"""Broken lists and objects after which a text is searched no further: `json` counts the lines of
the whole text for each."""

_OPENING = re.compile(rf"[\[{{]|{re.escape(BLOCK_START)}")


def json_values(text: str) -> Iterator[Any]:
    """Find the JSON values in a text: the whole text, what a fence holds, or lists and objects.

    What stands in a value that is cut off or broken, or in memory that is quoted, is not a value
    of its own.

    Raises:
        RecursionError: A value is nested more deeply than Python can follow.
    """
    try:
        yield _whole(text)
    except json.JSONDecodeError:
        yield from _embedded(text)


def _whole(text: str) -> Any:
    # Where memory is quoted, the fence may be one of its own.
    if BLOCK_START in text:
        return _DECODER.decode(text.strip())
    return parse_json_markdown(text, parser=_DECODER.decode)


def _embedded(text: str) -> Iterator[Any]:
    position = broken = 0
    while broken < MOST_BROKEN and (opening := _OPENING.search(text, position)):
        start = opening.start()
        if opening.group() == BLOCK_START:
            end = text.find(BLOCK_END, start)
            position = len(text) if end < 0 else end
            continue
        try:
            value, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            position, broken = max(start + 1, error.pos), broken + 1
        else:
            yield value


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else math.inf


# Line breaks within strings are a common slip; a value that is cut off is not repaired.
_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)


def cleaned(value: Any) -> Any:
    """Take out of a value what cannot be stored, and memory that was quoted.

    Raises:
        ValueError: A number is not finite.
    """
    match value:
        case str():
            return _clean(value)
        case list():
            return [cleaned(part) for part in value]
        case dict():
            return {_clean(name): cleaned(part) for name, part in value.items()}
        case float() if not math.isfinite(value):
            msg = "a number is not finite"
            raise ValueError(msg)
    return value


def _clean(text: str) -> str:
    return strip_block(encodable(text)).strip()
