"""The prompts of a tree search."""

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from langgraft._core.prompts import Prompt, check_placeholders
from langgraft.nodes.prompts import prompt as shipped


@dataclass(frozen=True, slots=True)
class TreePrompts:
    """The prompts of a tree search."""

    draft: Prompt = field(default_factory=partial(shipped, "tree_draft"))
    """Has `$task`, `$attempts`, `$memory`, `$rules`, `$data`."""
    improve: Prompt = field(default_factory=partial(shipped, "tree_improve"))
    """Has `$task`, `$attempts`, `$code`, `$memory`, `$rules`."""
    debug: Prompt = field(default_factory=partial(shipped, "tree_debug"))
    """Has `$task`, `$code`, `$output`, `$memory`, `$rules`, `$data`."""
    rules: Prompt = field(default_factory=partial(shipped, "tree_rules"))
    """What becomes `$rules`; has `$limit`, `$folds`, `$packages`."""
    repair: Prompt = field(default_factory=partial(shipped, "tree_repair"))
    """Asks again for a program; has `$problem`."""
    review: Prompt = field(default_factory=partial(shipped, "tree_review"))
    """Has `$task`, `$code`, `$output`."""
    diagnose: Prompt = field(default_factory=partial(shipped, "diagnose"))
    """Has `$code`, `$output`, `$analysis`, `$rules`."""

    def __post_init__(self) -> None:
        """Refuse prompts that cannot be filled in, before a search begins.

        Raises:
            SettingsError: One has another placeholder.
        """
        check_placeholders(self, _PLACEHOLDERS)


_PLACEHOLDERS: Final = {
    "draft": "task attempts memory rules data",
    "improve": "task attempts code memory rules",
    "debug": "task code output memory rules data",
    "rules": "limit folds packages",
    "repair": "problem",
    "review": "task code output",
    "diagnose": "code output analysis rules",
}
