"""Sandboxes killed at random: no result says what is not so, and nothing is left behind."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Final

from base_image import make_base
from docker import APIClient
from docker.errors import DockerException
from requests import RequestException

from acceptance.chaos_worker import ENDINGS, Errand
from acceptance.command import worker_environment
from acceptance.figure import Figure, Setting, share
from acceptance.private_engine import PrivateEngine, why_none
from langgraft.environments.sandboxes.docker.engine import OWNER

STRIKES: Final = (
    ("docker kill", 2),
    ("kill -9 of process 1", 2),
    ("docker rm -f", 2),
    ("kill -9 of the client", 2),
    ("engine restarted", 1),
    ("engine kill -9", 1),
)
"""What kills sandboxes, and how often in ten strikes."""

POOLS: Final = (0, 0, 2)
"""A client each, by how many containers it keeps waiting."""

_PAUSE: Final = 1.5
"""Seconds between strikes at most."""
_DELAY: Final = 0.8
"""Seconds before a program ends as it does, at most."""

_SETTLED: Final = 45.0
"""Seconds within which all is gone after the last client has closed its sandbox: a container whose
engine was killed while starting it waits half a minute for its first word."""

_UNBORN: Final = "runc init "
"""A process that is to become a container's once the engine says go, which a killed one never does.
Nothing of ours runs in it, and nobody but who restarts containerd can end it."""


@dataclass
class Storm:
    """What was done, and what came of it."""

    killed: Counter[str] = field(default_factory=Counter)
    """Sandboxes that ran when they were struck, by what struck."""
    endings: Counter[str] = field(default_factory=Counter)
    """Results with the right ending, by ending."""
    wrong: list[str] = field(default_factory=list)
    """Results with another, and clients that ended by themselves."""
    failures: Counter[str] = field(default_factory=Counter)
    """Programs of which was said that the sandbox failed; they were asked for again."""
    containers: list[str] = field(default_factory=list)
    """Left at the end."""
    processes: list[str] = field(default_factory=list)
    """Left at the end."""
    unborn: int = 0
    """Processes left of containers that a killed engine never began."""


def measure(setting: Setting) -> list[Figure]:
    """Kill sandboxes on an engine of our own."""
    wanted = setting.size(50, 12)
    if absent := why_none():
        return [Figure("Sandboxes survive being killed at random", "", absent, "", passed=None)]
    setting.say(f"{wanted} sandboxes killed on an engine of our own")
    storm = raise_storm(kills=wanted, seed=2608)
    killed = ", ".join(f"{number} by {what}" for what, number in sorted(storm.killed.items()))
    right, retold = storm.endings.total(), storm.failures.total()
    told = ", ".join(f"{number} {what}" for what, number in sorted(storm.endings.items()))
    left = [*storm.containers, *storm.processes]
    return [
        Figure(
            "No result of a killed sandbox says of a program what it did not do",
            f"{storm.killed.total()} sandboxes killed at seeded moments: {killed}",
            share(right, right + len(storm.wrong), storm.wrong)
            + f" results true ({told}); {retold} told as failures of the sandbox",
            "all",
            not storm.wrong and storm.killed.total() >= wanted and right > 0,
        ),
        Figure(
            "No container and no process is left of killed sandboxes",
            "after the last client closed its sandbox: by label, and by control group",
            f"{len(left)} left{_listed(left)}; besides, {storm.unborn} `runc init` of containers"
            " that a killed engine never began",
            "0 left",
            not left,
        ),
    ]


def _listed(left: list[str]) -> str:
    return f": {'; '.join(line[:100] for line in left[:5])}" if left else ""


def raise_storm(*, kills: int, seed: int) -> Storm:
    """Let clients run programs, kill sandboxes until enough were, and look at what is left.

    Args:
        kills: How many sandboxes are killed at least.
        seed: Of the programs, the moments, and what is struck by what.
    """
    chance = random.Random(seed)
    storm = Storm()
    with _short_folder() as folder, PrivateEngine(folder) as engine:
        image = make_base(engine.client())
        errands = Errands(seed)
        clients = [Client(engine.url, image, pool, errands, storm) for pool in POOLS]
        strikes = _strikes(chance)
        while storm.killed.total() < kills and not storm.wrong:
            time.sleep(chance.uniform(0, _PAUSE))
            _strike(next(strikes), engine, clients, storm, chance)
        for client in clients:
            client.finish()
        # Whoever comes next finds a sandbox that works, and removes what the killed ones left.
        Client(engine.url, image, 0, errands, storm).finish()
        _look_for_remains(engine, storm)
    return storm


class Errands:
    """Programs of every ending, in a drawn order, without end; for any number of threads."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._lock = threading.Lock()
        self._numbers = count(1)
        self._round: list[str] = []

    def draw(self) -> Errand:
        """Return the next program."""
        with self._lock:
            if not self._round:
                self._round = self._chance.sample(ENDINGS, len(ENDINGS))
            delay = round(self._chance.uniform(0, _DELAY), 3)
            return Errand(next(self._numbers), self._round.pop(), delay)


