"""How ALFWorld is played: what is shown, how input is cleaned, and how a thing is set down."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final, Literal, TypeAlias, get_args

from langgraft._core.errors import SettingsError

Semantics: TypeAlias = Literal["compat", "listed", "current", "react"]
"""`compat` plays as AgentGym's wrapper does, which shows the actions once; `listed` shows them at every
turn, as AgentBench does; `current` at the latest turn only, so that no list of the past is read as that
of now; `react` shows none and lets the agent think aloud, as ReAct does."""

_ARRIVAL: Final = "You arrive at loc "
_END_OF_TEXT: Final = "</s>"
_THOUGHT: Final = "think:"
_THOUGHT_ANSWER: Final = "OK."

VERBS: Final = ("put", "place", "move")
PREPOSITIONS: Final = ("in/on", "in", "on", "to", "into")
SET_DOWN: Final = {
    "put": "put <object> in/on <receptacle>",
    "move": "move <object> to <receptacle>",
}
"""How a game of each dialect wants things set down."""

# Names are words and numbers, such as `mug 1`; of a game's own making, and so never long.
_COMMAND: Final = re.compile(r"(?:put (.+) in/on|move (.+) to) (.+)")


@dataclass(frozen=True, slots=True)
class Convention:
    """How a game's text becomes what the agent sees, and a reply becomes a command."""

    name: Semantics
    max_rounds: int
    """How many replies the agent has by the convention's own rule."""
    instructions: str
    """The file that says how the world is played."""

    def first(self, feedback: str, commands: Sequence[str]) -> str:
        """Word what the agent sees before its first action."""
        told = without_banner(feedback)
        match self.name:
            case "compat":
                return f"{told}\n{_line_of(commands)}"
            case "listed":
                return told + _lines_of(commands)
            case "current" | "react":
                return told

    def later(self, action: str, feedback: str, commands: Sequence[str]) -> str:
        """Word what the agent sees after an action."""
        told = without_location(feedback)
        match self.name:
            case "compat" | "current":
                return told
            case "listed":
                return told + _lines_of(commands)
            case "react":
                return _THOUGHT_ANSWER if action.startswith(_THOUGHT) else told

    def now(self, commands: Sequence[str]) -> str:
        """Word what the agent sees at the latest turn only."""
        return _line_of(commands) if self.name == "current" else ""

    def cleaned(self, action: str) -> str:
        """Return what of an action is given to the engine; nothing else is tidied."""
        match self.name:
            case "compat" | "current":
                return action.removesuffix(_END_OF_TEXT).strip()
            case "listed":
                return action.strip().lower().split("\n")[0].strip()
            case "react":
                return action.strip().split("\n")[0].strip()

    def rules(self, set_down: str) -> str:
        """Return how the world is played, in a game where things are set down like this."""
        return _read(self.instructions).replace("<set down>", set_down)


CONVENTIONS: Final[dict[str, Convention]] = {
    convention.name: convention
    for convention in (
        Convention("compat", max_rounds=30, instructions="instructions.md"),
        Convention("listed", max_rounds=20, instructions="instructions_listed.md"),
        Convention("current", max_rounds=30, instructions="instructions_listed.md"),
        Convention("react", max_rounds=49, instructions="instructions_react.md"),
    )
}
"""The conventions by name, with the limits of AgentGym, AgentBench, AgentGym again, and ReAct."""


def convention_of(semantics: str) -> Convention:
    """Return a convention by name.

    Raises:
        SettingsError: There is none of that name.
    """
    known = get_args(Semantics)
    if not isinstance(semantics, str) or semantics not in known:
        raise SettingsError(f"semantics {semantics!r} is not one of {', '.join(known)}")
    return CONVENTIONS[semantics]


def without_banner(feedback: str) -> str:
    """Cut the first paragraph, TextWorld's welcome, and put the others on lines of their own."""
    return "\n".join(feedback.split("\n\n")[1:])


def without_location(feedback: str) -> str:
    """Cut `You arrive at loc 12. `, which only games of release json_2.1.1 say."""
    if not feedback.startswith(_ARRIVAL):
        return feedback
    return feedback[feedback.find(". ") + 2 :]


def _line_of(commands: Sequence[str]) -> str:
    return f"AVAILABLE ACTIONS: {','.join(commands)}"


def _lines_of(commands: Sequence[str]) -> str:
    return " AVAILABLE ACTIONS: " + "\n".join(commands) + "\n"


@cache
def _read(name: str) -> str:
    """Read how the world is played; the reply format is the agent's affair."""
    file = resources.files("langgraft.environments.alfworld") / name
    return file.read_text(encoding="utf-8").strip()


def in_words_of_the_game(action: str, commands: Sequence[str]) -> str:
    """Return the admissible command that an action says in other words, or the action itself."""
    if action in commands or action.partition(" ")[0] not in VERBS:
        return action
    spelled = (command for command in commands if action in spellings(command))
    return next(spelled, action)


def spellings(command: str) -> Iterator[str]:
    """Spell a command that sets something down in all ways, and no other command in any."""
    parts = _COMMAND.fullmatch(command)
    if parts is None:
        return
    thing = parts[1] or parts[2]
    for verb in VERBS:
        for preposition in PREPOSITIONS:
            yield f"{verb} {thing} {preposition} {parts[3]}"
