"""langmem, mem0, Letta and ReasoningBank: where their JSON keeps what an item says.

===============  =================================================================================
langmem          rows of a LangGraph store, `{namespace, key, value: {kind, content}}`, as a list,
                 as lines, or as the `items` of a search; content of several fields is recalled as
                 `name: value` lines, and written back as it was
mem0             what `get_all` returns: `results`, and the `relations` of its graph, each
                 recalled as one sentence; or a bare list
Letta            an agent file: its blocks, what users and the agent said, and passages where a
                 file has them; written as blocks of one agent, which Letta keeps in its prompt
ReasoningBank    strategies of title, description and content, recalled as `ReasoningBank` does;
                 or the published code's lines, one a task, with `memory_items`
===============  =================================================================================
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.memory.converters.forms import OURS, JsonForm, Part, Row


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# langmem -----------------------------------------------------------------------------------

_NO_PLACE: Final = "memories"
"""The namespace of an item whose domain is no labels of a LangGraph namespace."""


def _fold_stored(row: Row) -> Row:
    value = row.get("value")
    if not isinstance(value, dict):
        msg = f"field 'value' must be an object (got {value!r:.80})"
        raise InputError(msg)
    value = dict(value)
    labels = row.get("namespace")
    if isinstance(labels, list) and labels and all(isinstance(each, str) for each in labels):
        row["domain"] = "/".join(map(str, labels))
        if str(row["domain"]).split("/") == labels:
            del row["namespace"]
    content = value.get("content")
    text = _content_text(content)
    if text is not None:
        row["text"] = text
        if isinstance(content, str) or content == {"content": text}:
            del value["content"]
    return {**row, "value": value}


def _content_text(content: JSON) -> str | None:
    if isinstance(content, dict) and content:
        if isinstance(inner := content.get("content"), str) and len(content) == 1:
            return inner
        return "\n".join(f"{name}: {value}" for name, value in content.items())
    return content if isinstance(content, str) else None


def _unfold_stored(row: Row) -> Row:
    value = dict(_mapping(row.pop("value", {})))
    text, domain = row.pop("text"), str(row.pop("domain", "langmem"))
    labels = row.pop("namespace", None)
    if not (isinstance(labels, list) and "/".join(map(str, labels)) == domain):
        labels = [*domain.split("/")]
        if "" in labels or "." in domain:
            labels = [_NO_PLACE]
            value[f"{OURS}source_domain"] = domain
    if _content_text(value.get("content")) != text:
        value["content"] = {"content": text} if "kind" in value else text
    return {"namespace": labels, "key": row.pop("key"), "value": value, **row}


def _take_stored(document: JSON, lost: Counter[str]) -> Iterator[tuple[str, str, JSON]]:
    yield from _rows("memory", _listed(document, ("items",), "key", lost))


LANGMEM: Final = JsonForm(
    "langmem",
    (
        Part(
            "memory",
            places={"id": "key", "text": "text", "source_domain": "domain"},
            rest="value",
            top=frozenset({"namespace", "created_at", "updated_at", "score"}),
            defaults={"type": "other", "source_domain": "langmem"},
            folded=frozenset({"content"}),
            text_from="value.content",
            fold=_fold_stored,
            unfold=_unfold_stored,
        ),
    ),
    _take_stored,
    lambda rows: [*rows["memory"]],
)


# mem0 --------------------------------------------------------------------------------------


def _fold_relation(row: Row) -> Row:
    return {"text": _sentence(row), **row}


def _unfold_relation(row: Row) -> Row:
    if row["text"] == _sentence(row):
        del row["text"]
    return row


def _sentence(row: Row) -> str | None:
    said = [row.get(name) for name in ("source", "relationship")]
    said.append(row.get("target") or row.get("destination"))
    if not all(isinstance(each, str) and each for each in said):
        return None
    return " ".join(map(str, said)).replace("_", " ")


def _take_mem0(document: JSON, lost: Counter[str]) -> Iterator[tuple[str, str, JSON]]:
    relations: JSON = None
    if isinstance(document, dict):
        document = dict(document)
        relations = document.pop("relations", None)
    yield from _rows("memory", _listed(document, ("results", "memories"), "memory", lost))
    if isinstance(relations, list):
        yield from _rows("relation", ("relations", relations))
    elif relations:
        lost["relations"] += 1


def _put_mem0(rows: Mapping[str, list[Row]]) -> JSON:
    document: Row = {"results": [*rows["memory"]]}
    return {**document, "relations": [*rows["relation"]]} if rows["relation"] else document


MEM0: Final = JsonForm(
    "mem0",
    (
        Part(
            "memory",
            places={"id": "id", "text": "memory"},
            rest="metadata",
            top=_names(
                "hash created_at updated_at user_id agent_id app_id run_id actor_id role score"
                " categories expiration_date immutable structured_attributes"
            ),
            defaults={"type": "other", "source_domain": "mem0"},
        ),
        Part(
            "relation",
            places={"id": "id", "text": "text"},
            defaults={"type": "other", "source_domain": "mem0"},
            anonymous=True,
            text_from="source, relationship, target",
            fold=_fold_relation,
            unfold=_unfold_relation,
        ),
    ),
    _take_mem0,
    _put_mem0,
)


# Letta -------------------------------------------------------------------------------------

_BLOCK_ID: Final = re.compile(r"block-\d+")
_MESSAGE: Final = _names(
    "id role content name otid sender_id batch_item_id group_id model agent_id tool_calls"
    " tool_call_id tool_returns created_at"
)
"""Fields that a message of an agent file has; Letta refuses any other."""
_SPEAKERS: Final = ("user", "assistant")
"""Roles of messages that are remembered."""


def _fold_block(row: Row) -> Row:
    if "metadata_" in row:
        row["metadata"] = row.pop("metadata_")
    row = {name: value for name, value in row.items() if value not in (False, [], {})}
    named = _mapping(row.get("metadata")).get(f"{OURS}id", row.get("id"))
    if row.get("label") == named:
        row.pop("label", None)
    return row


def _fold_message(row: Row) -> Row:
    row = {name: value for name, value in row.items() if value not in (False, [], {})}
    row["text"] = _said(row.pop("content", None))
    row.pop("type", None)
    return row


def _unfold_message(row: Row) -> Row:
    row["content"] = [{"type": "text", "text": row.pop("text")}]
    row.setdefault("role", "user")
    return {name: value for name, value in row.items() if name in _MESSAGE}


def _said(content: JSON) -> str | None:
    """Return the text of a message's content, or nothing."""
    if isinstance(content, str):
        return content or None
    pieces = content if isinstance(content, list) else []
    texts = [str(piece["text"]) for piece in pieces if isinstance(piece, dict) and _is_text(piece)]
    return "\n".join(texts) or None


