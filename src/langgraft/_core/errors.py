"""Every exception langgraft raises on purpose.

    LanggraftError
    ├── InputError                 something the user gave is wrong; the CLI exits with 2
    │   ├── SettingsError          an argument or setting of a provider, ranker, node or world
    │   │   └── ForkError          something opened before a fork was used in the child
    │   ├── BankFormatError        a memory file (carries `path` and `row`)
    │   ├── PlanError              a plan file (carries `path`)
    │   ├── RunDirectoryError      a run directory that cannot be used (carries `path`)
    │   ├── StorePathError         a folder that a store cannot be kept in, or is open (`path`)
    │   ├── SandboxUnavailableError  no engine or image to run code in, or it cannot hold a limit
    │   ├── CompetitionError       a competition's files, data or name (carries `path`)
    │   ├── GameError              a game that is damaged or not to be trusted (carries `source`)
    │   └── ResumeRefusedError     the plan, prompts, data or packages changed (carries `differences`)
    ├── MissingExtraError          an optional dependency is not installed (also an ImportError)
    ├── ReadOnlyStoreError         a write reached a frozen store
    ├── BankClearedError           a bank was cleared after an episode began (carries `namespace`)
    ├── BankConflictError          somebody else writes to a bank (carries `namespace`)
    ├── ActionFormatError          a model's reply holds no usable action
    ├── InfrastructureError        the world failed, not the model: retried, then unscored
    │   └── SandboxFailureError    an engine or container died under a program, and again when retried
    ├── BudgetExceededError        a cap on calls, tokens or money was reached
    └── StudyError                 a study or the harness has a bug (carries `run` and `item`)

Each message says what was wrong, the value, where, and what to do next. What it quotes of a
server, a program or a file may be of any length: of a long message, the middle is left out. What
looks like a secret is hidden.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from langgraft._core.confidential import without_secrets

MOST_CHARACTERS: Final = 2_000
"""Of a message."""
MOST_DIFFERENCES: Final = 6
"""Of those that a message lists: who changed one task changed all that are numbered behind it."""


class LanggraftError(Exception):
    """Root of all errors raised by langgraft."""

    def __init__(self, message: str = "") -> None:
        message = without_secrets(message)
        if len(message) > MOST_CHARACTERS:
            half = MOST_CHARACTERS // 2 - 1
            message = f"{message[:half]} … {message[-half + 1 :]}"
        super().__init__(message)

    def __reduce__(self) -> "tuple[Any, ...]":
        """Let an error be sent to another process, whatever it was made of."""
        return _again, (type(self), self.args, self.__dict__)


def _again(
    kind: type[LanggraftError], args: tuple[Any, ...], fields: dict[str, Any]
) -> LanggraftError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error


class InputError(LanggraftError):
    """Something the user supplied is wrong; nothing has been changed."""


class SettingsError(InputError):
    """An argument or a setting of a provider, ranker, node or environment is not usable."""


class ForkError(SettingsError):
    """Something was opened before a fork, and cannot be used in the child."""


class BankFormatError(InputError):
    """A memory file does not hold what its format asks for.

    Attributes:
        path: The file.
        row: 1-based line number of the first bad row, or `None` for the file as a whole.
    """

    def __init__(self, message: str, *, path: Path, row: int | None = None) -> None:
        where = f"{path}" if row is None else f"{path}, row {row}"
        super().__init__(f"{where}: {message}")
        self.path = path
        self.row = row


class PlanError(InputError):
    """A plan file is malformed or asks for something impossible."""

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.path = path


class RunDirectoryError(InputError):
    """A run directory cannot be used as asked."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


class StorePathError(InputError):
    """A store cannot be kept in a folder, or another owner has it open."""

    def __init__(self, message: str, *, path: Path) -> None:
        super().__init__(f"{path}: {message}")
        self.path = path


class SandboxUnavailableError(InputError):
    """There is nothing to run code in, or it cannot enforce what it was asked to."""


class CompetitionError(InputError):
    """A competition's files or data are not what their format asks for, or are not there.

    `path` is where, if that is known.
    """

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        super().__init__(message if path is None else f"{path}: {message}")
        self.path = path


class GameError(InputError):
    """A game's file is damaged, cannot be won, or brings rules that are not known.

    Attributes:
        source: Where the game was read from.
    """

    def __init__(self, message: str, *, source: str) -> None:
        super().__init__(f"{source}: {message}")
        self.source = source


class ResumeRefusedError(InputError):
    """What is asked to run differs from what the directory was started with.

    Attributes:
        differences: One readable line per difference, all of them.
    """

    def __init__(self, message: str, *, path: Path, differences: Sequence[str]) -> None:
        told, more = differences[:MOST_DIFFERENCES], len(differences) - MOST_DIFFERENCES
        others = f"; and {more} more" if more > 0 else ""
        super().__init__(f"{path}: {message}: " + "; ".join(told) + others)
        self.path = path
        self.differences = tuple(differences)


class MissingExtraError(LanggraftError, ImportError):
    """An optional dependency is needed and not installed."""


class ReadOnlyStoreError(LanggraftError):
    """A write reached a store that was frozen for evaluation."""


class BankConflictError(LanggraftError):
    """Another process wrote to a bank that this one writes to; nothing was written.

    Attributes:
        namespace: Where the bank's records are.
    """

    def __init__(self, message: str, *, namespace: Sequence[str]) -> None:
        super().__init__(f"bank {tuple(namespace)!r}: {message}")
        self.namespace = tuple(namespace)


class BankClearedError(LanggraftError):
    """A bank was cleared or deleted after an episode began; the episode was not filed.

    Attributes:
        namespace: Where the bank's records are.
    """

    def __init__(self, message: str, *, namespace: Sequence[str]) -> None:
        super().__init__(f"bank {tuple(namespace)!r}: {message}")
        self.namespace = tuple(namespace)


class ActionFormatError(LanggraftError):
    """A model's reply holds no action that can be executed."""


class InfrastructureError(LanggraftError):
    """Something other than the model failed (network, sandbox, disk).

    Attributes:
        reason: Short name of the reason, such as `rate_limit`; empty where it has none.
    """

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class SandboxFailureError(InfrastructureError):
    """The engine or the container died under a program; the program is not to blame."""


class BudgetExceededError(LanggraftError):
    """A cap on calls, tokens or money was reached; the run can be resumed with a higher one."""


class StudyError(LanggraftError):
    """A study or the harness did what it must not do: a bug, which stops the plan.

    Attributes:
        run: The run it happened in.
        item: The item, or `None` outside of items.
    """

    def __init__(self, message: str, *, run: str, item: str | None = None) -> None:
        where = f"run {run!r}" if item is None else f"run {run!r}, item {item!r}"
        super().__init__(f"{where}: {message}")
        self.run = run
        self.item = item


def causes(error: BaseException) -> Iterator[BaseException]:
    """Go from an exception, which is the first, down to what caused it."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
