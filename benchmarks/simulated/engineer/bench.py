"""What lies on the bench: files and programs, and what came of each, as the conversation shows it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.simulated.data_scientist.programs import sections_of, title_of
from langgraft.benchmarks.simulated.data_scientist.reviewing import reported, went_wrong
from langgraft.benchmarks.simulated.data_scientist.tasks import Metric
from langgraft.benchmarks.simulated.engineer.conversation import Turn
from langgraft.benchmarks.simulated.engineer.shell import SCRIPT, script_run, written_there

Way: TypeAlias = Literal["cell", "script"]
"""How a program is run: as a cell of the interpreter, or as a script from a shell."""

LEFT_OUT: Final = "left out"
"""Stands where something is no longer shown."""
HIGHER: Final[frozenset[Metric]] = frozenset({"auc", "accuracy", "kappa", "f1", "r2"})
"""Metrics of which more is better."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A program that was run."""

    code: str
    way: Way
    output: str
    plan: str
    """What was said beside it."""
    failed: bool
    metric: float | None


@dataclass(slots=True)
class Bench:
    """What was done so far, summed up turn by turn."""

    looked: int = 0
    """How often the data was looked at."""
    astray: bool = False
    """Whether the last look failed."""
    files: dict[str, str] = field(default_factory=dict)
    """Scripts as they were last written."""
    tried: list[Tried] = field(default_factory=list)
    waiting: str = ""
    """A plan whose script was written, and not run yet."""
    misnamed: bool = False
    """Whether a script was just run by a name that no file has."""
    uneditable: bool = False
    """Whether the last change of a file was refused."""
    validated: bool | None = None
    """What the submission of the last program that ran was found to be; `None`: not looked at."""
    complaint: str = ""
    """What was found wrong with it."""

    def failures(self) -> int:
        """Return how many programs failed since one ran."""
        count = 0
        for each in reversed(self.tried):
            if not each.failed:
                break
            count += 1
        return count

    def best(self, metric: Metric) -> Tried | None:
        """Return the program with the best metric, the first of them."""
        ran = [each for each in self.tried if not each.failed and each.metric is not None]
        sign = -1 if metric in HIGHER else 1
        return min(ran, key=lambda each: sign * (each.metric or 0.0), default=None)

    def in_place(self) -> Tried | None:
        """Return the program that wrote the submission that lies there."""
        return next((each for each in reversed(self.tried) if not each.failed), None)

    def titles(self) -> str:
        """Name what was tried, for choices to differ from it."""
        sections = [text for each in self.tried for text in sections_of(each.code).values()]
        return "\n".join(dict.fromkeys(title_of(text) for text in sections))


def bench_of(turns: Sequence[Turn]) -> Bench:
    """Sum up what was done."""
    bench = Bench()
    for turn in turns:
        _done(bench, turn)
    return bench


def _done(bench: Bench, turn: Turn) -> None:
    bench.misnamed = bench.uneditable = bench.astray = False
    match turn.tool:
        case "run_python":
            _ran(bench, turn, turn.arguments.get("code", ""), "cell")
        case "run_bash":
            _commanded(bench, turn, turn.arguments.get("command", ""))
        case "edit_file":
            _edited(bench, turn)
        case "validate_submission":
            bench.validated = not says_invalid(turn.seen)
            bench.complaint = "" if bench.validated else turn.seen
        case _:
            pass


_INVALID: Final = re.compile(
    r"\bnot valid\b|\binvalid\b|\babsent\b|^not done\b", re.IGNORECASE | re.MULTILINE
)


def says_invalid(seen: str) -> bool:
    """Say whether a check found something wrong with a submission."""
    return _INVALID.search(seen) is not None


def _commanded(bench: Bench, turn: Turn, command: str) -> None:
    bench.files.update(written_there(command))
    name = script_run(command)
    if name is None:
        _looked(bench, turn)
    elif name in bench.files:
        _ran(bench, turn, bench.files[name], "script")
    else:
        bench.misnamed = went_wrong(turn.seen)
        bench.waiting = bench.waiting or turn.said


def _edited(bench: Bench, turn: Turn) -> None:
    told = turn.arguments
    path = told.get("path", SCRIPT)
    if told.get("command") == "create":
        bench.files[path] = told.get("file_text", "")
    elif told.get("command") == "str_replace":
        old, new, text = told.get("old_str", ""), told.get("new_str", ""), bench.files.get(path, "")
        if not old or text.count(old) != 1 or _REFUSED.search(turn.seen):
            bench.uneditable = True
            return
        bench.files[path] = text.replace(old, new)
    else:
        return
    bench.waiting = turn.said


_REFUSED: Final = re.compile(r"\bnot (?:found|done|there)\b|\bno such\b|\boccurs\b", re.IGNORECASE)


def _ran(bench: Bench, turn: Turn, code: str, way: Way) -> None:
    bench.waiting = ""
    if not sections_of(code):
        _looked(bench, turn)
        return
    metric, wrong = reported(turn.seen), went_wrong(turn.seen)
    if LEFT_OUT in code or (metric is None and not wrong and LEFT_OUT in turn.seen):
        return  # what it was, or what came of it, is no longer told
    failed = wrong or metric is None
    bench.tried.append(Tried(code, way, turn.seen, turn.said, failed, metric))
    bench.validated, bench.complaint = None, ""


def _looked(bench: Bench, turn: Turn) -> None:
    bench.looked += 1
    bench.astray = went_wrong(turn.seen)
