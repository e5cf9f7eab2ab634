"""Prompts for small competitions of every form, and many programs run in one sandbox."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from langgraft.benchmarks.simulated import SimulatedDataScientist
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes import DockerSandbox, Job, Limits, PythonProgram
from langgraft.memory.recall import render_block
from langgraft.nodes.competition_run import Bounds
from langgraft.nodes.dialogue import SAMPLE
from langgraft.nodes.prompts import prompt

PACKAGES = "lightgbm, matplotlib, numpy, pandas, pillow, scikit-learn, scipy, xgboost"
TABLE = """\
# Who comes back
Predict how likely it is that a customer comes back.
## Evaluation
The area under the ROC curve.
"""
COUNTS = """\
# How many calls
Predict the number of calls. Submissions have the columns `key` and `calls`.
## Evaluation
Root mean squared logarithmic error.
"""
KINDS = """\
# What kind of day
Say how likely each kind is.
## Evaluation
Multi-class logarithmic loss.
"""
TEXTS = """\
# Who wrote it
Say how likely each author is.
## Evaluation
Multi-class log loss.
"""
PICTURES = """\
# Stripes
Small pictures, 12 by 12 pixels, of stripes. Say which way they run.
## Evaluation
Accuracy.
"""
RESTORING = """\
# Clear sight
Remove the noise of pictures, 16 by 16 pixels. A submission has a row for each pixel, named
`<picture>_<row>_<column>`.
## Evaluation
The root mean squared error.
"""


@dataclass(frozen=True)
class Case:
    """A competition: what is told of it, and its data."""

    description: str
    folder: Path
    preview: str
    """What a prompt shows of the data."""


def make_cases(folder: Path) -> dict[str, Case]:
    """Write the data of a competition of each form."""
    draws = np.random.default_rng(0)
    makers = {
        "table": (TABLE, _table),
        "counts": (COUNTS, _counts),
        "kinds": (KINDS, _kinds),
        "texts": (TEXTS, _texts),
        "pictures": (PICTURES, _pictures),
        "restoring": (RESTORING, _restoring),
    }
    made = {}
    for name, (description, write) in makers.items():
        (folder / name).mkdir()
        write(folder / name, draws)
        made[name] = Case(description, folder / name, data_preview(folder / name))
    return made


def _noted(notes: Iterable[str]) -> str:
    """Return recalled notes as they stand in a prompt."""
    block = render_block(tuple(notes))
    return f"{block}\n" if block else ""


def drafting(
    case: Case, *notes: str, attempts: str = "(none yet)", packages: str = PACKAGES
) -> str:
    """Ask for a draft."""
    return prompt("tree_draft").render(
        task=case.description,
        attempts=attempts,
        memory=_noted(notes),
        rules=_rules(packages),
        data=case.preview,
    )


def improving(case: Case, code: str, *notes: str) -> str:
    """Ask for an improvement."""
    return prompt("tree_improve").render(
        task=case.description,
        attempts="(none yet)",
        code=code,
        memory=_noted(notes),
        rules=_rules(PACKAGES),
    )


def merging(case: Case, first: str, second: str, *notes: str) -> str:
    """Ask for one program of two."""
    return prompt("tree_merge").render(
        task=case.description,
        attempts="(none yet)",
        metric="0.5",
        code=first,
        partner_metric="0.4",
        partner=second,
        memory=_noted(notes),
        rules=_rules(PACKAGES),
    )


def debugging(case: Case, code: str, output: str, *notes: str) -> str:
    """Ask for a repair."""
    return prompt("tree_debug").render(
        task=case.description,
        code=code,
        output=output,
        memory=_noted(notes),
        rules=_rules(PACKAGES),
        data=case.preview,
    )


def said(text: str, sample: str = "", **settings: Any) -> str:
    """Return the reply to a prompt."""
    config = {"metadata": {SAMPLE: sample}}
    return SimulatedDataScientist(**settings).invoke(text, config=config).text  # type: ignore[arg-type]


def code_of(reply: str) -> str:
    """Return the program of a reply."""
    return reply.partition("```python\n")[2].rpartition("```")[0]


Ran = tuple[str, bool]
"""What a program raised, `ran` or `TIMEOUT`; and whether it printed a metric and left a submission
with the columns and as many rows as the sample has."""


def run_all(
    cases: Mapping[str, Case], programs: Mapping[str, Mapping[str, str]], image: str
) -> dict[str, dict[str, Ran]]:
    """Run programs for each case one after the other, in one process: libraries are loaded once.

    Args:
        cases: By name.
        programs: Of each case, by name.
        image: Where they run.
    """
    files = {"programs.json": json.dumps({name: dict(programs[name]) for name in cases}).encode()}
    limits = Limits(seconds=600, cpus=1)  # threads that wait for each other would slow all down
    inputs = {name: case.folder for name, case in cases.items()}
    with DockerSandbox(image, limits=limits, inputs=inputs, pool=0) as sandbox:
        result = sandbox.run(Job(PythonProgram(_RUNNER), files=files))
    assert result.error is None, result.error
    found: dict[str, dict[str, Ran]] = {name: {} for name in cases}
    for line in result.stdout.splitlines():
        if line.startswith("["):
            case, name, raised, whole = json.loads(line)
            found[case][name] = (raised, bool(whole))
    return found


_RUNNER = """
import contextlib, io, json, os, signal, warnings
import lightgbm, sklearn.ensemble, xgboost  # so that no program's time goes to it
import pandas as pd

