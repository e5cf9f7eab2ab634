"""A talk with a model, with what it used: time, tokens, money."""

from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from langgraft.nodes.talking import Said, Talk
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.limits import (
    NOTHING_SPENT,
    estimated_tokens,
    spend,
    tokens_of,
    too_dear,
)
from langgraft.nodes.workbench.state import RunState, Spent

T = TypeVar("T")

NO_MONEY: Final = "no money is left"


@dataclass(frozen=True, slots=True)
class Metered(Generic[T]):
    """What came of a talk."""

    value: T
    spent: Spent
    """Of the whole run, with this talk."""
    broke: bool
    """A question was not asked since there was no money left for it."""


def metered(desk: Desk, state: RunState, held: Talk[T]) -> Talk[Metered[T]]:
    """Hold a talk and note what it uses; a question there is no money for has no reply."""
    now: RunState = {**state, "spent": state.get("spent", NOTHING_SPENT)}
    broke = False
    said: Said | None = None
    while True:
        try:
            ask = next(held) if said is None else held.send(said)
        except StopIteration as stop:
            return Metered(stop.value, now["spent"], broke)
        tokens = estimated_tokens(ask.messages)
        if too_dear(desk.limits, now, desk.prices, prompt_tokens=tokens):
            broke, said = True, Said("", NO_MONEY)
            continue
        began = desk.clock()
        said = yield ask
        seconds = desk.clock() - began
        sent, got = (0, 0) if said.message is None else tokens_of(said.message, ask.messages)
        now["spent"] = spend(
            now, seconds=seconds, prompt_tokens=sent, completion_tokens=got, prices=desk.prices
        )
