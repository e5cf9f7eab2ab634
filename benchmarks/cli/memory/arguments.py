"""From what a user typed to choices and settings."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from langgraft._core.errors import InputError
from langgraft._core.settings import describe_validation
from langgraft._core.untrusted import load_yaml, read_most
from langgraft.memory.importing import METADATA, ImportChoices
from langgraft.memory.items import Scalar

_FIELDS: Final = {"domain": "source_domain"}
"""Short names of fields."""
_FILES: Final = (".yaml", ".yml", ".json")


def mapping(option: str, text: str) -> dict[str, Any]:
    """Read YAML or JSON, typed as it is or in a file, that must be a mapping.

    Raises:
        InputError: It is something else.
    """
    if not text:
        return {}
    try:
        # What looks like a file and is none would be refused as no mapping: say the better thing.
        value = load_yaml(read_most(Path(text)).decode() if text.endswith(_FILES) else text)
    except OSError as error:
        msg = f"{option}: {text!r} cannot be read: {error.strerror}"
        raise InputError(msg) from error
    except ValueError as error:
        msg = f"{option}: neither YAML nor JSON: {error}"
        raise InputError(msg) from error
    if not isinstance(value, dict):
        msg = f"{option} takes a mapping such as '{{name: value}}', got {value!r:.80}"
        raise InputError(msg)
    return value


def import_choices(where: Iterable[str], remap: Iterable[str], on_conflict: str) -> ImportChoices:
    """Read the choices of an import.

    Raises:
        InputError: One of them is not possible; one line says which.
    """
    given = {"where": _where(where), "remap": _remap(remap), "on_conflict": on_conflict}
    try:
        return ImportChoices.model_validate(given)
    except ValidationError as error:
        raise InputError(describe_validation(error)) from error


def _where(texts: Iterable[str]) -> dict[str, tuple[Scalar, ...]]:
    filters: dict[str, tuple[Scalar, ...]] = {}
    for text in texts:
        name, found, value = text.partition("=")
        if not found:
            msg = f"--where takes FIELD=VALUE, got {text!r:.80}"
            raise InputError(msg)
        field = _FIELDS.get(name, name)
        filters[field] = (*filters.get(field, ()), *_readings(field, value))
    return filters


def _readings(field: str, text: str) -> tuple[Scalar, ...]:
    """Say which values a typed one may mean: in metadata, `1` may be a number or a text."""
    if field == "success":
        if text not in ("true", "false"):
            msg = f"--where success is true or false, got {text!r:.80}"
            raise InputError(msg)
        return (text == "true",)
    if not field.startswith(METADATA):
        return (text,)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return (text,)
    match value:
        case bool():
            return text, value
        case int() | float() if abs(value) <= sys.float_info.max:
            whole = (int(value),) if value == value // 1 else ()
            return (text, float(value), *whole)
        case _:
            return (text,)


def _remap(texts: Iterable[str]) -> dict[str, str | dict[str, str]]:
    everything: dict[str, str | dict[str, str]] = {}
    for text in texts:
        left, found, new = text.partition("=")
        name, some, old = left.partition(":")
        field = _FIELDS.get(name, name)
        earlier = everything.get(field, {})
        if not found or isinstance(earlier, str) or (earlier and not some):
            msg = f"--remap takes FIELD=NEW once, or FIELD:OLD=NEW for each OLD, got {text!r:.80}"
            raise InputError(msg)
        everything[field] = {**earlier, old: new} if some else new
    return everything
