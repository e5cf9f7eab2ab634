"""Circles of the chain agent, through its real graph: each rule fires where it should, only there."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langgraph.store.memory import InMemoryStore

from acceptance.chain_script import (
    Ran,
    Scripted,
    bash,
    does,
    in_turn,
    prepared,
    ran,
)
from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.simulated.chat import Reply
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes import SubprocessSandbox
from langgraft.graphs.chain import build_chain_agent
from langgraft.memory.providers.coding import CodingMemory
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.chain.stuck import OnStuck
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import RECALL, RECOVERY, Action, RunInput

_STEPS: Final = 24
_RECOVERIES: Final = 2

_SAME, _OTHER = bash("echo the same"), bash("echo another")
_FAILS = bash("echo no; exit 3")
_COUNTS = bash("echo x >> seen; wc -l < seen")
"""The same action, which shows something else each time."""
_FAILS_TWICE = bash("echo x >> tried; test $(wc -l < tried) -gt 2")
_PID = does("run_python", code="import os; print('pid', os.getpid(), object())")
"""The same action, whose observation differs in what does not count."""
_SPEAKS = Reply("I am thinking about it.")


def _thinks(thought: str) -> Reply:
    return does("think", thought=thought)


LOOPS: Final[dict[str, tuple[str, Sequence[Reply]]]] = {
    "four times the same": ("pairs", [_SAME] * 4),
    "four times the same cell": ("pairs", [_PID] * 4),
    "four times the same thought": ("pairs", [_thinks("hm")] * 4),
    "three times the same failure": ("errors", [_FAILS] * 3),
    "three times the same SyntaxError": ("errors", [does("run_python", code="def (:")] * 3),
    "three times a tool that is not there": ("errors", [does("fly", to="the moon")] * 3),
    "three times the same message": ("messages", [_SPEAKS] * 3),
    "three empty replies": ("messages", [Reply("")] * 3),
    "two actions by turns": ("alternation", [_SAME, _OTHER] * 3),
    "two failures by turns": ("alternation", [_FAILS, _SAME] * 3),
}
"""What the agent does → the rule that is to end it, right after the last of these."""

NEAR: Final[dict[str, Sequence[Reply]]] = {
    "three times the same, then another": [_SAME, _SAME, _SAME, _OTHER],
    "five times the same action with other observations": [_COUNTS] * 5,
    "two same failures, then another": [_FAILS, _FAILS, _SAME],
    "twice a failure, then it works": [_FAILS_TWICE] * 3,
    "three failures of three programs": [bash(f"exit {code}") for code in (3, 4, 5)],
    "two messages, a thought, a message": [_SPEAKS, _SPEAKS, _thinks("so"), _SPEAKS],
    "three messages that differ": [Reply("One."), Reply("Two."), Reply("Three.")],
    "five steps by turns, then another": [_SAME, _OTHER, _SAME, _OTHER, _SAME, _thinks("so")],
    "six steps by turns with other observations": [_SAME, _COUNTS] * 3,
    "three actions in turn, three times": [_SAME, _OTHER, _thinks("so")] * 3,
}
"""What comes close to circles, and is none."""


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where scripts are run."""

    competition: Competition
    sandbox: SubprocessSandbox

    def run(
        self,
        model: Scripted,
        *,
        on_stuck: OnStuck = "stop",
        memory: CodingMemory | None = None,
        aside: bool = False,
    ) -> Ran:
        """Run a script to its end, sync or async."""
        artifacts = MemoryArtifacts()
        agent = build_chain_agent(
            model,
            competition=self.competition,
            sandbox=self.sandbox,
            memory=memory,
            learn=False,
            artifacts=artifacts,
            limits=RunLimits(steps=_STEPS),
            seconds=30,
            on_stuck=on_stuck,
            recoveries=_RECOVERIES,
        )
        begin = RunInput(episode_id="scripted")
        final = asyncio.run(agent.ainvoke(begin)) if aside else agent.invoke(begin)
        return ran(final, artifacts)


def measure(setting: Setting) -> list[Figure]:
    """Run scripted circles and near misses; at full size after up to two other steps, and async."""
    before = range(setting.size(3, 1))
    modes = [False, True] if not setting.reduced else [False]
    competition = prepared(setting)
    with SubprocessSandbox(inputs={"input": competition.public_dir}) as sandbox:
        bench = _Bench(competition, sandbox)
        setting.say(f"{len(LOOPS)} scripted circles and {len(NEAR)} near misses")
        return [
            _fires(bench, before, modes),
            _does_not(bench, before, modes),
            _condensed(bench),
            *_recovers(bench),
        ]


