"""Running environments, held outside the graph's state."""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from langgraft._core.arguments import checked
from langgraft._core.errors import SettingsError
from langgraft.environments.text import Reset, TextEnvironment, TextWorldFactory, Transition


@dataclass(slots=True)
class _Session:
    environment: TextEnvironment
    first: Reset
    taken: list[str]


class EnvironmentSessions:
    """A bounded table of running episodes.

    A graph's state names an episode and the actions taken in it. Where the table has that
    episode at that point, it is used; otherwise (after a crash, on another machine, when an
    old checkpoint is resumed) the world is made anew and the actions are replayed.

    Args:
        factory: Makes environments by task id.
        capacity: How many episodes are kept; the one idle longest goes first.

    Raises:
        SettingsError: `capacity` is below 1.
    """

    @checked
    def __init__(self, factory: TextWorldFactory, *, capacity: int = 256) -> None:
        if capacity < 1:
            msg = f"capacity must be at least 1, got {capacity}"
            raise SettingsError(msg)
        self._factory = factory
        self._capacity = capacity
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._lock = threading.Lock()

    def start(self, episode_id: str, task_id: str) -> tuple[TextEnvironment, Reset]:
        """Begin an episode from its start."""
        session = self._open(task_id, ())
        self._keep(episode_id, session)
        return session.environment, session.first

    def step(self, episode_id: str, task_id: str, taken: Sequence[str], action: str) -> Transition:
        """Take `action` in an episode in which `taken` were taken before."""
        session = self._claim(episode_id)
        if session is None or session.taken != list(taken):
            if session is not None:
                session.environment.close()
            session = self._open(task_id, taken)
        with _closed_on_error(session.environment):
            transition = session.environment.step(action)
        session.taken.append(action)
        if transition.done:
            session.environment.close()
        else:
            self._keep(episode_id, session)
        return transition

    def end(self, episode_id: str) -> None:
        """Let go of an episode that will not be continued."""
        session = self._claim(episode_id)
        if session is not None:
            session.environment.close()

    def __len__(self) -> int:
        return len(self._sessions)

    def _open(self, task_id: str, taken: Sequence[str]) -> _Session:
        environment = self._factory(task_id)

        with _closed_on_error(environment):
            first = environment.reset()
            for action in taken:
                environment.step(action)
        return _Session(environment, first, list(taken))

    def _claim(self, episode_id: str) -> _Session | None:
        with self._lock:
            return self._sessions.pop(episode_id, None)

    def _keep(self, episode_id: str, session: _Session) -> None:
        with self._lock:
            replaced = self._sessions.pop(episode_id, None)
            self._sessions[episode_id] = session
            evicted = replaced
            if len(self._sessions) > self._capacity:
                _, evicted = self._sessions.popitem(last=False)
        if evicted is not None:
            evicted.environment.close()


@contextmanager
def _closed_on_error(environment: TextEnvironment) -> Iterator[None]:
    try:
        yield
    except BaseException:
        environment.close()
        raise
