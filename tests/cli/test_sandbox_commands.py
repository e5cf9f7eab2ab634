"""`langgraft sandbox` as a user meets it, with and without an engine."""

import contextlib
import gc
import io
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import docker
import pytest

from langgraft.cli import sandbox as commands
from langgraft.cli.app import run_command_line
from langgraft.environments.sandboxes.hostile.attacks import ATTACKS
from langgraft.environments.sandboxes.hostile.battery import Outcome
from langgraft.environments.sandboxes.image import build


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def sandbox(*arguments: object) -> Done:
    """Run a command of `langgraft sandbox` in this process, as the console script does."""
    out, err = io.StringIO(), io.StringIO()
    code: Any = 0
    # docker-py leaves sockets that could not connect to the garbage collector.
    with (
        warnings.catch_warnings(action="ignore", category=ResourceWarning),
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["langgraft", "sandbox", *map(str, arguments)])
        patch.setenv("COLUMNS", "200")
        try:
            run_command_line()
        except SystemExit as ended:
            code = ended.code
        gc.collect()
    return Done(int(code or 0), out.getvalue(), err.getvalue())


@pytest.mark.parametrize("command", ["build", "check", "clean"])
def test_command_when_there_is_no_engine_says_how_to_get_one(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One line that names the way out, and the exit code of bad input."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    done = sandbox(command)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "DOCKER_HOST" in done.stderr
    assert "langgraft sandbox build" in done.stderr


def test_check_when_there_is_no_image_says_how_to_build_it(docker_image: str) -> None:
    """Nothing is attacked before there is something to attack."""
    done = sandbox("check", "--image", "langgraft-none:none")
    assert done.returncode == 2
    assert "langgraft sandbox build" in done.stderr


def test_build_when_the_image_is_there_says_so_and_builds_nothing(docker_image: str) -> None:
    """An unchanged recipe costs a look, and another tag is only a name."""
    client = docker.from_env()
    base = client.images.get(docker_image).id
    try:
        first = sandbox(
            "build", "--base", base, "--requirements", "/dev/null", "--tag", "lg-test:1"
        )
        again = sandbox(
            "build", "--base", base, "--requirements", "/dev/null", "--tag", "lg-test:2"
        )
        assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
        assert "there already" in again.stdout
        image = client.images.get("lg-test:1")
        assert image.id == client.images.get("lg-test:2").id
        for name in image.tags:
            client.images.remove(name)
    finally:
        client.close()


def test_clean_when_nothing_was_left_says_so(docker_image: str) -> None:
    """Orphans alone are removed unless more is asked for."""
    done = sandbox("clean")
    assert done.returncode == 0
    assert "containers removed" in done.stdout


class FakeBattery:
    """Outcomes that a test decides on."""

    def __init__(self, *problems: str) -> None:
        self.attacks = ATTACKS[:2]
        self._problems = problems

    def run(self) -> list[Outcome]:
        """Return a contained attack, and one that is not where there are problems."""
        good = Outcome(self.attacks[0], "timeout", (), 1.0)
        return [good, replace(good, attack=self.attacks[1], problems=self._problems)]


@pytest.fixture
def attacked(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what makes `check` meet outcomes of a test's own."""

    def meet(*problems: str) -> None:
        @contextmanager
        def battery_on(_client: object, _image: str) -> Iterator[FakeBattery]:
            yield FakeBattery(*problems)

        monkeypatch.setattr(commands, "battery_on", battery_on)
        monkeypatch.setattr(commands, "connect", contextlib.nullcontext)
        monkeypatch.setattr(commands, "closing", lambda _: contextlib.nullcontext(FakeClient()))
        monkeypatch.setattr(commands, "image_id", lambda *_: "sha256:0")

    return meet


class FakeClient:
    """An engine that describes itself."""

    api = None

    def info(self) -> dict[str, Any]:
        """Say what it is, and that it cannot bound processes."""
        return {
            "ServerVersion": "99",
            "CgroupVersion": "2",
            "Driver": "overlay2",
            "MemoryLimit": True,
            "SwapLimit": True,
            "CpuCfsQuota": True,
            "PidsLimit": False,
            "SecurityOptions": ["name=seccomp,profile=builtin"],
        }


def test_check_when_all_is_contained_shows_a_table_and_the_engine(attacked: Any) -> None:
    """A user sees what was tried, how it ended, and on what engine."""
    attacked()
    done = sandbox("check")
    assert done.returncode == 0
    assert "2 of 2 attacks were contained" in done.stdout
    assert all(word in done.stdout for word in ("fork bomb", "timeout", "99", "version 2"))
    assert "the number of processes" in done.stdout


def test_check_when_something_got_out_says_what_and_exits_with_1(attacked: Any) -> None:
    """What was not contained is told, with nothing that steers a terminal."""
    attacked("GOT become root: \x1b[2Jowned")
    done = sandbox("check")
    assert done.returncode == 1
    assert "NOT contained, memory bomb: GOT become root" in done.stdout
    assert "\x1b" not in done.stdout


def test_check_when_asked_for_json_writes_one_line(attacked: Any) -> None:
    """Scripts read the same facts and outcomes."""
    attacked("a file of the host was read")
    done = sandbox("check", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert [each["contained"] for each in told["attacks"]] == [True, False]
    assert told["attacks"][1]["problems"] == ["a file of the host was read"]
    assert told["engine"]["storage"] == "overlay2"


def test_images_when_removed_are_ours_only() -> None:
    """Images are found by our labels; one that is in use stays, and so do its names."""

    class Images:
        def list(self, filters: dict[str, str]) -> list[Any]:
            if not filters["label"].startswith("langgraft."):
                return []
            return [
                SimpleNamespace(id="sha256:1", tags=["ours:1", "ours:below-another"]),
                SimpleNamespace(id="sha256:2", tags=["ours:2", "ours:latest"]),
            ]

        def remove(self, name: str) -> None:
            if name == "ours:below-another":
                raise docker.errors.APIError("conflict: it has dependent images")

    api = SimpleNamespace(containers=lambda **_: [{"ImageID": "sha256:2"}])
    client: Any = SimpleNamespace(images=Images(), api=api)
    assert build.remove_images(client) == ["ours:1"]
