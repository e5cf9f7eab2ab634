"""Pages by templates, and the folder of a report: nothing is fetched, no script, all is escaped.

    <out>/index.html       the page to open, send or print
    <out>/tables/*.csv     every number, tidy
    <out>/figures/*.svg    every figure

The same log gives the same bytes. What comes from outside (titles, names, task texts, replies) is
escaped by the templates' environment, which has no way around it but for figures of ours.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from langgraft._core.files import atomic_write, make_directory
from langgraft._core.lazy import require
from langgraft.benchmarks.reporting import words
from langgraft.benchmarks.reporting.findings import tested_parts
from langgraft.benchmarks.reporting.tables import Table, write_tables

PAGE: Final = "index.html"

_PURPOSE: Final = "The report"


def check_extra() -> None:
    """Check that what computes and draws a report is installed.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    for module in ("scipy", "matplotlib", "jinja2"):
        require(module, extra="bench", purpose=_PURPOSE)


@cache  # with what it has compiled: a report has a page of one template for each of many trees
def environment(*packages: str, **filters: Any) -> Any:
    """Return an environment that escapes everything and refuses names that are not there.

    The same packages and filters give the same environment, which is shared: it is not to be changed.

    Args:
        packages: Packages with a folder `templates`, the first that has a template first; those
            that all reports share come last.
        filters: What templates need beside the words of all reports.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    jinja: Any = require("jinja2", extra="bench", purpose=_PURPOSE)
    made = jinja.Environment(
        loader=jinja.ChoiceLoader([jinja.PackageLoader(name) for name in (*packages, __package__)]),
        autoescape=True,
        finalize=lambda value: words.visible(value) if type(value) is str else value,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        number=words.number,
        signed=words.signed,
        plain=words.plain,
        interval=words.interval,
        for_these_orders=words.for_these_orders,
        p=lambda p: words.p_value(p).removeprefix("p ").removeprefix("= "),
        spread=words.spread,
        detectable=words.detectable,
        tested_parts=tested_parts,
    )
    made.filters.update(filters)
    made.globals.update(several=words.several, subtraction=words.subtraction)
    return made


def trusted(svg: str) -> Any:
    """Return a figure of ours as markup that templates leave as it is."""
    jinja: Any = require("jinja2", extra="bench", purpose=_PURPOSE)
    return jinja.utils.markupsafe.Markup(svg)


def write_folder(
    out: Path, *, tables: Iterable[Table], figures: Mapping[str, str], page: str
) -> Path:
    """Write a report to a folder, made where it is missing; return its page.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    for folder in (out, out / "tables", out / "figures"):
        make_directory(folder)
    write_tables(tables, out / "tables")
    for name, svg in figures.items():
        atomic_write(out / "figures" / f"{name}.svg", f"{svg}\n".encode())
    atomic_write(out / PAGE, f"{page}\n".encode())
    return out / PAGE


def write_pages(folder: Path, pages: Iterable[tuple[str, str]]) -> None:
    """Write further pages by file name to a folder of theirs; older ones not among them go.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    make_directory(folder)
    written = set()
    for name, page in pages:
        atomic_write(folder / name, f"{page}\n".encode())
        written.add(name)
    for stale in folder.glob("*.html"):
        if stale.name not in written:
            stale.unlink()
