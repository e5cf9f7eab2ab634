"""What the learner knows at one moment of an episode."""

from collections.abc import Sequence
from dataclasses import dataclass

from langgraft.benchmarks.simulated.babyai.attempts import Turn
from langgraft.benchmarks.simulated.babyai.sight import Goal, Seen, View, is_target, parse_view


@dataclass(frozen=True, slots=True)
class Scene:
    """What the learner knows at one moment of an episode."""

    goal: Goal
    first: View
    turns: Sequence[Turn]

    @property
    def view(self) -> View:
        """What is in sight: the last description, since refusals leave the world as it was."""
        for turn in reversed(self.turns):
            if turn.view.described:
                return turn.view
        return self.first if self.first.described else parse_view("")

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions on offer."""
        for turn in reversed(self.turns):
            if turn.view.actions:
                return turn.view.actions
        return self.first.actions

    @property
    def targets(self) -> list[Seen]:
        """The things in sight that the goal asks for."""
        return [thing for thing in self.view.things if is_target(self.goal, thing)]

    def listed(self, verb: str, thing: Seen) -> str | None:
        """Return the listed action with a verb for a thing; its number may differ."""
        wanted = f"{verb} {thing.label}"
        if wanted in self.actions:
            return wanted
        name = wanted.rpartition(" ")[0] + " "
        return next((a for a in self.actions if a.startswith(name)), None)
