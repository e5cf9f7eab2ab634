"""`compat` against transcripts that AgentGym's own server gave, word for word."""

import json
from pathlib import Path
from typing import Any

import pytest

from langgraft.environments.babyai import BabyAIEnvironment
from langgraft.environments.babyai import environment as module

TRANSCRIPTS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("babyai_transcripts.json").read_text(encoding="utf-8")
)

ASKED_FOR = """
runs: turn left|runs: turn right|runs: move forward|runs: pickup key|runs: pickup ball
runs: pickup box|runs: drop|runs: toggle|runs: toggle and go through closed door
runs: toggle and go through locked door|runs: go through open door|runs: go to goal
runs: go to key|runs: go to ball|runs: go to box|runs: go to closed door
runs: go to locked door|runs: go to open door|check lists the actions
any text with `check` lists the actions|case and outer spaces do not matter|empty input
no change in state|no change: go to closed door|refused: not recognized
`pick up` is not recognized|refused: barrier ahead|refused: nothing to drop
refused: no room to drop|refused: no path to pick up|refused: no path to go to
refused: no path through an open door|refused: closed door must be toggled first
refused: no path to a closed door (prints a dict)|refused: no key
refused: no path to a locked door (prints a dict)|refused: key of another color
ids in the list count reachable things only|two things of one name|nothing in sight
go to a door ends elsewhere|an option ends elsewhere|pickup stops before it picks up
changes nothing: move forward|changes nothing: turn left|starts with a full hand
success ends the episode|success after 0.556 of the steps does not end it
a refused action repeats the last reward|a failed mission is called completed and goes on
open door: toggle and go through never completes it|open door: the recipe that completes it
go to door: toggle and go through never completes it
go to door: the recipe that completes it|goal: `then` becomes `and`
goal: `after you` becomes `and`|facing wall|facing box|not facing
"""


@pytest.mark.parametrize(
    "transcript", TRANSCRIPTS, ids=lambda t: f"{t['level'][7:-3]}-{t['seed']}-{len(t['turns'])}"
)
def test_compat_when_a_recorded_script_is_played_then_every_turn_is_the_recorded_one(
    transcript: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Observation, action list, reward, score and end equal AgentGym's at every turn."""
    # One transcript shows a goal tile, which no BabyAI level has.
    monkeypatch.setattr(module, "check_level", lambda _: None)
    episode = BabyAIEnvironment(transcript["level"], transcript["seed"])
    start = episode.reset()
    assert start.instruction == transcript["instruction"]
    assert start.observation == transcript["observation"]
    won = False
    for turn in transcript["turns"]:
        got = episode.step(turn["action"])
        assert got.observation == turn["observation"], turn["action"]
        assert (got.reward, got.info["score"], got.done) == (
            turn["reward"],
            turn["score"],
            turn["done"],
        )
        assert json.loads(got.observation.rpartition("Available actions: ")[2]) == list(got.actions)
        won = won or turn["reward"] > 0
        assert got.success is won


def test_transcripts_when_taken_together_then_they_cover_every_action_refusal_and_quirk() -> None:
    """No action, error sentence or quirk of the specification lacks a recorded turn."""
    wanted = {item for line in ASKED_FOR.strip().splitlines() for item in line.split("|")}
    assert wanted <= {item for transcript in TRANSCRIPTS for item in transcript["covers"]}
