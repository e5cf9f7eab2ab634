"""A rehearsal of MLE-bench lite without its data: 22 layouts made up, three agents, in Docker.

Every agent's run prepares, previews, hands in the sample submission and is graded; memory and disk
are written down. At full size all rows and files are there (the largest takes some 6 GB of disk at a time);
reduced, a thousandth, of those with archives and of the largest.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lite_layouts import LAYOUTS

from acceptance.command import clean_environment, run
from acceptance.figure import Figure, Setting, share

_TESTS: Final = Path(__file__).resolve().parents[1]
_PATH: Final = os.pathsep.join(map(str, (_TESTS.parent / "src", _TESTS, _TESTS / "support")))
_SHARE: Final = 0.001
_REDUCED: Final = (
    "the-icml-2013-whale-challenge-right-whale-redux",
    "text-normalization-challenge-english-language",
    "denoising-dirty-documents",
)
_MOST: Final = 3 << 30
"""Memory of our own process, at full size."""


def measure(setting: Setting) -> list[Figure]:
    """Rehearse each competition in a process of its own."""
    found: list[Mapping[str, Any]] = []
    wrong: list[str] = []
    size = 1.0 if not setting.reduced else _SHARE
    names = _REDUCED if setting.reduced else tuple(LAYOUTS)
    for name in names:
        setting.say(f"rehearsal of {name}")
        place = setting.work / name
        command = [sys.executable, "-m", "acceptance.rehearsal_worker", name, str(place), str(size)]
        ended = run(command, environment=clean_environment() | {"PYTHONPATH": _PATH})
        if ended.code:
            wrong.append(f"{name}: {ended.stderr.strip()[-300:]}")
        else:
            found.append(json.loads(ended.stdout))
            wrong += _wrong(found[-1])
        shutil.rmtree(place, ignore_errors=True)
    peak = max((each["peak"] for each in found), default=0)
    agents = sum(len(each["runs"]) for each in found)
    how = f"{len(names)} layouts, rows and files times {size:g}; tree, chain and MLAB in Docker, 2 cores"
    return [
        Figure(
            "Every agent hands in the sample submission of every lite competition, and is graded",
            how,
            f"{agents} runs; {share(len(found), len(names), wrong)}",
            "all valid, with a score",
            not wrong,
        ),
        Figure(
            "What one process takes at most",
            how,
            f"{peak / 1e9:.2f} GB",
            f"< {_MOST / 1e9:.1f} GB",
            peak < _MOST,
        ),
        *(Figure(each["id"], how, line_of(each), "", None) for each in found),
    ]


def _wrong(found: Mapping[str, Any]) -> Iterator[str]:
    if len(found["preview"]) > 6_000:
        yield f"{found['id']}: a preview of {len(found['preview'])} characters"
    for each in found["runs"]:
        if not each["valid"] or each["score"] is None:
            yield f"{found['id']}, {each['agent']}: {each}"


def line_of(found: Mapping[str, Any]) -> str:
    """Tell what a rehearsal took."""
    runs, seconds = found["runs"], found["seconds"]
    (size, files), (more, unpacked) = found["data"], found["view"]
    return (
        f"{files:,} files, {size / 1e6:,.1f} MB; unpacked {unpacked:,} files, {more / 1e6:,.1f} MB"
        f" in {seconds['unpack']:.1f} s; preview {seconds['preview']:.1f} s; submission"
        f" {max(run['bytes'] for run in runs) / 1e6:,.1f} MB; a run"
        f" {max(run['cpu'] for run in runs):.0f} s, grading {max(run['grading'] for run in runs):.0f}"
        f" s (CPU); memory {found['peak'] / 1e9:.2f} GB, container"
        f" {max(run['container'] for run in runs) / 1e9:.2f} GB; kept {found['disk'] / 1e6:,.1f} MB"
    )
