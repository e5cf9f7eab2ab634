"""Values by reference: JSON in `Artifacts`."""

import json
from typing import Any

from langgraft._core.canonical import JSON, canonical_json
from langgraft.nodes.artifacts import Artifacts


def keep_json(artifacts: Artifacts, value: JSON) -> str:
    """Keep a value as canonical JSON, and return its reference."""
    return artifacts.keep(canonical_json(value).encode())


def read_json(artifacts: Artifacts, reference: str | None) -> dict[str, Any]:
    """Read a mapping that was kept; without a reference it is empty.

    Raises:
        InputError: Nothing is kept under that reference, or it is damaged.
    """
    if not reference:
        return {}
    read: dict[str, Any] = json.loads(artifacts.read(reference))
    return read
