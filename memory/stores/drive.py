"""Logic over a store, written once: generators that yield operations and are sent results."""

from collections.abc import Generator, Sequence
from typing import TypeAlias, TypeVar

from langgraph.store.base import BaseStore, Op, Result

T = TypeVar("T")

Program: TypeAlias = Generator[Sequence[Op], list[Result], T]
"""Yields batches of operations, is sent their results, and returns a `T`.

What a store raises is raised at the `yield`. A program holds no lock and awaits nothing, so the
same one serves threads and event loops.
"""


def drive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.batch`."""
    try:
        ops = next(program)
        while True:
            try:
                results = store.batch(ops)
            except BaseException as error:  # noqa: BLE001 - it is the program's to handle
                ops = program.throw(error)
            else:
                ops = program.send(results)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def adrive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.abatch`."""
    try:
        ops = next(program)
        while True:
            try:
                results = await store.abatch(ops)
            except BaseException as error:  # noqa: BLE001 - cancellation included
                ops = program.throw(error)
            else:
                ops = program.send(results)
    except StopIteration as stop:
        value: T = stop.value
        return value
