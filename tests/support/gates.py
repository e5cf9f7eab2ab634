"""Gates: code of other processes is held at one, so that a test ends them in the middle of it for sure."""

from dataclasses import dataclass
from pathlib import Path
from time import sleep
from typing import Final

from warm_python import Warm


@dataclass(frozen=True)
class Gate:
    """A folder where code asks whether it may go on: what is held there is in flight, for sure.

    Attributes:
        folder: Where; made when the gate is opened.
    """

    folder: Path

    @property
    def code(self) -> str:
        """What passes the gate, to be executed by whatever is to be held."""
        return _PASSING.format(folder=str(self.folder))

    def open(self, times: int) -> None:
        """Let code through so many times from now on, and hold it then."""
        self.folder.mkdir(exist_ok=True)
        for each in self.folder.iterdir():
            each.unlink()
        (self.folder / "open").write_text(str(times))

    @property
    def came(self) -> int:
        """How often code came here since it was opened."""
        return sum(each.name.isdecimal() for each in self.folder.iterdir())

    def wait_for(self, times: int, process: Warm) -> None:
        """Wait until code of a process has come here so often."""
        while self.came < times:
            assert process.poll() is None, process.ended()
            sleep(0.01)


_PASSING: Final = """\
import os, time
turn = 1
while True:
    try:
        os.close(os.open({folder!r} + f"/{{turn}}", os.O_CREAT | os.O_EXCL))
        break
    except FileExistsError:
        turn += 1
while turn > int(open({folder!r} + "/open").read()):
    time.sleep(0.01)
"""
