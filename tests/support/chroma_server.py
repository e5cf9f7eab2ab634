"""A Chroma server to measure and to test on: `chroma run` on a free port, ended afterwards."""

import importlib
import os
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from warm_python import Warm

SECONDS = 600.0
"""How long a server may take to answer."""


@contextmanager
def chroma_server(folder: Path | None = None, port: int | None = None) -> Iterator[str]:
    """Run a server inside the block, and give its address.

    Args:
        folder: Where its data go; without it, a folder that is removed afterwards.
        port: Its port, of `own_port`; without it, one of its own.

    Raises:
        RuntimeError: It does not answer.
    """
    given = own_port() if port is None else nullcontext(port)
    with tempfile.TemporaryDirectory() as temporary, given as own:
        data = temporary if folder is None else str(folder)
        words = ("run", "--path", data, "--host", "127.0.0.1", "--port", str(own))
        with Warm(_chroma, words, folder=Path(temporary)) as process:
            try:
                url = f"http://127.0.0.1:{own}"
                _wait(process, url)
                yield url
            finally:
                process.terminate()


def _chroma(words: Sequence[str]) -> None:
    """Be the command `chroma`, whose words nobody reads."""
    app: Any = importlib.import_module("chromadb.cli.cli").app  # in its own process only
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for told in (1, 2):
        os.dup2(nowhere, told)
    sys.argv = ["chroma", *words]
    app()


@contextmanager
def own_port() -> Iterator[int]:
    """Keep a port, on which a server can listen meanwhile, from being given to anybody else."""
    with socket.socket() as holder:
        # Where the server sets this as well, both may be bound, as long as one of them listens.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def _wait(process: Warm, url: str) -> None:
    """Ask for the server's heartbeat until it has one."""
    last = time.monotonic() + SECONDS
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while process.poll() is None and time.monotonic() < last:
        try:
            with opener.open(f"{url}/api/v2/heartbeat", timeout=1):
                return
        except OSError:
            time.sleep(0.05)  # until the next question
    msg = f"`chroma run` at {url} did not answer (exit code {process.poll()})"
    raise RuntimeError(msg)
