"""What kind of failure an error is: of the program, of what it runs in, or of a limit."""

import re
from typing import Final

from langgraft.memory.episodes import ErrorKind
from langgraft.memory.providers.coding.tracebacks import Raised

_RESOURCES: Final = frozenset(
    {"MemoryError", "_ArrayMemoryError", "OutOfMemoryError", "TimeoutError", "TimeoutExpired"}
)
_RESOURCE = re.compile(
    r"\bout of memory\b|\bunable to allocate\b|\bcannot allocate memory\b|\bstd::bad_alloc\b"
    r"|\bno space left on device\b|\bdisk quota exceeded\b|\btoo many open files\b"
    r"|\b(?:has|have|was|were|is|run|process|it|execution|training)?\s*timed[ -]out\b"
    r"|\b(?:exceed\w*|hit|reach\w*|over)\s+(?:the\s+|its\s+)?(?:\w+\s+){0,2}?(?:time|memory)[ -]?limit\b"
    r"|\btime[ -]?limit\s+(?:was\s+)?(?:exceeded|reached|hit)\b|\btimeout\s+(?:error|expired|reached)\b"
    r"|\b(?:was|been|got|process)\s+(?:\w+\s+)?killed\b|^\s*killed\s*$|\bSIGKILL\b|\boom[- ]?kill",
    re.IGNORECASE | re.MULTILINE,
)
_ENVIRONMENTS: Final = frozenset(
    {
        "FileNotFoundError", "NotADirectoryError", "IsADirectoryError", "FileExistsError",
        "PermissionError", "ConnectionError", "ConnectionRefusedError", "ConnectionResetError",
        "ConnectionAbortedError", "BrokenPipeError", "gaierror", "herror", "URLError", "HTTPError",
        "SSLError", "SSLCertVerificationError", "ProxyError", "ConnectTimeout", "ReadTimeout",
        "ConnectTimeoutError", "ReadTimeoutError", "MaxRetryError", "NewConnectionError",
        "NameResolutionError", "RemoteDisconnected", "IncompleteRead", "PackageNotFoundError",
        "DistributionNotFound",
    }
)  # fmt: skip
"""Classes of Python's own library, and of the HTTP clients that all downloads go through."""
_ENVIRONMENT = re.compile(
    r"\bno such file or directory\b|\bpermission denied\b|\bname or service not known\b"
    r"|\btemporary failure in name resolution\b|\bfailed to resolve\b|\bmax retries exceeded\b"
    r"|\bconnection (?:refused|reset|error|timed out)\b|\bnetwork is unreachable\b"
    r"|\bcannot open shared object file\b|\bcommand not found\b"
    r"|\b(?:without|no)\s+(?:an\s+)?(?:internet|network)\s+(?:access|connection)\b"
    r"|\boffline mode\b|\bnot compiled with CUDA\b|\bno CUDA\b|\bfound no NVIDIA driver\b",
    re.IGNORECASE,
)
_NO_MODULE = re.compile(r"No module named ['\"]?(?P<module>[\w.]+)")


def error_kind(raised: Raised | None, text: str = "") -> ErrorKind:
    """Say what failed: the program, what it runs in, or a limit on time or memory.

    Args:
        raised: The exception, if there is one.
        text: What else tells of the failure: output without a traceback, or a review.
    """
    if raised is None:
        return _kind_of_text(text)
    if raised.name in _ENVIRONMENTS or _ENVIRONMENT.search(raised.message):
        return "environment"
    if missing := _NO_MODULE.search(raised.message):
        # A part of a package that is there has moved; a package that is not there is missing.
        return "code" if "." in missing["module"] else "environment"
    if raised.name in _RESOURCES or _RESOURCE.search(raised.message):
        return "resource"
    return "code"


def _kind_of_text(text: str) -> ErrorKind:
    if _RESOURCE.search(text):
        return "resource"
    missing = _NO_MODULE.search(text)
    absent = missing is not None and "." not in missing["module"]
    return "environment" if absent or _ENVIRONMENT.search(text) else "code"
