"""Containers that are done with go; those that would not are not forgotten."""

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
import requests
from docker.errors import APIError, NotFound

from langgraft.environments.sandboxes.docker.engine import Owner, Removals


class ToyEngine:
    """Removes containers, while it is there."""

    def __init__(self) -> None:
        self.there = True
        self.removed: list[str] = []
        self.go = threading.Event()
        self.go.set()

    def wait(self, container: str, *, timeout: float) -> None:
        """Say that one has ended."""

    def remove_container(self, container: str, *, v: bool, force: bool) -> None:
        """Remove one."""
        assert self.go.wait(60)
        if not self.there:
            raise requests.ConnectionError("connection refused")
        self.removed.append(container)


@pytest.fixture
def engine() -> ToyEngine:
    """Return an engine that is there."""
    return ToyEngine()


@pytest.fixture
def removals(engine: ToyEngine) -> Removals:
    """Return who removes its containers."""
    return Removals(cast("Any", engine))


@pytest.mark.parametrize(("status", "gone"), [(404, True), (409, True), (500, False)])
def test_container_when_the_engine_refuses_then_it_is_gone_or_remembered(
    engine: ToyEngine, removals: Removals, status: int, gone: bool
) -> None:
    """One that is not there, or that somebody else removes just now, is gone."""
    answer = requests.Response()
    answer.status_code = status
    kind = NotFound if status == 404 else APIError

    def refuse(_container: str, **_options: object) -> None:
        raise kind("refused", response=answer)

    engine.remove_container = refuse  # type: ignore[assignment]
    removals.now("a")
    assert removals.stubborn == (frozenset() if gone else {"a"})


def test_soon_when_the_engine_is_slow_then_nobody_waits_until_it_is_asked_for(
    engine: ToyEngine, removals: Removals
) -> None:
    """A program's result does not wait for its container to be taken apart."""
    engine.go.clear()
    removals.soon("a")
    removals.soon("b")
    assert engine.removed == []
    engine.go.set()
    removals.settle()
    assert engine.removed == ["a", "b"]
    removals.close()


def test_close_when_an_engine_was_away_then_what_it_kept_is_removed(
    engine: ToyEngine, removals: Removals
) -> None:
    """A container outlives an engine's absence, but not the sandbox."""
    engine.there = False
    removals.now("a")
    removals.soon("b")
    removals.settle()
    assert removals.stubborn == {"a", "b"}
    engine.there = True
    removals.close()
    assert sorted(engine.removed) == ["a", "b"]
    assert not removals.stubborn


def test_soon_when_a_request_fails_unforeseen_then_the_others_are_removed_and_it_is_tried_again(
    engine: ToyEngine, removals: Removals
) -> None:
    """Such as where the environment changes while the library looks for proxies in it."""

    def wait(container: str, *, timeout: float) -> None:
        if container == "a":
            raise KeyError("PROXY")

    engine.wait = wait  # type: ignore[method-assign]
    removals.soon("a")
    removals.soon("b")
    removals.settle()
    assert engine.removed == ["b"]
    assert removals.stubborn == {"a"}
    removals.close()
    assert engine.removed == ["b", "a"]


def test_soon_when_very_many_wait_then_who_comes_next_removes_its_own(
    engine: ToyEngine, removals: Removals
) -> None:
    """Containers cannot pile up behind an engine that is slower than their users."""
    engine.go.clear()
    for number in range(8):
        removals.soon(str(number))
    remove = engine.remove_container

    def let_go_first(container: str, *, v: bool, force: bool) -> None:
        if container == "last":
            engine.go.set()
        remove(container, v=v, force=force)

    engine.remove_container = let_go_first  # type: ignore[method-assign]
    removals.soon("last")
    assert "last" in engine.removed
    removals.close()
    assert len(engine.removed) == 9


def test_soon_when_it_is_closed_then_it_is_removed_at_once_and_no_thread_stays(
    engine: ToyEngine, removals: Removals
) -> None:
    """A program that ends while its sandbox closes leaves neither container nor thread."""
    removals.soon("a")
    removals.close()
    removals.soon("late")
    assert engine.removed == ["a", "late"]
    assert removals._thread is None


def test_owner_when_written_as_labels_then_it_is_read_back() -> None:
    """A label names the process that it was written for."""
    owner = Owner.current()
    assert Owner.of(owner.labels()) == owner


def test_owner_when_labels_are_others_then_there_is_none() -> None:
    """Containers of others are not taken for ours."""
    assert Owner.of({}) is None
    assert Owner.of({"langgraft.sandbox.owner": "host:no-number:1"}) is None


def test_gone_when_the_process_lives_then_its_containers_are_left() -> None:
    """A living process keeps what it owns."""
    assert not Owner.current().gone(running=True)
    assert not replace(Owner.current(), pid=os.getppid(), start=_start(os.getppid())).gone(
        running=True
    )


def test_gone_when_the_process_ended_then_its_containers_are_orphans() -> None:
    """A process that is no more owns nothing."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = replace(Owner.current(), pid=child.pid, start=_start(child.pid))
    assert not owner.gone(running=True)
    child.communicate(b"\n")
    assert owner.gone(running=True)


def test_gone_when_the_number_was_given_to_another_process_then_the_owner_is_gone() -> None:
    """A process id that is used again names somebody else."""
    assert replace(Owner.current(), start="1").gone(running=True)


def test_gone_when_the_machine_was_booted_again_then_the_owner_is_gone() -> None:
    """No process outlives its machine; but another machine may have the same name."""
    before = replace(Owner.current(), boot="another boot")
    assert before.gone(running=False)
    assert not before.gone(running=True)


def test_gone_when_the_owner_is_elsewhere_then_nothing_is_certain() -> None:
    """Another host's processes, and those of another pid namespace, cannot be looked up here."""
    elsewhere = replace(Owner.current(), host="elsewhere", pid=1, start="1", boot="other")
    assert not elsewhere.gone(running=False)
    assert not replace(Owner.current(), namespace="pid:[1]", start="1").gone(running=True)


def _start(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
