"""The hostile battery on the engine of this machine."""

from contextlib import closing

from langgraft.benchmarks.acceptance.figure import Figure, Setting, share
from langgraft.environments.sandboxes.docker.engine import connect
from langgraft.environments.sandboxes.hostile.battery import Outcome
from langgraft.environments.sandboxes.hostile.on_docker import battery_on

TESTS = "tests/environments/sandboxes/hostile/test_attacks.py"


def measure(setting: Setting) -> list[Figure]:
    """Attack sandboxes, each round a new one, and count what was contained."""
    promise = "Every attack is contained, told as what it is, and harms neither host nor sandbox"
    if setting.reduced:
        # One round, an attack a test, is among the tests.
        return [Figure(promise, TESTS, "run with the tests", "", None)]
    rounds = 5
    outcomes: list[Outcome] = []
    with closing(connect()) as client:
        for number in range(rounds):
            with battery_on(client) as battery:
                setting.say(f"round {number + 1} of {rounds}: {len(battery.attacks)} attacks")
                outcomes += battery.run()
    wrong = [f"{each.attack.name}: {each.problems[0]}" for each in outcomes if each.problems]
    seconds = sum(outcome.seconds for outcome in outcomes) / rounds
    return [
        Figure(
            promise,
            f"the {len(outcomes) // rounds} attacks of `langgraft sandbox check`, {rounds} times,"
            " each with a look at the host and a plain program after it",
            share(len(outcomes) - len(wrong), len(outcomes), wrong),
            "all",
            not wrong and bool(outcomes),
        ),
        Figure(
            "`langgraft sandbox check` is done in a minute",
            "all attacks with what follows each, mean of the rounds",
            f"{seconds:.0f} s",
            "",
            None,
        ),
    ]
