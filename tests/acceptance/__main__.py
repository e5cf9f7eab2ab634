"""Measure every promise: `make acceptance`."""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import langgraft
from acceptance.command import run
from acceptance.figure import Figure, Setting, verdict, write_page
from acceptance.groups import measure_groups, say
from acceptance.promises import GROUPS
from langgraft._core.canonical import text_digest
from langgraft._core.errors import InputError


def main(arguments: list[str] | None = None) -> int:
    """Measure, write the page, and return 0 if every promise holds, 1 if not, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="acceptance", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="where to write figures.md")
    parser.add_argument("--reduced", action="store_true", help="small sizes, in minutes")
    parser.add_argument("--only", metavar="WORD", help="groups whose title holds this word")
    parser.add_argument("--skip", metavar="WORD", help="no group whose title holds this word")
    chosen = parser.parse_args(arguments)
    try:
        return _measure(chosen.out, reduced=chosen.reduced, only=chosen.only, skip=chosen.skip)
    except InputError as error:
        sys.stderr.write(f"acceptance: {error}\n")
        return 2


def _measure(out: Path, *, reduced: bool, only: str | None, skip: str | None) -> int:
    checkout = find_checkout(Path(langgraft.__file__))
    groups = [group for group in GROUPS if _holds(group.title, only)]
    groups = [group for group in groups if not skip or not _holds(group.title, skip)]
    if not groups:
        msg = f"no group {only!r} without {skip!r}; there are {', '.join(group.title for group in GROUPS)}"
        raise InputError(msg)
    work = _work_folder(out)
    code = code_state(checkout)
    heading = _heading(code, reduced=reduced)
    done: dict[int, tuple[str, Sequence[Figure]]] = {}
    started = time.monotonic()

    def written(told: Sequence[tuple[str, Sequence[Figure]]]) -> Path:
        minutes = (time.monotonic() - started) / 60
        return write_page(out, f"{heading} {minutes:.1f} minutes.", told)

    for group in measure_groups(groups, Setting(work, checkout, reduced, say)):
        done[group.number] = group.title, group.figures
        _tell(f"{group.title} ({group.seconds:.0f} s)", group.figures)
        written([done[number] for number in sorted(done)])
    code_is_one = [_one_code(code, code_state(checkout))]
    _tell("The code", code_is_one)
    told = [*(done[number] for number in sorted(done)), ("The code", code_is_one)]
    page = written(told)
    every = [figure for _, figures in told for figure in figures]
    failed = any(figure.passed is False for figure in every)
    if failed:
        say(f"what was made on the way is kept in {work}")
    else:
        shutil.rmtree(work)
    say(f"{verdict(every)}: {page}")
    return int(failed)


def _holds(title: str, word: str | None) -> bool:
    return not word or word.lower() in title.lower()


def _tell(title: str, figures: Sequence[Figure]) -> None:
    say(f"== {title}")
    for figure in figures:
        mark = {True: "pass", False: "FAIL", None: "    "}[figure.passed]
        say(f"  {mark}  {figure.promise}: {figure.figure}")


def find_checkout(module: Path) -> Path:
    """Return the git checkout that a module of langgraft lies in.

    Raises:
        InputError: It lies in none.
    """
    for folder in module.resolve().parents:
        if (folder / ".git").exists() and (folder / "src" / "langgraft").is_dir():
            return folder
    msg = (
        f"langgraft is imported from {module.parent}, which is no git checkout of it; clone the"
        " repository and run `make acceptance` there"
    )
    raise InputError(msg)


def _work_folder(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="work-", dir=out.resolve()))
    except OSError as error:
        msg = f"{out}: cannot be written: {error.strerror}"
        raise InputError(msg) from error


def code_state(checkout: Path) -> tuple[str, str]:
    """Return the commit of a checkout, and a digest of what is not committed, or nothing."""
    git = ["git", "-C", str(checkout)]
    commit = run([*git, "rev-parse", "--short", "HEAD"]).stdout.strip()
    status = run([*git, "status", "--porcelain"]).stdout
    changes = run([*git, "diff", "HEAD"]).stdout
    return commit, text_digest(status + changes)[:12] if status else ""


def _one_code(before: tuple[str, str], after: tuple[str, str]) -> Figure:
    return Figure(
        "All figures are of one state of the code",
        "commit and changes of the checkout, before and after",
        " and ".join(" + ".join(part for part in state if part) for state in (before, after)),
        "equal",
        before == after,
    )


def _heading(code: tuple[str, str], *, reduced: bool) -> str:
    commit, changes = code
    extra = " with changes not committed (the demo is that of the commit)" if changes else ""
    return (
        f"{'Reduced' if reduced else 'Full'} size, langgraft {langgraft.__version__} at commit"
        f" {commit}{extra}, Python {platform.python_version()} on {platform.system()}"
        f" {platform.machine()} with {os.cpu_count()} cores."
    )


if __name__ == "__main__":
    sys.exit(main())
