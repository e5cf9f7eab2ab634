"""MATH: its problems, from the original folders, JSON Lines, or rows such as `datasets` gives (Hendrycks et al. 2021)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.errors import InputError
from langgraft._core.untrusted import MOST_BYTES, load_json, read_most, unzipped
from langgraft.environments.problems.answers import final_answer

_LEVEL: Final = re.compile(r"Level ([1-5?])")
_TEXTS: Final = ("problem", "level", "solution")
_MOST_BYTES: Final = 16 * MOST_BYTES
"""Of a file of problems; the training set is 7 MB."""


@dataclass(frozen=True, slots=True)
class MathProblem:
    """A problem with its answer. `text` is what is asked, `subject` the field as MATH names it."""

    id: str
    """Its `unique_id`, or its place in the folders or the file."""
    text: str
    level: int | None
    """1 to 5; `None` for the two of the training set whose level is unknown."""
    subject: str
    solution: str
    """Worked out, with the answer in its last box."""
    answer: str
    """LaTeX, without its box; empty for the two of the training set whose box is empty."""


def read_math(source: str | Path | Iterable[Mapping[str, Any]]) -> tuple[MathProblem, ...]:
    """Read problems, in the order of the source; those of folders by path.

    Args:
        source: The folder that `MATH.tar` unpacks to (or one of its subjects'), a JSON Lines file
            (compressed by gzip or not), or rows with the fields `problem`, `level`, `solution`, and
            `type` or `subject`.

    Raises:
        InputError: There is none, a field is missing or not a text, a level is unknown, a solution has
            no boxed answer, or two problems have one id. It names the file and the line.
    """
    found = tuple(_problem(*each) for each in _rows(source))
    seen: dict[str, MathProblem] = {}
    for each in found:
        if seen.setdefault(each.id, each) is not each:
            msg = f"two problems have the id {each.id!r}"
            raise InputError(msg)
    if not found:
        msg = f"no problems of MATH in {source}"
        raise InputError(msg)
    return found


def _rows(source: str | Path | Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, Any]]:
    """Yield where each row stands, the id that it has from there, and the row."""
    if not isinstance(source, str | Path):
        for number, row in enumerate(source):
            yield f"row {number}", str(number), row
        return
    path = Path(source)
    if path.is_dir():
        for file in sorted(path.rglob("*.json"), key=_in_order):
            yield (
                str(file),
                str(file.relative_to(path).with_suffix("")),
                _json(file, 0, _bytes(file)),
            )
        return
    for number, line in enumerate(_bytes(path).splitlines(), 1):
        if line.strip():
            yield f"{path}, line {number}", str(number), _json(path, number, line)


def _in_order(file: Path) -> tuple[str, int, str]:
    return file.parent.as_posix(), int(file.stem) if file.stem.isdecimal() else 0, file.stem


def _bytes(path: Path) -> bytes:
    try:
        return unzipped(read_most(path, _MOST_BYTES), _MOST_BYTES)
    except (OSError, ValueError) as error:
        msg = f"{path} cannot be read: {error}"
        raise InputError(msg) from error


def _json(path: Path, number: int, data: bytes) -> Any:
    try:
        return load_json(data)
    except ValueError as error:
        where = f"{path}, line {number}" if number else str(path)
        msg = f"{where}: not JSON: {error}"
        raise InputError(msg) from error


def _problem(where: str, place: str, row: Any) -> MathProblem:
    if not isinstance(row, Mapping):
        msg = f"{where}: expected a problem's fields, got {type(row).__name__}"
        raise InputError(msg)
    subject = row.get("type", row.get("subject"))
    fields = {**{name: row.get(name) for name in _TEXTS}, "type": subject}
    for name, value in fields.items():
        if not isinstance(value, str) or not value.strip():
            msg = f"{where}: the field {name!r} is {'missing' if value is None else 'no text'}"
            raise InputError(msg)
    level = _LEVEL.fullmatch(fields["level"].strip())
    if level is None:
        msg = f"{where}: unknown level {fields['level']!r}; expected 'Level 1' to 'Level 5'"
        raise InputError(msg)
    solution = fields["solution"]
    if "\\boxed" not in solution and "\\fbox" not in solution:
        msg = f"{where}: the solution has no boxed answer"
        raise InputError(msg)
    return MathProblem(
        id=str(row.get("unique_id") or place),
        text=fields["problem"],
        level=None if level[1] == "?" else int(level[1]),
        subject=subject,
        solution=solution,
        answer=final_answer(solution).strip(),
    )
