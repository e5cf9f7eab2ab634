"""The learning track of STATE-Bench with the conditions of `ablate`: does a bank from one domain help in another?

    langgraft ablate langgraft.benchmarks.statebench.learning_track:experiment --preview
    langgraft ablate langgraft.benchmarks.statebench.learning_track:experiment

Banks are made of the 100 recorded trajectories of each domain, and each is tried on the test tasks of all three.
No score of it is the benchmark's official one (docs/statebench.md). The environment says which model plays:
`STATEBENCH_MODEL=openai:gpt-4.1-mini`; without it a simulated clerk does.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from langgraft.benchmarks.ablation.experiment import Condition, Experiment, Model
from langgraft.benchmarks.simulated.clerk import SimulatedClerk
from langgraft.benchmarks.statebench.agents import episode_of, serve
from langgraft.environments.statebench import load
from langgraft.memory.model import Episode

PROVIDERS: Final = ("trajectory", "simple_rag", "agent_kb")
"""Memories that learn from a trajectory without a model's help."""
CALLS: Final = 12
"""Model calls that an attempt takes, for the preview: the recorded ones took some nine calls of tools and
two or three replies."""


def learning_track(
    path: Path | str | None = None,
    *,
    providers: Sequence[str] = PROVIDERS,
    conditions: Sequence[Condition] = ("random", "placebo"),
    model: Model = None,
    tests: int | None = None,
    replicates: int = 5,
) -> Experiment:
    """Return the experiment: three sources, three domains of test tasks, some memories.

    Args:
        path: Where the benchmark is; see `langgraft.environments.statebench.load`.
        providers: Memories by name.
        conditions: What is tried beside them.
        model: By name, or a function that makes a simulated one; `None`: `SimulatedClerk`.
        tests: The first so many test tasks of each domain; `None`: all 50.
        replicates: How often everything is repeated.

    Raises:
        SettingsError: There is no copy of the benchmark, or no such provider.
        InputError: It is damaged.
    """
    bench = load(path)
    tasks = {task.id: task for task in bench.tasks()}

    def build(memory: Any, chat: Any) -> Any:
        def attempt(task: str) -> float:
            return serve(memory, chat, tasks[task]).score.value

        return attempt

    def filed(domain: str) -> list[Episode]:
        # Without their scores, which are gold: so the benchmark has it learned.
        return [episode_of(each.task, each.turns) for each in bench.trajectories(domain)]

    return Experiment(
        build=build,
        test=[
            {"id": task.id, "input": task.id, "kind": domain}
            for domain in bench.domains
            for task in bench.tasks(domain, "test")[:tests]
        ],
        episodes={domain: filed(domain) for domain in bench.domains},
        score=lambda _, output: output,
        memory={name: name for name in providers},
        conditions=conditions,
        replicates=replicates,
        model=model or (lambda seed: SimulatedClerk(seed=seed)),
        calls=CALLS,
        title="STATE-Bench: a bank of one domain, tasks of another",
    )


def experiment() -> Experiment:
    """Return the whole of it, with the model that the environment names."""
    return learning_track(model=os.environ.get("STATEBENCH_MODEL") or None)
