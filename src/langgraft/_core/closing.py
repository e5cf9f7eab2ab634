"""What has to be closed: by a call, or at the end of a block, synchronously and asynchronously."""

import asyncio
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Self


class Closing:
    """Base of what has to be closed; closing it again does nothing more."""

    def also_close(self, opened: AbstractContextManager[Any]) -> None:
        """Have something that was opened for this object closed with it."""
        vars(self).setdefault("_opened", ExitStack()).push(opened)

    def close(self) -> None:
        """Close what was opened for this object."""
        vars(self).setdefault("_opened", ExitStack()).close()

    async def aclose(self) -> None:
        """Do as `close` does, in a thread."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
