"""Logic over a store, written once: generators that yield operations and are sent results."""

from collections.abc import Callable, Generator, Sequence
from typing import ParamSpec, TypeAlias, TypeVar, cast

from langgraph.store.base import BaseStore, Op, Result

from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.stores.in_memory import acarry_out, carry_out

P = ParamSpec("P")
T = TypeVar("T")

Step: TypeAlias = Sequence[Op] | EmbeddingRequest
"""What a program waits for: a store, or an embedder."""

Program: TypeAlias = Generator[Step, list[Result], T]
"""Yields batches of operations, is sent their results, and returns a `T`.

What a store raises is raised at the `yield`. A program holds no lock and awaits nothing, so the
same one serves threads and event loops. Vectors it asks for with `yield from embed(request)`.
"""


def program(hook: Callable[P, Program[T]], *args: P.args, **kwargs: P.kwargs) -> Program[T]:
    """Return the program that a hook somebody wrote makes.

    Raises:
        SettingsError: It returned something else: a hook without a `yield` is no generator.
    """
    made: object = hook(*args, **kwargs)
    if not isinstance(made, Generator):
        name = getattr(hook, "__qualname__", hook)
        msg = f"`{name}` is no program, as it holds no `yield`: put one after its last `return`"
        raise SettingsError(msg)
    return cast("Program[T]", made)


def embed(request: EmbeddingRequest) -> Program[Vectors]:
    """Ask for vectors; what the embedder raises is raised here."""
    answer: object = yield request
    return cast("Vectors", answer)


def drive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.batch`, and with embedders' synchronous methods."""
    try:
        step = next(program)
        while True:
            try:
                results = _answer(step, store)
            except BaseException as error:  # noqa: BLE001 - it is the program's to handle
                step = program.throw(error)
            else:
                step = program.send(results)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def adrive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.abatch`, and with embedders' asynchronous methods."""
    try:
        step = next(program)
        while True:
            try:
                results = await _aanswer(step, store)
            except BaseException as error:  # noqa: BLE001 - cancellation included
                step = program.throw(error)
            else:
                step = program.send(results)
    except StopIteration as stop:
        value: T = stop.value
        return value


def relayed(program: Program[T], answer: Callable[[Step], Program[list[Result]]]) -> Program[T]:
    """Run a program within another one, which answers each of its steps by a program."""
    try:
        step = next(program)
        while True:
            try:
                results = yield from answer(step)
            except BaseException as error:  # noqa: BLE001 - it is the inner program's to handle
                step = program.throw(error)
            else:
                step = program.send(results)
    except StopIteration as stop:
        value: T = stop.value
        return value


def _answer(step: Step, store: BaseStore) -> list[Result]:
    if isinstance(step, EmbeddingRequest):
        # Programs say what they are sent for operations; `embed` knows that this is a matrix.
        return cast("list[Result]", step.answer())
    return carry_out(store, step)


async def _aanswer(step: Step, store: BaseStore) -> list[Result]:
    if isinstance(step, EmbeddingRequest):
        return cast("list[Result]", await step.aanswer())
    return await acarry_out(store, step)
