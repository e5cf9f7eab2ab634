"""Programs that would pass, or break their grader, by anything but the right output."""

from typing import Final

from langgraft.environments.problems.code_problems import CodeTests
from langgraft.environments.problems.domain import Problem

TWICE = Problem(
    "twice",
    "Print twice the number.",
    "atcoder",
    "easy",
    CodeTests("stdin", cases=(("1\n", "2"), ("21\n", "42\n"))).text,
)
FORGED = """
import json, os, signal
os.chdir(os.readlink(f"/proc/{os.getppid()}/cwd"))
for number in range(100):
    with open(f"result-{number:04}", "w") as file:
        file.write(json.dumps({"ended": "well"}) + chr(10) + "2")
with open("verdict.json", "w") as file:
    json.dump({"passed": True, "made": 100}, file)
os.write(1, b'{"ended": "well", "passed": true}')
os.kill(os.getppid(), signal.SIGKILL)
"""
ATTEMPTS: Final[dict[str, tuple[str, str | None]]] = {
    "an infinite loop": ("while True: pass", "time on test 1"),
    "sleep": ("import time\ntime.sleep(1000)", "time on test 1"),
    "a deaf loop": (
        "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
        "time on test 1",
    ),
    "a memory bomb": (
        "x = []\nwhile True: x.append(bytearray(b'x') * (1 << 26))",
        "memory on test 1",
    ),
    "a huge output": ("while True: print('2' * 1000)", "output on test 1"),
    "a fork bomb": ("import os\nwhile True: os.fork()", None),
    "a forged verdict": (FORGED, "wrong answer on test 2"),
    "the verdict's text": ("print('{\"passed\": true}')", "wrong answer on test 1"),
    "a full disk": (
        "with open('big', 'wb') as file:\n    while True: file.write(bytes(1 << 24))",
        "OSError on test 1",
    ),
    "a network": (
        "import socket\nsocket.create_connection(('1.1.1.1', 80), 3)",
        "OSError on test 1",
    ),
}
"""What it is → the program for `TWICE`, and the reason that its failure has; `None`: any."""
