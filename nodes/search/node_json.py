"""A node of a journal as JSON that every file can hold."""

from typing import Any

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.journal import JournalNode


def node_json(node: JournalNode) -> dict[str, JSON]:
    """Return a node as JSON; halves of surrogate pairs become question marks, NUL stays.

    Raises:
        InputError: It holds a number that JSON cannot: an infinite metric, say.
    """
    value: dict[str, JSON] = _encodable(node.model_dump(mode="json"))
    try:
        canonical_json(value)
    except ValueError as error:
        msg = f"node {node.id!r:.80} (step {node.step}) cannot be written as JSON: {error}"
        raise InputError(msg) from error
    return value


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return encodable(value)
        case list():
            return [_encodable(each) for each in value]
        case dict():
            return {encodable(key): _encodable(each) for key, each in value.items()}
        case _:
            return value
