"""The section of a program that reads the data, filled in with what a task says of it."""

from dataclasses import asdict
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_CLASSES: Final = "classes, y = np.unique(train[TARGET], return_inverse=True)"
_LOGARITHMS: Final = "y = np.log1p(train[TARGET].to_numpy(dtype=float))"
_NUMBERS: Final = "y = train[TARGET].to_numpy(dtype=float)"


def data_part(title: str, template: str, task: Task, **other: str) -> Part:
    """Make a Data part of a template whose places are fields of the task, and `answers`.

    Args:
        title: What programs call such data.
        template: Python, with `{name}` for each place.
        task: Fills them in.
        other: What stands in a place other than the task has it.
    """
    told = {**asdict(task), "answers": _answers(task), **other}
    return Part("Data", title, template.format(**told))


def _answers(task: Task) -> str:
    """Return the line that reads what is to be predicted, in the form that the metric wants."""
    if task.classes:
        return _CLASSES
    return _LOGARITHMS if task.metric == "rmsle" else _NUMBERS
