"""`DockerSandbox`: a fresh hardened container for each program."""

import logging
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from langgraft._core.canonical import digest
from langgraft._core.errors import InputError, SandboxUnavailableError
from langgraft._core.file_digests import FileDigests
from langgraft.environments.sandboxes.docker.container import Container
from langgraft.environments.sandboxes.docker.controls import (
    Gpus,
    Wish,
    check_gpus,
    check_inputs,
    inputs_digest,
)
from langgraft.environments.sandboxes.docker.engine import (
    IMAGE,
    Removals,
    check_engine,
    connect,
    filter_is_off,
    image_id,
    is_away,
    is_remote,
    remove_orphans,
    unreachable,
)
from langgraft.environments.sandboxes.docker.opening import Opening
from langgraft.environments.sandboxes.places import ChannelClosedError
from langgraft.environments.sandboxes.sandbox import Limits
from langgraft.environments.sandboxes.supervised import SupervisedSandbox

if TYPE_CHECKING:
    from docker import DockerClient

logger = logging.getLogger(__name__)

_LOOK: Final = 2.0
"""Seconds between looks at the places that wait."""
_AGE: Final = 900.0
"""Seconds after which a place that waits is replaced: what nobody used for so long may have
suffered in ways that do not show (a machine that slept, an engine that was upgraded)."""
_PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds to wait after one failure to start a place, two, and so on."""


class Pooled(Protocol):
    """What waits in a pool."""

    def alive(self) -> bool:
        """Return whether it can still be used."""
        ...

    def destroy(self) -> None:
        """Get rid of it."""
        ...


P = TypeVar("P", bound=Pooled)


class Pool(Generic[P]):
    """Keeps `size` places ready.

    Args:
        start: Starts a place; called from any thread.
        size: How many wait; with 0 each is started when it is asked for.
        age: Seconds after which one that waits is replaced.
    """

    def __init__(self, start: Callable[[], P], size: int, *, age: float = _AGE) -> None:
        self._start = start
        self._size = size
        self._age = age
        self._ready: deque[tuple[float, P]] = deque()
        self._failures = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def ready(self) -> int:
        """How many wait."""
        with self._changed:
            return len(self._ready)

    def fill(self) -> None:
        """Begin to start places, in a thread."""
        with self._changed:
            if self._size and self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="sandbox-pool", daemon=True)
                self._thread.start()

    def take(self) -> P:
        """Return a place that waited, or start one where none does.

        Raises:
            ChannelClosedError: The pool is closed.
            Exception: Whatever starting one raises.
        """
        self.fill()
        while True:
            with self._changed:
                if self._closed:
                    raise ChannelClosedError("the sandbox is closed")
                born, place = self._ready.popleft() if self._ready else (0.0, None)
                self._changed.notify_all()
            if place is None:
                return self._start()
            if self._usable(born, place):
                return place
            place.destroy()

    def wait_until_full(self, seconds: float) -> bool:
        """Wait for as many places as it keeps; return whether they are there."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._ready) >= self._size, seconds)

    def close(self) -> None:
        """Destroy what waits, and what is being started as soon as it is."""
        with self._changed:
            self._closed = True
            places = [place for _, place in self._ready]
            self._ready.clear()
            self._changed.notify_all()
            thread = self._thread
        for place in places:
            place.destroy()
        if thread is not None and thread is not threading.current_thread():
            thread.join(60.0)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or len(self._ready) < self._size, _LOOK)
                if self._closed:
                    return
                lacking = len(self._ready) < self._size
            self._sort_out()
            if lacking:
                self._add()

    def _add(self) -> None:
        try:
            place = self._start()
        except Exception as error:  # noqa: BLE001  (who needs a place meets the same, and is told)
            level = logging.INFO if isinstance(error, SandboxUnavailableError) else logging.WARNING
            logger.log(level, "no place could be started beforehand: %s", error)
            pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            self._failures += 1
            with self._changed:
                self._changed.wait_for(lambda: self._closed, pause)
            return
        self._failures = 0
        with self._changed:
            if not self._closed:
                self._ready.append((time.monotonic(), place))
                self._changed.notify_all()
                return
        place.destroy()

    def _sort_out(self) -> None:
        """Replace those that died or aged while they waited."""
        with self._changed:
            # Looked at in here: one that is handed out belongs to who took it, its stream as well.
            unfit = [entry for entry in self._ready if not self._usable(*entry)]
            for entry in unfit:
                self._ready.remove(entry)
        for _, place in unfit:
            place.destroy()

    def _usable(self, born: float, place: P) -> bool:
        return time.monotonic() - born < self._age and place.alive()


@dataclass(frozen=True, slots=True)
class _Engine:
    """What is kept of an engine once it was asked for: nothing of it refers to the sandbox."""

    client: "DockerClient"
    own: bool
    """Whether the client is ours to close."""
    wish: Wish
    removals: Removals
    opening: Opening
    pool: Pool[Container]
    process: int = field(default_factory=os.getpid)

    def release(self) -> None:
        """Remove all there is, in the process that made it: a fork of it must not."""
        if os.getpid() != self.process:
            return
        self.pool.close()
        self.removals.close()
        self.opening.sweep()
        if self.own:
            self.client.close()


