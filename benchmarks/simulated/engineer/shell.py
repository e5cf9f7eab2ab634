"""Command lines that the engineer writes, and what it reads from them again."""

import re
from collections.abc import Mapping
from typing import Final

SCRIPT: Final = "solution.py"
"""The script that it keeps its program in."""
_HERE: Final = re.compile(r"^cat > (\S+) <<'PROGRAM'\n(.*?)^PROGRAM$", re.MULTILINE | re.DOTALL)
_RUN: Final = re.compile(r"^(?:time )?python3? (\S+\.py)$", re.MULTILINE)


def running(name: str = SCRIPT) -> str:
    """Write the command that runs a script."""
    return f"python {name}"


def writing_and_running(code: str, name: str = SCRIPT) -> str:
    """Write the command that writes a script and runs it."""
    return f"cat > {name} <<'PROGRAM'\n{code.rstrip()}\nPROGRAM\n{running(name)}"


def written_there(command: str) -> Mapping[str, str]:
    """Return the files that a command writes."""
    return dict(_HERE.findall(command))


def script_run(command: str) -> str | None:
    """Return the script that a command runs at its end."""
    found = _RUN.findall(_HERE.sub("", command))
    return found[-1] if found else None
