"""The prompts of the nodes, as data: `<name>.md`, loaded by `langgraft._core.texts`."""

from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from langgraft._core.texts import Prompt, load_prompt


def prompt(name: str) -> Prompt:
    """Return the prompt that ships as `<name>.md`."""
    return load_prompt(__name__, name)


def prompt_field(name: str, placeholders: str = "") -> Any:
    """Declare a prompt of a `PromptSet`.

    Args:
        name: Of the prompt that ships, which is taken where no other is given.
        placeholders: Names of the values that it is filled in with, with blanks between.
    """
    return field(default_factory=partial(prompt, name), metadata={"placeholders": placeholders})


@dataclass(frozen=True, slots=True)
class PromptSet:
    """The prompts of an agent, each declared by `prompt_field`."""

    def __post_init__(self) -> None:
        """Refuse prompts that cannot be filled in, before anything is asked with them.

        Raises:
            SettingsError: One has another placeholder.
        """
        for each in fields(self):
            given: Prompt = getattr(self, each.name)
            given.render(**dict.fromkeys(each.metadata["placeholders"].split(), ""))
