"""Opening places on one engine: created, attached, started and greeted."""

import logging
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.docker.container import (
    Container,
    bootstrap_command,
    supervisor_code,
)
from langgraft.environments.sandboxes.docker.controls import Wish, container_config, unapplied
from langgraft.environments.sandboxes.docker.engine import (
    is_away,
    no_image,
    refusals,
    wait_for_engine,
)
from langgraft.environments.sandboxes.docker.removal import Owner, Removals, remove_container
from langgraft.environments.sandboxes.docker.verification import (
    failures,
    probe_command,
    read_report,
)
from langgraft.environments.sandboxes.places import ChannelClosedError, Death, PlaceSettings, greet

if TYPE_CHECKING:
    from docker import APIClient
    from docker.errors import APIError

logger = logging.getLogger(__name__)

SANDBOX: Final = "langgraft.sandbox.id"
"""Label: which sandbox of its process a container belongs to."""
_PATIENCE: Final = 20.0
"""Seconds in which an engine that was restarted answers again."""
_READY: Final = 60.0
"""Seconds for a supervisor, or the probe, to answer on a busy machine."""


class Opening:
    """Opens the containers of one sandbox.

    Args:
        api: Of the engine, which has been checked.
        wish: What they are to be like.
        removals: Who removes them.
        patience: Seconds to wait for an engine that does not answer.

    Attributes:
        label: What all its containers carry, as `name=value`.
    """

    def __init__(
        self, api: "APIClient", wish: Wish, removals: Removals, *, patience: float = _PATIENCE
    ) -> None:
        self._api = api
        self._wish = wish
        self._removals = removals
        self._patience = patience
        self._sandbox = uuid.uuid4().hex
        self.label = f"{SANDBOX}={self._sandbox}"
        self._config = self._configure(bootstrap_command())
        self._supervisor = supervisor_code()

    def open(self) -> Container:
        """Start a container and greet its supervisor.

        Raises:
            SandboxUnavailableError: The engine cannot, and will not when asked again.
            SandboxFailureError: It did not this time.
            TimeoutError, ProtocolError: The supervisor did not answer as it should.
        """
        self._removals.retry()
        container = self._started(self._config)
        try:
            container.channel.send(self._supervisor)
            greet(container.channel, PlaceSettings(self._wish.limits), timeout=_READY)
        except ChannelClosedError as error:
            death = container.post_mortem()
            container.destroy()
            raise _stillborn(death) from error
        except BaseException:
            container.destroy()
            raise
        return container

    def verify(self) -> None:
        """Start a container that reports what holds inside, and compare.

        Raises:
            SandboxUnavailableError: A control does not hold.
            SandboxFailureError, TimeoutError: It failed this time.
        """
        config = self._configure(probe_command())
        container = self._started(config)
        try:
            wrong = unapplied(config, self._api.inspect_container(container.id))
            report, compiled = read_report(container.channel, timeout=_READY)
        except ChannelClosedError as error:
            raise _stillborn(container.post_mortem()) from error
        finally:
            container.destroy()
        wrong += failures(report, self._wish)
        self._refuse(wrong)
        self._supervisor = supervisor_code(compiled)

    def sweep(self) -> None:
        """Remove what was created without our learning of it: calls that timed out."""
        try:
            left = self._api.containers(all=True, filters={"label": self.label})
        except Exception as error:  # noqa: BLE001  (what is left is an orphan soon)
            logger.warning("cannot ask which containers are left: %s", error)
            return
        for container in left:
            remove_container(self._api, container["Id"])

    def _configure(self, command: Sequence[str]) -> dict[str, Any]:
        labels = {**Owner.current().labels(), SANDBOX: self._sandbox}
        return container_config(self._api, self._wish, command=command, labels=labels)

    def _started(self, config: dict[str, Any]) -> Container:
        """Start a container; wait for an engine that is away, once."""
        waited = False
        while True:
            try:
                return self._start(config)
            except Exception as error:
                if not is_away(error):
                    raise
                if waited or not wait_for_engine(self._api, self._patience):
                    raise SandboxFailureError(
                        f"the Docker engine has not answered for {self._patience:g} s: {error}"
                    ) from error
                waited = True

    def _start(self, config: dict[str, Any]) -> Container:
        from docker.errors import APIError  # noqa: PLC0415  (slow)

        created = None
        try:
            answer = self._api.create_container_from_config(config)  # type: ignore[no-untyped-call]
            created = str(answer["Id"])
            self._refuse(refusals(answer.get("Warnings")))
            return Container.start(self._api, created, self._removals)
        except BaseException as error:
            if created is not None:
                self._removals.now(created)
            if isinstance(error, APIError) and not is_away(error):
                raise _explained(error, self._wish) from error
            raise

    def _refuse(self, wrong: Sequence[str]) -> None:
        if wrong:
            raise SandboxUnavailableError(
                "the Docker engine does not hold what was asked of it, so no program was started: "
                + "; ".join(wrong)
            )


def _stillborn(death: Death) -> SandboxFailureError:
    log = death.supervisor_log.strip()
    said = f"; it wrote: {log[-2000:]}" if log else ""
    return SandboxFailureError(f"a container ended before it was ready: {death.reason}{said}")


def _explained(error: "APIError", wish: Wish) -> Exception:
    """Return what an engine's refusal means: for good, or this time."""
    text = str(error.explanation or error)
    if error.status_code == 404 and "No such image" in text:  # noqa: PLR2004
        return no_image(wish.image)
    if "could not select device driver" in text or "nvidia-container" in text:
        return SandboxUnavailableError(
            f"this Docker engine cannot give containers GPUs (gpus={wish.gpus!r}): install the"
            " NVIDIA Container Toolkit, run `nvidia-ctk runtime configure --runtime=docker` and"
            f" restart the engine; or leave `gpus` out to run without. It said: {text}"
        )
    if "executable file not found" in text or "no such file or directory: unknown" in text:
        return SandboxUnavailableError(
            f"the image {wish.image!r} has no `python3` in its path, which every sandbox needs: take"
            " one that `langgraft sandbox build` makes, or add Python 3.8 or later to it"
        )
    if "nknown runtime" in text or "nvalid runtime" in text:
        return SandboxUnavailableError(
            f"this Docker engine has no runtime {wish.runtime!r}: `docker info` lists those it has;"
            " leave `runtime` out to use its default"
        )
    if "bind source path does not exist" in text:
        return SandboxUnavailableError(f"a folder of `inputs` is there no longer: {text}")
    if error.status_code == 400:  # noqa: PLR2004
        return SandboxUnavailableError(f"the Docker engine refuses such a container: {text}")
    return SandboxFailureError(f"the Docker engine did not start a container: {text}")
