"""The hostile battery on the real engine, one attack a test."""

from collections.abc import Iterator

import docker
import pytest

from langgraft.environments.sandboxes.hostile.attacks import ATTACKS, Attack
from langgraft.environments.sandboxes.hostile.battery import Battery, battery_on


@pytest.fixture(scope="module")
def battery(docker_image: str) -> Iterator[Battery]:
    """Return a battery on this machine's engine."""
    client = docker.from_env()
    with battery_on(client, docker_image) as opened:
        yield opened
    client.close()


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name.replace(" ", "-"))
def test_attack_when_carried_out_is_contained(battery: Battery, attack: Attack) -> None:
    """It is told as what it is, nothing gets out, and the sandbox then runs a plain program."""
    outcome = battery.carry_out(attack)
    assert outcome.contained, outcome.problems
