"""Secrets: refused in what is kept and shown, and hidden in messages.

A text is secret by its name (`api_key`, `extra_query.key`, `Authorization: …`), by its form (keys of
known providers, tokens, private keys, passwords in URLs), or because it is long and random. The same
rules decide what a plan may hold and what a message may quote. All take linear time.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

SECRET_ENDS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
"""Variables of the environment whose names end so hold secrets."""
HIDDEN: Final = "<hidden>"

# Names ------------------------------------------------------------------------------------------

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_STRONG: Final = frozenset(
    {
        "apikey",
        "apikeys",
        "authorization",
        "bearer",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "jwt",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "secret",
        "secrets",
    }
)
"""Words that make a name secret wherever they stand."""
_LAST: Final = frozenset(
    {
        "auth",
        "authentication",
        "dsn",
        "header",
        "headers",
        "oauth",
        "pat",
        "pem",
        "psk",
        "pw",
        "pwd",
        "sas",
        "sig",
        "signature",
    }
)
"""Words that make a name secret at its end."""
_JOINED: Final = re.compile(
    "(?:api|access|account|auth|client|encryption|function|license|master|private|secret|service"
    "|session|shared|signing|ssh|storage|subscription)keys?(?:id|value)?$"
    "|(?:access|api|auth|bearer|csrf|id|oauth|personal|refresh|secret|security|session|user)tokens?$"
    "|apikey|privatekey|secretkey|accesskey|connectionstring|sharedaccess|clientsecret|password"
    "|(?:secret|passwd|passphrase|credentials?|basicauth|httpauth)$"
)
"""Secret names written as one word."""
_OF_KEYS: Final = frozenset(
    {
        "by",
        "cache",
        "column",
        "dict",
        "foreign",
        "group",
        "hot",
        "index",
        "item",
        "join",
        "memory",
        "order",
        "partition",
        "primary",
        "public",
        "retrieval",
        "row",
        "sort",
        "task",
    }
)
"""Words before `key` that make it harmless."""
_OF_TOKENS: Final = frozenset(
    {
        "begin",
        "bos",
        "cls",
        "completion",
        "end",
        "eos",
        "first",
        "image",
        "input",
        "last",
        "mask",
        "max",
        "next",
        "output",
        "pad",
        "per",
        "prompt",
        "sep",
        "special",
        "start",
        "stop",
        "think",
        "unk",
    }
)
"""Words before `token` that make it harmless."""
_OF_PLACES: Final = frozenset({"env", "file", "name", "path", "var", "variable"})
"""Names that end so say where a secret is found."""


def is_secret_name(name: str) -> bool:
    """Say whether what goes by a name is a secret, in any case and any way to join words."""
    words = [word.lower() for word in _WORDS.findall(name[:_LONGEST_NAME])]
    if not words or words[-1] in _OF_PLACES:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in {"key", "keys"}:
        return before not in _OF_KEYS and (last == "key" or bool(before))
    if last == "token":
        return before not in _OF_TOKENS
    named = last in _LAST or words == ["pass"] or not _STRONG.isdisjoint(words)
    return named or _JOINED.search("".join(words)) is not None


_LONGEST_NAME: Final = 200

# Forms ------------------------------------------------------------------------------------------

_LEAST_SECRET: Final = 8
"""Characters; shorter values are `none`, `test` and the like."""
_LEAST_RANDOM: Final = 24
"""Characters from which on a text may be random."""
_IN_A_URL: Final = re.compile(r"(?<=://)(?![A-Za-z_][\w.-]{0,15}@)[^\s/@]+(?=@)")
_FORMS: Final = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[\s\S]*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)"
    r"|(?<![A-Za-z0-9])(?:"
    r"AIza[\w-]{16,}|ya29\.[\w.-]{16,}|GOCSPX-[\w-]{16,}"
    r"|(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{12,}"
    r"|(?:gh[a-z]|hf|gsk|npm|r8|fw|api_org|dop_v1|doo_v1|shpat|shpss|whsec|dckr_pat|ntn|lin_api|figd"
    r"|secret|rubygems|glsa|sntrys)_[A-Za-z0-9]{16}[\w-]*|github_pat_\w{16,}|lsv2_\w{16,}"
    r"|(?:[srp]k_(?:live|test|prod)_)[A-Za-z0-9]{8,}"
    r"|(?:glpat|gldt|glrt|glptt|glft|glcbt|glsoat|xox[a-z]|xapp|pypi|pplx|nvapi|tvly|NRAK|PMAK|pul)-"
    r"[\w-]{10,}|xai-[A-Za-z0-9]{16,}|dapi[0-9a-f]{32}|AGE-SECRET-KEY-1[A-Z0-9]{16,}"
    r"|hvs\.[\w-]{16,}|SG\.[\w-]{8,}\.[\w-]{8,}"
    r"|[0-9]{8,10}:AA[\w-]{30,}"
    r")|(?<![\w-])eyJ[\w-]{8,}(?:\.[\w-]*){1,4}|(?<=hooks\.slack\.com/services/)[\w/]{8,}"
)
"""What the keys of model providers, clouds and code hosts look like, tokens, and private keys."""
_BEARER: Final = re.compile(
    r"(?<=\b(?i:bearer) )(?!(?i:authenti|authori|credential|header|scheme|token))[\w.~+/=-]{8,}"
)
_MAYBE: Final = re.compile(r"(?<![A-Za-z0-9])[sp]k[-_][\w-]{16,}|(?<=\b(?i:basic) )[\w.~+/=-]{8,}")
"""What is secret unless it is made of words."""
_NAMED: Final = re.compile(
    r"(?P<sign>[?&;]?)(?<![\w.-])(?P<quote>[\"']?)(?P<name>[A-Za-z][\w.-]{0,80})(?P=quote)"
    r"(?P<is>[ \t]?[=:][ \t]{0,2})(?=[\"'A-Za-z0-9])"
)
"""What stands before a value in a URL's query, a header, a connection string, or Python's `repr`."""
_VALUE: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|[A-Za-z0-9][^\s,;&\"'<>(){}\[\]]*+"
)
_RUN: Final = re.compile(rf"[A-Za-z0-9+/_=.-]{{{_LEAST_RANDOM},}}")
_HEXADECIMAL: Final = re.compile(r"(?:sha\d+[-:=]|0x)?[0-9a-fA-F-]+")
_OF_CALLS: Final = re.compile("(?:asst|call|chatcmpl|file|msg|req|resp|run|thread|toolu)[-_]")
"""How names of calls begin, which providers put into their errors."""
_MIXED: Final = re.compile(r"[0-9=+/]|[a-z][A-Z]")
_KIND: Final = str.maketrans(
    {
        **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A"),
        **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "a"),
        **dict.fromkeys("0123456789", "0"),
    }
)
_CHANGE: Final = re.compile(r"(?=Aa|A0|aA|a0|0A|0a)")
_WORDY: Final = 0.45
"""Random letters and digits change between cases and digits at 0.6 of their places, names at less
than 0.45 (measured on all names and paths of this repository)."""
_WORDY_LOWER: Final = 0.2
"""Of lower-case letters and digits, which random texts change between at 0.4 of their places."""


def without_secrets(text: str) -> str:
    """Return a text without secrets: this environment's, and what looks like one.

    Servers repeat the key that they refuse, and exceptions the URL that they could not open.
    """
    return _RUN.sub(lambda found: HIDDEN if is_random(found[0]) else found[0], _unformed(text))


def _unformed(text: str) -> str:
    """Return a text without what is secret by its value, name or form."""
    for secret in secrets_of(os.environ):
        text = text.replace(secret, HIDDEN)
    for form in (_IN_A_URL, _FORMS, _BEARER):
        text = form.sub(HIDDEN, text)
    text = _MAYBE.sub(lambda found: HIDDEN if _is_mixed(found[0]) else found[0], text)
    return _unnamed(text)


def _is_mixed(value: str) -> bool:
    """Say whether a value is more than words."""
    return bool(_MIXED.search(value)) or re.search("[A-Za-z]{16}", value) is not None


def _unnamed(text: str) -> str:
    """Return a text without the values that stand behind names of secrets."""
    kept: list[str] = []
    done = 0
    for found in _NAMED.finditer(text):
        if found.start() < done or not is_secret_name(found["name"]) or _is_shown(found, text):
            continue
        value = _VALUE.match(text, found.end())
        if value is None:
            continue
        bare = value[0].strip("\"'")
        start = found.end() + value[0].index(bare)
        kept += (text[done:start], HIDDEN)
        done = start + len(bare)
    return "".join((*kept, text[done:]))


def _is_shown(found: "re.Match[str]", text: str) -> bool:
    """Say whether a value is none to hide, though a name of secrets stands before it."""
    # Not all of it: a value may hold others, and is looked at for each.
    bare = _BARE.match(text, found.end())
    if bare is None or len(bare[1]) < _LEAST_SECRET // 2 or bare[1].lower() in _NOTHING:
        return True
    in_code = found["name"].lower() in _IN_CODE
    # `password: required` is prose, `'password': 'required'` and `password=required` are not.
    if found["quote"] or (found["is"] == "=" and (found["sign"] or not in_code)):
        return False
    return in_code or len(bare[1]) < _LEAST_SECRET or not _is_mixed(bare[1])


_BARE: Final = re.compile(r"[\"']?([A-Za-z0-9][^\s,;&\"'<>(){}\[\]]{0,200})")
_NOTHING: Final = frozenset({"none", "null", "true", "false"})
_IN_CODE: Final = frozenset(
    {"auth", "header", "headers", "key", "keys", "pass", "pat", "sig", "signature"}
)
"""Names that stand in programs and prose too."""


def is_random(value: str) -> bool:
    """Say whether a text of letters, digits and signs was drawn by chance: no name, path or digest."""
    if _HEXADECIMAL.fullmatch(value) or _OF_CALLS.match(value):
        return False
    plain = "".join(each for each in value if each.isalnum()).translate(_KIND)
    if len(plain) < _LEAST_RANDOM - 4 or "0" not in plain:
        return False
    share = len(_CHANGE.findall(plain)) / len(plain)
    if "A" in plain and "a" in plain:
        return share >= _WORDY
    return share >= _WORDY_LOWER and plain == value.translate(_KIND)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose names say that they are secrets, and passwords in URLs."""
    found = set()
    for name, value in environment.items():
        if name.upper().endswith(SECRET_ENDS):
            found.add(value)
        elif "://" in value:
            found |= {each.partition(":")[2] for each in _IN_A_URL.findall(value)}
    return sorted(
        (each for each in found if len(each) >= _LEAST_SECRET), key=lambda s: (-len(s), s)
    )


