"""What is said with one supervisor; every answer is checked, every wait is bounded."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from langgraft._core.errors import InputError, SandboxUnavailableError
from langgraft.environments.sandboxes.inside import frames
from langgraft.environments.sandboxes.inside.files import MAX_LEFT_OUT
from langgraft.environments.sandboxes.inside.running import KERNEL_SECONDS
from langgraft.environments.sandboxes.places import (
    Channel,
    ProtocolError,
    parse_json,
    receive_frame,
)
from langgraft.environments.sandboxes.requests import OutgoingFile, RunRequest, check_name
from langgraft.environments.sandboxes.sandbox import (
    ExecutionResult,
    Frame,
    Limits,
    ProgramError,
    Stopped,
)

logger = logging.getLogger(__name__)

SILENCE: Final = 60.0
"""Seconds without a heartbeat, which comes each second, until a supervisor counts as gone."""
GRACE: Final = 30.0
"""Seconds after a program's end is due until its place is destroyed from outside."""
ERRAND_SECONDS: Final = 600.0
"""For putting or collecting files, or opening a kernel."""

MAX_TEXT: Final = 100_000
"""Characters of any one text of an answer."""

Collected = tuple[dict[str, bytes], dict[str, str]]


class OverdueError(Exception):
    """A program did not end though its supervisor should have ended it; the place must go."""


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Frame(_Answer):
    file: str = Field(max_length=MAX_TEXT)
    line: int = Field(ge=0)
    function: str = Field(max_length=MAX_TEXT)
    text: str = Field(max_length=MAX_TEXT)


class _Error(_Answer):
    type: str = Field(max_length=MAX_TEXT)
    message: str = Field(max_length=MAX_TEXT)
    frames: list[_Frame] = Field(max_length=1000)

    def told(self) -> ProgramError:
        told = tuple(Frame(each.file, each.line, each.function, each.text) for each in self.frames)
        return ProgramError(self.type, self.message, told)


class _Ended(_Answer):
    """How a program or cell ended, as the frame `ENDED` has it."""

    exit_code: int | None = Field(ge=0, le=255)
    signal: str | None = Field(max_length=100)
    stopped: Literal["timeout", "output", "disk", "full", "cancelled"] | None
    oom: bool
    duration: float = Field(ge=0, allow_inf_nan=False)
    stdout_printed: int = Field(ge=0)
    stderr_printed: int = Field(ge=0)
    error: _Error | None
    kernel_lost: bool
    cleared: bool


class _Deadline:
    """When all of an answer is due.

    What came in time counts, however late it is looked at: this process may have been stopped
    meanwhile. Reading it has an end, too.
    """

    def __init__(self, seconds: float) -> None:
        self._due = time.monotonic() + seconds
        self._end: float | None = None

    def left(self) -> float:
        """Return how long to wait for more; 0 once only what is there already is read.

        Raises:
            OverdueError: That has an end as well.
        """
        now = time.monotonic()
        if now < self._due:
            return self._due - now
        if self._end is None:
            self._end = now + GRACE
        if now >= self._end:
            raise OverdueError
        return 0.0