class DockerSandbox(SupervisedSandbox):
    """Runs each program in a container of its own, which is gone afterwards.

    No network, no rights, a root folder that cannot be written to, and limits on all that can be
    used up (`Limits`). Before the first program the engine is asked whether it can hold all of
    them, and a container reports whether it does; otherwise nothing is run.

        with DockerSandbox(limits=Limits(seconds=600), inputs={"input": Path("data")}) as sandbox:
            result = sandbox.run(Job(PythonProgram("print(open('input/train.csv').readline())")))

    Close it, or use it as a context manager. What a process that was killed left behind is removed
    when the next sandbox opens on the same machine.

    Args:
        image: What containers are made of; `langgraft sandbox build` makes the default.
        limits: Of every program.
        inputs: Folders of this machine that programs read, by their name in the workspace.
        environment: Further variables of all programs.
        pool: Containers kept started beforehand; each takes some 10 MB of memory while it waits.
        gpus: `"all"`, how many, or a list of ids; the engine needs NVIDIA's container toolkit.
        retries: Fresh containers a program gets after one died under it from outside.
        runtime: A runtime of the engine's other than its default, such as `runsc`.
        client: Of an engine other than the one that the environment names; stays open.

    Raises:
        InputError: A folder of `inputs` is not there or not readable, or an option is unusable.
    """

    def __init__(
        self,
        image: str = IMAGE,
        *,
        limits: Limits | None = None,
        inputs: Mapping[str, Path] | None = None,
        environment: Mapping[str, str] | None = None,
        pool: int = 2,
        gpus: Gpus | None = None,
        retries: int = 2,
        runtime: str | None = None,
        client: "DockerClient | None" = None,
    ) -> None:
        super().__init__(limits, retries=retries)
        if pool < 0:
            raise InputError(f"pool is {pool}: give how many containers wait, or 0")
        self.image = image
        self._inputs = check_inputs(inputs or {})
        self._environment = dict(environment or {})
        self._pool = pool
        self._gpus = check_gpus(gpus)
        self._runtime = runtime
        self._client = client
        self._reaching = threading.Lock()
        self._engine: _Engine | None = None
        self._finalizer: weakref.finalize[[], DockerSandbox] | None = None
        self._verified = False
        self._digest: str | None = None

    @property
    def digest(self) -> str:
        """What else decides a result: the image, limits, inputs' contents, GPUs, the runtime.

        Raises:
            SandboxUnavailableError: There is no engine or image to ask for its digest.
        """
        engine = self._reached()
        with self._reaching:
            if self._digest is None:
                with FileDigests() as known:
                    inputs = inputs_digest(self._inputs, known)
                self._digest = digest(
                    {
                        "image": engine.wish.image_id,
                        "limits": self.limits.model_dump(),
                        "inputs": inputs,
                        "environment": self._environment,
                        "gpus": self._gpus,
                        "runtime": self._runtime,
                    }
                )
            return self._digest

    def _open(self) -> Container:
        engine = self._reached()
        with self._reaching:
            if not self._verified:
                engine.pool.fill()
                engine.opening.verify()
                self._verified = True
        return engine.pool.take()

    def _release(self) -> None:
        """Remove the pool and all containers, and wait until they are gone."""
        with self._reaching:
            finalizer = self._finalizer
        if finalizer is not None:
            finalizer()

    def _reached(self) -> _Engine:
        """Return the engine; at the first time reach and check it, and clear up after others."""
        with self._reaching:
            if self._engine is None:
                # Closed by now, it would be reached for nobody, and never let go.
                self._check_open()
                try:
                    self._engine = self._reach()
                except Exception as error:
                    if not is_away(error):
                        raise
                    raise unreachable(error) from error
                # Also when nobody closes it, or the interpreter ends.
                self._finalizer = weakref.finalize(self, self._engine.release)
            if self._engine.process != os.getpid():
                raise SandboxUnavailableError(
                    "this sandbox is used by the process that this one was forked of, and they"
                    " would take each other's containers: make one in each process"
                )
            return self._engine

    def _reach(self) -> _Engine:
        client = self._client or connect()
        try:
            wish = self._wish(client)
            orphans = remove_orphans(client)
        except BaseException:
            if client is not self._client:
                client.close()
            raise
        if orphans:
            logger.info("removed %d containers whose process is gone", len(orphans))
        removals = Removals(client.api)
        opening = Opening(client.api, wish, removals)
        pool = Pool(opening.open, self._pool)
        return _Engine(client, client is not self._client, wish, removals, opening, pool)

    def _wish(self, client: "DockerClient") -> Wish:
        info = check_engine(client.api)
        if self._inputs and is_remote(client.api):
            raise InputError(
                "inputs are folders of the engine's machine, and this engine is on another one"
                f" ({client.api.base_url}): put files into programs' workspaces with `Job.files`"
            )
        return Wish(
            image=self.image,
            image_id=image_id(client.api, self.image),
            limits=self.limits,
            cpus=int(info["NCPU"]),
            filtered=not filter_is_off(info),
            inputs=self._inputs,
            gpus=self._gpus,
            runtime=self._runtime,
            environment=self._environment,
        )
