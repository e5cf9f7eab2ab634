"""Which fixes are left out: those that need what an offline run does not have.

The published system asks its summarizer to leave out fixes that need new packages or internet
access (mle-agent-memory Fig. 5). Here a rule checks it again at filing, whoever wrote the fix.
"""

import re
from typing import Final, Literal, TypeAlias

Need: TypeAlias = Literal["", "a new package", "the network"]
"""What a fix needs that is not there."""

_PACKAGES = re.compile(
    r"\b(?:pip3?|conda|mamba|apt(?:-get)?|yum|brew|uv|poetry)\s+(?:pip\s+)?(?:install|add|update|upgrade)\b"
    r"|\b(?:re-?)?install(?:ing)?\b(?!\s*(?:ed|ation))"
    r"|\b(?:up|down)grad(?:e|ing)\b"
    r"|\bupdat(?:e|ing)\s+(?:the\s+)?(?:\S+\s+)?(?:package|library|version|dependenc\w+)\b"
    r"|\bpin(?:ning)?\s+(?:the\s+)?\S+\s+(?:to\s+)?(?:version\b|[<>=]=)",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"\b(?:https?|ftp)://"
    r"|\b(?:wget|curl|gdown)\s"
    r"|\bgit\s+clone\b"
    r"|\bdownload(?:ing|s)?\b"
    r"|\b(?:internet|online|network)\s+(?:access|connection|connectivity)\b"
    r"|\b(?:from|over|via|connect\w*\s+to)\s+the\s+(?:internet|web|network)\b"
    r"|\bfrom\s+(?:the\s+)?hugging\s?face\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|n't|never|no|without|avoid\w*|instead\s+of|rather\s+than|offline|disabl\w+|prevent\w*"
    r"|skip\w*|remov\w+|turn\w*\s+off|cannot|can't|don't|doesn't|already|fail\w*|lack\w*)"
    r"(?:\W+\w+){0,4}\W*$",
    re.IGNORECASE,
)
"""Words shortly before a match that take it back: `avoid downloading weights`."""
_CLAUSE: Final = re.compile(r"[.;\n](?:\s|$)|,\s+(?:and|then|or)\s|\s-\s")


def fix_needs(fix: str) -> Need:
    """Say what a fix needs that an offline run does not have; an empty text: nothing.

    The rule reads words, not intentions. It errs on the side of leaving a fix out; the error
    itself is always kept.
    """
    for clause in _CLAUSE.split(fix):
        if _asks(_PACKAGES, clause):
            return "a new package"
        if _asks(_NETWORK, clause):
            return "the network"
    return ""


def _asks(pattern: re.Pattern[str], clause: str) -> bool:
    found = pattern.finditer(clause)
    return any(not _NEGATED.search(clause[: match.start()]) for match in found)
