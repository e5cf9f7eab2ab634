"""What is measured of every run, whatever its agent, and of its programs (§4.4): pure functions of what it tried.

What it tried are the programs of a search, or the steps of another agent: either way something was run and
failed, or worked, used packages and operators, and reported a metric. Programs are taken as Python reads
them; text that is no program, or too much of one, uses nothing, and its tokens are words and signs. The
paper is mle-agent-memory; docs/behaviour-metrics.md defines every number in words.
"""

import ast
import io
import keyword
import math
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, TypeAlias

from langgraft._core.untrusted import parse_program
from langgraft.memory.model import MemoryItem
from langgraft.nodes.tracebacks import is_package

CountUses: TypeAlias = Callable[[str], Counter[str]]
"""Counts what a program uses, by category."""

MOST_CHARACTERS: Final = 400_000
"""Programs longer than this are not parsed: no agent writes them, and a tree takes memory."""

_UNREADABLE: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
_WORDS = re.compile(r"\w+|[^\w\s]")
_KEPT: Final = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
_OPENING: Final = {
    getattr(tokenize, name)
    for name in ("FSTRING_START", "TSTRING_START")
    if hasattr(tokenize, name)
}
_CLOSING: Final = {
    getattr(tokenize, name) for name in ("FSTRING_END", "TSTRING_END") if hasattr(tokenize, name)
}
_OPERATOR_KINDS: Final = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop)

MOST_OPERATORS: Final = sum(len(kind.__subclasses__()) for kind in _OPERATOR_KINDS)
"""Operators that Python has: no effective number of operators is larger."""


def effective_number(counts: Mapping[Any, int]) -> float:
    """Return exp(H) of some counts, H their entropy in nats; 0 where nothing was counted.

    It is the number of equally frequent categories with the same entropy, at least 1. The paper's
    Table 3 has means below 1, which only zeros for empty sets explain; so an empty set is 0.
    """
    total = sum(counts.values())
    if not total:
        return 0.0
    shares = [count / total for count in counts.values() if count]
    return math.exp(-math.fsum(share * math.log(share) for share in shares))


def package_imports(code: str) -> Counter[str]:
    """Count import statements by the package they import from, wherever in the program they stand.

    A package is the first name of a module. A statement that takes several names from one package
    counts once for it. Python's own library is no package, and neither are relative imports.
    """
    tree = parsed(code)
    return Counter(name for found in _imported(tree) for name in found) if tree else Counter()


def packages(code: str) -> Counter[str]:
    """Count each package of a program once, however many statements import from it."""
    return Counter(dict.fromkeys(package_imports(code), 1))


