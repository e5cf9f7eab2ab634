"""What came of a program, as an agent is told it."""

from collections.abc import Iterator
from typing import Final

from langgraft.environments.sandboxes.sandbox import (
    MIB,
    OUTPUT_HEAD,
    OUTPUT_TAIL,
    ExecutionResult,
    Frame,
    Limits,
    ProgramError,
)

_SLACK: Final = 100
"""An output that is longer by no more than this is shown whole (AIDE's figure)."""

_FRAMES_HEAD: Final = 3
_FRAMES_TAIL: Final = 7
"""Frames told of a deeper traceback."""

_MESSAGE: Final = 1000
"""Characters told of an exception's message."""

_MINUTE: Final = 60

_ROUGHLY: Final = ((60, "a minute"), (600, "10 minutes"), (3600, "an hour"))
"""How long a program ran, told so roughly that a repetition seldom reads otherwise."""

_BUS: Final = 135
"""A shell's exit code for `SIGBUS`, as a worker's parent may pass it on."""


def told(
    result: ExecutionResult,
    limits: Limits,
    *,
    seconds: float | None = None,
    exact: bool = True,
    room: int = OUTPUT_HEAD + OUTPUT_TAIL,
) -> str:
    """Tell what a program printed, how it ended, and what to change where a limit ended it.

    Args:
        result: What came of it.
        limits: Of the sandbox that it ran in.
        seconds: Wall clock it was given, where it was another than the limits'.
        exact: Tell how long it ran; `False` tells only roughly, so that two runs of one program
            read the same.
        room: Most characters told of what it printed.
    """
    allowed = limits.seconds if seconds is None else seconds
    printed = output(result, room)
    parts = [printed.rstrip() or "(The program printed nothing.)"]
    parts += _endings(result, limits, allowed)
    if result.error is not None:
        parts.append(_exception(result.error, printed))
    if exact:
        parts.append(f"It ran for {result.duration:.1f} s of the {allowed:g} s allowed.")
    else:
        parts.append(_roughly(result, allowed))
    return "\n\n".join(parts)


def span(seconds: float) -> str:
    """Write a time in minutes where it is whole minutes, and in seconds otherwise."""
    whole = seconds >= 2 * _MINUTE and seconds % _MINUTE == 0
    if whole:
        return f"{seconds / _MINUTE:g} minutes"
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"


def _roughly(result: ExecutionResult, allowed: float) -> str:
    if result.timed_out:
        return f"It ran for all of the {span(allowed)} allowed."
    within = (name for least, name in _ROUGHLY if result.duration < least < allowed)
    rough = next(within, None)
    if rough is None:
        return f"It ran for less than the {span(allowed)} allowed."
    return f"It ran for less than {rough} of the {span(allowed)} allowed."


