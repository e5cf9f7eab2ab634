"""All groups of promises in the order of the page, and how they are measured."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Final

from acceptance import (
    agents_demo,
    agents_kill,
    alfworld_bad_input,
    alfworld_checkpoint,
    alfworld_engine,
    alfworld_mechanism,
    answers,
    apps,
    babyai,
    bad_input,
    banks,
    bm25,
    chain_bad_input,
    chain_long,
    chain_stuck,
    chroma,
    coding,
    competitions,
    demo,
    fold,
    full_size,
    intervals,
    kill,
    programs,
    providers,
    remedies,
    sandbox_chaos,
    sandboxes,
    searches,
    speed,
    stores,
    stores_of_others,
    transplant_plan,
    transplants,
    tree_demo,
    tree_http,
    tree_kill,
    tree_memory,
    tree_policy,
    upstream,
)
from acceptance.figure import Figure, Setting


@dataclass(frozen=True, slots=True)
class Group:
    """Promises that are measured together."""

    title: str
    measure: Callable[[Setting], list[Figure]]
    alone: bool = False
    """Whether its figures are speeds, also at reduced size: nothing else of ours may run then."""

    def figures(self, setting: Setting) -> list[Figure]:
        """Measure; what breaks on the way is a promise that does not hold."""
        try:
            return self.measure(setting)
        except Exception as error:  # noqa: BLE001  (the other groups are still to be measured)
            broken = f"{type(error).__name__}: {error}"
            return [Figure(self.title, "", broken, "measured to the end", passed=False)]


GROUPS: Final[tuple[Group, ...]] = (
    Group("Intervals, corrected p values and power", intervals.measure),
    Group("The demo", demo.measure),
    Group("kill -9", kill.measure),
    Group("Memory is the fold of its deltas", fold.measure),
    Group("Banks that many write to", banks.measure),
    Group("Memory in apps of many users", apps.measure),
    Group("Memory systems", providers.measure),
    Group("Coding memory on real runs", coding.measure),
    Group("One study on every store", stores.measure),
    Group("Chroma under kill -9, threads and processes", chroma.measure),
    Group("LangGraph's own store tests", upstream.measure),
    Group("LangGraph's own stores", stores_of_others.measure),
    Group("BM25", bm25.measure),
    Group("Remedies for what retrieval suffers from", remedies.measure),
    Group("BabyAI", babyai.measure),
    Group("Bad input", bad_input.measure),
    Group("Answers of mathematics", answers.measure),
    Group("LiveCodeBench and HumanEval", programs.measure),
    Group("What the transplant study claims", transplants.measure),
    Group("ALFWorld: real games", alfworld_engine.measure_games),
    Group("ALFWorld: bad input", alfworld_bad_input.measure),
    Group("ALFWorld: killed in an episode", alfworld_checkpoint.measure),
    Group("ALFWorld: plans under kill -9", kill.measure_worlds),
    Group("ALFWorld: where negative transfer comes from", alfworld_mechanism.measure),
    Group("Sandboxes: the hostile battery", sandboxes.measure_battery),
    Group("Sandboxes killed at random", sandbox_chaos.measure),
    Group("Speed of sandboxes", sandboxes.measure_speed, alone=True),
    Group("Competitions that ship", competitions.measure),
    Group("The tree's policy", tree_policy.measure),
    Group("The tree agent's demo", tree_demo.measure),
    Group("Timeouts in the tree's memory", tree_memory.measure),
    Group("The tree agent under kill -9", tree_kill.measure),
    Group("The tree agent and models that misbehave", tree_http.measure),
    Group("The demo of the chain agent and MLAB", agents_demo.measure),
    Group("The chain agent and MLAB under kill -9", agents_kill.measure),
    Group("The chain agent in circles", chain_stuck.measure),
    Group("The chain agent in a long run", chain_long.measure),
    Group("The chain agent and bad replies", chain_bad_input.measure),
    Group("Speed of the graph", speed.measure_graph, alone=True),
    Group("Speed of the harness", speed.measure_harness, alone=True),
    Group("Speed of searches", searches.measure, alone=True),
    Group("Speed of the command line", speed.measure_help, alone=True),
    Group("Speed of ALFWorld", alfworld_engine.measure_speed, alone=True),
    Group("The transplant plan whole", transplant_plan.measure),
    Group("The full-size plan", full_size.measure),
)


AT_ONCE: Final = 2
"""Groups under way at the same time at reduced size; most keep one core busy."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What came of a group."""

    number: int
    """Its place among those that were asked for."""
    title: str
    figures: Sequence[Figure]
    seconds: float
    """Wall time."""


def measure_groups(groups: Sequence[Group], setting: Setting) -> Iterator[Measured]:
    """Measure groups, each in a folder of its own, and yield each when it is done.

    At full size times are judged, so that nothing else may run. At reduced size only groups that
    are `alone` are speeds; the others run two at a time, in processes of their own, before them.
    """
    numbered = list(enumerate(groups))
    if setting.reduced:
        yield from _side_by_side([each for each in numbered if not each[1].alone], setting)
        numbered = [each for each in numbered if each[1].alone]
    for number, group in numbered:
        yield _measured(number, group, setting)


def say(line: str) -> None:
    """Tell of progress; also from a process of its own."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _side_by_side(numbered: Sequence[tuple[int, Group]], setting: Setting) -> Iterator[Measured]:
    if not numbered:
        return
    with ProcessPoolExecutor(AT_ONCE, mp_context=get_context("spawn")) as pool:
        # The longest are among the last: begun late, one of them would be under way alone.
        started = [pool.submit(_measured, *each, setting) for each in reversed(numbered)]
        for done in as_completed(started):
            yield done.result()


def _measured(number: int, group: Group, setting: Setting) -> Measured:
    setting.say(f"measuring: {group.title}")
    folder = setting.work / f"{number:02}"
    folder.mkdir()
    began = time.monotonic()
    figures = group.figures(replace(setting, work=folder))
    return Measured(number, group.title, figures, time.monotonic() - began)
