"""What timeouts in memory do to a tree search, and what keeping kinds apart by stage does about it.

The simulated data scientist, which is no language model, writes drafts and improvements by the
tree's own prompts under five memories (`tree_programs`): without one, with a store that holds
timeouts, with the same told by stage, with one that never held a timeout, and with a placebo.

What is counted are the packages that a program imports. Programs need not run for that; in the
second part the real graph searches in Docker, and the programs that ran are counted, as in §4.6.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from acceptance.figure import Figure, Setting, share
from acceptance.tree_programs import (
    BOOSTED,
    SECONDS,
    STAGES,
    Memory,
    Program,
    memories,
    write_programs,
)
from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.graphs.tree import build_tree_agent
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.search.journal import Journal, read_search

COMPETITION: Final = "weather"
FEWEST: Final = 30
"""Programs that ran, of each memory, whose shares are judged."""
LEFT: Final = 0.2
"""The part of the shift that may be left where kinds are kept apart."""


def measure(setting: Setting) -> list[Figure]:
    """Write programs for many seeds under each memory, and search in Docker for a few."""
    competition = Registry(setting.work / "tree-memory").get_competition(COMPETITION)
    prepare_competition(competition)
    seeds, searches = setting.size(1000, 60), setting.size(5, 1)
    setting.say(
        f"{seeds} drafts and improvements under each of {len(memories(competition))} memories"
    )
    written = write_programs(competition, seeds)
    setting.say(f"{searches} searches in Docker under each memory")
    return [*_shift(written, seeds), *_searched(competition, setting, searches)]


# Programs that are written -----------------------------------------------------------------------


def shift(written: Mapping[str, Sequence[Sequence[Program]]], of: str, against: str) -> Estimate:
    """Estimate by how much the share of boosted programs differs, paired by seed."""
    ours, theirs = (
        np.array([np.mean([each.boosted for each in pair]) for pair in written[name]])
        for name in (of, against)
    )
    return mean_estimate((ours - theirs)[:, None], bounds=(-1.0, 1.0))


def _shift(written: Mapping[str, Sequence[Sequence[Program]]], seeds: int) -> list[Figure]:
    moved, back = shift(written, "seeded", "none"), shift(written, "by stage", "seeded")
    left, nothing = shift(written, "by stage", "none"), shift(written, "placebo", "none")
    programs = seeds * len(STAGES)
    same = sum(
        ours.code == theirs.code
        for pair, other in zip(written["by stage"], written["no limits"], strict=True)
        for ours, theirs in zip(pair, other, strict=True)
    )
    how = (
        f"{COMPETITION}, {seeds} seeds with a draft and an improvement each, simulated data"
        f" scientist (no language model); share of programs with {' or '.join(BOOSTED)}, paired by"
        " seed, 95 %"
    )
    counts = "; ".join(f"{name}: {_counted(_flat(each))}" for name, each in written.items())
    return [
        Figure("Packages imported by drafts and improvements, by memory (as §4.6 counts them)",
               f"{how}; n = {programs} programs each", counts, "", None),
        Figure("A store seeded with timeouts shifts the packages used", how, _told(moved),
               "upper end < 0", passed=moved.high < 0),
        Figure("Kinds by stage bring them back", how, _told(back),
               "lower end > 0", passed=back.low > 0),
        Figure("Kinds by stage leave at most a fifth of the shift", how, _told(left),
               f"interval above {LEFT:.0%} of the shift, {LEFT * moved.value:+.3f}",
               passed=left.low > LEFT * moved.value),
        Figure("With kinds by stage programs are those of a store that never held a timeout",
               f"{how}; byte for byte", share(same, programs), "all", passed=same == programs),
        Figure("A placebo as long as what the store tells shifts nothing", how, _told(nothing),
               "interval holds 0", passed=nothing.low <= 0 <= nothing.high),
    ]  # fmt: skip


def _flat(pairs: Sequence[Sequence[Program]]) -> list[Program]:
    return [program for pair in pairs for program in pair]


def _counted(programs: Sequence[Program]) -> str:
    """Count the programs with each package, the most used ones first."""
    counts = Counter(name for program in programs for name in program.packages)
    common = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in common if name in _MODELS)


_MODELS: Final = frozenset((*BOOSTED, "sklearn", "statsmodels", "torch"))
"""Packages that models come from."""


def _told(estimate: Estimate) -> str:
    return (
        f"{estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f}),"
        f" n = {estimate.n_items} seeds"
    )


# Programs that ran -------------------------------------------------------------------------------


def _searched(competition: Competition, setting: Setting, searches: int) -> list[Figure]:
    steps = setting.size(8, 4)
    inputs = {"input": competition.public_dir}
    path = setting.work / "tree-memory-executions.sqlite"
    found: dict[str, list[Journal]] = {}
    with CachedSandbox(DockerSandbox(inputs=inputs), path) as sandbox:
        # A single search each is too few to compare: then only the memory that is judged by itself.
        for name in ("by stage",) if setting.reduced else ("none", "seeded", "by stage"):
            found[name] = []
            for seed in range(searches):
                setting.say(f"searching with memory {name!r}, seed {seed}")
                # A new memory each time: searches of one condition do not learn from each other.
                memory = memories(competition)[name]
                found[name].append(search(competition, sandbox, memory, seed=seed, steps=steps))
    kinds = _limits_told(found["by stage"])
    how = (
        f"{COMPETITION}, real graph, programs in Docker: {searches} searches of {steps} steps for"
        " each memory, two programs at a time, simulated data scientist that makes no mistakes"
    )
    told = Figure(
        "In those searches no draft and no improvement is told of a limit by stage",
        how,
        f"{kinds} recalls with one",
        "0",
        passed=kinds == 0,
    )
    return [told] if setting.reduced else [_compared(found, f"{how}; programs that ran"), told]


def _compared(found: Mapping[str, Sequence[Journal]], how: str) -> Figure:
    ran = {name: _flat([_programs(journal) for journal in each]) for name, each in found.items()}
    counts = "; ".join(
        f"{name}: {_counted(each)} of {len(each)} that ran" for name, each in ran.items()
    )
    shares = {name: _boosted(each) for name, each in ran.items()}
    enough = min(map(len, ran.values())) >= FEWEST
    told = ", ".join(f"{name} {value:.1%}" for name, value in shares.items())
    return Figure(
        f"The same in searches whose programs ran: share with {' or '.join(BOOSTED)}",
        how,
        f"{told}. {counts}",
        "seeded below the other two, pooled" if enough else "reported: too few to be judged",
        passed=shares["seeded"] < min(shares["none"], shares["by stage"]) if enough else None,
    )


def search(
    competition: Competition, sandbox: Sandbox, memory: Memory, *, seed: int, steps: int
) -> Journal:
    """Search for real, and return the journal; without mistakes, so that what is chosen runs."""
    artifacts = MemoryArtifacts()
    agent = build_tree_agent(
        SimulatedDataScientist(seed=seed, ignorance=0),
        competition=competition,
        sandbox=sandbox,
        memory=memory,
        artifacts=artifacts,
        steps=steps,
        seconds=SECONDS,
        width=2,
    )
    done = agent.invoke({"episode_id": f"search-{seed}", "seed": seed})
    return read_search(
        artifacts, done["journal"], run=f"search-{seed}", task=competition.id
    ).journal


def _programs(journal: Journal) -> list[Program]:
    return [Program(journal.stage(node), node.code) for node in journal.nodes if not node.is_buggy]


def _boosted(programs: Sequence[Program]) -> float:
    return sum(program.boosted for program in programs) / max(len(programs), 1)


def _limits_told(journals: Sequence[Journal]) -> int:
    return sum(
        "resource" in node.recalled_kinds
        for journal in journals
        for node in journal.nodes
        if journal.stage(node) != "debug"
    )
