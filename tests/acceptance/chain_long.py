"""A long run of the chain agent with a model of little context: what it takes per step."""

import gc
import os
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore

from acceptance.chain_script import Scripted, bash, does, prepared
from acceptance.figure import Figure, Setting
from langgraft.benchmarks.simulated.chat import Reply
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes import SubprocessSandbox
from langgraft.graphs.chain import build_chain_agent
from langgraft.memory.providers.coding import CodingMemory
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import RunInput

CONTEXT: Final = 8192
"""Tokens that the model reads, with its reply."""
MOST_RSS: Final = 0.1
"""By which part the process may be larger at the end than half-way."""
MOST_GROWTH: Final = 1.25
"""How much larger than those of the second third the checkpoints of the last third may be."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Took:
    """What a run took."""

    ended: str
    steps: int
    rss: Sequence[int]
    """Bytes of the process after each step."""
    saved: Sequence[int]
    """Bytes of each checkpoint with its writes, in order."""
    prompts: Sequence[int]
    """Tokens of each prompt, as the model counts them."""
    refused: int
    """Prompts that were too long for the model."""


def measure(setting: Setting) -> list[Figure]:
    """Run with a model whose context is known, and with one that has to refuse."""
    steps = setting.size(500, 40)
    competition = prepared(setting)
    figures = []
    for context in (CONTEXT, None):
        known = "known" if context else "not known"
        setting.say(f"{steps} steps of a model that reads {CONTEXT:,} tokens, {known} beforehand")
        folder = setting.work / f"long-{known.replace(' ', '-')}"
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            took = pool.submit(work_on, competition, folder, steps, context).result()
        how = (
            f"{steps} scripted steps, outputs of up to 20,000 characters, failures filed in memory;"
            f" a model that refuses more than {CONTEXT:,} tokens, which the agent is"
            f" {'told' if context else 'not told'}; checkpoints in SQLite"
        )
        figures += [_ends(took, steps, how, told=context is not None)]
        figures += [_memory(setting, took, how), _checkpoints(took, how)]
    return figures


def script(number: int) -> Reply:
    """Work on and on: long outputs, cells, files, failures, thoughts, words."""
    match number % 6:
        case 0:
            return bash(f"seq {number} {number + 3000}")
        case 1:
            return does("run_python", code=f"x = {number}\nprint([x] * 2000)\nx")
        case 2:
            text = f"# {number}\n" + "print('a line')\n" * 200
            return does("edit_file", command="create", path=f"part{number % 4}.py", file_text=text)
        case 3:
            return does("run_python", code=f"import json\njson.loads('{number}', key_{number}=1)")
        case 4:
            return Reply(f"Step {number} is done. " + "I go on as I planned. " * 40)
        case _:
            return does("think", thought=f"After step {number} " + "I know more. " * 60)


def work_on(competition: Competition, folder: Path, steps: int, context: int | None) -> Took:
    """Run in a process of its own."""
    folder.mkdir()
    model, rss = Scripted(script=script, context=CONTEXT), []
    place = folder / "checkpoints.sqlite"
    with (
        SubprocessSandbox(inputs={"input": competition.public_dir}) as sandbox,
        SqliteSaver.from_conn_string(str(place)) as saver,
    ):
        agent = build_chain_agent(
            model,
            competition=competition,
            sandbox=sandbox,
            feedback_model=SimulatedDataScientist(),
            memory=CodingMemory(InMemoryStore()),
            folder=folder,
            limits=RunLimits(steps=steps),
            seconds=60,
            context=context,
            checkpointer=saver,
        )
        config: Any = {"configurable": {"thread_id": "long"}}
        begin = RunInput(episode_id="long", seed=0)
        for update in agent.stream(begin, config, stream_mode="updates", durability="sync"):
            if "act" in update:
                gc.collect()
                rss.append(_resident())
        final: Any = agent.get_state(config).values
    return Took(
        final["ended"], final["steps"], rss, _sizes(place), model.prompts, len(model.refused)
    )


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def _sizes(checkpoints: Path) -> list[int]:
    """Return what each checkpoint takes with what was written after it."""
    with closing(sqlite3.connect(checkpoints)) as connection:
        rows = connection.execute(
            "SELECT length(checkpoint) + length(metadata) + coalesce((SELECT sum(length(value)) FROM"
            " writes WHERE writes.checkpoint_id = checkpoints.checkpoint_id), 0)"
            " FROM checkpoints ORDER BY checkpoint_id"
        )
        return [size for (size,) in rows]


def _ends(took: Took, steps: int, how: str, *, told: bool) -> Figure:
    largest = max(took.prompts)
    fits = largest <= CONTEXT and (took.refused == 0 or not told)
    return Figure(
        "No prompt is too long for a model of 8k tokens"
        if told
        else "A model whose context nobody told the agent refuses some prompts, and no refusal is fatal",
        how,
        f"{took.steps} steps, ended by {took.ended}; the largest of {len(took.prompts)} prompts has"
        f" {largest:,} tokens as the model counts; {took.refused} refused",
        f"{steps} steps, ≤ {CONTEXT:,} tokens" + (", none refused" if told else ", some refused"),
        (took.steps, took.ended) == (steps, "steps") and fits and (told or took.refused > 0),
    )


def _memory(setting: Setting, took: Took, how: str) -> Figure:
    half, end = took.rss[len(took.rss) // 2], took.rss[-1]
    growth = end / half - 1
    judged = not setting.reduced
    return Figure(
        "The process stays as large as it is",
        f"{how}; resident memory after each step",
        f"{half / 1e6:.0f} MB half-way, {end / 1e6:.0f} MB at the end ({growth:+.1%})",
        f"≤ {MOST_RSS:+.0%}" if judged else "",
        growth <= MOST_RSS if judged else None,
    )


def _checkpoints(took: Took, how: str) -> Figure:
    third = len(took.saved) // 3
    second, last = sum(took.saved[third : 2 * third]), sum(took.saved[2 * third : 3 * third])
    each = sum(took.saved) / took.steps
    return Figure(
        "Checkpoints of a step take the same at the end as in the middle",
        f"{how}; with all writes",
        f"{each / 1000:.1f} kB a step; the last third takes {last / second:.2f} times the second",
        f"≤ {MOST_GROWTH} times",
        last <= MOST_GROWTH * second,
    )