def _is_text(piece: JSON) -> bool:
    return isinstance(piece, dict) and piece.get("type") == "text" and bool(piece.get("text"))


def _take_letta(document: JSON, lost: Counter[str]) -> Iterator[tuple[str, str, JSON]]:
    """Yield blocks, passages and messages; all that an agent is besides is counted."""
    if not isinstance(document, dict) or not {"agents", "core_memory", "blocks"} & set(document):
        msg = "no agent file: it has neither agents nor blocks"
        raise InputError(msg)
    if "agents" not in document:  # one agent at the top, as files of early 2025 have it
        document = {"agents": [document]}
    rest = dict(document)
    agents = _list_at("agents", rest.pop("agents"))
    yield from _rows("block", ("blocks", _list_at("blocks", rest.pop("blocks", None))))
    yield from _rows("passage", ("passages", _list_at("passages", rest.pop("passages", None))))
    for number, agent in enumerate(agents):
        if not isinstance(agent, dict):
            msg = f"agents[{number}]: expected an object, got {agent!r:.80}"
            raise InputError(msg)
        here, others = f"agents[{number}]", dict(agent)
        for part, name in (
            ("block", "core_memory"),
            ("block", "memory_blocks"),
            ("passage", "archival_memory"),
            ("passage", "passages"),
        ):
            place = f"{here}.{name}"
            yield from _rows(part, (place, _list_at(place, others.pop(name, None))))
        place = f"{here}.messages"
        for at, message in enumerate(_list_at(place, others.pop("messages", None))):
            role = message.get("role") if isinstance(message, dict) else None
            content = message.get("content") if isinstance(message, dict) else None
            if role not in _SPEAKERS or _said(content) is None:
                lost[f"agents[].messages of role {role!s:.20}"] += 1
                continue
            lost["agents[].messages[].content other than text"] += sum(
                not _is_text(piece) for piece in (content if isinstance(content, list) else ())
            )
            yield "message", f"{place}[{at}]", message
        _count("agents[].", others, lost)
    _count("", rest, lost)
    lost += Counter()  # without what stands at none


def _put_letta(rows: Mapping[str, list[Row]]) -> JSON:
    blocks = rows["block"]
    ours = not all(_BLOCK_ID.fullmatch(str(block["id"])) for block in blocks)
    for number, block in enumerate(blocks):
        block.setdefault("label", block["id"])
        if ours:
            block["metadata"] = {**_mapping(block.get("metadata")), f"{OURS}id": block["id"]}
            block["id"] = f"block-{number}"
    agent: Row = {
        "id": "agent-0",
        "name": "langgraft",
        "agent_type": "letta_v1_agent",
        "block_ids": [block["id"] for block in blocks],
        "in_context_message_ids": [],
        "messages": [*rows["message"]],
    }
    document: Row = {"agents": [agent], "groups": [], "blocks": [*blocks], "files": []}
    document |= {"sources": [], "tools": [], "mcp_servers": [], "metadata": {}}
    return {**document, "passages": [*rows["passage"]]} if rows["passage"] else document


_LETTA_DEFAULTS: Final[Mapping[str, JSON]] = {"type": "other", "source_domain": "letta"}
LETTA: Final = JsonForm(
    "letta",
    (
        Part(
            "block",
            places={"id": "id", "text": "value"},
            rest="metadata",
            top=_names(
                "label description limit read_only is_template template_name template_id"
                " base_template_id preserve_on_migration project_id deployment_id entity_id"
                " hidden tags created_at updated_at"
            ),
            defaults=_LETTA_DEFAULTS,
            fold=_fold_block,
        ),
        Part(
            "passage",
            places={"id": "id", "text": "text"},
            rest="metadata",
            top=_names("created_at updated_at tags archive_id source_id file_id"),
            derived=frozenset({"embedding", "embedding_config"}),
            defaults=_LETTA_DEFAULTS,
        ),
        Part(
            "message",
            places={"id": "id", "text": "text"},
            defaults=_LETTA_DEFAULTS,
            text_from="content",
            fold=_fold_message,
            unfold=_unfold_message,
            holds=lambda item: bool(item.text) and item.metadata.get("role", "user") in _SPEAKERS,
        ),
    ),
    _take_letta,
    _put_letta,
)


# ReasoningBank -----------------------------------------------------------------------------


def _head(row: Mapping[str, JSON]) -> str:
    title, description = row.get("title"), row.get("description")
    return (f"# {title}\n" if title else "") + (f"{description}\n" if description else "")


def _fold_strategy(row: Row) -> Row:
    content = row.pop("content", None)
    if isinstance(content, str):
        row["content"] = _head(row) + content
    return row


def _unfold_strategy(row: Row) -> Row:
    text, head = str(row.pop("content")), _head(row)
    if not text.startswith(head):  # its text was edited: the title says something else
        apart: Row = {name: row.pop(name) for name in ("title", "description") if name in row}
        row[f"{OURS}metadata"] = {**_mapping(row.get(f"{OURS}metadata")), **apart}
        head = ""
    return {**row, "content": text[len(head) :]}