class Conversation:
    """One supervisor, greeted before; used by one thread at a time, but for `interrupt`."""

    def __init__(self, channel: Channel, limits: Limits) -> None:
        self._channel = channel
        self._limits = limits
        self._sending = Lock()
        self._kept = {frames.STDOUT: bytearray(), frames.STDERR: bytearray()}
        self._began = 0.0
        self._last: _Ended | None = None
        self._restart = 0.0
        self.asked = False
        """Whether a program or cell was asked for, to which the place's end may be due."""

    def put(self, files: Sequence[OutgoingFile]) -> None:
        """Write files into the workspace.

        Raises:
            InputError: The workspace has no room, or has something else under such a name; a file
                cannot be read, of which then a part may have been written.
        """
        if not files:
            return
        unread = ""
        for file in files:
            self._send(frames.pack_json(frames.FILE, {"path": file.name, "size": file.size}))
            try:
                self._send_content(file)
            except OSError as error:
                unread = f"{file.name!r} cannot be read to its end: {error.strerror}"
                break
        self._send(frames.pack(frames.PUT))
        refused = self._done(_Deadline(ERRAND_SECONDS))
        if unread:
            raise InputError(unread)
        if refused:
            raise InputError(f"the sandbox cannot hold a file: {refused}")

    def run(self, number: int, request: RunRequest) -> ExecutionResult:
        """Run a program, and collect what it left.

        Raises:
            OverdueError: It did not end in time, nor was it ended.
        """
        ask = {
            **request.program,
            "id": number,
            "seconds": request.seconds,
            "environment": dict(request.environment),
            "patterns": list(request.patterns),
        }
        return self._watch(_packed(frames.RUN, ask), request.seconds)

    def open_kernel(self, preload: Sequence[str], environment: Mapping[str, str]) -> str:
        """Start a kernel; return why it could not be started, or nothing."""
        ask: dict[str, object] = {"preload": list(preload), "environment": dict(environment)}
        self._send(_packed(frames.KERNEL, ask))
        return self._done(_Deadline(ERRAND_SECONDS))

    def cell(self, number: int, code: str, *, seconds: float) -> ExecutionResult:
        """Run a cell.

        Raises:
            OverdueError: It did not end in time, nor was it ended.
        """
        ask: dict[str, object] = {"id": number, "code": code, "seconds": seconds}
        return self._watch(_packed(frames.CELL, ask), seconds)

    def collect(self, patterns: Sequence[str]) -> Collected:
        """Take files out."""
        if not patterns:
            return {}, {}
        self._send(_packed(frames.COLLECT, {"patterns": list(patterns)}))
        return self._files(_Deadline(ERRAND_SECONDS))

    def interrupt(self, number: int) -> None:
        """End a run or cell before its time; from any thread."""
        self._send(frames.pack_json(frames.INTERRUPT, {"id": number}))

    def cut_off(self, *, oom: bool) -> ExecutionResult:
        """Return what there is of a program whose place went with it, by its doing."""
        if self._last is not None:
            # It had ended, and what it left in memory let nothing be collected.
            return self._result(
                self._last.model_copy(update={"oom": self._last.oom or oom}),
                left_out={".": "the sandbox ended before its files were collected"},
            )
        return self._result(
            _Ended(
                exit_code=137,
                signal="SIGKILL",
                stopped=None if oom else "timeout",
                oom=oom,
                duration=time.monotonic() - self._began,
                stdout_printed=len(self._kept[frames.STDOUT]),
                stderr_printed=len(self._kept[frames.STDERR]),
                error=None,
                kernel_lost=False,
                cleared=False,
            )
        )

    def _send(self, frame: bytes) -> None:
        with self._sending:
            self._channel.send(frame)

    def _send_content(self, file: OutgoingFile) -> None:
        if isinstance(file.content, Path):
            with file.content.open("rb") as content:
                while chunk := content.read(frames.CHUNK):
                    self._send(frames.pack(frames.DATA, chunk))
            return
        for start in range(0, file.size, frames.CHUNK):
            self._send(frames.pack(frames.DATA, file.content[start : start + frames.CHUNK]))

    def _answer(self, deadline: _Deadline) -> tuple[int, bytes]:
        while True:
            try:
                kind, payload = receive_frame(self._channel, timeout=min(SILENCE, deadline.left()))
            except TimeoutError:
                if not deadline.left():
                    raise OverdueError from None
                raise
            if kind != frames.BEAT:
                return kind, payload

    def _done(self, deadline: _Deadline) -> str:
        try:
            kind, payload = self._answer(deadline)
        except OverdueError:
            raise TimeoutError(f"the supervisor took more than {ERRAND_SECONDS:.0f} s") from None
        if kind != frames.DONE:
            raise _unexpected(kind)
        return _text_in(parse_json(payload), "refused")

    def _watch(self, ask: bytes, seconds: float) -> ExecutionResult:
        self._kept = {frames.STDOUT: bytearray(), frames.STDERR: bytearray()}
        self._began = time.monotonic()
        self._last = None
        self.asked = True
        self._send(ask)
        ended = self._last = self._ended(_Deadline(seconds + GRACE + self._restart))
        # The next cell first starts a new kernel.
        self._restart = KERNEL_SECONDS if ended.kernel_lost else 0.0
        if ended.stopped == "full":
            msg = (
                "the disk of the Docker engine is nearly full, and no program here is to blame: make"
                " room on it, and go on"
            )
            raise SandboxUnavailableError(msg)
        if not ended.cleared:
            logger.warning("a program left processes that cannot be killed: they are stuck")
        files, left_out = self._files(_Deadline(ERRAND_SECONDS))
        return self._result(ended, files, left_out)

    def _ended(self, deadline: _Deadline) -> _Ended:
        while True:
            kind, payload = self._answer(deadline)
            if kind == frames.ENDED:
                return _parse_ended(payload)
            kept = self._kept.get(kind)
            if kept is None:
                raise _unexpected(kind)
            kept += payload
            if len(kept) > self._limits.output:
                raise ProtocolError("the supervisor sent more output than it was to keep")

    def _result(
        self,
        ended: _Ended,
        files: dict[str, bytes] | None = None,
        left_out: dict[str, str] | None = None,
    ) -> ExecutionResult:
        printed = ended.stdout_printed, ended.stderr_printed
        return ExecutionResult(
            exit_code=ended.exit_code,
            stdout=self._output(frames.STDOUT, printed[0]),
            stderr=self._output(frames.STDERR, printed[1]),
            duration=ended.duration,
            stopped=next((each for each in get_args(Stopped) if each == ended.stopped), None),
            oom=ended.oom,
            signal=ended.signal,
            error=ended.error.told() if ended.error is not None else None,
            printed=printed,
            files=dict(sorted((files or {}).items())),
            left_out=dict(sorted((left_out or {}).items())),
            kernel_lost=ended.kernel_lost,
        )

    def _output(self, kind: int, printed: int) -> str:
        kept = bytes(self._kept[kind])
        cut = printed - len(kept)
        if cut < 0 or (cut > 0 and len(kept) != self._limits.output):
            raise ProtocolError(f"the supervisor sent {len(kept)} bytes of {printed} printed")
        if cut == 0:
            return kept.decode("utf-8", "replace")
        half = self._limits.output // 2
        head, tail = (part.decode("utf-8", "replace") for part in (kept[:half], kept[half:]))
        return f"{head}\n[... {cut} bytes cut ...]\n{tail}"

    def _files(self, deadline: _Deadline) -> Collected:
        files: dict[str, bytes] = {}
        left_out: dict[str, str] = {}
        room = self._limits.collected
        try:
            while True:
                kind, payload = self._answer(deadline)
                if kind == frames.DONE:
                    return files, left_out
                content = parse_json(payload) if kind in (frames.FILE, frames.LEFT_OUT) else {}
                if kind == frames.LEFT_OUT and len(left_out) <= MAX_LEFT_OUT:
                    left_out[_text_in(content, "path")] = _text_in(content, "reason")
                elif kind == frames.FILE and len(files) < self._limits.collected_files:
                    name, data, failure = self._file(content, room, deadline)
                    room -= len(data)
                    if failure:
                        left_out[name] = failure
                    elif name in files:
                        raise ProtocolError(f"the supervisor sent {name!r} twice")
                    else:
                        files[name] = data
                else:
                    raise _unexpected(kind)
        except OverdueError:
            raise TimeoutError(f"collecting files took more than {ERRAND_SECONDS:.0f} s") from None

    def _file(
        self, content: Mapping[str, object], room: int, deadline: _Deadline
    ) -> tuple[str, bytes, str]:
        try:
            name = check_name(_text_in(content, "path"))
        except InputError as error:
            raise ProtocolError(f"the supervisor sent a name it never sends: {error}") from error
        size = content.get("size")
        if type(size) is not int or not 0 <= size <= room:
            raise ProtocolError(f"the supervisor sent {name!r} with a size of {size!r}")
        data = bytearray()
        while True:
            kind, payload = self._answer(deadline)
            if kind == frames.FILE_END:
                failure = _text_in(parse_json(payload), "failure")
                if not failure and len(data) != size:
                    raise ProtocolError(
                        f"the supervisor sent {len(data)} of {size} bytes: {name!r}"
                    )
                return name, bytes(data), failure
            if kind != frames.DATA:
                raise _unexpected(kind)
            data += payload
            if len(data) > size:
                raise ProtocolError(f"the supervisor sent more than the {size} bytes of {name!r}")


def _packed(kind: int, content: dict[str, object]) -> bytes:
    frame = frames.pack_json(kind, content)
    if len(frame) > frames.MAX_FRAME:
        raise InputError(
            f"code, arguments or environment take {len(frame)} bytes; a request holds"
            f" {frames.MAX_FRAME}: put what is long into a file"
        )
    return frame


def _unexpected(kind: int) -> ProtocolError:
    return ProtocolError(f"the supervisor sent a frame of kind {chr(kind)!r} out of turn")


def _parse_ended(payload: bytes) -> _Ended:
    try:
        return _Ended.model_validate(parse_json(payload))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise ProtocolError(
            f"the supervisor sent a result with a wrong {problem['loc']}: {problem['msg']}"
        ) from error


def _text_in(content: Mapping[str, object], name: str) -> str:
    value = content.get(name)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ProtocolError(f"the supervisor sent no proper {name!r}")
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
