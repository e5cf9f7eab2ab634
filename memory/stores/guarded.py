"""A store that tells a world that failed from a program that is wrong."""

from collections.abc import Iterable

from langgraph.store.base import BaseStore, Op, Result

from langgraft._core.errors import InfrastructureError
from langgraft.memory.stores.in_memory import acarry_out, carry_out


class GuardedStore(BaseStore):
    """Pass operations on to a store whose database may go away.

    Args:
        store: The store.
        failures: What its driver raises when the database cannot be reached any more.
        name: What errors call the store.
    """

    def __init__(
        self, store: BaseStore, failures: tuple[type[Exception], ...], *, name: str
    ) -> None:
        self.store = store
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config
        self._failures = failures
        self._name = name

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch.

        Raises:
            InfrastructureError: The database cannot be reached any more.
        """
        try:
            return carry_out(self.store, ops)
        except self._failures as error:
            raise self._lost(error) from error

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch` does, asynchronously."""
        try:
            return await acarry_out(self.store, ops)
        except self._failures as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> InfrastructureError:
        words = " ".join(str(error).split()) or type(error).__name__
        return InfrastructureError(f"store {self._name} does not answer: {words}")
