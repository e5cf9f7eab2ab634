"""What on the host must stay unharmed: files, processes, a listener, our own memory."""

import hashlib
import resource
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Self

_WATCHED: Final = (
    "/etc/passwd",
    "/etc/hostname",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/overcommit_memory",
)
_MEMORY: Final = 256 << 20
"""Bytes by which our own process may grow over the battery."""
_KIB: Final = 1 if sys.platform == "darwin" else 1024


class Surroundings:
    """A canary file, a folder of inputs, a listener and a process, watched while it is open.

    Args:
        addresses: Of this machine, besides those it finds, for programs to try.
    """

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        self.secret = secrets.token_hex(16)
        self._given = addresses
        self._open = ExitStack()
        self.contacts: list[str] = []

    def __enter__(self) -> Self:
        folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="hostile-")))
        # Open to all: what protects it must be that it cannot be reached.
        folder.chmod(0o755)
        self.canary = folder / "canary.txt"
        self.canary.write_text(self.secret)
        self.canary.chmod(0o644)
        self.inputs = folder / "inputs"
        self.inputs.mkdir(mode=0o755)
        (self.inputs / "train.csv").write_text("id,label\n1,0\n")
        self._start_process()
        self.port = self._listen()
        self.addresses = [each for each in self._candidates() if self._reaches(each)]
        self.contacts.clear()
        self._before = self._state()
        self._memory = _peak_memory()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def told(self) -> dict[str, str]:
        """What programs are told, as environment variables; not the secret."""
        return {
            "HOSTILE_CANARY": str(self.canary),
            "HOSTILE_PORT": str(self.port),
            "HOSTILE_ADDRESSES": " ".join(self.addresses),
        }

    def harm(self) -> list[str]:
        """Say what is not as it was, a line each."""
        now = self._state()
        found = [f"{name} has changed" for name in now if now[name] != self._before.get(name)]
        found += [f"{name} is gone" for name in self._before if name not in now]
        found += [f"the host's listener was reached: {contact}" for contact in self.contacts]
        if self._process.poll() is not None:
            found.append("a process of the host was ended")
        grown = _peak_memory() - self._memory
        if grown > _MEMORY:
            found.append(f"our own process grew by {grown >> 20} MiB")
        return found

    def _state(self) -> dict[str, str]:
        """Hash all that is watched."""
        found = [Path(name) for name in _WATCHED]
        found += [self.canary, *sorted(self.inputs.rglob("*"))]
        state = {}
        for path in found:
            with suppress(OSError):
                status = path.stat()
                content = hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()
                state[str(path)] = f"{status.st_mode} {status.st_uid} {content}"
        return state

    def _start_process(self) -> None:
        command = [sys.executable, "-I", "-c", "import time; time.sleep(3600)"]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603
        self._open.callback(self._process.wait)
        self._open.callback(self._process.kill)

    def _listen(self) -> int:
        """Listen on every address of this machine, on one port of TCP and UDP."""
        stream = self._open.enter_context(socket.create_server(("", 0)))
        port: int = stream.getsockname()[1]
        packets = self._open.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        packets.bind(("", port))
        for target in (self._accept, self._receive):
            listener = stream if target == self._accept else packets
            threading.Thread(target=target, args=(listener,), daemon=True).start()
        return port

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, address = listener.accept()
                self.contacts.append(f"TCP from {address[0]}")
                connection.close()

    def _receive(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                _, address = listener.recvfrom(100)
                self.contacts.append(f"UDP from {address[0]}")

    def _candidates(self) -> list[str]:
        return list(dict.fromkeys(["127.0.0.1", *self._given, *_own_addresses()]))

    def _reaches(self, address: str) -> bool:
        """Return whether the listener can be reached at an address at all: else it proves nothing."""
        with (
            suppress(OSError),
            socket.create_connection((address, self.port), timeout=1) as connection,
        ):
            # Closed by the listener, after it has noted us.
            return connection.recv(1) == b""
        return False


def _own_addresses() -> list[str]:
    found = []
    with suppress(OSError):
        found += [
            str(each[4][0])
            for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        ]
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as chooser:
        # Sends nothing: only asks which address packets would leave by (the target is for documents).
        chooser.connect(("192.0.2.1", 9))
        found.append(chooser.getsockname()[0])
    return found


def _peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
