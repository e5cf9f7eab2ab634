"""Runs exported for Inspect, read by Inspect itself, and as pages of its viewer.

Inspect comes from the package index into an environment of its own, of some 300 MB. Where it cannot be
had, the figure says so and judges nothing.
"""

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from acceptance.command import clean_environment, langgraft, run
from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.harness.log import open_run

PACKAGE: Final = "inspect-ai>=0.3.285,<0.4"
_READ: Final = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries
told = {"logs": 0, "samples": 0, "listed": 0, "good": 0, "tokens": 0, "replies": 0}
for each in list_eval_logs(sys.argv[1]):
    log = read_eval_log(each)
    assert log.status == "success", log.status
    told["logs"] += 1
    told["samples"] += len(log.samples)
    told["listed"] += len(read_eval_log_sample_summaries(each))
    told["good"] += sum(sample.scores["success"].value == "C" for sample in log.samples)
    told["tokens"] += sum(use.total_tokens for use in log.stats.model_usage.values())
    told["replies"] += sum(bool(sample.output.completion) for sample in log.samples)
print(json.dumps(told))
"""


def measure(setting: Setting) -> list[Figure]:
    """Run the demo in part, export it, and have it read and bundled."""
    promise = "Inspect's own reader and viewer take what is exported"
    python = setting.work / "inspect" / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(setting.work / "inspect")],
        [str(python), "-m", "pip", "install", "--quiet", PACKAGE],
    ):
        done = run(command)
        if done.code:
            said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
            told = f"skipped: {PACKAGE} cannot be installed: {said:.200}"
            return [Figure(promise, PACKAGE, told, "installed", passed=None)]
    limit = setting.size(30, 2)
    out, logs = setting.work / "demo", setting.work / "logs"
    for arguments in (
        ("run", "demo", "--out", out, "--limit", limit),
        ("export", out, "--format", "inspect", "--out", logs),
    ):
        done = langgraft(*arguments)
        if done.code:
            return [Figure(promise, "the demo", done.stderr[-300:], "exit code 0", passed=False)]
    environment = clean_environment() | {"HOME": str(setting.work)}
    read = run([str(python), "-c", _READ, str(logs)], environment=environment)
    found: dict[str, int] = json.loads(read.stdout) if read.code == 0 else {}
    how = f"`langgraft run demo --limit {limit}`, `export --format inspect`, {PACKAGE}"
    return [
        Figure(
            promise,
            f"{how}; logs, samples, successes, tokens and replies against our log",
            f"{found}" if found else read.stderr[-300:],
            f"{(wanted := _counted(out))}",
            found == wanted,
        ),
        _bundled(python, logs, setting.work / "bundle", environment, how),
    ]


def _counted(out: Path) -> dict[str, int]:
    """Count in our log what Inspect is to find."""
    log = open_run(out)
    results: list[Any] = [each for run in log.runs for each in log.results(run.name)]
    sums = ("prompt_tokens", "completion_tokens")
    return {
        "logs": len(log.runs),
        "samples": len(results),
        "listed": len(results),
        "good": sum(each["success"] for each in results),
        "tokens": sum(each["usage"][name] for each in results for name in sums),
        "replies": sum(any(action for _, action, _ in each["steps"]) for each in results),
    }


def _bundled(
    python: Path, logs: Path, bundle: Path, environment: dict[str, str], how: str
) -> Figure:
    """Have the viewer's pages made, and look whether they hold every log as it is."""
    inspect = str(python.with_name("inspect"))
    command = [inspect, "view", "bundle", "--log-dir", str(logs), "--output-dir", str(bundle)]
    done = run(command, environment=environment)
    there = {path.name: path.read_bytes() for path in bundle.rglob("*.eval")}
    wrong = [each.name for each in logs.iterdir() if there.get(each.name) != each.read_bytes()]
    whole = all(zipfile.is_zipfile(each) for each in logs.iterdir())
    good = done.code == 0 and (bundle / "index.html").is_file() and not wrong and whole
    return Figure(
        "Inspect makes pages of what is exported",
        f"{how}; `inspect view bundle`",
        share(len(there) - len(wrong), len(there), wrong) if there else done.stderr[-300:],
        "every log, and a page",
        good,
    )
