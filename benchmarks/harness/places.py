"""Where the runs of a plan keep their banks while they are under way.

The log is the truth and a store a cache of it, so where banks lie is no part of a plan: a run
that was begun over one store may be gone on with over another, and commits the same bytes. All
runs of a process share one store. Each has a namespace of its own, emptied before it is opened,
because a killed process may have left records there, and emptied again when it is closed.

In memory each run has a store of its own instead: runs are opened in threads, and LangGraph's
`InMemoryStore` breaks when one thread writes to it while another searches it.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import digest
from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.directory import check_directory, hold_directory
from langgraft.benchmarks.harness.graph import PlannedRun
from langgraft.benchmarks.harness.log import run_folder
from langgraft.benchmarks.harness.plans import PreparedPlan
from langgraft.benchmarks.harness.study import BankPlace, RunFiles
from langgraft.memory.stores.named import StoreKind, open_store, store_kind

DEFAULT_STORE: Final = "memory"

INSIDE: Final = "chroma"
"""Name of the store that lies in the run directory itself."""

STORE: Final = "store"
"""Its folder there. It may be deleted whenever no process runs the plan."""

SHARED: Final = "shared"
"""Folder of a run directory for what its runs have in common. It may be deleted likewise."""

_ROOT: Final = "langgraft-runs"
_ID_LENGTH: Final = 16


@dataclass(frozen=True)
class Places:
    """Where the runs of a process keep their banks."""

    store: BaseStore | None
    """The store that they share; `None` in memory."""
    kind: StoreKind
    directory: str
    """Label that tells one run directory from others that use the same database."""
    out: Path | None = None
    """The run directory; `None` where there is none."""

    def of(self, run: PlannedRun) -> BankPlace:
        """Return the place of one run's bank."""
        store = InMemoryStore() if self.store is None else self.store
        files = None if self.out is None else RunFiles(run_folder(self.out, run), self.out / SHARED)
        return BankPlace(store, (_ROOT, self.directory, run.id), files)


def places_in_memory(out: Path | None = None) -> Places:
    """Return places that are gone when their runs end; files lie in `out`, where it is given."""
    return Places(None, "memory", "here", out)


@contextmanager
def hold_places(out: Path, prepared: PreparedPlan[Any], store: str) -> Iterator[Places]:
    """Take a run directory for a plan, and open the store for the banks of its runs.

    Args:
        out: The run directory; see `hold_directory`.
        prepared: The plan.
        store: `chroma` for a store inside the run directory, or a name that `open_store` knows.

    Raises:
        SettingsError: The store cannot be opened; nothing was changed in the directory.
        MissingExtraError: What talks to the store is not installed.
        ResumeRefusedError: The directory was started with something else.
        RunDirectoryError: It cannot be used.
    """
    inside = store == INSIDE
    spec = f"{INSIDE}:{out / STORE}" if inside else store
    kind = store_kind(spec)
    with ExitStack() as opened:
        if kind == DEFAULT_STORE:
            opened.enter_context(hold_directory(out, prepared))
            yield places_in_memory(out)
            return
        if inside:  # the folder it lies in must be known to be ours
            opened.enter_context(hold_directory(out, prepared))
            base = opened.enter_context(open_store(spec))
        else:
            check_directory(out, prepared)
            base = opened.enter_context(open_store(spec))
            opened.enter_context(hold_directory(out, prepared))
        yield Places(base, kind, _directory_label(out), out)


def _directory_label(out: Path) -> str:
    """Tell a run directory from all others, such as a copy of it, without writing into it."""
    try:
        inode = out.stat().st_ino
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise RunDirectoryError(msg, path=out) from error
    return digest([socket.gethostname(), str(out.resolve()), inode])[:_ID_LENGTH]