def _after(count: int, replies: Sequence[Reply]) -> list[Reply]:
    return [*(_thinks(f"step {number}") for number in range(count)), *replies]


def _fires(bench: _Bench, before: range, modes: Sequence[bool]) -> Figure:
    wrong, total = [], 0
    for name, (rule, loop) in LOOPS.items():
        for count in before:
            for aside in modes:
                came = bench.run(Scripted(script=in_turn(_after(count, loop))), aside=aside)
                total += 1
                if (came.ended, came.steps) != (f"stuck: {rule}", count + len(loop)):
                    wrong.append(f"{name}: {came.ended} after {came.steps} steps")
    return Figure(
        "Each rule ends a run that goes in circles, at the step that closes them",
        f"scripted model, real graph and workspaces; {'; '.join(LOOPS)}",
        share(total - len(wrong), total, wrong),
        "all",
        not wrong,
    )


def _does_not(bench: _Bench, before: range, modes: Sequence[bool]) -> Figure:
    wrong, total = [], 0
    for name, steps in NEAR.items():
        for count in before:
            for aside in modes:
                came = bench.run(Scripted(script=in_turn(_after(count, steps))), aside=aside)
                total += 1
                if (came.ended, came.steps) != ("finished", count + len(steps) + 1):
                    wrong.append(f"{name}: {came.ended} after {came.steps} steps")
    return Figure(
        "No rule ends a run that comes close to circles",
        f"the same; {'; '.join(NEAR)}",
        share(total - len(wrong), total, wrong),
        "all finish",
        not wrong,
    )


def _condensed(bench: _Bench) -> Figure:
    """Let the model refuse prompts as too long: for ever, and twice."""
    steps = [bash(f"seq {number} {number + 400}") for number in range(8)]
    script = in_turn(steps)
    for_ever = bench.run(Scripted(script=script, refusals=1000, refuse_from=6))
    for_a_while = bench.run(Scripted(script=script, refusals=2, refuse_from=6))
    return Figure(
        "A prompt that no shortening helps ends the run, and one that some does goes on",
        "a model that refuses prompts as too long after 6 steps: all of them, and two",
        f"{for_ever.ended}; {for_a_while.ended}",
        "context; finished",
        (for_ever.ended, for_a_while.ended) == ("context", "finished"),
    )


def _recovers(bench: _Bench) -> list[Figure]:
    escapes = Scripted(script=in_turn([_thinks("plan"), *[_SAME] * 4, _OTHER]))
    memory = CodingMemory(InMemoryStore())
    came = bench.run(escapes, on_stuck="recover", memory=memory)
    shown = str(escapes.asked[-1])
    asked, recovered = _counts(came)
    hidden = "echo the same" not in shown and "plan" in shown
    always = bench.run(Scripted(script=lambda _: _SAME), on_stuck="recover", memory=memory)
    asked_always, recovered_always = _counts(always)
    how = "four times the same; memory is asked at the beginning of each attempt"
    return [
        Figure(
            "With `recover` a run goes on from before the circles, which it no longer sees",
            f"{how}, then another step",
            f"{came.ended} after {came.steps} steps, {recovered} recovery, memory asked {asked} times;"
            f" circles {'hidden' if hidden else 'still shown'}",
            "finished, 1 recovery, asked twice, hidden",
            (came.ended, recovered, asked) == ("finished", 1, 2) and hidden,
        ),
        Figure(
            "It recovers as often as it may, then stops",
            f"{how}, for ever, {_RECOVERIES} recoveries allowed",
            f"{always.ended} after {always.steps} steps, {recovered_always} recoveries, memory asked"
            f" {asked_always} times",
            f"stuck: pairs, {_RECOVERIES}, asked {_RECOVERIES + 1} times",
            (always.ended, recovered_always, asked_always)
            == ("stuck: pairs", _RECOVERIES, _RECOVERIES + 1),
        ),
    ]


def _counts(came: Ran) -> tuple[int, int]:
    """Return how often memory was asked, and how often the run recovered."""
    names = [event.name for event in came.events if isinstance(event, Action)]
    return names.count(RECALL), names.count(RECOVERY)
