"""What went wrong, read from a traceback, from prose and from the program: exception, package, kind.

Pure functions, grounded in the formats and messages of Python itself. They know no library's
errors; where they cannot tell, they say `general`, `code` or nothing. `code_names` reads which
package a name in a program comes from, by the program's own imports.
"""

import ast
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from langgraft._core.untrusted import parse_program
from langgraft.memory.model import ErrorKind
from langgraft.memory.providers.coding.entries import GENERAL
from langgraft.memory.providers.coding.tracebacks import (
    Frame,
    Raised,
    canonical,
    canonical_error,
    is_exception_name,
    masked,
    parse_traceback,
)


@dataclass(frozen=True, slots=True)
class CodeNames:
    """The names of a program, and the packages they stand for."""

    modules: Mapping[str, str] = field(default_factory=dict)
    """Name in the program → package: `lgb` → `lightgbm`."""
    symbols: Mapping[str, AbstractSet[str]] = field(default_factory=dict)
    """Function, class, method or attribute → the packages it is taken from."""
    arguments: Mapping[str, AbstractSet[tuple[str, str]]] = field(default_factory=dict)
    """Keyword argument → the callables it is passed to, each with its package."""
    own: AbstractSet[str] = frozenset()
    """Functions and classes that the program defines itself."""

    @property
    def packages(self) -> frozenset[str]:
        """All packages that are not Python's own."""
        return frozenset(filter(is_package, self.modules.values()))

    def package_of(self, symbol: str) -> str | None:
        """Return the one package that a name is taken from, if there is exactly one."""
        found = self.symbols.get(symbol, frozenset()) | (
            {self.modules[symbol]} if symbol in self.modules else frozenset()
        )
        return next(iter(found)) if len(found) == 1 and symbol not in self.own else None

    def packages_in(self, line: str) -> frozenset[str]:
        """Return the packages that a line of the program names."""
        try:
            tree = parse_program(line.strip().rstrip(":"))
        except SyntaxError:
            return frozenset()
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        found = {self.modules[name] for name in names if name in self.modules}
        return frozenset(filter(is_package, found))


def is_package(name: str) -> bool:
    """Say whether a module's first name is that of a package beyond Python's own library."""
    return bool(name) and name not in sys.stdlib_module_names and not name.startswith("__")


def code_names(code: str) -> CodeNames:
    """Read the names of a program; one that does not compile has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons in code that is not ours
            tree = parse_program(code)
    except SyntaxError:
        return CodeNames()
    modules, symbols = _imports(tree)
    own = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    package_at = _rooted(modules | _made(tree, modules))
    arguments: dict[str, set[tuple[str, str]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (package := package_at(node)):
            symbols.setdefault(node.attr, set()).add(package)
        elif isinstance(node, ast.Call) and (package := package_at(node.func)):
            for keyword in node.keywords:
                if keyword.arg:
                    called = (_last_name(node.func), package)
                    arguments.setdefault(keyword.arg, set()).add(called)
    return CodeNames(modules, symbols, arguments, own)


def _imports(tree: ast.AST) -> tuple[dict[str, str], dict[str, set[str]]]:
    modules: dict[str, str] = {}
    symbols: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                modules[alias.asname or top] = top
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            top = node.module.partition(".")[0]
            for alias in node.names:
                modules[alias.asname or alias.name] = top
                symbols.setdefault(alias.name, set()).add(top)
    return modules, symbols


def _made(tree: ast.AST, modules: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hold what one package's callables gave: `model` in
    `model = lgb.LGBMClassifier()`.
    """  # noqa: D205
    package_at = _rooted(modules)
    held: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = node.value
            called = isinstance(value, ast.Call) and package_at(value.func)
            for target in node.targets:
                for name in _names(target):
                    held.setdefault(name, set()).add(called or "")
    return {
        name: next(iter(packages))
        for name, packages in held.items()
        if name not in modules and len(packages) == 1 and "" not in packages
    }


