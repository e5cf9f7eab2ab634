"""Logic over a store, written once: programs that yield operations and are sent results."""

from collections.abc import Coroutine, Generator, Sequence
from typing import TypeAlias, TypeVar, cast

from langgraph.store.base import BaseStore, Op, Result

from langgraft._core.effects import arun, run
from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors
from langgraft.memory.stores.in_memory import acarry_out, carry_out

T = TypeVar("T")

Step: TypeAlias = Sequence[Op] | EmbeddingRequest
"""What a program waits for: a store, or an embedder."""

Program: TypeAlias = Generator[Step, list[Result], T]
"""Yields batches of operations, is sent their results, and returns a `T`.

What a store raises is raised at the `yield`. A program holds no lock and awaits nothing, so the
same one serves threads and event loops. Vectors it asks for with `yield from embed(request)`.
"""


Hooked: TypeAlias = Program[T] | T
"""What a hook returns: its value, or, where it needs the store, a program that comes to it."""


def program(made: Hooked[T]) -> Program[T]:
    """Return what a hook somebody wrote made as a program.

    Raises:
        SettingsError: The hook is `async`.
    """
    if isinstance(made, Generator):
        return made
    if isinstance(made, Coroutine):
        made.close()
        name = getattr(made, "__qualname__", made)
        msg = f"`{name}` is async: make it a plain function, or a generator that yields operations"
        raise SettingsError(msg)
    return _returned(made)


def _returned(value: T) -> Program[T]:
    return value
    yield


def embed(request: EmbeddingRequest) -> Program[Vectors]:
    """Ask for vectors; what the embedder raises is raised here."""
    answer: object = yield request
    return cast("Vectors", answer)


def drive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.batch`, and with embedders' synchronous methods."""

    def perform(step: Step) -> list[Result]:
        if isinstance(step, EmbeddingRequest):
            # Programs say what they are sent for operations; `embed` knows that this is a matrix.
            return cast("list[Result]", step.answer())
        return carry_out(store, step)

    return run(program, perform)


async def adrive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.abatch`, and with embedders' asynchronous methods."""

    async def perform(step: Step) -> list[Result]:
        if isinstance(step, EmbeddingRequest):
            return cast("list[Result]", await step.aanswer())
        return await acarry_out(store, step)

    return await arun(program, perform)
