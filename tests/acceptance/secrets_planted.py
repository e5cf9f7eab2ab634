"""Secrets in the environment, and a server that repeats them in a tenth of its answers: where do they end up?"""

import os
from collections.abc import Iterator
from typing import Final
from unittest.mock import patch

import storms
from planted_secrets import ENVIRONMENT, TELLING, leaks, texts_of

from acceptance.command import command_line, run
from acceptance.figure import Figure, Setting

TELLTALES: Final = (
    {"kind": "status", "status": 503, "message": TELLING, "name": "503"},
    {"kind": "status", "status": 429, "message": TELLING, "name": "429"},
    {"kind": "error_in_reply", "code": "rate_limit_exceeded", "message": TELLING},
    {
        "kind": "status",
        "status": 400,
        "code": "content_filter",
        "message": TELLING,
        "name": "filter",
    },
)
"""Errors that are asked again, and one that is what the model says."""
MADE: Final = (
    ("report", "{out}"),
    ("status", "{out}", "--json"),
    ("verify", "{out}", "--json"),
    ("export", "{out}", "--format", "sft", "--out", "{work}/sft"),
    ("export", "{out}", "--format", "inspect", "--out", "{work}/inspect"),
    ("cache", "stats", "{out}"),
    ("cache", "export", "{out}", "--out", "{work}/replies.jsonl"),
)


def measure(setting: Setting) -> list[Figure]:
    """Run a plan in two processes, make all that can be made of it, and scan every byte."""
    with patch.dict(os.environ, ENVIRONMENT):
        return list(_measured(setting))


def _measured(setting: Setting) -> Iterator[Figure]:
    work = setting.work / "scanned"
    work.mkdir()
    plan = storms.write_plan(work / "plan.yaml", runs=setting.size(4, 1), items=setting.size(6, 2))
    script = storms.write_script(setting.work / "faults.json", TELLTALES, every=10)
    setting.say("a plan whose server repeats secrets")
    storm = storms.weathered(work / "run", plan, script, "--processes", "2", "--json")
    said, failed = [storm.said], []
    for words in MADE:
        placed = [word.format(out=work / "run" / "out", work=work) for word in words]
        done = run(command_line(*placed), environment=dict(os.environ))
        said += [done.stdout, done.stderr]
        failed += [" ".join(words)] * (done.code != 0)
    told = storm.faults.total()
    scanned = [len(held) for _, held in texts_of(work)]
    found = leaks(work, *said)
    yield Figure(
        "Planted secrets are found nowhere",
        f"{len(storm.asked):,} calls, {told:,} of them answered by an error that repeats four secrets; `langgraft"
        f" run` in two processes and {len(MADE)} commands on its directory; {sum(scanned):,} bytes scanned in"
        f" {len(scanned):,} texts, databases' values unpacked",
        f"{len(found)} with a secret{': ' if found else ''}{'; '.join(found[:5]):.200}",
        f"none; at least {setting.size(100, 5)} such errors; exit codes 0",
        not found and told >= setting.size(100, 5) and not failed and storm.code == 0,
    )
