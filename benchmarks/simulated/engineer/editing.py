"""How the text of a script becomes another one, in calls of `edit_file`."""

from difflib import SequenceMatcher

from langgraft._core.canonical import JSON
from langgraft.benchmarks.simulated.chat import ToolUse


def edit(path: str, old: str, new: str) -> ToolUse:
    """Replace the one passage that changes, or write the file whole where that is not possible."""
    passage = _passage(old, new)
    arguments: dict[str, JSON] = {"command": "create", "path": path, "file_text": new}
    if passage is not None:
        before, after = passage
        arguments = {
            "command": "str_replace",
            "path": path,
            "old_str": before,
            "new_str": after,
        }
    return ToolUse("edit_file", arguments)


def _passage(old: str, new: str) -> tuple[str, str] | None:
    """Return the lines that change, if they are one run of lines that stands there once."""
    ours, theirs = old.splitlines(keepends=True), new.splitlines(keepends=True)
    codes = SequenceMatcher(a=ours, b=theirs, autojunk=False).get_opcodes()
    changes = [each for each in codes if each[0] != "equal"]
    if len(changes) != 1:
        return None
    _, begin, end, first, last = changes[0]
    before, after = "".join(ours[begin:end]), "".join(theirs[first:last])
    return (before, after) if before and old.count(before) == 1 else None
