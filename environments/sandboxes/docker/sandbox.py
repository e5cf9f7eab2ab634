"""`DockerSandbox`: a fresh hardened container for each program."""

import logging
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from langgraft._core.canonical import digest
from langgraft._core.errors import InputError, SandboxUnavailableError
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
    check_engine,
    connect,
    filter_is_off,
    image_id,
    is_away,
    is_remote,
    unreachable,
)
from langgraft.environments.sandboxes.docker.opening import Opening
from langgraft.environments.sandboxes.docker.pool import Pool
from langgraft.environments.sandboxes.docker.removal import Removals, remove_orphans
from langgraft.environments.sandboxes.programs import Limits
from langgraft.environments.sandboxes.supervised import SupervisedSandbox

if TYPE_CHECKING:
    from docker import DockerClient

logger = logging.getLogger(__name__)


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
                self._digest = digest(
                    {
                        "image": engine.wish.image_id,
                        "limits": self.limits.model_dump(),
                        "inputs": inputs_digest(self._inputs),
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
        )