warnings.simplefilter("ignore")


class Slow(BaseException):
    pass


def stop(*_):
    raise Slow


def run(code, sample):
    if os.path.exists("submission.csv"):
        os.remove("submission.csv")
    printed = io.StringIO()
    # Of computing, which takes longer on a core that two threads share.
    signal.setitimer(signal.ITIMER_PROF, 6)
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile(code, "program.py", "exec"), {"__name__": "__main__"})
        raised = "ran"
    except Slow:
        raised = "TIMEOUT"
    except BaseException as error:
        raised = f"{type(error).__name__}: {error}"
    signal.setitimer(signal.ITIMER_PROF, 0)
    whole = "Validation metric: " in printed.getvalue() and os.path.exists("submission.csv")
    if whole:
        made = pd.read_csv("submission.csv")
        whole = list(made) == list(sample) and len(made) == len(sample) and made.notna().all(axis=None)
    return [raised[:400], bool(whole)]


signal.signal(signal.SIGPROF, stop)
top = os.getcwd()
for case, programs in json.load(open("programs.json")).items():
    os.makedirs(f"{top}/runs/{case}")
    os.chdir(f"{top}/runs/{case}")
    os.symlink(f"{top}/{case}", "input")
    sample = pd.read_csv("input/sample_submission.csv")
    for name, code in programs.items():
        print(json.dumps([case, name, *run(code, sample)]), flush=True)
"""


def told_bounds(left: int = 20, steps: int = 30) -> str:
    """Write what a run may use, with so many steps left."""
    bounds = Bounds(Limits(), 60.0, steps, 24.0)
    return bounds.text(prompt("bounds"), done=steps - left, spent=0.0)


def _rules(packages: str) -> str:
    return prompt("tree_rules").render(split="", folds="5", packages=packages, bounds=told_bounds())


def _csv(path: Path, names: str, rows: Iterable[Iterable[Any]]) -> None:
    lines = (",".join(map(str, row)) for row in rows)
    path.write_text("\n".join([names, *lines]) + "\n", encoding="utf-8")


def _columns(draws: np.random.Generator, count: int) -> list[tuple[Any, ...]]:
    ages, spent = draws.integers(18, 80, count), draws.gamma(2, 30, count).round(2)
    month, colors = draws.integers(1, 13, count), draws.choice(["red", "green", "blue"], count)
    return list(zip(ages, spent, month, colors, strict=True))


def _table(folder: Path, draws: np.random.Generator) -> None:
    rows = _columns(draws, 200)
    chances = [age / 80 * 0.5 + (color == "red") * 0.4 for age, _, _, color in rows]
    came = [int(draws.random() < chance) for chance in chances]
    # Some amounts are missing, as they are in most data.
    rows = [(a, "" if at % 17 == 0 else b, c, d) for at, (a, b, c, d) in enumerate(rows)]
    names = "customer,age,spent,month,color"
    train = [(at, *row, out) for at, (row, out) in enumerate(zip(rows, came, strict=True))]
    _csv(folder / "train.csv", f"{names},came_back", train[:140])
    _csv(folder / "test.csv", names, [row[:-1] for row in train[140:]])
    _csv(folder / "sample_submission.csv", "customer,came_back", [(r[0], 0.5) for r in train[140:]])


def _counts(folder: Path, draws: np.random.Generator) -> None:
    rows = _columns(draws, 200)
    calls = [int(draws.poisson(age / 10 + month)) for age, _, month, _ in rows]
    train = [(at, *row, out) for at, (row, out) in enumerate(zip(rows, calls, strict=True))]
    names = "key,age,spent,month,color"
    _csv(folder / "train.csv", f"{names},calls", train[:140])
    _csv(folder / "test.csv", names, [row[:-1] for row in train[140:]])
    _csv(folder / "sample_submission.csv", "key,calls", [(row[0], 0) for row in train[140:]])


def _kinds(folder: Path, draws: np.random.Generator) -> None:
    rows = _columns(draws, 220)
    kinds = [
        ("calm", "wild", "odd")[int(month > 4) + int(color == "red")] for _, _, month, color in rows
    ]
    train = [(at, *row, out) for at, (row, out) in enumerate(zip(rows, kinds, strict=True))]
    names = "id,age,spent,month,color"
    _csv(folder / "train.csv", f"{names},kind", train[:150])
    _csv(folder / "test.csv", names, [row[:-1] for row in train[150:]])
    sample = [(row[0], 0.3, 0.3, 0.4) for row in train[150:]]
    _csv(folder / "sample_submission.csv", "id,calm,odd,wild", sample)


def _texts(folder: Path, draws: np.random.Generator) -> None:
    words = {
        "ann": "sea ship wave sail harbor",
        "bob": "wood axe tree leaf root",
        "cy": "iron fire forge",
    }
    rows = []
    for at in range(210):
        author = str(draws.choice(list(words)))
        rows.append((at, " ".join(draws.choice(words[author].split(), 4)), author))
    _csv(folder / "train.csv", "id,text,author", rows[:150])
    _csv(folder / "test.csv", "id,text", [row[:2] for row in rows[150:]])
    _csv(
        folder / "sample_submission.csv",
        "id,ann,bob,cy",
        [(row[0], 0.3, 0.3, 0.4) for row in rows[150:]],
    )


def _pictures(folder: Path, draws: np.random.Generator) -> None:
    labels = [int(draws.integers(2)) for _ in range(190)]
    for part in ("train", "test"):
        (folder / part).mkdir()
    for at, label in enumerate(labels):
        stripes = np.tile(np.arange(12) % 4 < 2, (12, 1)) * 120 + draws.integers(0, 130, (12, 12))
        shown = stripes.T if label else stripes
        Image.fromarray(shown.astype(np.uint8)).save(
            folder / ("train" if at < 150 else "test") / f"{at}.png"
        )
    _csv(folder / "train.csv", "id,way", list(enumerate(labels))[:150])
    _csv(folder / "sample_submission.csv", "id,way", [(at, 0) for at in range(150, 190)])


def _restoring(folder: Path, draws: np.random.Generator) -> None:
    for part in ("train", "train_clean", "test"):
        (folder / part).mkdir()
    for at in range(14):
        rows, columns = np.mgrid[:16, :16]
        clean = 128 + 100 * np.sin((rows + columns * draws.random() + at) / 3)
        noisy = (clean + draws.normal(0, 25, clean.shape)).clip(0, 255)
        Image.fromarray(noisy.astype(np.uint8)).save(
            folder / ("train" if at < 10 else "test") / f"{at}.png"
        )
        if at < 10:
            Image.fromarray(clean.astype(np.uint8)).save(folder / "train_clean" / f"{at}.png")
    pixels = [
        (f"{at}_{row}_{column}", 128)
        for at in range(10, 14)
        for row in range(16)
        for column in range(16)
    ]
    _csv(folder / "sample_submission.csv", "id,value", pixels)
