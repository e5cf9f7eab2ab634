"""Running attacks one after another, and judging each."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from langgraft._core.errors import SandboxFailureError
from langgraft.environments.sandboxes.docker.engine import IMAGE, is_remote
from langgraft.environments.sandboxes.docker.owner import OWNER, Owner
from langgraft.environments.sandboxes.docker.sandbox import DockerSandbox
from langgraft.environments.sandboxes.hostile.attack import (
    LIMITS,
    SUCCEEDED,
    Attack,
    NotContainedError,
    ending,
)
from langgraft.environments.sandboxes.hostile.attacks import ATTACKS
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings
from langgraft.environments.sandboxes.programs import Job, PythonProgram
from langgraft.environments.sandboxes.results import ExecutionResult

if TYPE_CHECKING:
    from docker import DockerClient

_SETTLING: Final = 10.0
"""Seconds that a container whose program is over may take to be gone."""
_PLAIN: Final = Job(PythonProgram("import json\nprint(6 * 7)"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attack."""

    attack: Attack
    ended: str
    """How it was classified; empty where nothing came back."""
    problems: tuple[str, ...]
    """What was not contained; empty where all was."""
    seconds: float
    """With all checks and the plain program after it."""

    @property
    def contained(self) -> bool:
        """Whether nothing got out, and it was told as what it is."""
        return not self.problems


class Battery:
    """A sandbox under attack; use it as a context manager.

    Args:
        client: Of the engine; stays open.
        image: What programs run in.
    """

    def __init__(self, client: "DockerClient", image: str = IMAGE) -> None:
        self._client = client
        self._image = image
        self._open = ExitStack()

    def __enter__(self) -> Self:
        remote = is_remote(self._client.api)
        # An engine on another machine has no folders of this one.
        self.attacks = [attack for attack in ATTACKS if not (remote and attack.local)]
        self.surroundings = self._open.enter_context(Surroundings(self._bridge()))
        self.sandbox = self._open.enter_context(
            DockerSandbox(
                self._image,
                limits=LIMITS,
                inputs={} if remote else {"input": self.surroundings.inputs},
                client=self._client,
            )
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def run(self, say: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
        """Carry out every attack.

        Args:
            say: Told of each outcome as it comes.

        Raises:
            SandboxUnavailableError: There is no image, or the engine cannot hold the limits.
        """
        self.sandbox.run(_PLAIN)  # what hinders a plain program is no attack's doing
        outcomes = []
        for attack in self.attacks:
            outcomes.append(self.carry_out(attack))
            say(outcomes[-1])
        return outcomes

    def carry_out(self, attack: Attack) -> Outcome:
        """Carry out one attack, look for harm, and run a plain program after it."""
        started = time.monotonic()
        ended, problems = "", []
        try:
            result = attack.carry_out(self.sandbox, self.surroundings)
        except NotContainedError as error:
            problems.append(str(error))
        except SandboxFailureError as error:
            problems.append(f"told as a failure of the engine: {error}")
        else:
            ended = ending(result)
            problems += self._judge(attack, result)
        problems += self._left_running() + self.surroundings.harm() + self._of_no_use()
        return Outcome(attack, ended, tuple(problems), time.monotonic() - started)

    def _judge(self, attack: Attack, result: ExecutionResult) -> list[str]:
        problems = []
        if (ended := ending(result)) not in attack.endings and attack.move is None:
            problems.append(f"ended as {ended!r}, not {' or '.join(sorted(attack.endings))!r}")
        problems += [
            line[:200] for line in result.stdout.splitlines() if line.startswith(SUCCEEDED)
        ]
        problems += attack.check(result)
        secret = self.surroundings.secret
        told = [result.stdout, result.stderr, *result.left_out.values()]
        if any(secret in text for text in told) or any(
            secret.encode() in content for content in result.files.values()
        ):
            problems.append("a file of the host was read")
        return problems

    def _of_no_use(self) -> list[str]:
        """Say what hinders a plain program."""
        try:
            result = self.sandbox.run(_PLAIN)
        except SandboxFailureError as error:
            return [f"no program could be run afterwards: {error}"]
        if result.ok and result.stdout == "42\n":
            return []
        return [f"a plain program then ended as {ending(result)!r} with {result.stdout[:80]!r}"]

    def _left_running(self) -> list[str]:
        """Say which containers of ours still run more than their supervisor."""
        until = time.monotonic() + _SETTLING
        while left := self._busy():
            if time.monotonic() > until:
                return [f"{len(left)} containers still run programs"]
            time.sleep(0.05)
        return []

    def _busy(self) -> list[str]:
        from docker.errors import APIError  # noqa: PLC0415  (docker is slow to import)

        label = f"{OWNER}={Owner.current().labels()[OWNER]}"
        busy = []
        for container in self._client.api.containers(filters={"label": label}):
            try:
                processes: Any = self._client.api.top(container["Id"])
            except APIError:
                continue  # removed meanwhile
            if len(processes["Processes"] or ()) > 1:
                busy.append(container["Id"])
        return busy

    def _bridge(self) -> list[str]:
        """Return the addresses at which the engine's default network reaches its host."""
        from docker.errors import DockerException  # noqa: PLC0415

        try:
            network = self._client.networks.get("bridge").attrs
        except DockerException:
            return []
        settings = (network.get("IPAM") or {}).get("Config") or ()
        return [entry["Gateway"] for entry in settings if entry.get("Gateway")]
