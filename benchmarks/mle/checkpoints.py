"""Checkpoints in SQLite whose writes are whole, also when whoever asked for one is dropped."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiosqlite
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from typing_extensions import override

from langgraft._core.errors import RunDirectoryError
from langgraft._core.sqlite_file import CHECKPOINTS, check_file

T = TypeVar("T")


class WholeWrites(AsyncSqliteSaver):
    """Finishes each write that was begun.

    LangGraph drops the other branches when one fails. A write that is dropped between its insert
    and its commit holds the file's lock for as long as something refers to its cursor, so that
    going on in the same process would find the file locked.
    """

    def __init__(self, connection: aiosqlite.Connection) -> None:
        super().__init__(connection)
        self._writing: set[asyncio.Future[Any]] = set()

    @override
    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint."""
        return await self._whole(super().aput(config, checkpoint, metadata, new_versions))

    @override
    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Write what a task wrote."""
        await self._whole(super().aput_writes(config, writes, task_id, task_path))

    async def _whole(self, write: Coroutine[Any, Any, T]) -> T:
        writing = asyncio.ensure_future(write)
        self._writing.add(writing)
        writing.add_done_callback(self._writing.discard)
        return await asyncio.shield(writing)

    async def finish(self) -> None:
        """Wait until nothing is being written; who asked has been told of what went wrong."""
        await asyncio.gather(*self._writing, return_exceptions=True)


@asynccontextmanager
async def open_checkpoints(path: Path) -> AsyncIterator[WholeWrites]:
    """Open a file of checkpoints; made where it is not there.

    Raises:
        RunDirectoryError: It is no such file.
    """
    async with AsyncExitStack() as opened:
        try:
            check_file(path, CHECKPOINTS)
            connection = await opened.enter_async_context(aiosqlite.connect(path))
            await connection.execute("PRAGMA trusted_schema = OFF")
            saver = WholeWrites(connection)
            await saver.setup()
        except (sqlite3.DatabaseError, OSError) as error:
            msg = f"is damaged: {error}; remove its folder to search anew"
            raise RunDirectoryError(msg, path=path) from error
        try:
            yield saver
        finally:
            await saver.finish()
