"""What went wrong, told from a traceback by rules: which exception, which package, what kind.

Pure functions, grounded in the formats and messages of Python itself. They know no library's
errors; where they cannot tell, they say `general`, `code` or nothing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from langgraft.memory.providers.coding.entries import GENERAL
from langgraft.memory.providers.coding.masks import masked
from langgraft.memory.providers.coding.tracebacks import (
    Frame,
    Raised,
    canonical,
    canonical_error,
    is_exception_name,
    parse_traceback,
)
from langgraft.nodes.code_names import CodeNames, code_names, is_package
from langgraft.nodes.error_kinds import error_kind
from langgraft.nodes.error_mentions import QUOTE, mentioned_error

__all__ = [
    "GENERAL",
    "Frame",
    "Raised",
    "api_symbol",
    "canonical",
    "canonical_error",
    "error_kind",
    "exception_class",
    "masked",
    "mentioned_error",
    "parse_traceback",
    "responsible_package",
]

_ARGUMENT = rf"{QUOTE}(?P<argument>\w+){QUOTE}"
_CALL = r"(?<![\w.])(?P<call>[^\W\d][\w.]*)\(\)"
_SYMBOLS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"{_CALL} got (?:an unexpected keyword argument|multiple values for (?:keyword )?argument) {_ARGUMENT}",
        rf"{_CALL} missing \S+ required (?:positional|keyword-only) arguments?: {_ARGUMENT}",
        rf"{_CALL} got some positional-only arguments passed as keyword arguments: {_ARGUMENT}",
        rf"unexpected keyword argument {_ARGUMENT}",
        rf"module {QUOTE}(?P<module>[\w.]+){QUOTE} has no attribute {QUOTE}(?P<attribute>\w+){QUOTE}",
        rf"(?:type object )?{QUOTE}(?P<owner>\w+){QUOTE}(?: object)? has no attribute {QUOTE}(?P<attribute>\w+){QUOTE}",
        rf"cannot import name {QUOTE}(?P<attribute>\w+){QUOTE} from (?:partially initialized module )?{QUOTE}(?P<module>[\w.]+){QUOTE}",
        rf"No module named {QUOTE}(?P<module>[\w.]+){QUOTE}",
        _CALL,
    )
)
"""Python's own messages that name a callable, an argument, an attribute or a module."""


def api_symbol(error: str) -> str:
    """Return what an error names of an API: `LGBMClassifier.fit(early_stopping_rounds)`.

    Callables come with the argument that is named, attributes with what lacks them
    (`DataFrame.append`), modules by their name; an empty text where nothing is named.
    """
    part = _named(error)
    if part.get("call") or part.get("argument"):
        return f"{part.get('call') or ''}({part.get('argument') or ''})"
    owner = part.get("module") or part.get("owner")
    return ".".join(filter(None, (owner, part.get("attribute"))))


def _named(message: str) -> Mapping[str, str | None]:
    """Return what the first of Python's messages in a text names."""
    found = (pattern.search(message) for pattern in _SYMBOLS)
    return next((match.groupdict() for match in found if match), {})


def exception_class(error: str) -> str:
    """Return the class that a canonical error begins with, or nothing."""
    name = re.match(r"[^\W\d][\w.]*", error)
    after = error[name.end() :] if name else ""
    told = name is not None and (not after or after.startswith((":", " at ")))
    return name.group() if name is not None and told and is_exception_name(name.group()) else ""


_INSTALLED = re.compile(r"(?:site|dist)-packages[\\/](?P<package>\w+)")
_TYPES: Final = {
    "DataFrame": ("pandas", "polars"),
    "Series": ("pandas", "polars"),
    "ndarray": ("numpy",),
    "Tensor": ("torch", "tensorflow"),
}
"""Types that programs get without naming them, and whose they may be."""


def responsible_package(raised: Raised, code: str | CodeNames = "") -> str:
    """Return the package that an error belongs to, by its import name, or `general`.

    In this order: the innermost frame that lies in an installed package; the module of the
    exception's class; a module, a callable, a type or an argument that the message names and
    that the program takes from one package; the one imported package that the message mentions
    by name; the one that the failing line names. What is missing from the environment belongs to
    no package.
    """
    if error_kind(raised) == "environment":
        return GENERAL
    names = code_names(code) if isinstance(code, str) else code
    top = raised.module.partition(".")[0]
    return (
        _of_frames(raised)
        or (top if is_package(top) and top not in names.own else None)
        or next(_of_message(raised.message, names), None)
        or _of_mentions(raised.message, names)
        or _of_line(raised.frames, names)
        or GENERAL
    )


def _of_frames(raised: Raised) -> str | None:
    for each in (raised, *reversed(raised.causes)):
        for frame in reversed(each.frames):
            if installed := _INSTALLED.search(frame.file):
                return installed["package"]
            if frame.file == "<__array_function__ internals>":
                return "numpy"
    return None


def _of_message(message: str, names: CodeNames) -> Iterator[str]:
    part = _named(message)
    owner, call = part.get("owner") or "", part.get("call") or ""
    if is_package(top := (part.get("module") or "").partition(".")[0]):
        yield top
    yield from _of_names([*owner.split("."), *call.split(".")], names)
    if argument := part.get("argument"):
        yield from _of_argument(argument, call.rpartition(".")[2], names)


def _of_names(parts: Sequence[str], names: CodeNames) -> Iterator[str]:
    for part in filter(None, parts):
        found = names.package_of(part)
        if found is not None and is_package(found):
            yield found
        if part not in names.own:
            owners = [owner for owner in _TYPES.get(part, ()) if owner in names.packages]
            yield from owners if len(owners) == 1 else ()


def _of_argument(argument: str, call: str, names: CodeNames) -> Iterator[str]:
    """Yield the package of the only calls that are passed an argument of that name."""
    if call in names.own:
        return
    passed = names.arguments.get(argument, frozenset())
    found = {package for called, package in passed if call in ("", "__init__", called)}
    if len(found) == 1 and is_package(package := found.pop()):
        yield package


def _of_mentions(message: str, names: CodeNames) -> str | None:
    """Return the one package that a message mentions: `lightgbm`, or `lgb.train`."""
    words = {word.casefold() for word in re.findall(r"\w+", message)}
    roots = set(re.findall(r"(?<![\w./])([^\W\d]\w*)\.[^\W\d]\w*", message))
    found = {package for package in names.packages if package.casefold() in words}
    found |= {names.modules[root] for root in roots if root in names.modules}
    found = set(filter(is_package, found))
    return found.pop() if len(found) == 1 else None


def _of_line(frames: Sequence[Frame], names: CodeNames) -> str | None:
    named = names.packages_in(frames[-1].code) if frames else frozenset()
    return next(iter(named)) if len(named) == 1 else None
