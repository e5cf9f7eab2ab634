"""Running attacks one after another, on a Docker engine, and judging each."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.errors import SandboxFailureError
from langgraft.environments.sandboxes.docker.engine import (
    IMAGE,
    OWNER,
    Owner,
    is_away,
    is_remote,
    unreachable,
)
from langgraft.environments.sandboxes.docker.sandbox import DockerSandbox
from langgraft.environments.sandboxes.hostile.attacks import (
    ATTACKS,
    LIMITS,
    ON_DISK,
    SUCCEEDED,
    Attack,
    NotContainedError,
    ending,
)
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Job, PythonProgram, Sandbox

if TYPE_CHECKING:
    from docker import DockerClient

_LINE: Final = 300
"""Characters of a problem: programs write some of them."""
_SETTLING: Final = 60.0
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
    """Attacks on one sandbox.

    Args:
        sandbox: What is attacked; with the battery's limits and the surroundings' inputs.
        surroundings: What must stay unharmed.
        running: Says how many places still run more than their supervisor.
        attacks: Which.
        on_disk: What is attacked by those on a workspace on disk; `None` leaves them out.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        surroundings: Surroundings,
        running: Callable[[], int],
        attacks: Sequence[Attack] = ATTACKS,
        on_disk: Sandbox | None = None,
    ) -> None:
        self.attacks = [each for each in attacks if on_disk is not None or not each.on_disk]
        self._sandbox = sandbox
        self._on_disk = on_disk
        self._surroundings = surroundings
        self._running = running

    def run(self) -> list[Outcome]:
        """Carry out every attack.

        Raises:
            SandboxUnavailableError: There is no image, or the engine cannot hold the limits.
        """
        self._sandbox.run(_PLAIN)  # what hinders a plain program is no attack's doing
        return [self.carry_out(attack) for attack in self.attacks]

    def carry_out(self, attack: Attack) -> Outcome:
        """Carry out one attack, look for harm, and run a plain program after it."""
        sandbox = self._on_disk if attack.on_disk and self._on_disk is not None else self._sandbox
        started = time.monotonic()
        ended, problems = "", []
        try:
            result = attack.carry_out(sandbox, self._surroundings)
        except NotContainedError as error:
            problems.append(str(error))
        except SandboxFailureError as error:
            problems.append(f"told as a failure of the engine: {error}")
        else:
            ended = ending(result)
            problems += self._judge(attack, result)
        problems += [*self._left_running(), *self._surroundings.harm(), *_of_no_use(sandbox)]
        told = tuple(problem[:_LINE] for problem in problems)
        return Outcome(attack, ended, told, time.monotonic() - started)

    def _judge(self, attack: Attack, result: ExecutionResult) -> list[str]:
        problems = []
        if (ended := ending(result)) not in attack.endings:
            expected = " or ".join(repr(each) for each in sorted(attack.endings))
            problems.append(f"ended as {ended!r}, not as {expected}")
        problems += [line for line in result.stdout.splitlines() if line.startswith(SUCCEEDED)]
        problems += attack.check(result)
        secret = self._surroundings.secret
        told = "".join([result.stdout, result.stderr, *result.left_out.values()])
        if secret in told or any(secret.encode() in each for each in result.files.values()):
            problems.append("a file of the host was read")
        return problems

    def _left_running(self) -> list[str]:
        """Wait a while for places that are being removed; say how many still run programs."""
        until = time.monotonic() + _SETTLING
        while left := self._running():
            if time.monotonic() > until:
                return [f"{left} containers still run programs"]
            time.sleep(0.05)
        return []


def _of_no_use(sandbox: Sandbox) -> list[str]:
    """Say what hinders a plain program."""
    try:
        result = sandbox.run(_PLAIN)
    except SandboxFailureError as error:
        return [f"no program could be run afterwards: {error}"]
    if result.ok and result.stdout == "42\n":
        return []
    return [f"a plain program then ended as {ending(result)!r}, printing {result.stdout!r}"]


@contextmanager
def battery_on(client: "DockerClient", image: str = IMAGE) -> Iterator[Battery]:
    """Open a sandbox on an engine, with surroundings to watch.

    Args:
        client: Of the engine; stays open.
        image: What programs run in.
    """
    # An engine on another machine has no folders of this one.
    remote = is_remote(client.api)
    attacks = [attack for attack in ATTACKS if not (remote and attack.local)]
    with Surroundings(_bridge(client)) as surroundings:
        inputs = {} if remote else {"input": surroundings.inputs}
        with (
            DockerSandbox(image, limits=LIMITS, inputs=inputs, client=client) as sandbox,
            DockerSandbox(image, limits=ON_DISK, inputs=inputs, pool=0, client=client) as on_disk,
        ):
            yield Battery(sandbox, surroundings, lambda: _running(client), attacks, on_disk)


def _running(client: "DockerClient") -> int:
    """Count the containers of this process that run more than a supervisor.

    Raises:
        SandboxUnavailableError: The engine went away meanwhile.
    """
    try:
        return _count_running(client)
    except Exception as error:
        if not is_away(error):
            raise
        raise unreachable(error) from error


def _count_running(client: "DockerClient") -> int:
    from docker.errors import APIError  # noqa: PLC0415  (slow)

    label = f"{OWNER}={Owner.current().labels()[OWNER]}"
    running = 0
    for container in client.api.containers(filters={"label": label}):
        try:
            found: Any = client.api.top(container["Id"])
        except APIError:
            continue  # removed meanwhile
        running += len(found["Processes"] or ()) > 1
    return running


def _bridge(client: "DockerClient") -> list[str]:
    """Return the addresses at which the engine's default network reaches its host."""
    from docker.errors import DockerException  # noqa: PLC0415  (slow)

    try:
        network = client.networks.get("bridge").attrs
    except DockerException:
        return []
    settings = (network.get("IPAM") or {}).get("Config") or ()
    return [entry["Gateway"] for entry in settings if entry.get("Gateway")]
