"""All attacks, and how each must end."""

from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.files import write_files
from langgraft.environments.sandboxes.hostile import moves
from langgraft.environments.sandboxes.hostile.attack import LIMITS, Attack
from langgraft.environments.sandboxes.results import ExecutionResult

_PRINTED: Final = 100_000_000
_MESSAGE: Final = 1 << 20
_CLAIMED: Final = {"score", "medal", "valid", "valid_submission", "is_valid", "any_medal"}


def _tried_all(result: ExecutionResult) -> list[str]:
    if "all tried" in result.stdout.splitlines():
        return []
    return [f"the program did not get to its end: {(result.stderr or result.stdout)[-200:]!r}"]


def _bounded(result: ExecutionResult) -> list[str]:
    # What is cut is told in a line of its own.
    most = LIMITS.output + 200
    sizes = {"output": len(result.stdout), "errors": len(result.stderr)}
    return [f"{size} characters of {name} kept" for name, size in sizes.items() if size > most]


def _all_printed(result: ExecutionResult) -> list[str]:
    counted = [] if result.printed[0] == _PRINTED else [f"{result.printed[0]} bytes counted"]
    return counted + _bounded(result)


def _late_file(result: ExecutionResult) -> list[str]:
    return [] if "late.txt" in result.files else ["its file was not collected"]


def _only_files(result: ExecutionResult) -> list[str]:
    """Also write what came out to a folder in which a link lies in the way."""
    wrong = [name for name in result.files if name.startswith(("/", "../")) or "/../" in name]
    links = ["out", "canary", "process", "alias", "pipe", "socket"]
    wrong += [f"{name}.csv" for name in links if f"{name}.csv" in result.files]
    wrong += [name for name in result.files if name.startswith(("folder/", "up/", "inner/root/"))]
    if "ok.csv" not in result.files:
        wrong.append("ok.csv (not)")
    return [f"collected: {name!r}" for name in wrong] + _written_outside(result)


def _written_outside(result: ExecutionResult) -> list[str]:
    with TemporaryDirectory() as kept:
        elsewhere, target = Path(kept, "elsewhere"), Path(kept, "target")
        elsewhere.mkdir()
        target.mkdir()
        for name in ("ok.csv", "inner"):
            (target / name).symlink_to(elsewhere / name)
        with suppress(InputError, OSError):
            write_files(result.files, target)
        return [f"written through a link: {path.name}" for path in elsewhere.iterdir()]


def _no_score(result: ExecutionResult) -> list[str]:
    believed = _CLAIMED & {field.name for field in fields(result)}
    said = [] if "score" in result.stdout else ["what it printed is lost"]
    return [f"its claim became {name}" for name in sorted(believed)] + said


def _small_error(result: ExecutionResult) -> list[str]:
    size = 0 if result.error is None else len(result.error.message)
    return [f"a message of {size} characters"] if size > _MESSAGE else []


def _only_gone(result: ExecutionResult) -> list[str]:
    return [] if result.stdout == "gone\n" else [f"it printed {result.stdout[:100]!r}"]


def _ends(*how: str) -> frozenset[str]:
    return frozenset(how)


_DONE: Final = _ends("exit 0")
_ALIVE: Final = _ends("alive")

ATTACKS: Final[tuple[Attack, ...]] = (
    Attack("fork bomb", "processes without end", _ends("timeout"), "fork_bomb.py", seconds=1.5),
    Attack("memory bomb", "memory without end", _ends("oom, exit 137"), "memory_bomb.py"),
    Attack(
        "child's memory bomb",
        "memory without end in a child of a program that ends well",
        _ends("oom, exit 0"),
        "child_memory_bomb.py",
    ),
    Attack("disk filler", "fill every folder there is", _DONE, "fill_disk.py", check=_tried_all),
    Attack(
        "many files",
        "files without end, each empty",
        _ends("exit 0", "oom, exit 137"),
        "many_files.py",
    ),
    Attack("large file", "one file beyond the limit", _ends("OSError"), "large_file.py"),
    Attack("open files", "open files without end", _ends("OSError"), "open_files.py"),
    Attack(
        "endless output", "print without end", _ends("output"), "endless_output.py", check=_bounded
    ),
    Attack(
        "binary output",
        "print 100 MB that are no text",
        _DONE,
        "binary_output.py",
        check=_all_printed,
    ),
    Attack("processor hog", "compute for ever", _ends("timeout"), "processor_hog.py", seconds=1),
    Attack(
        "ignored signals",
        "stay, deaf to every signal",
        _ends("timeout"),
        "ignored_signals.py",
        seconds=1,
        collect=("late.txt",),
        check=_late_file,
    ),
    Attack("daemons", "outlive the run", _DONE, "daemons.py", check=_only_gone),
    Attack("crash", "crash the interpreter", _ends("SIGSEGV"), "crash.py"),
    Attack("kill everybody", "kill all processes", _ends("SIGKILL"), "kill_everybody.py"),
    Attack(
        "huge error",
        "raise with 60 MB of text",
        _ends("Forged"),
        "huge_error.py",
        check=_small_error,
    ),
    Attack(
        "endless error",
        "raise what never says what it is",
        _ends("timeout"),
        "endless_error.py",
        seconds=1,
    ),
    Attack(
        "network",
        "reach this machine, a name, raw sockets",
        _DONE,
        "network.py",
        check=_tried_all,
    ),
    Attack(
        "host files",
        "read the host's files and disks, ask its engine",
        _DONE,
        "host_files.py",
        check=_tried_all,
    ),
    Attack(
        "privileges",
        "become root; mount, make devices, load modules, raise limits",
        _DONE,
        "privileges.py",
        check=_tried_all,
    ),
    Attack(
        "first process",
        "kill, stop, trace, read or cripple the supervisor",
        _DONE,
        "first_process.py",
        check=_tried_all,
    ),
    Attack("forged frames", "speak like the supervisor", _ends("exit 7"), "forged_frames.py"),
    Attack(
        "signal flood",
        "keep the supervisor busy with signals",
        _ends("timeout"),
        "signal_flood.py",
        seconds=1,
    ),
    Attack(
        "descriptor flood",
        "write without end to what was inherited",
        _ends("timeout"),
        "descriptor_flood.py",
        seconds=1,
    ),
    Attack(
        "forged frames in a kernel",
        "speak like the supervisor, from a cell",
        _ALIVE,
        move=moves.forge_in_kernel,
    ),
    Attack(
        "no process left",
        "leave the supervisor no room to start anything",
        _ALIVE,
        move=moves.take_all_processes,
    ),
    Attack(
        "forged scores",
        "claim a score, print a grading report",
        _DONE,
        "forged_scores.py",
        collect=("*.csv", "*.json", "**/*.json"),
        check=_no_score,
    ),
    Attack(
        "inputs", "change what can only be read", _DONE, "inputs.py", check=_tried_all, local=True
    ),
    Attack("poison", "leave traps for later programs", _DONE, "poison.py"),
    Attack(
        "links taken out",
        "have links, pipes and odd names collected",
        _DONE,
        "links.py",
        collect=("**", "out.csv", "folder/passwd", "up/etc/passwd", "inner/root/etc/passwd"),
        check=_only_files,
    ),
    Attack("names put in", "leave the workspace by a file's name", _DONE, move=moves.put_outside),
    Attack(
        "links put through",
        "lay links where files are put next",
        _ALIVE,
        move=moves.put_through_links,
    ),
    Attack(
        "swapped while taken out",
        "swap a file for a link while it is collected",
        _ALIVE,
        move=moves.swap_while_collected,
    ),
)