class Client:
    """A process that runs programs in a sandbox; a killed one is followed by the next.

    Args:
        url: Of the engine.
        image: What its sandbox runs in.
        pool: Containers it keeps waiting.
        errands: What to run; shared with other clients.
        storm: Where to write what came of it.
    """

    def __init__(self, url: str, image: str, pool: int, errands: "Errands", storm: Storm) -> None:
        module = "acceptance.chaos_worker"
        self._command = [sys.executable, "-m", module, image, str(pool)]
        self._environment = {**worker_environment(), "DOCKER_HOST": url}
        self._errands = errands
        self._storm = storm
        self._ending = threading.Event()
        self._struck = False
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._work, name=f"client with pool {pool}")
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The process at work."""
        return None if self._process is None else self._process.pid

    def kill(self) -> None:
        """Kill the process at work."""
        if self._process is not None:
            self._struck = True
            self._process.kill()

    def finish(self) -> None:
        """Let it end the program at hand, close its sandbox, and end."""
        self._ending.set()
        self._thread.join()

    def _work(self) -> None:
        errand: Errand | None = self._errands.draw()
        while errand is not None:
            self._struck = False
            with tempfile.TemporaryFile("w+") as log, self._started(log) as process:
                errand = self._serve(process, errand)
                assert process.stdin is not None
                if not self._struck:
                    process.stdin.close()
                code = process.wait()
                if code != 0 and not self._struck:
                    log.seek(0)
                    said = " ".join(log.read().splitlines()[-2:])
                    self._storm.wrong.append(f"a client ended with {code}: {said}")
                    return

    def _serve(self, process: "subprocess.Popen[str]", errand: Errand) -> Errand | None:
        """Hand out programs; return the one that was at hand when the process was killed."""
        while True:
            answer = self._ask(process, errand)
            if answer is None:
                return errand
            if "failure" in answer:
                self._storm.failures[str(answer["failure"])] += 1
                continue
            if answer["ending"] == errand.ending:
                self._storm.endings[errand.ending] += 1
            else:
                self._storm.wrong.append(f"{errand.ending} was told as {answer['ending']}")
            if self._ending.is_set():
                return None
            errand = self._errands.draw()

    def _ask(self, process: "subprocess.Popen[str]", errand: Errand) -> dict[str, object] | None:
        assert process.stdin is not None
        assert process.stdout is not None
        asked = {"number": errand.number, "ending": errand.ending, "delay": errand.delay}
        try:
            process.stdin.write(json.dumps(asked) + "\n")
            process.stdin.flush()
        except OSError:
            return None
        line = process.stdout.readline()
        if not line.endswith("\n"):
            return None
        answer: dict[str, object] = json.loads(line)
        assert answer["number"] == errand.number
        return answer

    @contextmanager
    def _started(self, log: IO[str]) -> "Iterator[subprocess.Popen[str]]":
        process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        self._process = process
        try:
            yield process
        finally:
            self._process = None
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with suppress(BrokenPipeError):
                    stream.close()


def _strikes(chance: random.Random) -> Iterator[str]:
    ten = [what for what, often in STRIKES for _ in range(often)]
    while True:
        yield from chance.sample(ten, len(ten))


def _strike(
    what: str, engine: PrivateEngine, clients: list[Client], storm: Storm, chance: random.Random
) -> None:
    """Strike once; count the sandboxes that ran, and nothing where none did."""
    docker = engine.client()
    try:
        running = docker.api.containers(filters={"label": OWNER})
        if not running:
            return
        if what == "kill -9 of the client":
            client = chance.choice(clients)
            mine = f":{client.pid}:"
            storm.killed[what] += sum(mine in one["Labels"][OWNER] for one in running)
            client.kill()
        elif what == "engine restarted":
            storm.killed[what] += len(running)
            engine.restart(signal.SIGTERM)
        elif what == "engine kill -9":
            storm.killed[what] += len(running)
            engine.restart(signal.SIGKILL)
        else:
            _strike_container(what, docker.api, chance.choice(running)["Id"])
            storm.killed[what] += 1
    except (DockerException, RequestException, ProcessLookupError):
        return  # it ended by itself a moment ago
    finally:
        docker.close()


def _strike_container(what: str, api: APIClient, container: str) -> None:
    if what == "docker kill":
        api.kill(container)
    elif what == "docker rm -f":
        api.remove_container(container, force=True)
    else:
        process = int(api.inspect_container(container)["State"]["Pid"])
        if process:  # 0: it does not run any more
            os.kill(process, signal.SIGKILL)


def _look_for_remains(engine: PrivateEngine, storm: Storm) -> None:
    """Note what is left, once nothing more goes or after a while."""
    docker = engine.client()
    until = time.monotonic() + _SETTLED
    try:
        while True:
            left = docker.api.containers(all=True)
            storm.containers = [f"{one['Names'][0]} {one['Status']}" for one in left]
            running = list(engine.processes().values())
            storm.processes = [line for line in running if line != _UNBORN]
            storm.unborn = len(running) - len(storm.processes)
            if not (left or storm.processes) or time.monotonic() > until:
                return
            time.sleep(0.2)
    finally:
        docker.close()


@contextmanager
def _short_folder() -> Iterator[Path]:
    """Make a folder for an engine: the path of a socket has 107 characters at most."""
    folder = Path(tempfile.mkdtemp(prefix="langgraft-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
