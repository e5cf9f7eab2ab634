"""The parts that programs for a task are made of, by the form of the task."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.endings import endings
from langgraft.benchmarks.simulated.data_scientist.models import models_for
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.pictures import parts_of_pictures
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


def parts_for(task: Task) -> list[Part]:
    """Return all parts that a program for a task may have."""
    return [*_FORMS[task.form](task), *models_for(task), *endings(task)]


def slot_parts(parts: Iterable[Part], slot: str) -> list[Part]:
    """Return the parts that fill a section."""
    return [each for each in parts if each.slot == slot]
