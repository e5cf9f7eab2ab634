"""The parts that programs for a task are made of, by the form of the task."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.endings import endings, metric_called
from langgraft.benchmarks.simulated.data_scientist.models import models_for
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.pictures import parts_of_pictures
from langgraft.benchmarks.simulated.data_scientist.programs import sections_of, title_of
from langgraft.benchmarks.simulated.data_scientist.restoring import parts_of_restoring
from langgraft.benchmarks.simulated.data_scientist.tables import parts_of_tables
from langgraft.benchmarks.simulated.data_scientist.tasks import Form, Task
from langgraft.benchmarks.simulated.data_scientist.texts import parts_of_texts

_FORMS: Final[Mapping[Form, Callable[[Task], Iterator[Part]]]] = {
    "table": parts_of_tables,
    "text": parts_of_texts,
    "pictures": parts_of_pictures,
    "restoring": parts_of_restoring,
}

_TITLES: Final[Mapping[str, Form]] = {
    "a table": "table",
    "texts": "text",
    "pictures with labels": "pictures",
    "pairs of pictures": "restoring",
}
"""What programs call their data."""


def carried_on(task: Task, code: str) -> Task:
    """Return a task with the form and the metric of a program that is there already.

    A prompt that shows a program may show no data, and its description may tell less.
    """
    titles = {slot: title_of(section) for slot, section in sections_of(code).items()}
    form = _TITLES.get(titles.get("Data", ""), task.form)
    metric = metric_called(titles.get("Metric", "")) or task.metric
    return replace(task, form=form, metric=metric)


def parts_for(task: Task) -> list[Part]:
    """Return all parts that a program for a task may have."""
    return [*_FORMS[task.form](task), *models_for(task), *endings(task)]


def slot_parts(parts: Iterable[Part], slot: str) -> list[Part]:
    """Return the parts that fill a section."""
    return [each for each in parts if each.slot == slot]
