"""An engine that is not there, or cannot hold a limit, is told in one line that helps."""

import gc
import subprocess
import sys
import warnings
from pathlib import Path

import docker
import pytest
import requests

from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.docker import opening
from langgraft.environments.sandboxes.docker.controls import Wish
from langgraft.environments.sandboxes.docker.engine import (
    Removals,
    connect,
    filter_is_off,
    refusals,
    unenforceable,
    unreachable,
)
from langgraft.environments.sandboxes.docker.opening import Opening
from langgraft.environments.sandboxes.sandbox import Limits

ABLE = {
    "OSType": "linux",
    "MemoryLimit": True,
    "SwapLimit": True,
    "PidsLimit": True,
    "CpuCfsQuota": True,
    "SecurityOptions": ["name=seccomp,profile=default"],
}


def test_unenforceable_when_the_engine_can_hold_all_then_nothing_is_missing() -> None:
    """An engine as it should be is used."""
    assert unenforceable(ABLE) == []


@pytest.mark.parametrize(
    ("lacking", "words"),
    [
        ({"MemoryLimit": False}, "memory"),
        ({"SwapLimit": False}, "swapaccount=1"),
        ({"PidsLimit": None}, "number of processes"),
        ({"CpuCfsQuota": False}, "processor time"),
        ({"SecurityOptions": []}, "seccomp"),
        ({"SecurityOptions": ["name=seccomp,profile=unconfined"]}, "seccomp"),
        ({"OSType": "windows"}, "Linux containers are needed"),
    ],
)
def test_unenforceable_when_a_limit_cannot_be_held_then_it_is_named(
    lacking: dict[str, object], words: str
) -> None:
    """Nothing is run without a limit that was asked for."""
    (missing,) = unenforceable({**ABLE, **lacking})
    assert words in missing


@pytest.mark.parametrize(("version", "missing"), [("20.10.24+dfsg1", 1), ("24.0.7", 0)])
def test_unenforceable_when_the_filter_is_off_by_default_then_only_old_engines_lack_it(
    version: str, missing: int
) -> None:
    """Docker Desktop has it off, and can be asked for it."""
    off = {"SecurityOptions": ["name=seccomp,profile=unconfined"], "ServerVersion": version}
    assert len(unenforceable({**ABLE, **off})) == missing
    assert filter_is_off({**ABLE, **off})
    assert not filter_is_off(ABLE)


def test_refusals_when_a_warning_is_of_limits_then_it_counts_and_of_platforms_not() -> None:
    """An engine warns where it leaves a control out, and of a few things beside."""
    limit = "Your kernel does not support swap limit capabilities, memory limited without swap."
    platform = "The requested image's platform (linux/arm64) does not match the host's"
    assert refusals([limit, platform]) == [limit]
    assert refusals(None) == []


def test_connect_when_there_is_no_engine_then_it_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has no Docker is told what to do, and what the way without it costs."""
    monkeypatch.setenv("DOCKER_HOST", "unix:///absent.sock")
    with pytest.raises(SandboxUnavailableError) as caught:
        connect()
    told = str(caught.value)
    assert "No such file" in told
    assert "`langgraft sandbox build`" in told
    assert "`SubprocessSandbox`" in told
    assert "isolates nothing" in told
    assert "\n" not in told
    # The client leaves the socket that could not connect to the garbage collector.
    del caught
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


def test_connect_when_the_engine_is_reached_by_ssh_then_the_way_around_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What another engine needs is told whether or not docker-py could reach it."""
    monkeypatch.setenv("DOCKER_HOST", "ssh://somebody@elsewhere")
    with pytest.raises(SandboxUnavailableError, match="forward the socket"):
        connect()


def test_connect_when_the_address_is_none_then_it_says_so_in_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A slip of the pen in DOCKER_HOST is no traceback."""
    monkeypatch.setenv("DOCKER_HOST", "http://[bad")
    with pytest.raises(SandboxUnavailableError, match="set DOCKER_HOST"):
        connect()


def test_connect_when_its_certificates_are_not_there_then_their_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is not the engine that is missing."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
    monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailableError, match=r"check .*DOCKER_CERT_PATH"):
        connect()


def test_unreachable_when_the_socket_may_not_be_used_then_the_group_is_named() -> None:
    """The commonest slip on Linux is told apart from a missing engine."""
    cause = PermissionError(13, "Permission denied")
    wrapped = requests.ConnectionError(("Connection aborted.", cause))
    wrapped.__context__ = cause  # as it is when raised where the cause is handled
    assert "group `docker`" in str(unreachable(wrapped))


def test_import_when_nothing_is_run_then_docker_is_not_loaded() -> None:
    """Who only names a sandbox does not pay for the client."""
    code = (
        "import sys\n"
        "from langgraft.environments.sandboxes.docker import DockerSandbox\n"
        "DockerSandbox()\n"
        "assert not {'docker', 'requests'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_opening_when_the_engine_answers_but_starts_nothing_then_it_is_tried_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is waited for once: an engine that is away again is an error."""
    api = docker.APIClient(base_url="http://127.0.0.1:1", version="1.44")
    waits: list[float] = []

    def answers(_api: object, seconds: float) -> bool:
        waits.append(seconds)
        return True

    monkeypatch.setattr(opening, "wait_for_engine", answers)
    wish = Wish("image", "id", Limits(), cpus=1)
    with pytest.raises(SandboxFailureError, match="has not answered for 3 s"):
        Opening(api, wish, Removals(api), patience=3.0).open()
    assert waits == [3.0]
    api.close()
