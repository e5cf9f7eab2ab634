"""What a text of memory should not hold, found by rules: instructions, hidden text, markers, payloads.

Recalled text is there to be weighed, not obeyed. `scan` looks through items, such as those of a file before it
is imported, and says what a reader should look at. It reads words and characters and understands
nothing: it errs in both directions, and an instruction that is worded as a fact passes it. What
keeps poison out of a prompt is where it comes from (`langgraft.memory.trust`); this is a second look.

=============  ================================================================================
finding        is
=============  ================================================================================
`instruction`  words that address an agent: orders to ignore, conceal, send, run or always do
`hidden`       characters that nobody sees: zero-width, direction marks, tags, private letters;
               words that mix alphabets
`marker`       what would end a recalled block, or begin a message of another role
`encoded`      long runs that decode to text: base64, hexadecimal, percent and Unicode escapes
`address`      addresses that data could be sent to: URLs, mail, with a place for a value or not
`oversized`    a text longer than a memory needs
`repeated`     one text from several users
=============  ================================================================================
"""

import base64
import binascii
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias
from urllib.parse import unquote

from langgraft._core.canonical import JSON
from langgraft.memory.model import MemoryItem
from langgraft.memory.recall import looks_like, without_markers
from langgraft.memory.sources import kind_of

Kind: TypeAlias = Literal[
    "instruction", "hidden", "marker", "encoded", "address", "oversized", "repeated"
]

LONGEST: Final = 20_000
"""Characters from which on a text is oversized: about 5,000 tokens."""
_SHOWN: Final = 80
_LEAST: Final = 8
"""Characters of a decoded text that are more than chance."""

_REASONS: Final[dict[Kind, str]] = {
    "instruction": "reads like an instruction",
    "hidden": "hides text",
    "marker": "holds a marker",
    "encoded": "holds encoded text",
    "address": "holds an address",
    "oversized": "is oversized",
    "repeated": "is said by several users",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in an item that a reader should look at."""

    item_id: str
    kind: Kind
    field: str
    """Where: `text`, `key`, `id`, `task_id`, `episode_id`, `source_domain` or `metadata.` and a name."""
    excerpt: str
    """What stands there, in printable characters."""

    @property
    def reason(self) -> str:
        """What a receipt says of an item that is withheld for this."""
        return _REASONS[self.kind]

    def to_json(self) -> dict[str, JSON]:
        """Return the finding as JSON."""
        return {
            "item": self.item_id,
            "kind": self.kind,
            "field": self.field,
            "excerpt": self.excerpt,
        }


def scan(items: Iterable[MemoryItem]) -> list[Finding]:
    """Look through items, in their order; one finding of a kind in a field is enough."""
    listed = sorted(items, key=lambda item: (item.order_index, item.id))
    found = [finding for item in listed for finding in findings_in(item)]
    said: dict[str, set[str]] = defaultdict(set)
    for item in listed:
        said[_plain(item.text)].update(each for each in item.sources if kind_of(each) == "user")
    repeated = {text for text, users in said.items() if len(users) > 1}
    found += [
        Finding(item.id, "repeated", "text", _excerpt(item.text))
        for item in listed
        if _plain(item.text) in repeated
    ]
    return found


def findings_in(item: MemoryItem) -> Iterator[Finding]:
    """Look through all texts of one item."""
    for field, text in _fields(item):
        for kind, at in _found(text):
            yield Finding(item.id, kind, field, _excerpt(text[at:]))


def _fields(item: MemoryItem) -> Iterator[tuple[str, str]]:
    yield "text", item.text
    if item.key is not None:
        yield "key", item.key
    for name in ("id", "source_domain", "episode_id"):
        yield name, getattr(item, name)
    if item.task_id is not None:
        yield "task_id", item.task_id
    for name, value in item.metadata.items():
        yield f"metadata.{name}", name
        if isinstance(value, str):
            yield f"metadata.{name}", value


def _excerpt(text: str) -> str:
    return ascii(text[:_SHOWN])[1:-1] if not text[:_SHOWN].isprintable() else text[:_SHOWN]


def _found(text: str) -> Iterator[tuple[Kind, int]]:
    if len(text) > LONGEST:
        yield "oversized", 0
        text = text[:LONGEST]  # it is withheld for its length, whatever else it holds
    if (hidden := _hidden(text)) is not None:
        yield "hidden", hidden
    marker = _ROLE.search(text)
    if marker or without_markers(text) != text:
        yield "marker", marker.start() if marker else 0
    spelled = list(decoded(text))
    if spelled:
        yield "encoded", spelled[0][0]
    if address := _ADDRESS.search(text):
        yield "address", address.start()
    if any(_commands(each) for each in (text, *(part for _, part in spelled))):
        yield "instruction", 0


# What nobody sees ------------------------------------------------------------------------

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ue000-\uf8ff\U000e0000-\U000e0fff"
    "\U000f0000-\U0010ffff\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
)
_KEYS: Final = "0123456789#*\u203c\u2049\u2194\u3030"
"""Drawn as emoji, though they are no symbols: digits of keycaps, some marks."""
_JOINING: Final = (
    *("ARABIC", "SYRIAC", "MONGOLIAN", "DEVANAGARI", "BENGALI", "GURMUKHI", "GUJARATI", "ORIYA"),
    *("TAMIL", "TELUGU", "KANNADA", "MALAYALAM", "SINHALA"),
)
_WORD: Final = re.compile(r"\w+")
_MIXED: Final = frozenset({"LATIN", "CYRILLIC", "GREEK", "CHEROKEE", "COPTIC", "ARMENIAN"})


def _hidden(text: str) -> int | None:
    """Return where a text first holds what cannot be seen, or passes for what it is not."""
    for unseen in _UNSEEN.finditer(text):
        if not _joins(text, unseen.start()):
            return unseen.start()
    if text.isascii():
        return None
    for word in _WORD.finditer(text):
        if not word[0].isascii() and _disguised(word[0]):
            return word.start()
    return None


def _joins(text: str, at: int) -> bool:
    """Say whether an unseen character does what it is for: emoji, and scripts whose letters join."""
    before, mark, after = text[at - 1 : at], text[at], text[at + 1 : at + 2]
    pictured = before != "" and (before in _KEYS or unicodedata.category(before) in ("So", "Sk"))
    if mark == "\ufe0f":
        return pictured
    if mark == "\u200d" and (pictured or before == "\ufe0f"):
        return after != "" and unicodedata.category(after) in ("So", "Sm")
    if mark in "\u200c\u200d" and before and after:
        return all(unicodedata.name(each, "").startswith(_JOINING) for each in (before, after))
    return False


def _disguised(word: str) -> bool:
    names = [unicodedata.name(letter, "").partition(" ")[0] for letter in word if letter.isalpha()]
    if len(_MIXED.intersection(names)) > 1:
        return True
    return any(
        name in ("MATHEMATICAL", "FULLWIDTH", "CIRCLED", "SQUARED", "NEGATIVE") for name in names
    )


# Encoded text ----------------------------------------------------------------------------

_BASE64: Final = re.compile(r"(?<![\w+/])[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX: Final = re.compile(r"(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){12,}(?!\w)")
_ESCAPES: Final = re.compile(
    r"(?:%[0-9a-fA-F]{2}|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|&#x?[0-9a-fA-F]+;){6,}"
)


def decoded(text: str) -> Iterator[tuple[int, str]]:
    """Yield what encoded runs of a text say, with their places."""
    for run in _BASE64.finditer(text):
        if (said := _readable(_base64(run[0]))) is not None:
            yield run.start(), said
    for run in _HEX.finditer(text):
        digits = re.sub(r"0x|[ :]", "", run[0])
        if (said := _readable(bytes.fromhex(digits[: len(digits) // 2 * 2]))) is not None:
            yield run.start(), said
    for run in _ESCAPES.finditer(text):
        yield run.start(), unquote(run[0])


def _base64(run: str) -> bytes:
    plain = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        return b""


def _readable(data: bytes) -> str | None:
    """Return text that bytes spell: words, not the letters that any run comes to by chance."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    letters = sum(letter.isalnum() or letter == " " for letter in text)
    return (
        text if len(text) >= _LEAST and text.isprintable() and letters >= 0.8 * len(text) else None
    )


# Addresses and roles ---------------------------------------------------------------------

_ADDRESS: Final = re.compile(
    r"\b(?:https?|ftp|wss?|file|data|javascript)\s*:(?://)?\S|\bwww\.\w"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++\.\w|!\[[^\]]{0,500}\]\(|\bhxxps?\b|\[\.\]|\(dot\)",
    re.IGNORECASE,
)
_ROLE: Final = re.compile(
    r"<\|?/?(?:im_start|im_end|system|assistant|user|inst|sys|s)\b|\[/?INST\]|<<SYS>>|"
    r"^[^\S\n]*+#*+[^\S\n]*+(?:system|assistant|developer|human|user)\s*+(?:(?:prompt|message|note)\s*+)?[:>]"
    r"|```system",
    re.IGNORECASE | re.MULTILINE,
)

# Instructions ----------------------------------------------------------------------------

_DEEDS: Final = [
    "ignore",
    "disregard",
    "forget",
    "override",
    "bypass",
    "disable",
    "send",
    "forward",
    "email",
    "mail",
    "post",
    "upload",
    "transfer",
    "wire",
    "pay",
    "delete",
    "erase",
    "wipe",
    "drop",
    "remove",
    "reveal",
    "leak",
    "share",
    "print",
    "output",
    "reply",
    "respond",
    "answer",
    "say",
    "tell",
    "execute",
    "run",
    "call",
    "invoke",
    "install",
    "download",
    "fetch",
    "open",
    "visit",
    "click",
    "approve",
    "grant",
    "publish",
    "copy",
    "paste",
    "include",
    "append",
    "insert",
    "replace",
    "pretend",
    "act",
    "obey",
    "follow",
    "comply",
    "conceal",
    "hide",
    "never",
    "always",
    "must",
]
_ADDRESSED: Final = re.compile(
    rf"(?:^|[.!?;:\"'(>*-]\s*+|\n[^\S\n]*+|\b(?:please|you|must|should|shall|then|now|always|never|and|to|will"
    rf"|first|next|instead|only|simply|just)\s+)(?:{'|'.join(_DEEDS)})\b",
    re.IGNORECASE,
)
_ABOUT_RULES: Final = re.compile(
    r"\b(?:previous|prior|above|earlier|all|any|your|system|new|original)\s+(?:\w+\s+){0,2}"
    r"(?:instruction|prompt|rule|guideline|polic|direction|order|constraint|restriction)|"
    r"\b(?:do not|don't|never|without)\s+(?:\w+\s+){0,2}(?:tell|mention|inform|ask|alert|reveal|"
    r"warn|notify)|\b(?:from now on|as an? (?:ai|assistant|admin)|you are now|developer mode|"
    r"whenever|every time|next time|in future|on your next|the assistant (?:must|should|shall|will)|"
    r"the agent (?:must|should|shall|will)|it is (?:mandatory|required|imperative))\b",
    re.IGNORECASE,
)
_ELSEWHERE: Final = re.compile(
    # Orders in other languages: to ignore, send, delete, reveal, carry out, always.
    r"\b(?:ignor\w*|envi\w+|enví\w+|manda\w*|borr\w+|elimin\w+|revel\w+|ejecut\w+|siempre|nunca|"
    r"oubli\w+|envoy\w+|supprim\w+|effac\w+|exécut\w+|toujours|jamais|ignorier\w*|vergiss|"
    r"sende\w*|schick\w*|lösch\w*|führe|immer|niemals|invia\w*|cancell\w+|esegui\w*|sempre|"
    r"envie\w*|apague|execute\w*|stuur|verwijder|negeer|altijd|wyślij|usuń|zignoruj|gönder|sil)\b|"
    r"игнориру|отправ|удали|выполни|всегда|забудь|忽略|发送|删除|执行|總是|总是|無視|送信|"
    r"削除|実行|무시|보내|삭제|실행|تجاهل|أرسل|احذف|نفذ|אנא|שלח|מחק|अनदेखा|भेज|हटा",
    re.IGNORECASE,
)


def _commands(text: str) -> bool:
    plain = looks_like(text)
    return any(
        pattern.search(each)
        for each in (text, plain)
        for pattern in (_ADDRESSED, _ABOUT_RULES, _ELSEWHERE)
    )


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
