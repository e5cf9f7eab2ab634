"""STATE-Bench: enterprise workflows (travel, customer support, shopping) with task-local databases.

    from langgraft.environments.statebench import load

    bench = load()                                   # an installed copy, a folder or an archive
    attempt = bench.tasks("travel", "test")[0].open()
    attempt.opening, attempt.system_prompt, attempt.tools   # for an agent of `create_agent`
    attempt.answer("Your booking is cancelled.")     # what the user says next, or `None`
    attempt.score()                                  # by the benchmark's own state requirements

release   where the benchmark is, and its code
attempts  one attempt at a task: tools over a database of its own, a scripted user, the score
tasks     tasks, and recorded trajectories of a language model, replayed

Nothing of the benchmark is part of langgraft. No score here is an official one: docs/statebench.md.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.statebench.attempts import (
        Attempt,
        Score,
        ScriptedUser,
        ToolCall,
        Turn,
    )
    from langgraft.environments.statebench.tasks import (
        Replay,
        Split,
        StateBench,
        Task,
        Trajectory,
        load,
    )

__all__ = [
    "Attempt",
    "Replay",
    "Score",
    "ScriptedUser",
    "Split",
    "StateBench",
    "Task",
    "ToolCall",
    "Trajectory",
    "Turn",
    "load",
]

_MODULES = {
    "attempts": ("Attempt", "Score", "ScriptedUser", "ToolCall", "Turn"),
    "tasks": ("Replay", "Split", "StateBench", "Task", "Trajectory", "load"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