def output(result: ExecutionResult, room: int = OUTPUT_HEAD + OUTPUT_TAIL) -> str:
    """Return what a program printed, standard error told apart, in 5,000 characters or so.

    Each stream keeps its beginning and end. Where both are long, both get half of the room, so
    that warnings never push out the last words of standard output.
    """
    if not result.stderr:
        return trimmed(result.stdout, room)
    stderr_room = min(len(result.stderr), max(room // 2, room - len(result.stdout)))
    stdout = trimmed(result.stdout, room - stderr_room).rstrip()
    before = f"{stdout}\n\n" if stdout else ""
    return f"{before}[standard error]\n{trimmed(result.stderr, stderr_room)}"


def trimmed(text: str, room: int = OUTPUT_HEAD + OUTPUT_TAIL) -> str:
    """Return a text with its middle left out where it is over 100 characters longer than `room`.

    By default the first and the last 2,500 characters stay (AIDE's figures).
    """
    left_out = len(text) - room
    if left_out <= _SLACK:
        return text
    tail = room // 2
    return f"{text[: room - tail]}\n[{left_out:,} characters left out]\n{text[-tail:]}"


def _endings(result: ExecutionResult, limits: Limits, allowed: float) -> Iterator[str]:
    """Say why it was ended, the limit that did it, and what that points to."""
    yield from _stopped(result, limits, allowed)
    on_disk = limits.workspace_on == "disk"
    if result.oom:
        held = (
            "files in /tmp and /dev/shm" if on_disk else "files in the workspace, /tmp and /dev/shm"
        )
        yield (
            f"OUT OF MEMORY: its processes together needed more than {size_text(limits.memory)}, which"
            f" also holds {held}. Load less at once, use smaller types or fewer workers."
        )
    if "SIGBUS" in (result.signal or "") or result.exit_code == _BUS:
        yield (
            f"SHARED MEMORY FULL: a bus error, as when /dev/shm ({size_text(limits.shm)}) is used up."
            " Use fewer workers, or pass less between them."
        )
    elif result.signal is not None and result.stopped is None and not result.oom:
        yield f"ENDED BY {result.signal}: it was ended by a signal, not by an exception."
    if _says(result, "[Errno 28]", "No space left on device"):
        yield (
            f"NO SPACE LEFT: the workspace holds {size_text(limits.workspace)} and /tmp"
            f" {size_text(limits.tmp)}. Write less, or remove what is no longer needed."
        )
    if result.signal == "SIGXFSZ" or _says(result, "[Errno 27]", "File too large"):
        yield f"FILE TOO LARGE: no file may be larger than {size_text(limits.file)}."
    if result.kernel_lost:
        yield "KERNEL LOST: all variables are gone; the next cell starts a new kernel."
    if result.exit_code and result.signal is None and result.stopped is None:
        yield f"It ended with exit code {result.exit_code}."


def _stopped(result: ExecutionResult, limits: Limits, allowed: float) -> Iterator[str]:
    if result.stopped == "timeout":
        # Only a cell whose kernel lives on has no exit code.
        how = "stopped with all its processes" if result.exit_code is not None else "interrupted"
        kept = "" if result.exit_code is not None else " All variables are still there."
        yield f"TIMEOUT: it was {how} after {allowed:g} s.{kept} Do less work, or less at a time."
    if result.stopped == "output":
        yield (
            f"TOO MUCH OUTPUT: it was stopped after printing more than {size_text(limits.flood)}. Print"
            " less."
        )
    if result.stopped == "disk":
        yield (
            "WORKSPACE FULL: it was stopped with all its processes, as the workspace held more than"
            f" {size_text(limits.workspace)}. Write less, or remove what is no longer needed."
        )


def _exception(error: ProgramError, printed: str) -> str:
    """Tell an exception, and where it came from unless the printed traceback shows that."""
    message = error.message if len(error.message) <= _MESSAGE else f"{error.message[:_MESSAGE]} …"
    lines = [f"Exception: {error.type}: {message}" if message else f"Exception: {error.type}"]
    shown = (f'"{each.file}", line {each.line}, in {each.function}' for each in error.frames)
    if not all(line in printed for line in shown):
        lines += [f"  {line}" for line in _frames(error.frames)]
    return "\n".join(lines)


def _frames(frames: tuple[Frame, ...]) -> list[str]:
    written = [
        f"{frame.file}, line {frame.line}, in {frame.function}"
        + (f": {frame.text}" if frame.text else "")
        for frame in frames
    ]
    left_out = len(written) - _FRAMES_HEAD - _FRAMES_TAIL
    if left_out <= 1:
        return written
    between = f"[{left_out} more calls]"
    return [*written[:_FRAMES_HEAD], between, *written[-_FRAMES_TAIL:]]


def _says(result: ExecutionResult, *words: str) -> bool:
    message = result.error.message if result.error is not None else ""
    return any(word in text for word in words for text in (message, result.stderr))


def size_text(size: int) -> str:
    """Write a size in MiB, or in bytes where it is less than one."""
    return f"{size / MIB:,.0f} MiB" if size >= MIB else f"{size:,} bytes"
