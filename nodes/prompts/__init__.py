"""The prompts of the nodes, as data: `<name>.md`, loaded by `langgraft._core.prompts`."""

from langgraft._core.prompts import Prompt, load_prompt


def prompt(name: str) -> Prompt:
    """Return the prompt that ships as `<name>.md`."""
    return load_prompt(__name__, name)
