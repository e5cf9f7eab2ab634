"""Bringing a supervisor into a container: through its input, and compiled where that is known.

An engine writes a container's command to disk several times over, and handing a long one to it
costs some 20 ms; compiling the supervisor costs as much again. So a few lines fetch it from
standard input. The container that checks the sandbox compiles it for the image's own Python.
"""

from typing import Final

from langgraft.environments.sandboxes.scripts import supervisor_script

TAKING: Final = """
import marshal, os, select
def take(size):
    taken = b""
    while len(taken) < size:
        heard = select.select([0], [], [], 30)[0]
        piece = os.read(0, size - len(taken)) if heard else b""
        if not piece:
            raise SystemExit("the host is gone")
        taken += piece
    return taken
"""
"""Reads an exact number of bytes, none of those that follow.

An engine that is killed between starting a container and noting that down never ends it, nor its
input. So one that hears nothing for half a minute ends itself.
"""

_START: Final = (
    TAKING
    + """
kind, size = take(1), int(take(8))
code = take(size)
code = marshal.loads(code) if kind == b"m" else compile(code, "<supervisor>", "exec")
exec(code, {"__name__": "__main__"})
"""
)


def bootstrap_command() -> list[str]:
    """Return the command that becomes the supervisor once that was sent to it."""
    return ["python3", "-I", "-S", "-u", "-c", _START]


def supervisor_source() -> bytes:
    """Return what to send to the bootstrap where nothing is known of its Python."""
    return _framed(b"s", supervisor_script().encode())


def supervisor_compiled(code: bytes) -> bytes:
    """Return what to send to it where its Python is known to have compiled this.

    Args:
        code: The supervisor, as that Python marshals it.
    """
    return _framed(b"m", code)


def _framed(kind: bytes, code: bytes) -> bytes:
    return kind + b"%08d" % len(code) + code
