"""Episodes do not disturb one another, the process they run in, or those that follow."""

import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from langgraft._core.canonical import digest
from langgraft.environments.babyai import BabyAIEnvironment

LEVELS = ("BabyAI-ActionObjDoor-v0", "BabyAI-FindObjS7-v0", "BabyAI-BossLevel-v0")

FRESH_PROCESS = """
import os, sys
from langgraft.environments.babyai import BabyAI
BabyAI().tasks("babyai/find_obj", "train")
assert not {"minigrid", "gymnasium", "pygame", "numpy"} & set(sys.modules)
before = dict(os.environ)
from langgraft.environments.babyai import BabyAIEnvironment
episode = BabyAIEnvironment("BabyAI-BossLevel-v0", 2)
texts = [episode.reset().observation]
for action in ("turn right", "check", "nonsense", "move forward", "turn right"):
    texts.append(episode.step(action).observation)
assert dict(os.environ) == before
from langgraft._core.canonical import digest
print(digest(texts))
"""


def transcript(number: int) -> list[str]:
    """Play one episode with actions drawn by its number and write down all it shows."""
    chance = random.Random(number)
    episode = BabyAIEnvironment(LEVELS[number % len(LEVELS)], seed=number)
    start = episode.reset()
    actions, texts = start.actions, [start.observation]
    for _ in range(12):
        transition = episode.step(chance.choice([*actions, "", "nonsense"]))
        texts.append(f"{transition.observation}|{transition.reward}|{transition.done}")
        actions = transition.actions
        if transition.done:
            break
    return texts


def test_threads_when_16_episodes_run_at_once_then_each_reads_as_it_does_alone() -> None:
    """Side by side and one by one give the same transcripts."""
    alone = [transcript(number) for number in range(48)]
    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(transcript, range(48)))
    assert together == alone


def test_threads_when_episodes_are_generated_then_only_others_prints_reach_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Minigrid's notes on rejected missions are dropped; nobody else's line is."""

    def build(number: int) -> None:
        BabyAIEnvironment("BabyAI-BossLevel-v0", seed=number).reset()
        print(f"line {number}")  # noqa: T201

    stdout = sys.stdout
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(build, range(24)))
    assert sys.stdout is stdout
    lines = capsys.readouterr().out.replace("line", "\nline").split("\n")
    assert sorted(line for line in lines if line) == sorted(f"line {n}" for n in range(24))


def test_reset_when_called_again_then_the_episode_starts_as_before() -> None:
    """A played episode leaves nothing behind for the next."""
    for level in LEVELS:
        episode = BabyAIEnvironment(level, seed=5)
        first = episode.reset()
        for action in ("turn left", "move forward", "check", "toggle"):
            episode.step(action)
        assert episode.reset() == first
        assert BabyAIEnvironment(level, seed=5).reset() == first


def test_processes_when_hash_seeds_differ_then_texts_are_the_same_and_nothing_is_left() -> None:
    """Fresh processes agree, import lazily, print no banner and keep their environment."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", FRESH_PROCESS],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    episode = BabyAIEnvironment("BabyAI-BossLevel-v0", 2)
    texts = [episode.reset().observation]
    for action in ("turn right", "check", "nonsense", "move forward", "turn right"):
        texts.append(episode.step(action).observation)  # noqa: PERF401
    assert printed == {digest(texts) + "\n"}
