"""The state of an agent that works step by step: references and numbers, of one size at each step.

Events, replies, programs and outputs are contents in `Artifacts`; the state holds the reference of
the log's last record.
"""

from typing_extensions import TypedDict

from langgraft.nodes.competition_run import Begun


class RunInput(TypedDict, total=False):
    """What a run is invoked with."""

    episode_id: str
    """Unique name of the run; made up where it is not given."""
    seed: int
    """0 where it is not given."""


class RunOutput(TypedDict, total=False):
    """What a run gives back. `episode_id` names the run, and `done` says that it has ended."""

    episode_id: str
    log: str
    """Reference of the log's last record, for `read_log`."""
    steps: int
    """Actions of the agent."""
    ended: str
    """Why it ended: `finished`, `steps`, `hours`, `dollars`, `stuck: <rule>`, `context`, `no valid
    reply` …; empty while it goes on."""
    metric: float | None
    """The validation metric last reported before the submission was collected."""
    submission: str
    """Reference of the submission, or empty."""
    done: bool


class Spent(TypedDict):
    """What a run has used so far."""

    seconds: float
    """Wall clock in model calls and executions; what a killed process had under way is not in it."""
    prompt_tokens: int
    completion_tokens: int
    dollars: float


class RunState(RunOutput, total=False):
    """State of a run.

    `seed` decides all draws of the run that has `begun`; `spent` counts against its limits.
    """

    seed: int
    begun: Begun
    attempt: int
    """Attempts before this one."""
    said: str
    """Reference of the action that is to be done next."""
    diagnosed: str
    """Reference of what memory is to be taught of the last action."""
    judged: str
    """Reference of the answers to what memory asked about it."""
    spent: Spent
