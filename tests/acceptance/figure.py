"""What a measurement is given and gives back, and the page of all figures, as Markdown and JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from langgraft._core.errors import InputError


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the page: a promise, and what was measured of it."""

    promise: str
    """In our words."""
    how: str
    """Command and size."""
    figure: str
    bound: str
    """What the figure is held against; empty where it is only reported."""
    passed: bool | None
    """`None`: reported, not judged."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how large to measure."""

    work: Path
    """An empty folder to work in."""
    checkout: Path
    """The git checkout that langgraft is imported from."""
    reduced: bool
    """Small sizes, for a check in minutes."""
    say: Callable[[str], None]
    """Tell of progress, in a line."""

    def size(self, full: int, reduced: int) -> int:
        """Return the size to use."""
        return reduced if self.reduced else full


def share(good: int, total: int, wrong: list[str] | None = None) -> str:
    """Write `good of total`, and name what is wrong."""
    named = f": {'; '.join(wrong[:5])}" if wrong else ""
    return f"{good:,} of {total:,}{named}"


_MARKS = {True: "pass", False: "**FAIL**", None: "reported"}

NOTES = """\
Not measured here:

* `make test` on a fresh clone. `make test-all` runs the whole suite.
* BabyAI's `compat` semantics against AgentGym's own server code. That code is not shipped; the
  comparison was made once, and its figures stand in `environments/babyai/__init__.py`.
"""


def write_page(out: Path, heading: str, groups: Sequence[tuple[str, Sequence[Figure]]]) -> Path:
    """Write `figures.md` and `figures.json`.

    Args:
        out: Folder to write to.
        heading: What was measured, in a line.
        groups: Title and rows of each group of promises.

    Raises:
        InputError: The files cannot be written.
    """
    rows = [{"group": title, **asdict(figure)} for title, figures in groups for figure in figures]
    page = out / "figures.md"
    try:
        page.write_text(_markdown(heading, groups), encoding="utf-8")
        listed = json.dumps({"heading": heading, "figures": rows}, indent=1, ensure_ascii=False)
        (out / "figures.json").write_text(listed + "\n", encoding="utf-8")
    except OSError as error:
        msg = f"{out}: the figures cannot be written: {error.strerror}"
        raise InputError(msg) from error
    return page


def verdict(figures: Sequence[Figure]) -> str:
    """Say how many promises hold."""
    judged = [figure.passed for figure in figures if figure.passed is not None]
    return f"{sum(judged)} of {len(judged)} judged figures pass"


def _markdown(heading: str, groups: Sequence[tuple[str, Sequence[Figure]]]) -> str:
    every = [figure for _, figures in groups for figure in figures]
    lines = ["# Figures", "", heading, "", f"{verdict(every)}.", ""]
    for title, figures in groups:
        if figures:
            lines += [
                f"## {title}",
                "",
                "| promise | how | figure | bound | |",
                "|---|---|---|---|---|",
            ]
            lines += [_row(figure) for figure in figures]
            lines.append("")
    return "\n".join([*lines, NOTES])


def _row(figure: Figure) -> str:
    cells = (figure.promise, figure.how, figure.figure, figure.bound, _MARKS[figure.passed])
    return "| " + " | ".join(" ".join(cell.split()).replace("|", r"\|") for cell in cells) + " |"
