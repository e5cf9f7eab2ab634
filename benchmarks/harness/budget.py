"""What a plan may ask of real models: caps, prices, and what is spent, enforced before each call."""

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from operator import add
from pathlib import Path
from sqlite3 import Cursor
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import BaseModel, ConfigDict, Field

from langgraft._core.errors import BudgetExceededError, InputError
from langgraft._core.sqlite_file import DamagedError, Layout, SQLiteFile
from langgraft._core.untrusted import load_yaml

if TYPE_CHECKING:  # plans and logs are read without what asks models
    from langgraft.benchmarks.harness.usage import TokenCounts

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_PICO: Final = 10**12
"""Money is counted in millionths of a millionth of a dollar, in whole numbers: sums stay exact."""
_MILLION: Final = 10**6


class Price(BaseModel):
    """What tokens cost, in dollars a million."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    prompt: Dollars
    completion: Dollars
    """What a model reasons unseen is billed as completion, too."""
    cached_prompt: Dollars | None = None
    """Of prompt tokens that the provider had in its own cache; `None`: as any other."""

    def cost(self, prompt: int, completion: int, cached: int = 0) -> int:
        """Return what tokens cost, in picodollars; `cached` are among those of the prompt."""
        cheap = self.prompt if self.cached_prompt is None else self.cached_prompt
        cached = min(cached, prompt)
        rates = ((self.prompt, prompt - cached), (cheap, cached), (self.completion, completion))
        return sum(round(rate * _PICO / _MILLION) * tokens for rate, tokens in rates)

    def of(self, tokens: "TokenCounts") -> int:
        """Return what a reply cost, in picodollars."""
        return self.cost(tokens.prompt, tokens.completion, tokens.cached_prompt)


class Caps(BaseModel):
    """Most that a plan's real models may be asked for, what was spent before included."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    calls: Annotated[int, Field(ge=1)] | None = None
    """Calls, failed ones included."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens, sent and replied."""
    dollars: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Money, by the prices of the plan and the shipped ones."""
    hours: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Wall clock of one command, whatever the model: no item is started after it."""

    def over(self, other: "Caps") -> Self:
        """Return these caps, and where there is none the other's."""
        return self.model_copy(
            update={
                name: getattr(other, name)
                for name in type(self).model_fields
                if getattr(self, name) is None
            }
        )

    def shared(self, count: int) -> Self:
        """Return what each of several that know nothing of one another may spend."""
        part = {
            "calls": None if self.calls is None else max(1, self.calls // count),
            "tokens": None if self.tokens is None else max(1, self.tokens // count),
            "dollars": None if self.dollars is None else self.dollars / count,
        }
        return self.model_copy(update=part)

    @property
    def limits_a_model(self) -> bool:
        """Whether anything but time is capped."""
        return any(each is not None for each in (self.calls, self.tokens, self.dollars))


@cache
def shipped_prices() -> tuple[str, Mapping[str, Price]]:
    """Return the month of the shipped prices, and the prices by the models' names."""
    path = files("langgraft.benchmarks.harness").joinpath("prices.yaml")
    table = load_yaml(path.read_text("utf-8"))
    assert isinstance(table, dict)
    models = {name: Price.model_validate(price) for name, price in table["models"].items()}
    return str(table["as_of"]), models


_DATED: Final = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")
"""A snapshot's name ends so, and costs what the model does."""


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the price of a model, or `None` if none is known.

    Args:
        model: `openai:gpt-4.1-mini`.
        prices: Prices that come before the shipped ones, by such names or without the provider.
    """
    bare = model.partition(":")[2] or model
    for table in (prices, shipped_prices()[1]):
        for name in (model, bare, _DATED.sub("", bare)):
            if name in table:
                return table[name]
    return None


def in_dollars(pico: int) -> float:
    """Return picodollars as dollars."""
    return pico / _PICO


SPENT: Final = "spent.sqlite"
"""File of a run directory that counts what was asked of real models."""

CALL_SECONDS: Final = 900.0
"""How long one call may take, by default, however it goes on: as long as it may be repeated."""
REPLY_BYTES: Final = 8 << 20
"""Most bytes of a reply, by default."""
MOST_KEPT: Final = 8 << 30
"""Most bytes of kept replies, by default."""

_FILE: Final = Layout(
    kind="a count of what was spent",
    application=0x6C677370,
    version=1,
    schema="CREATE TABLE spent (calls INTEGER, tokens INTEGER, picodollars INTEGER)",
    advice="restore it, or delete it: no cap then knows of what was asked before",
    durable=False,
)
_NAMES: Final = ("calls", "tokens", "picodollars")


class CallBudget:
    """Counts what models are asked for and stops before a cap; for threads and, with a file, processes.

    A call reserves the most it can cost and settles what it did cost, so that calls under way
    at the same time cannot exceed a cap together. Near a cap a call waits for those that this process
    has under way, which nearly all take less than was set aside, and stops where there is no room without
    them either. In a file the counts outlive the process, and what was set aside for a call that a
    crash cut off counts as spent.
    """

    def __init__(
        self,
        *,
        max_calls: int | None = None,
        max_tokens: int | None = None,
        max_dollars: float | None = None,
        calls: int = 0,
        tokens: int = 0,
        prices: Mapping[str, Price] | None = None,
        path: Path | None = None,
    ) -> None:
        """Set the caps.

        Args:
            max_calls: Most calls, failed ones included; `None` for no cap.
            max_tokens: Most prompt and completion tokens; `None` for no cap.
            max_dollars: Most money; `None` for no cap.
            calls: Calls made before, where the file does not know.
            tokens: Tokens spent before, where the file does not know.
            prices: Prices that come before the shipped ones, by the models' names.
            path: The file, made at the first call; `None` counts in this process alone.
        """
        most = None if max_dollars is None else round(max_dollars * _PICO)
        self._most = (max_calls, max_tokens, most)
        self._prices = prices or {}
        self._path = path
        self._counts = (calls, tokens, 0)
        self._aside = [0, 0, 0]
        self._lock = threading.Lock()
        self._file: SQLiteFile | None = None

    def __getstate__(self) -> dict[str, object]:
        """Send another process no lock, no open file and no call that is under way here."""
        return {**self.__dict__, "_lock": None, "_file": None, "_aside": [0, 0, 0]}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Become what was sent."""
        self.__dict__.update({**state, "_lock": threading.Lock()})

    def price(self, model: str) -> Price | None:
        """Return the price of a model, as far as it is known.

        Raises:
            InputError: Money is capped, and no price is known.
        """
        found = price_of(model, self._prices)
        if found is None and self._most[2] is not None:
            msg = (
                f"money is capped, and no price of {model!r} is known: give the plan"
                f" `prices: {{{model!r}: {{prompt: …, completion: …}}}}`, in dollars a million tokens"
            )
            raise InputError(msg)
        return found

    def reserve(self, tokens: int, picodollars: int = 0) -> bool:
        """Set aside one call, and the tokens and the money that it may cost.

        Returns:
            Whether there was room. If not, nothing is set aside, and calls that are under way here may
            leave some: try again when one has ended.

        Raises:
            BudgetExceededError: A cap would be exceeded whatever they leave; nothing is set aside.
            InfrastructureError: The file cannot be used now.
        """
        wanted, room = (1, tokens, picodollars), True
        with self._changing() as spent:
            for place, (name, more, most) in enumerate(
                zip(_NAMES, wanted, self._most, strict=True)
            ):
                had = spent[place]
                if most is not None and had - self._aside[place] + more > most:
                    raise BudgetExceededError(_exceeded(name, had, more, most))
                room = room and (most is None or had + more <= most)
            if room:
                spent[:] = map(add, spent, wanted)
                self._aside = [*map(add, self._aside, (0, tokens, picodollars))]
        return room

    def settle(self, reserved: int, used: int, *, set_aside: int = 0, cost: int = 0) -> None:
        """Replace what was set aside for a call by what it used.

        Args:
            reserved: Tokens set aside.
            used: Tokens used.
            set_aside: Picodollars set aside.
            cost: Picodollars that it cost.
        """
        with self._changing() as spent:
            spent[1] += used - reserved
            spent[2] += cost - set_aside
            self._aside[1] -= reserved
            self._aside[2] -= set_aside

    def spent(self) -> dict[str, float]:
        """Return calls, tokens and dollars spent, those set aside included."""
        with self._changing() as spent:
            calls, tokens, pico = spent
        return {"calls": calls, "tokens": tokens, "dollars": in_dollars(pico)}

    @contextmanager
    def _changing(self) -> Iterator[list[int]]:
        with self._lock:
            if self._path is None:
                spent = list(self._counts)
                yield spent
                self._counts = (spent[0], spent[1], spent[2])
                return
            if self._file is None:
                self._file = SQLiteFile(self._path, _FILE)
            with self._file.transaction(write=True) as cursor:
                row = _counted(cursor)
                if row is None:
                    row = self._counts
                    cursor.execute("INSERT INTO spent VALUES (?, ?, ?)", row)
                spent = list(row)
                yield spent
                if spent != list(row):
                    cursor.execute("UPDATE spent SET calls = ?, tokens = ?, picodollars = ?", spent)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            self._file.close()


def _counted(cursor: Cursor) -> tuple[int, int, int] | None:
    """Return what a file has counted; `None` in a new one."""
    match cursor.execute("SELECT calls, tokens, picodollars FROM spent").fetchone():
        case None:
            return None
        case int(calls), int(tokens), int(pico):
            return calls, tokens, pico
    raise DamagedError("it does not count in numbers")


def _exceeded(name: str, had: int, more: int, most: int) -> str:
    if name != "picodollars":
        cap, spent, next_one = f"{most} {name}", f"{had}", f"{more}"
    else:
        cap = f"{in_dollars(most):g} dollars"
        spent, next_one = f"{in_dollars(had):.4f}", f"{in_dollars(more):.4f}"
    return (
        f"the cap of {cap} would be exceeded: {spent} spent or set aside, "
        f"the next call may take {next_one}; resume with a higher cap"
    )


def read_all_spent(out: Path) -> dict[str, float] | None:
    """Return what was spent on a run directory, by shards too; `None` if nothing was counted.

    Raises:
        InputError: A file cannot be read.
    """
    found = [read_spent(path) for path in sorted(out.glob(f"{Path(SPENT).stem}*.sqlite"))]
    counted = [each for each in found if each is not None]
    names = counted[0] if counted else ()
    return {name: sum(each[name] for each in counted) for name in names} or None


def read_spent(path: Path) -> dict[str, float] | None:
    """Return what a file says was spent; `None` if there is none.

    Raises:
        InputError: It cannot be read.
    """
    if not path.exists():
        return None
    file = SQLiteFile(path, _FILE, read_only=True)
    try:
        with file.transaction(write=False) as cursor:
            row = _counted(cursor)
    finally:
        file.close()
    return (
        None
        if row is None
        else {**dict(zip(_NAMES[:2], row[:2], strict=True)), "dollars": in_dollars(row[2])}
    )