def _imported(tree: ast.AST) -> Iterator[frozenset[str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules = [node.module]
        else:
            continue
        yield frozenset(filter(is_package, (module.partition(".")[0] for module in modules)))


def operators(code: str) -> Counter[str]:
    """Count the operators of a program by class: such as `Add`, `Not` or `Lt`.

    The paper's "AST-level operators" could be types of nodes or operator tokens. Tokens
    (`ast.operator`, `ast.unaryop`, `ast.boolop`, `ast.cmpop`) are what its 8.45 fits, pooled over
    a run, and the only reading under which a single short program averages below 1. A chained
    comparison counts each of its operators, `a and b and c` one.
    """
    tree = parsed(code)
    nodes = ast.walk(tree) if tree else iter(())
    return Counter(type(node).__name__ for node in nodes if isinstance(node, _OPERATOR_KINDS))


def tokens(code: str) -> frozenset[str]:
    """Return the different names, operators, numbers and strings of a program.

    Comments, line ends and indentation are no tokens. A formatted string is one token on every
    Python, though from 3.12 on its parts come singly. Text that does not parse is split into words
    and signs, at most the first `MOST_CHARACTERS` of it.
    """
    if parsed(code) is not None:
        try:
            return frozenset(_tokens(code))
        except (tokenize.TokenError, *_UNREADABLE):
            pass
    return frozenset(_WORDS.findall(code[:MOST_CHARACTERS]))


def names_among(found: AbstractSet[str]) -> frozenset[str]:
    """Return the tokens that are names: those that could be one and are no keyword."""
    return frozenset(
        token for token in found if token.isidentifier() and not keyword.iskeyword(token)
    )


def jaccard_distance(one: AbstractSet[str], other: AbstractSet[str]) -> float:
    """Return 1 - |A and B| / |A or B|; 0 for two empty sets."""
    union = len(one | other)
    return 1 - len(one & other) / union if union else 0.0


# How a program is read ----------------------------------------------------------------------


def parsed(code: str) -> ast.Module | None:
    """Return the tree of a program; `None` for what does not parse or is too long or too deep."""
    if len(code) > MOST_CHARACTERS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes and comparisons in code that is not ours
            return parse_program(code)
    except _UNREADABLE:
        return None


def _tokens(code: str) -> Iterator[str]:
    lines, depth, begun = list(io.StringIO(code)), 0, (0, 0)
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type in _OPENING:
            begun = begun if depth else token.start
            depth += 1
        elif token.type in _CLOSING:
            depth -= 1
            if not depth:
                yield _between(lines, begun, token.end)
        elif not depth and token.type in _KEPT:
            yield token.string


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the text from one place to another; lines count from 1, columns from 0."""
    rows = lines[start[0] - 1 : end[0]]
    rows[-1] = rows[-1][: end[1]]
    rows[0] = rows[0][start[1] :]
    return "".join(rows)


EARLY: Final = 10
"""Steps that are early: 0 to 9, as in Tables 7 and 9."""

TIMEOUT: Final = "TimeoutError"
"""The class that AIDE's interpreter gives a program that ran out of time."""

EXHAUSTED: Final = "MemoryError"
"""The class for a program that ran out of memory and was ended from outside."""

RESOURCE: Final = "resource"
"""The kind of entries that tell of time or memory running out; the paper's "timeout errors"."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A program of a search, or a step of another agent."""

    buggy: bool
    worked: bool
    """A step may be neither: one that ran nothing."""
    program: str
    """Empty where there is none."""
    metric: float | None
    """The validation metric it reported."""
    error: str | None
    """Class of the exception that ended it, or of what it ran out of; `None`: it has none."""

    @property
    def valid_metric(self) -> float | None:
        """The metric of a trial that worked, if it is a finite number."""
        known = self.worked and self.metric is not None and math.isfinite(self.metric)
        return self.metric if known else None


@dataclass(frozen=True, slots=True)
class FirstValid:
    """When a run first had something that works.

    Counted from 0: the paper's mean of 0.80 (Table 2) would be impossible from 1. What it does with
    runs that have none is not said; here they are censored, and the share of such runs belongs
    beside every mean.
    """

    step: int
    """Place of the trial; where there is none, the number of steps, or of the longest run's."""
    censored: bool
    """Whether there is none: the true value lies at `step` or beyond."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share and what it is a share of."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share, 0 to 1; `None` of nothing."""
        return self.count / self.of if self.of else None

    def __add__(self, other: "Share") -> "Share":
        """Pool two shares: counts are added, so that long runs weigh more."""
        return Share(self.count + other.count, self.of + other.of)


@dataclass(frozen=True)
class RunBehavior:
    """How one run behaved, in the numbers that all agents have."""

    steps: int
    valid: int
    """Trials that worked: of a tree valid programs, else successful executions."""
    buggy: int
    bug_rate: float | None
    """Share of all steps that are buggy; `None` for a run without steps."""
    cumulative_bugs: tuple[int, ...]
    """Buggy trials up to each step."""
    best_so_far: tuple[float, ...]
    """Best validation metric up to each step, so that more is better. NaN before the first: the
    paper does not say, and any number in its place would be one nobody measured."""
    first_valid: FirstValid
    package_imports_pooled: float
    """Effective number over the import statements of all that worked, together; 0 without any."""
    operators_pooled: float
    late_errors: int | None
    """Buggy trials from the first late step on (Table 9: from 10); `None`: no such number."""
    errors_recur: bool | None
    """Whether an error class is met both before the first late step and from it on (Table 7);
    `None` for a run without late steps."""
    error_types: Counter[str]
    """Buggy trials by error class; those without one are left out."""
    package_steps: Counter[str]
    """For each package, the trials that worked and import it (§4.6). The paper counts "on successful
    steps": sklearn has 289 and 314 in dog-breed, the successful steps of 480 at bug rates of
    39.8 % and 34.6 %. So a step counts once."""

    @property
    def final(self) -> float | None:
        """The best validation metric at the end, more is better; `None` without any."""
        last = self.best_so_far[-1] if self.best_so_far else math.nan
        return None if math.isnan(last) else last


def measure_trials(
    trials: Sequence[Trial],
    first: FirstValid,
    imports: CountUses,
    operators: CountUses,
    *,
    lower_is_better: bool,
    split: int = EARLY,
) -> RunBehavior:
    """Measure what all agents have.

    Args:
        trials: The run.
        first: When it first had something that works.
        imports: Counts the import statements of a program by package.
        operators: Counts its operators.
        lower_is_better: The metric's direction, from the competition's board.
        split: The first late step.
    """
    buggy = [trial.buggy for trial in trials]
    early, late = (
        {trial.error for trial in part} - {None} for part in (trials[:split], trials[split:])
    )
    return RunBehavior(
        steps=len(trials),
        valid=sum(trial.worked for trial in trials),
        buggy=sum(buggy),
        bug_rate=sum(buggy) / len(buggy) if buggy else None,
        cumulative_bugs=tuple(accumulate(map(int, buggy))),
        best_so_far=tuple(_best_so_far(trials, lower_is_better=lower_is_better)),
        first_valid=first,
        package_imports_pooled=effective_number(uses(trials, imports)),
        operators_pooled=effective_number(uses(trials, operators)),
        late_errors=sum(buggy[split:]),
        errors_recur=bool(early & late) if len(trials) > split else None,
        error_types=Counter(trial.error for trial in trials if trial.error),
        package_steps=uses(trials, lambda program: once(imports(program))),
    )


def first_where(found: Iterable[bool], *, censored_at: int) -> FirstValid:
    """Find the first place, from 0, where something works."""
    place = next((place for place, each in enumerate(found) if each), None)
    return FirstValid(censored_at if place is None else place, censored=place is None)


def uses(trials: Iterable[Trial], count: CountUses) -> Counter[str]:
    """Count what the programs that worked use, all together."""
    total: Counter[str] = Counter()
    for trial in trials:
        if trial.worked:
            total.update(count(trial.program))
    return total


def once(found: Counter[str]) -> Counter[str]:
    """Count each category once."""
    return Counter(dict.fromkeys(found, 1))


def oriented(metric: float, *, lower_is_better: bool) -> float:
    """Return a metric so that more is better: a loss becomes 1 / (1 + loss) (§4.3).

    The direction is the leaderboard's. The paper's Table 8 calls an AUC task regression; taken at
    its word, the surrogate would turn that metric upside down. A negative loss, which no grader
    here gives, becomes 1 - loss: the paper's form has a pole at -1, and beyond it the wrong order.
    """
    if not lower_is_better:
        return metric
    return 1 / (1 + metric) if metric >= 0 else 1 - metric


def _best_so_far(trials: Iterable[Trial], *, lower_is_better: bool) -> Iterator[float]:
    best = math.nan
    for trial in trials:
        if trial.valid_metric is not None:
            value = oriented(trial.valid_metric, lower_is_better=lower_is_better)
            best = value if math.isnan(best) else max(best, value)
        yield best


def plain_class(name: str) -> str:
    """Return an exception's class without its module: tracebacks name a package's own."""
    return name.rpartition(".")[2] or name


def resource_entries(items: Iterable[MemoryItem]) -> Share:
    """Return the share of a store's entries that are resource entries ("548 of 1,348")."""
    kinds = [item.metadata.get("kind") for item in items]
    return Share(kinds.count(RESOURCE), len(kinds))
