"""`langgraph dev` on a fresh clone, without a network."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from chroma_server import own_port

PROGRAM: Final = Path(sys.executable).with_name("langgraph")

HOW_TO_GET_IT: Final = "no `langgraph dev` here: pip install 'langgraph-cli[inmem]'"

SECONDS: Final = 600.0
"""How long it may take to start, or to end."""

REPOSITORY: Final = Path(__file__).resolve().parents[2]


def clone(folder: Path) -> Path:
    """Commit the files of this checkout, as they are now, to a repository in a new folder."""
    listed = _git(REPOSITORY, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listed.split("\0")):
        source, copy = REPOSITORY / name, folder / name
        if source.is_symlink() or source.exists():  # or it is deleted, and that not committed
            copy.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink():
                copy.symlink_to(source.readlink())
            else:
                copy.write_bytes(source.read_bytes())
    _git(folder, "init", "--quiet")
    _git(folder, "add", "--all")
    _git(
        folder, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "a"
    )
    return folder


def untracked(folder: Path) -> str:
    """List what a repository holds that is neither committed nor ignored."""
    return _git(folder, "status", "--porcelain")


@contextmanager
def dev_server(folder: Path, log: Path, **environment: str) -> Iterator[str]:
    """Run `langgraph dev` in a folder inside the block, and give its address.

    Args:
        folder: The clone.
        log: What it says is added here.
        environment: More variables.

    Raises:
        RuntimeError: It does not answer.
    """
    quiet = {"LANGGRAPH_CLI_NO_ANALYTICS": "1", "LANGSMITH_TRACING": "false", "NO_COLOR": "1"}
    # Whatever would leave the machine is refused.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    variables = {**os.environ, **quiet, **nowhere, "no_proxy": "127.0.0.1", **environment}
    with own_port() as port:
        with log.open("a") as output:
            process = subprocess.Popen(
                [PROGRAM, "dev", "--no-browser", "--no-reload", "--port", str(port)],
                cwd=folder,
                env={**variables, "PYTHONPATH": str(folder / "src")},
                stdout=output,
                stderr=output,
            )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(process, url, log)
            yield url
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(SECONDS)


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    last = time.monotonic() + SECONDS
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while process.poll() is None and time.monotonic() < last:
        try:
            with opener.open(f"{url}/ok", timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    msg = f"`langgraph dev` did not answer (exit code {process.poll()}): {log.read_text()}"
    raise RuntimeError(msg)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout
