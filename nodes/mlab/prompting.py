"""The prompts of MLAB."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from langgraft._core.prompts import Prompt, check_placeholders
from langgraft.nodes.prompts import prompt as shipped


@dataclass(frozen=True, slots=True)
class MLABPrompts:
    """The prompts of MLAB."""

    task: Prompt = field(default_factory=partial(shipped, "mlab_task"))
    """What each prompt begins with; has `$task`, `$tools`, `$data`, `$memory`, `$packages`,
    `$limit`, `$window`, `$format`."""
    turn: Prompt = field(default_factory=partial(shipped, "mlab_turn"))
    """What each prompt ends with; has `$steps`, `$left`, `$all`, `$time`, `$number`."""
    format: Prompt = field(default_factory=partial(shipped, "mlab_format"))
    """What becomes `$format`."""
    repair: Prompt = field(default_factory=partial(shipped, "mlab_repair"))
    """Asks again for a reply; has `$problem`, `$format`."""
    edit: Prompt = field(default_factory=partial(shipped, "mlab_edit"))
    """Has `$name`, `$code`, `$instruction`."""
    edit_repair: Prompt = field(default_factory=partial(shipped, "mlab_edit_repair"))
    """Asks again for a script; has `$problem`."""
    understand: Prompt = field(default_factory=partial(shipped, "mlab_understand"))
    """Reads a part of a file; has `$name`, `$question`, `$text`, `$part`, `$parts`."""
    understand_all: Prompt = field(default_factory=partial(shipped, "mlab_understand_all"))
    """Puts together what the parts held; has `$name`, `$question`, `$found`."""
    summarize: Prompt = field(default_factory=partial(shipped, "mlab_summarize"))
    """Has `$action`, `$text`, `$part`, `$parts`, `$limit`."""
    diagnose: Prompt = field(default_factory=partial(shipped, "diagnose"))
    """Has `$code`, `$output`, `$analysis`, `$rules`."""

    def __post_init__(self) -> None:
        """Refuse prompts that cannot be filled in, before a run begins.

        Raises:
            SettingsError: One has another placeholder.
        """
        check_placeholders(self, _PLACEHOLDERS)


_PLACEHOLDERS: Final = {
    "task": "task tools data memory packages limit window format",
    "turn": "steps left all time number",
    "format": "",
    "repair": "problem format",
    "edit": "name code instruction",
    "edit_repair": "problem",
    "understand": "name question text part parts",
    "understand_all": "name question found",
    "summarize": "action text part parts limit",
    "diagnose": "code output analysis rules",
}
