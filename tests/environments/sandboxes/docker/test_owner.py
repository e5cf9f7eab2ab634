"""Whose a container is, and when it is certain that its owner is gone."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from langgraft.environments.sandboxes.docker.owner import Owner


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