# Values in mappings and lists -------------------------------------------------------------------

_IDENTIFIERS: Final = frozenset(
    {"id", "ids", "items", "fingerprint", "sha256", "digest", "against"}
)
"""Names of what may be random and is no secret."""


def secret_places(value: Any, where: str = "") -> Iterator[str]:
    """Yield where a value holds a secret, at any depth: `model_settings.extra_query.key`.

    No part of a secret is in what is yielded, also where it is the name of something.

    Args:
        value: Mappings, lists and texts.
        where: The name of the value itself.
    """
    todo: list[tuple[str, Any, bool]] = [(where, value, False)]
    while todo:
        place, each, identifies = todo.pop()
        if isinstance(each, Mapping):
            named = is_secret_name(str(each.get("name", ""))) and "value" in each
            for name, part in reversed(list(each.items())):
                inside = ".".join(filter(None, (place, without_secrets(str(name)))))
                confidential = is_secret_name(str(name)) or (named and name == "value")
                given = part is not None and part != "" and not isinstance(part, bool)
                if without_secrets(str(name)) != str(name) or (confidential and given):
                    yield inside
                else:
                    todo.append((inside, part, identifies or name in _IDENTIFIERS))
        elif isinstance(each, list | tuple):
            todo += ((f"{place}.{at}", part, identifies) for at, part in enumerate(each))
        elif isinstance(each, str) and each != (_unformed if identifies else without_secrets)(each):
            yield place
