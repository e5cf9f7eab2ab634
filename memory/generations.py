"""Generations of a bank: what a filing began in, so that deleted memory does not come back.

An episode is often filed long after its turn: a model draws lessons from it first, in the background or in
another process. If the bank is cleared or deleted meanwhile, the episode would bring back what the user had
removed. So each `clear` and each `Banks.delete` begins a new generation of the bank. Its name is kept in the
store outside of the bank, under a digest that names nobody, and is written before anything is deleted:

    generation = memory.generation()  # when the turn begins
    ...                               # a model is asked
    memory.file(episode, generation=generation)  # raises BankClearedError if the bank was cleared

The check and the writes of a filing are one step under the bank's lock.
"""

import uuid
from typing import Final, cast

from langgraph.store.base import GetOp, Item, PutOp

from langgraft._core.canonical import digest
from langgraft._core.errors import BankClearedError
from langgraft.memory.stores.programs import Namespace, Program

GENERATIONS: Final = "langgraft-generations"
"""Label of the namespace in which the generations of all banks of a store are kept."""

FIRST: Final = ""
"""The generation of a bank that was never cleared."""


def read_generation(namespace: Namespace) -> Program[str]:
    """Return the generation that a bank is in."""
    results = yield [GetOp((GENERATIONS,), _key(namespace), refresh_ttl=False)]
    record = cast("Item | None", results[0])
    return FIRST if record is None else str(record.value["generation"])


def next_generation(namespace: Namespace) -> Program[None]:
    """Begin a new generation of a bank: filings that began before are refused from now on."""
    # Drawn by chance: two processes that clear a bank at once must not write the same.
    value = {"generation": uuid.uuid4().hex}
    yield [PutOp((GENERATIONS,), _key(namespace), value, index=False)]


def check_generation(namespace: Namespace, began: str) -> Program[None]:
    """Refuse what began in an earlier generation of a bank.

    Raises:
        BankClearedError: The bank was cleared or deleted since.
    """
    if (yield from read_generation(namespace)) != began:
        msg = "it was cleared or deleted after this episode began; the episode was not filed"
        raise BankClearedError(msg, namespace=namespace)


def _key(namespace: Namespace) -> str:
    return digest(list(namespace))[:32]
