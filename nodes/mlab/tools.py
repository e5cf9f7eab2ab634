"""The tools that MLE-bench's MLAB shows its model: their names, and the keys of their inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

LIST_FILES: Final = "List Files"
COPY_FILE: Final = "Copy File"
UNDO_EDIT: Final = "Undo Edit Script"
EXECUTE: Final = "Execute Script"
VALIDATE: Final = "Validate Submission"
FINAL_ANSWER: Final = "Final Answer"
UNDERSTAND: Final = "Understand File"
INSPECT: Final = "Inspect Script Lines"
EDIT: Final = "Edit Script (AI)"

LINES_SHOWN: Final = 100
"""Most lines of a script that are shown at a time."""
BLOCK: Final = 10_000
"""Characters of a file or an observation that a model reads at a time (MLAB's figure)."""
BLOCKS: Final = 10
"""Most parts of a file that are read (MLAB's figure)."""


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a tool's input."""

    says: str
    """What belongs there, as the model is told."""
    kind: Literal["text", "number"] = "text"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool, as the model is told of it."""

    name: str
    does: str
    shows: str
    """What is observed of it."""
    keys: Mapping[str, Key]

    def described(self) -> str:
        """Write what the model is told."""
        signs = {"text": '"<{}>"', "number": "<{}>"}
        keys = (f'"{name}": {signs[key.kind].format(key.says)}' for name, key in self.keys.items())
        return "\n".join(
            [
                f"## {self.name}",
                self.does,
                f"Action Input: {{{', '.join(keys)}}}",
                f"Observation: {self.shows}",
            ]
        )


def _tool(name: str, does: str, shows: str, **keys: Key) -> Tool:
    return Tool(name, does, shows, MappingProxyType(keys))


_SCRIPT: Final = "path of a script"

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType(
    {
        tool.name: tool
        for tool in (
            _tool(
                LIST_FILES,
                "Lists a folder of the workspace.",
                "the names in it, folders with a slash after them, files with their sizes.",
                dir_path=Key("path of a folder, . for the workspace itself"),
            ),
            _tool(
                COPY_FILE,
                "Copies a file or a folder. What is at the destination is replaced.",
                "whether it was copied.",
                source=Key("path of what is copied"),
                destination=Key("path of the copy"),
            ),
            _tool(
                UNDO_EDIT,
                f"Takes back the last edit that {EDIT} made in a script.",
                "the script as it was before that edit.",
                script_name=Key(_SCRIPT),
            ),
            _tool(
                EXECUTE,
                "Runs a Python script that is there already, in the workspace.",
                "what it printed, and how it ended.",
                script_name=Key(_SCRIPT),
            ),
            _tool(
                VALIDATE,
                "Holds ./submission.csv against the sample submission: its form, not its answers.",
                "whether it is valid, and what is wrong with it.",
            ),
            _tool(
                FINAL_ANSWER,
                "Ends the work. The submission that lies there is the one that counts.",
                "nothing: the work is over.",
                final_answer=Key("what was done and what it reached"),
            ),
            _tool(
                UNDERSTAND,
                "Reads a whole file for you, and reports what it holds about your question.",
                "what was found.",
                file_name=Key("path of a file"),
                things_to_look_for=Key("what you want to know, in detail"),
            ),
            _tool(
                INSPECT,
                f"Shows lines of a script as they stand there, at most {LINES_SHOWN} at a time.",
                "the lines.",
                script_name=Key(_SCRIPT),
                start_line_number=Key("first line, from 1", "number"),
                end_line_number=Key("last line", "number"),
            ),
            _tool(
                EDIT,
                "Has a script rewritten after your instruction; one that is not there is written"
                " anew. Whoever does it sees the script and the instruction, and nothing else.",
                "what was changed, as a diff.",
                script_name=Key("path of the script that is edited"),
                edit_instruction=Key("what to change, step by step and in detail"),
                save_name=Key("path that the edited script is saved as"),
            ),
        )
    }
)
"""By name, in the order that the model is told of them."""


def described_tools() -> str:
    """Write what the model is told of all tools."""
    return "\n\n".join(tool.described() for tool in TOOLS.values())
