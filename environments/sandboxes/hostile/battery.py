"""Running attacks one after another, and judging each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from langgraft._core.errors import SandboxFailureError
from langgraft.environments.sandboxes.hostile.attack import (
    SUCCEEDED,
    Attack,
    NotContainedError,
    ending,
)
from langgraft.environments.sandboxes.hostile.attacks import ATTACKS
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings
from langgraft.environments.sandboxes.programs import Job, PythonProgram
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.sandbox import Sandbox

_LINE: Final = 300
"""Characters of a problem: programs write some of them."""
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
    """Attacks on one sandbox.

    Args:
        sandbox: What is attacked; with the battery's limits and the surroundings' inputs.
        surroundings: What must stay unharmed.
        running: Says how many places still run more than their supervisor.
        attacks: Which.
    """

    def __init__(
        self,
        sandbox: Sandbox,
        surroundings: Surroundings,
        running: Callable[[], int],
        attacks: Sequence[Attack] = ATTACKS,
    ) -> None:
        self.attacks = attacks
        self._sandbox = sandbox
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
        started = time.monotonic()
        ended, problems = "", []
        try:
            result = attack.carry_out(self._sandbox, self._surroundings)
        except NotContainedError as error:
            problems.append(str(error))
        except SandboxFailureError as error:
            problems.append(f"told as a failure of the engine: {error}")
        else:
            ended = ending(result)
            problems += self._judge(attack, result)
        problems += [*self._left_running(), *self._surroundings.harm(), *self._of_no_use()]
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

    def _of_no_use(self) -> list[str]:
        """Say what hinders a plain program."""
        try:
            result = self._sandbox.run(_PLAIN)
        except SandboxFailureError as error:
            return [f"no program could be run afterwards: {error}"]
        if result.ok and result.stdout == "42\n":
            return []
        return [f"a plain program then ended as {ending(result)!r}, printing {result.stdout!r}"]

    def _left_running(self) -> list[str]:
        """Wait a while for places that are being removed; say how many still run programs."""
        until = time.monotonic() + _SETTLING
        while left := self._running():
            if time.monotonic() > until:
                return [f"{left} containers still run programs"]
            time.sleep(0.05)
        return []
