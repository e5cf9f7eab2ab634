"""One started container: how it is talked to, why it died, and how it goes."""

import os
import socket
import ssl
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langgraft.environments.sandboxes.docker.channel import AttachChannel
from langgraft.environments.sandboxes.docker.removal import Removals
from langgraft.environments.sandboxes.places import Channel, Death

if TYPE_CHECKING:
    from docker import APIClient

_SETTLING: Final = 3.0
"""Seconds within which an engine has noticed that a container ended, once its output has."""
_AT_THE_END: Final = 2.0
"""Seconds between the OOM killer and the end of a container that ended by it."""
_KILLED: Final = 137


class Container:
    """A place in a container of its own.

    Args:
        api: Of its engine.
        container: Its id.
        channel: To what runs in it as process 1.
        removals: Who removes it.
    """

    def __init__(
        self, api: "APIClient", container: str, channel: AttachChannel, removals: Removals
    ) -> None:
        self.id = container
        self.channel: Channel = channel
        self._attached = channel
        self._api = api
        self._removals = removals
        self._destroyed = False
        self._process = os.getpid()

    @classmethod
    def start(cls, api: "APIClient", container: str, removals: Removals) -> "Container":
        """Start a created container, listening from before its first output.

        Raises:
            DockerException, RequestException, OSError: The engine did not; the container stays.
        """
        streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        channel = AttachChannel(_connection(api.attach_socket(container, params=streams)))
        try:
            api.start(container)
        except BaseException:
            channel.close()
            raise
        return cls(api, container, channel, removals)

    def alive(self) -> bool:
        """Return whether it still runs, as far as its stream tells."""
        return self._attached.open_still()

    def post_mortem(self) -> Death:
        """Say why the channel closed, as the engine has it."""
        log = self._attached.log
        try:
            state = self._final_state()
            ended = bool(state["OOMKilled"]) and not state["Running"]
            oom = ended and self._ended_by_oom(state)
        except Exception as error:  # noqa: BLE001  (whatever it is, it is no answer)
            return Death(oom=False, reason=_unknown(error), supervisor_log=log)
        if state["Running"]:
            reason = "the connection to it broke while it ran"
        else:
            reason = f"exit code {state['ExitCode']}"
        if state.get("Error"):
            reason += f": {state['Error']}"
        return Death(oom=oom, reason=reason, supervisor_log=log)

    def destroy(self) -> None:
        """Have it killed and removed.

        The end of its input ends all that runs in it at once; that the engine has removed it too
        takes another moment, in which nobody waits. `Removals.settle` does.
        """
        if os.getpid() != self._process:
            # A fork of the process that owns it, which may still use it.
            return
        # First of all: an engine waits for ever for somebody to read what is attached.
        self.channel.close()
        if not self._destroyed:
            self._destroyed = True
            self._removals.soon(self.id)

    def _ended_by_oom(self, state: dict[str, Any]) -> bool:
        """Return whether the OOM killer came at the end.

        The state alone also remembers a child that it took long before, which the container
        outlived. Without any news of its end the engine was started anew, and is to blame.
        """
        news: dict[str, int] = {}
        # By the engine's clock, to the second: what is told waits for that time to come.
        finished = datetime.fromisoformat(f"{state['FinishedAt'][:19]}+00:00")
        until = int(finished.timestamp()) + 2
        told = self._api.events(since=0, until=until, filters={"container": self.id}, decode=True)
        for event in told:
            news[event["Action"]] = int(event["timeNano"])
            if event["Action"] == "die":
                break
        told.close()
        return "die" in news and abs(news["die"] - news.get("oom", 0)) < _AT_THE_END * 1e9

    def _final_state(self) -> dict[str, Any]:
        """Return the state of a container whose output has ended, once it has settled."""
        until = time.monotonic() + _SETTLING
        while True:
            state: dict[str, Any] = self._api.inspect_container(self.id)["State"]
            told = not state["Running"] and (state["OOMKilled"] or state["ExitCode"] != _KILLED)
            if told or time.monotonic() > until:
                return state
            if not state["Running"]:
                # Killed: news that it was the OOM killer come on another way, maybe later.
                until = min(until, time.monotonic() + 0.3)
            time.sleep(0.05)


def _connection(attached: Any) -> socket.socket:
    """Take the connection of an attach request out of the HTTP client's hands."""
    raw: socket.socket = getattr(attached, "_sock", attached)
    if isinstance(raw, ssl.SSLSocket):
        # It cannot be duplicated: its encryption has a state. It holds its response itself.
        return raw
    own = socket.socket(fileno=os.dup(raw.fileno()))
    attached._response.close()  # noqa: SLF001  (docker-py's only way to it)
    return own


def _unknown(error: Exception) -> str:
    from docker.errors import NotFound  # noqa: PLC0415  (slow)

    if isinstance(error, NotFound):
        return "no such container: it was removed from outside"
    return f"the engine does not answer ({error})"
