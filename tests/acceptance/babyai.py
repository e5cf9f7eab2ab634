"""BabyAI: the recorded transcripts, and the same worlds in every process."""

import json
import random
import sys
from typing import Any

from acceptance.command import run, worker_environment
from acceptance.figure import Figure, Setting, share
from langgraft._core.canonical import digest
from langgraft.benchmarks.reporting.words import several
from langgraft.environments.babyai import LEVELS, BabyAIEnvironment

TRANSCRIPTS = "tests/environments/babyai_transcripts.json"
BAD_INPUT = ("", "check", "nonsense", "pick up the ball")
ROUNDS = 20


def measure(setting: Setting) -> list[Figure]:
    """Replay the transcripts, and play random turns in several processes."""
    setting.say("BabyAI's transcripts")
    return [_transcripts(setting), _processes(setting)]


def _transcripts(setting: Setting) -> Figure:
    recorded = json.loads((setting.checkout / TRANSCRIPTS).read_text(encoding="utf-8"))
    # One shows a goal tile, which no BabyAI level has; the tests play it.
    played = [each for each in recorded if each["level"].startswith("BabyAI-")]
    wrong: list[str] = []
    for transcript in played:
        wrong += _differences(transcript)
    turns = sum(len(transcript["turns"]) for transcript in played)
    return Figure(
        "`compat` answers as AgentGym's server does, slips included",
        f"{len(played)} of {len(recorded)} transcripts of that server, in {TRANSCRIPTS}",
        share(turns - len(wrong), turns, wrong) + " turns",
        "all",
        not wrong,
    )


def _differences(transcript: dict[str, Any]) -> list[str]:
    """Name the turns that are not as recorded."""
    name = f"{transcript['level']} {transcript['seed']}"
    episode = BabyAIEnvironment(transcript["level"], transcript["seed"])
    wrong = [] if episode.reset().observation == transcript["observation"] else [f"{name}: start"]
    for number, turn in enumerate(transcript["turns"]):
        got = episode.step(turn["action"])
        shown = (got.observation, got.reward, got.info["score"], got.done)
        if shown != (turn["observation"], turn["reward"], turn["score"], turn["done"]):
            wrong.append(f"{name}: turn {number}")
    return wrong


def _processes(setting: Setting) -> Figure:
    seeds = setting.size(8, 1)
    setting.say(f"random turns on all {len(LEVELS)} levels in two processes")
    program = f"from acceptance.babyai import random_turns;print(*random_turns({seeds}))"
    printed = []
    for hash_seed in ("1", "2"):
        environment = {**worker_environment(), "PYTHONHASHSEED": hash_seed}
        done = run([sys.executable, "-c", program], environment=environment)
        printed.append(done.stdout.split() or [done.stderr.strip()[-200:], "no"])
    (first, turns), (second, _) = printed
    return Figure(
        "A world is the same in every process",
        f"{turns} random turns on {len(LEVELS)} levels, {several(seeds, 'seed')}, both semantics,"
        " bad input included; two processes with other hash seeds",
        f"digests {first[:12]} and {second[:12]}",
        "equal",
        first == second and turns.isdigit(),
    )


def random_turns(seeds: int) -> tuple[str, int]:
    """Play random actions and return a digest of all that was shown, and how many turns."""
    shown: list[list[str]] = []
    for seed in range(seeds):
        for level in LEVELS:
            shown += [_episode(level, seed, fixed=fixed) for fixed in (False, True)]
    return digest(shown), sum(len(texts) - 1 for texts in shown)


def _episode(level: str, seed: int, *, fixed: bool) -> list[str]:
    chance = random.Random(f"{level} {seed}")
    episode = BabyAIEnvironment(level, seed, "fixed" if fixed else "compat")
    start = episode.reset()
    texts, actions = [start.observation], start.actions
    for _ in range(ROUNDS):
        got = episode.step(chance.choice([*actions, *actions, *actions, *BAD_INPUT]))
        texts.append(f"{got.observation}|{got.reward}|{got.done}|{got.success}")
        actions = got.actions
        if got.done:
            break
    return texts
