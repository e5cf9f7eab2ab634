"""First looks at the data."""

from typing import Final

from langgraft.benchmarks.simulated.chat import Reply, ToolUse
from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.engineer.bench import Bench

ASTRAY: Final = 0.1
"""Rate of a look into a folder that is not there."""
IN_PYTHON: Final = 0.5
"""Chance of a second look, in Python."""

_MEASURED: Final = """\
import pandas as pd

seen = pd.read_csv("input/{train}")
print(seen.shape)
print(seen.isna().mean().round(3).to_dict())
print(seen.nunique().to_dict())
"""


def look(desk: Desk, bench: Bench) -> Reply | None:
    """Look at the data from a shell, then perhaps in Python; `None` where that was done."""
    train = desk.task.train
    if bench.looked == 0 or bench.astray:
        astray = not bench.astray and desk.dice.lucky("astray", ASTRAY * desk.ignorance)
        folder = "data" if astray else "input"
        command = f"ls {folder}/ && head -n 3 {folder}/{train}"
        said = f"Look at the files in `{folder}`, and at how the training table begins."
        return Reply(said, (ToolUse("run_bash", {"command": command}),))
    if bench.looked == 1 and desk.dice.lucky("measure", IN_PYTHON):
        said = "Measure the training table: rows, what is missing, how many values there are."
        return Reply(said, (ToolUse("run_python", {"code": _MEASURED.format(train=train)}),))
    return None