def _names(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id


def _rooted(modules: Mapping[str, str]) -> Callable[[ast.AST], str | None]:
    """Make what returns the package at the root of `a.b.c` or `a.b(…).c`; each node is passed once."""
    known: dict[ast.AST, str | None] = {}

    def package_at(node: ast.AST) -> str | None:
        passed: list[ast.AST] = []
        while isinstance(node, ast.Attribute | ast.Call) and node not in known:
            passed.append(node)
            node = node.value if isinstance(node, ast.Attribute) else node.func
        found = known.get(node) or (modules.get(node.id) if isinstance(node, ast.Name) else None)
        known.update(dict.fromkeys(passed, found))
        return found

    return package_at


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


QUOTE: Final = r"['\"`\u2018\u2019]"
"""A quotation mark, straight or not."""

_CLASS = re.compile(r"(?<![\w.])(?:[a-z_]\w*\.)*[A-Z]\w+\b")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z(`'\"])|\n+")
_MESSAGE = re.compile(r"^`?\s*(?::|\(|[-\u2013\u2014]\s)\s*(?P<message>\S.*)$")
"""What follows a class where its message is given: after a colon or a dash, or in brackets."""
_CLAUSE_END = re.compile(r";\s|,\s+(?:so|and|which|because|causing|preventing)\b|[.!?]\s*$")
_SAYS: Final = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (
            rf"(?:(?<![\w.])[\w.]+\(\) got an )?unexpected keyword argument {QUOTE}\w+{QUOTE}",
            "TypeError",
        ),
        (
            r"(?:(?<![\w.])[\w.]+\(\) )?missing \d+ required (?:positional|keyword-only) argument",
            "TypeError",
        ),
        (rf"{QUOTE}\w+{QUOTE} object is not (?:subscriptable|callable|iterable)", "TypeError"),
        (rf"{QUOTE}\w+{QUOTE} object has no attribute {QUOTE}\w+{QUOTE}", "AttributeError"),
        (rf"module {QUOTE}[\w.]+{QUOTE} has no attribute {QUOTE}\w+{QUOTE}", "AttributeError"),
        (rf"[Nn]o module named {QUOTE}?\w+(?:\.\w+)*{QUOTE}?", "ModuleNotFoundError"),
        (rf"cannot import name {QUOTE}\w+{QUOTE}", "ImportError"),
        (rf"name {QUOTE}\w+{QUOTE} is not defined", "NameError"),
        (r"could not convert string to float", "ValueError"),
        (r"invalid literal for int\(\)", "ValueError"),
        (r"(?:list|string|tuple) index out of range", "IndexError"),
        (r"[Nn]o such file or directory", "FileNotFoundError"),
        (r"division by zero", "ZeroDivisionError"),
    )
)
"""Messages that Python itself words, and the class it raises with each."""


def mentioned_error(prose: str) -> Raised | None:
    """Read the exception that a review tells of: `it crashed with TypeError: fit() got …`.

    The first class that is named counts. Its message is what the sentence gives as such; else
    what it says in words that are Python's own; else the sentence, which tells what was being
    done. Where no class is named, words that are Python's own tell it.
    """
    for sentence in _SENTENCE.split(prose):
        for match in _CLASS.finditer(sentence):
            if is_exception_name(match.group()):
                return Raised(match.group(), _message(sentence.strip(), sentence[match.end() :]))
    for pattern, name in _SAYS:
        if found := pattern.search(prose):
            return Raised(name, found.group())
    return None


def _message(sentence: str, after: str) -> str:
    given = _MESSAGE.match(after)
    if given is None:
        worded = (pattern.search(sentence) for pattern, _ in _SAYS)
        return next((found.group() for found in worded if found), sentence)
    message = given["message"]
    message = _to_the_closing_bracket(message)
    end = _CLAUSE_END.search(message)
    return (message[: end.start()] if end else message).strip().rstrip("`,;").strip()


def _to_the_closing_bracket(text: str) -> str:
    """Cut a text where a bracket is closed that was opened before it."""
    depth = 1
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return text[:place]
    return text


_RESOURCES: Final = frozenset(
    {"MemoryError", "_ArrayMemoryError", "OutOfMemoryError", "TimeoutError", "TimeoutExpired"}
)
_RESOURCE = re.compile(
    r"\bout of memory\b|\bunable to allocate\b|\bcannot allocate memory\b|\bstd::bad_alloc\b"
    r"|\bno space left on device\b|\bdisk quota exceeded\b|\btoo many open files\b"
    r"|\b(?:has|have|was|were|is|run|process|it|execution|training)?\s*timed[ -]out\b"
    r"|\b(?:exceed\w*|hit|reach\w*|over)\s+(?:the\s+|its\s+)?(?:\w+\s+){0,2}?(?:time|memory)[ -]?limit\b"
    r"|\btime[ -]?limit\s+(?:was\s+)?(?:exceeded|reached|hit)\b|\btimeout\s+(?:error|expired|reached)\b"
    r"|\b(?:was|been|got|process)\s+(?:\w+\s+)?killed\b|^[^\S\n]*+killed[^\S\n]*+$|\bSIGKILL\b|\boom[- ]?kill",
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
    apart = name is not None and (not after or after.startswith((":", " at ")))
    return name.group() if name is not None and apart and is_exception_name(name.group()) else ""


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
