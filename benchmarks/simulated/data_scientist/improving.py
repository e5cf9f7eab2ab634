"""Improvements: one change to a program that runs, and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.data_scientist.drafting import write_draft
from langgraft.benchmarks.simulated.data_scientist.forms import parts_for, slot_parts
from langgraft.benchmarks.simulated.data_scientist.models import blended
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS, Part
from langgraft.benchmarks.simulated.data_scientist.programs import (
    assembled,
    body_of,
    imports_of,
    reply,
    sections_of,
    title_of,
)

CHANGES: Final = {"model": 3.0, "features": 2.0, "blend": 2.0, "options": 2.0}
"""What is changed, and how readily."""
TRIES: Final = 4
"""How often other options are drawn, until they are others."""


def write_improvement(desk: Desk, code: str, attempts: str = "") -> str:
    """Make one change to a program that runs; what it has right is carried on."""
    sections = sections_of(code)
    if set(sections) != set(SLOTS):
        return write_draft(desk, attempts)
    old = _Old(desk, sections, desk.available(parts_for(desk.task)), attempts)
    change = desk.dice.pick("change", CHANGES)
    made = {"features": old.with_features, "options": old.with_options}.get(change, lambda: None)()
    if made is None:
        made = old.blended() if change == "blend" and not old.is_blend else old.with_model()
    plan, section = made
    sections[section[2 : section.index(":")]] = section
    explained = (
        f"{plan} Nothing else changes. The validation stays, so that the effect can be measured."
    )
    return reply(explained, assembled([sections[slot] for slot in SLOTS], imports_of(code)))


@dataclass(frozen=True, slots=True)
class _Old:
    """A program that is to be bettered."""

    desk: Desk
    sections: dict[str, str]
    parts: Sequence[Part]
    attempts: str

    @property
    def is_blend(self) -> bool:
        return self._title("Model").startswith("the mean of")

    def with_features(self) -> tuple[str, str] | None:
        """Return a plan and other features that the model takes; `None` where there are none."""
        others = [
            each
            for each in slot_parts(self.parts, "Features")
            if each.title != self._title("Features") and each.makes == self._makes()
        ]
        if not others:
            return None
        part = self.desk.chosen("new features", others, self.attempts)
        plan = f"Make {part.title} in place of {self._title('Features')}, and keep the model."
        return plan, self._written(part)

    def with_options(self) -> tuple[str, str] | None:
        """Return a plan and the same model with other options; `None` where it has none."""
        same = [each for each in self._models() if each.title == self._title("Model")]
        plan = f"Change the options of {self._title('Model')}, and keep everything else."
        for part in same[:1]:
            tries = (self._written(part, at) for at in range(TRIES))
            for section in tries:
                if section != self.sections["Model"]:
                    return plan, section
        return None

    def with_model(self) -> tuple[str, str]:
        """Return a plan and another model."""
        part = self._other_model()
        plan = f"Fit {part.title} in place of {self._title('Model')}, on the same features."
        return plan, self._written(part)

    def blended(self) -> tuple[str, str]:
        """Return a plan and the mean of the model and another one."""
        part = self._other_model()
        title = f"the mean of {self._title('Model')} and {part.title}"
        text = blended(body_of(self.sections["Model"]), body_of(self._written(part)))
        return f"Predict {title}, whose mistakes should differ.", f"# Model: {title}\n{text}"

    def _other_model(self) -> Part:
        others = [each for each in self._models() if each.title != self._title("Model")]
        return self.desk.chosen("new model", others, self.attempts)

    def _models(self) -> list[Part]:
        makes = self._makes()
        return [each for each in slot_parts(self.parts, "Model") if makes in each.takes]

    def _makes(self) -> str:
        """Return what kind of features there are."""
        features = slot_parts(self.parts, "Features")
        titles = {each.title: each.makes for each in features}
        return titles.get(self._title("Features"), "dense")

    def _title(self, slot: str) -> str:
        return title_of(self.sections[slot])

    def _written(self, part: Part, at: int = 0) -> str:
        section = part.written(self.desk.dice, f"improve/{at}")
        return self.desk.spoiled(section, "\n\n".join(self.sections.values()))
