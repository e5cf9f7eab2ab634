"""What is closed at the end of a `with`, or of an `async with`."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """Closed when its block ends, however it ends."""

    @abstractmethod
    def close(self) -> None:
        """Give back all that this holds."""

    @abstractmethod
    async def aclose(self) -> None:
        """Do what `close` does."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
