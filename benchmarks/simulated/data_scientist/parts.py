"""Parts that programs are put together from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from string import Template
from typing import Final, Literal, TypeAlias

from langgraft.benchmarks.simulated.data_scientist.dice import Dice

Slot: TypeAlias = Literal["Data", "Features", "Model", "Metric", "Validation", "Submission"]
SLOTS: Final[tuple[Slot, ...]] = (
    "Data",
    "Features",
    "Model",
    "Metric",
    "Validation",
    "Submission",
)
"""Sections of a program, in their order; a comment `# <slot>: <title>` begins each."""


@dataclass(frozen=True, slots=True)
class Part:
    """A way to fill a section."""

    slot: Slot
    title: str
    """What a plan and the section's first line call it."""
    text: str
    """Python, with `$name` where an option is drawn."""
    weight: float = 1.0
    """How readily it is chosen."""
    package: str = "sklearn"
    """What a note on limits may warn of."""
    heavy: bool = False
    """Whether a note on limits, of whatever, makes it less liked."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Values of which one is drawn for each name."""
    makes: str = "dense"
    """Of features: `dense`, or `sparse` where only some models take them."""
    takes: tuple[str, ...] = ("dense",)
    """Of models: the features that they take."""

    def heading(self) -> str:
        """Return the line that begins the section."""
        return f"# {self.slot}: {self.title}"

    def written(self, dice: Dice, question: str) -> str:
        """Write the section, with options drawn."""
        drawn = {
            name: dice.pick(f"{question}/{self.title}/{name}", dict.fromkeys(values, 1.0))
            for name, values in self.options.items()
        }
        text = Template(self.text.strip("\n")).safe_substitute(drawn)
        return f"{self.heading()}\n{text}"
