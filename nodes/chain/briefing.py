"""What the chain agent is told: its prompts, and what they are filled in with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from langgraft._core.prompts import Prompt, check_placeholders
from langgraft.environments.sandboxes.telling import span, trimmed
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import encodable


@dataclass(frozen=True, slots=True)
class ChainPrompts:
    """The prompts of the chain agent."""

    system: Prompt = field(default_factory=partial(shipped, "chain_system"))
    """Has no placeholders."""
    task: Prompt = field(default_factory=partial(shipped, "chain_task"))
    """Begins each attempt; has `$task`, `$memory`, `$data`, `$packages`, `$limit`, `$steps`."""
    reminder: Prompt = field(default_factory=partial(shipped, "chain_reminder"))
    """Ends each prompt; has `$left`, `$steps`."""
    go_on: Prompt = field(default_factory=partial(shipped, "chain_continue"))
    """What the user says to a reply without a call; has `$problem`."""
    recovery: Prompt = field(default_factory=partial(shipped, "chain_recovery"))
    """Begins what follows circles; has `$rule`."""
    diagnose: Prompt = field(default_factory=partial(shipped, "diagnose"))
    """Has `$code`, `$output`, `$analysis`, `$rules`."""

    def __post_init__(self) -> None:
        """Refuse prompts that cannot be filled in, before a run begins.

        Raises:
            SettingsError: One has another placeholder.
        """
        check_placeholders(self, _PLACEHOLDERS)


_PLACEHOLDERS: Final = {
    "system": "",
    "task": "task memory data packages limit steps",
    "reminder": "left steps",
    "go_on": "problem",
    "recovery": "rule",
    "diagnose": "code output analysis rules",
}

RULES_TOLD: Final = {
    "pairs": "the same call with the same result, four times in a row",
    "errors": "the same call, which failed three times in a row",
    "messages": "the same message three times in a row, without any call",
    "alternation": "the same two calls by turns, with the same results, three times",
}
"""What an agent is told of how it went in circles."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What the prompts of a run are filled in with."""

    prompts: ChainPrompts
    task: str
    """Description of the competition."""
    seconds: float
    """Wall clock of one execution."""
    steps: int
    """Of the whole run."""
    packages: Sequence[str]

    def system(self) -> str:
        """Return what the model is, and how it works."""
        return self.prompts.system.render().strip()

    def first(self, data: str, memory: str, *, room: int | None = None) -> str:
        """Return the message that an attempt begins with.

        Args:
            data: The preview of the data.
            memory: The block that memory recalled; empty where it recalled nothing.
            room: Characters for task, data and memory together, roughly; `None` sets no limit.
        """
        task, data, memory = encodable(self.task), encodable(data), encodable(memory)
        if room is not None:
            task, data = trimmed(task, room // 2), trimmed(data, room // 4)
            memory = trimmed(memory, room // 4)
        told = self.prompts.task.render(
            task=task.strip(),
            memory=f"{memory}\n" if memory else "",
            data=data,
            packages=", ".join(self.packages),
            limit=span(self.seconds),
            steps=str(self.steps),
        )
        return told.strip()

    def reminder(self, done: int) -> str:
        """Return how many steps are left after so many."""
        left = str(max(self.steps - done, 0))
        return self.prompts.reminder.render(left=left, steps=str(self.steps)).strip()

    def recovery(self, rule: str) -> str:
        """Return what is said where the agent went in circles."""
        return self.prompts.recovery.render(rule=RULES_TOLD.get(rule, rule)).strip()
