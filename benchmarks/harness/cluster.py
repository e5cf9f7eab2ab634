"""Runs carried out on the nodes of a Ray cluster, which all see the run directory.

Each process of `processes.py` is an actor on some node. One more, beside the command that holds the
directory, counts what models are asked and keeps their replies, since no SQLite file is safe between
machines. A process that is lost with its node is started anew wherever there is room.
"""

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, Final

from typing_extensions import override

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft._core.lazy import require
from langgraft.benchmarks.harness.budget import CallBudget
from langgraft.benchmarks.harness.cache import CacheMode, ResponseCache
from langgraft.benchmarks.harness.directory import check_directory
from langgraft.benchmarks.harness.failures import one_line
from langgraft.benchmarks.harness.limits import Grant
from langgraft.benchmarks.harness.models import PlanModels
from langgraft.benchmarks.harness.plans import package_versions
from langgraft.benchmarks.harness.processes import Message, Work, Worker, serve

ray: Final = require("ray", extra="ray", purpose="A plan on a Ray cluster")

_KNOCK_SECONDS: Final = 10.0


@contextmanager
def connected(address: str) -> Iterator["Cluster"]:
    """Connect to a cluster for as long as the block lasts.

    Call it before signals are handled: Ray takes SIGTERM for itself.

    Args:
        address: As `ray.init` takes it: `auto` for the one this machine is a node of, `HOST:PORT`, or
            `local` for one that is begun here and ends with the block.

    Raises:
        SettingsError: There is none, or it is of another version.
    """
    if "://" in address:
        msg = (
            f"--ray {address!r:.80}: the run directory is held by a process on one of the nodes; run the"
            " command there, as with `ray job submit`, with --ray auto"
        )
        raise SettingsError(msg)
    begun: dict[str, bool] = {}
    if address == "local":  # a cluster that we begin reports its use to nobody, and has no page
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        begun["include_dashboard"] = False
    try:
        _knock(address)
        # Standard output may be JSON, and workers have logs of their own in Ray's folder.
        ray.init(address=address, log_to_driver=False, logging_level="error", **begun)
    except (OSError, RuntimeError, ValueError) as error:
        msg = f"--ray {address!r:.80}: {one_line(error)}"
        raise SettingsError(msg) from error
    try:
        yield Cluster(int(ray.cluster_resources().get("CPU", 1)))
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """See whether anybody listens at `HOST:PORT`: Ray itself tries for minutes.

    Raises:
        OSError: Nobody does.
    """
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _KNOCK_SECONDS).close()


@dataclass(frozen=True)
class Cluster:
    """A cluster that is connected to."""

    cores: int
    """CPUs of all its nodes."""

    def start(self, number: int, work: Work) -> Worker:
        """Start a process on a node, once one has a CPU to spare; see `processes.Start`."""
        return _Actor(number, work)

    def keeping(self, models: PlanModels) -> PlanModels:
        """Return the same models, for processes on other nodes: one count and one cache for all."""
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            ray.get_runtime_context().get_node_id(), soft=False
        )
        # Lost, it is back at once: what it knows is in its files.
        keeper = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=here)(_Keeper)
        actor = keeper.remote(models.budget, models.responses, Path.cwd())
        budget = None if models.budget is None else _Counted(models.budget, actor)
        return models.over(budget, partial(_Kept, actor))


class _Actor:
    """A process on a node, as the one that started it sees it."""

    def __init__(self, number: int, work: Work) -> None:
        node = ray.remote(num_cpus=1, max_concurrency=2, scheduling_strategy="SPREAD")(_Node)
        there = replace(work, out=work.out.absolute())  # by this path on every node
        self._node = node.remote(number, there, Path.cwd())

    def send(self, word: str | Grant) -> None:
        self._node.send.remote(word)  # should it be gone, `receive` says so

    def receive(self) -> Sequence[Message]:
        try:
            messages: Sequence[Message] = ray.get(self._node.receive.remote())
        except ray.exceptions.RayError as error:
            if ray.is_initialized():  # it may only be out of reach
                self.end()
            raise EOFError(one_line(error)) from error
        return messages

    def end(self, seconds: float = 0.0) -> None:  # noqa: ARG002  (it answers nobody by then)
        ray.kill(self._node)


class _Node:
    """The actor: what is said to it goes to the process that it is, and back."""

    def __init__(self, number: int, work: Work, folder: Path) -> None:
        with suppress(OSError):  # as a process that is spawned beside the command
            os.chdir(folder)
        self._line, there = Pipe()
        check = partial(_check_node, work)
        serving = partial(serve, there, number, work, check, part=f"process-{number}")
        threading.Thread(target=serving, daemon=True).start()

    def send(self, word: str | Grant) -> None:
        self._line.send(word)

    def receive(self) -> list[Message]:
        messages = [self._line.recv()]
        with suppress(EOFError):  # there, the next time
            while self._line.poll():
                messages.append(self._line.recv())
        return messages


def _check_node(work: Work) -> None:
    """Check that a node would do as the one that began the run directory.

    Raises:
        ResumeRefusedError: It has other code or packages.
    """
    prepared = work.prepared
    # Made anew, it has the fingerprints of what is installed here.
    versions = package_versions(prepared.study, prepared.plan)
    check_directory(work.out, replace(prepared, packages=versions))


# One count and one cache ------------------------------------------------------------------


class _Keeper:
    """The actor that has the files, and does what it is asked, one thing after another."""

    def __init__(self, budget: CallBudget | None, responses: Any, folder: Path) -> None:
        os.chdir(folder)
        self._budget = budget
        self._responses: ResponseCache = responses()

    def reserve(self, tokens: int, picodollars: int) -> bool:
        return self._budget is None or self._budget.reserve(tokens, picodollars)

    def settle(self, reserved: int, used: int, set_aside: int, cost: int) -> None:
        if self._budget is not None:
            self._budget.settle(reserved, used, set_aside=set_aside, cost=cost)

    def find(self, key: str) -> str | None:
        return self._responses.find(key)

    def put(self, key: str, value: str, packed: bytes) -> str | None:
        return self._responses.put(key, value, packed)


def _asked(call: Any) -> Any:
    """Wait for what the keeper says.

    Raises:
        LanggraftError: As it raised.
        InfrastructureError: It is out of reach.
    """
    try:
        return ray.get(call)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        msg = f"what counts calls and keeps replies is out of reach: {one_line(error)}"
        raise InfrastructureError(msg) from error


class _Counted(CallBudget):
    """Caps that the keeper counts for."""

    def __init__(self, budget: CallBudget, keeper: Any) -> None:
        self.__setstate__(budget.__getstate__())
        self._keeper = keeper

    @override
    def reserve(self, tokens: int, picodollars: int = 0) -> bool:
        return bool(_asked(self._keeper.reserve.remote(tokens, picodollars)))

    @override
    def settle(self, reserved: int, used: int, *, set_aside: int = 0, cost: int = 0) -> None:
        _asked(self._keeper.settle.remote(reserved, used, set_aside, cost))


class _Kept(ResponseCache):
    """Replies that the keeper keeps."""

    def __init__(self, keeper: Any) -> None:
        super().__init__("responses", "off")
        self.mode = CacheMode.READ_WRITE
        self._keeper = keeper

    @override
    def find(self, key: str) -> str | None:
        text: str | None = _asked(self._keeper.find.remote(key))
        return text

    @override
    def put(self, key: str, value: str, packed: bytes) -> str | None:
        first: str | None = _asked(self._keeper.put.remote(key, value, packed))
        return first