def _fold_task(row: Row) -> Row:
    kept = row.get("memory_items")
    text = _pieces_text(kept)
    if text is not None:
        row["text"] = text
        if isinstance(kept, str):
            del row["memory_items"]
    if row.get("status") in ("success", "fail"):
        row["success"] = row.pop("status") == "success"
    return row


def _unfold_task(row: Row) -> Row:
    text = row.pop("text")
    if _pieces_text(row.get("memory_items")) != text:
        row["memory_items"] = text
    if "success" in row:
        row["status"] = "success" if row.pop("success") else "fail"
    return row


def _pieces_text(pieces: JSON) -> str | None:
    if isinstance(pieces, str):
        return pieces
    if not isinstance(pieces, list) or not pieces:
        return None
    folded = [
        _fold_strategy(dict(each)).get("content") if isinstance(each, dict) else each
        for each in pieces
    ]
    return "\n\n".join(map(str, folded)) if all(isinstance(each, str) for each in folded) else None


def _take_strategies(document: JSON, lost: Counter[str]) -> Iterator[tuple[str, str, JSON]]:
    place, rows = _listed(document, ("items", "memories", "memory_bank"), "content", lost)
    for number, row in enumerate(rows):
        of_task = isinstance(row, dict) and "memory_items" in row
        yield "task" if of_task else "strategy", f"{place}[{number}]", row


_BANK_PLACES: Final = {
    "id": "id",
    "key": "query",
    "task_id": "task_id",
    "success": "success",
}
_BANK_DEFAULTS: Final[Mapping[str, JSON]] = {
    "type": "strategic",
    "source_domain": "reasoning_bank",
}
REASONING_BANK: Final = JsonForm(
    "reasoning_bank",
    (
        Part(
            "strategy",
            places={**_BANK_PLACES, "text": "content"},
            derived=frozenset({"embedding"}),
            defaults=_BANK_DEFAULTS,
            folded=frozenset({"memory_items"}),
            anonymous=True,
            fold=_fold_strategy,
            unfold=_unfold_strategy,
        ),
        Part(
            "task",
            places={**_BANK_PLACES, "text": "text"},
            defaults=_BANK_DEFAULTS,
            folded=frozenset({"status"}),
            anonymous=True,
            text_from="memory_items",
            fold=_fold_task,
            unfold=_unfold_task,
        ),
    ),
    _take_strategies,
    lambda rows: [*rows["strategy"], *rows["task"]],
)


# Lists in documents ------------------------------------------------------------------------


def _listed(
    document: JSON, names: Sequence[str], telling: str, lost: Counter[str]
) -> tuple[str, Sequence[JSON]]:
    """Find the rows of a document: it is the list, holds it under a name, or is one row."""
    if isinstance(document, list):
        return "", document
    if isinstance(document, dict):
        for name in names:
            if isinstance(rows := document.get(name), list):
                _count("", {k: v for k, v in document.items() if k != name}, lost)
                return name, rows
        if telling in document:
            return "", [document]
    known = " or ".join(map(repr, names))
    msg = f"holds no list of memories: neither is it one, nor has it {known}"
    raise InputError(msg)


def _rows(part: str, rows: tuple[str, Sequence[JSON]]) -> Iterator[tuple[str, str, JSON]]:
    place, listed = rows
    for number, row in enumerate(listed):
        yield part, f"{place}[{number}]", row


def _list_at(place: str, value: JSON) -> Sequence[JSON]:
    if value is not None and not isinstance(value, list):
        msg = f"{place}: expected a list, got {value!r:.80}"
        raise InputError(msg)
    return value or ()


def _count(prefix: str, holder: Mapping[str, JSON], lost: Counter[str]) -> None:
    """Count what a document holds besides rows, a list by its length; what says nothing is not."""
    for name, value in holder.items():
        if value not in (None, False, "", [], {}):
            lost[f"{prefix}{name}"] += len(value) if isinstance(value, list) else 1


def _mapping(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, dict) else {}
