"""A pool of places: ready when asked for, each used once, none left behind."""

import threading
import time
from collections.abc import Callable

import pytest

from langgraft._core.errors import SandboxFailureError
from langgraft.environments.sandboxes.docker import sandbox as pool_module
from langgraft.environments.sandboxes.docker.sandbox import Pool
from langgraft.environments.sandboxes.places import ChannelClosedError


class Toy:
    """A place that runs nothing."""

    def __init__(self) -> None:
        self.living = True
        self.destroyed = 0

    def alive(self) -> bool:
        """Return whether it lives."""
        return self.living

    def destroy(self) -> None:
        """Count how often it was destroyed."""
        self.destroyed += 1


class Works:
    """Starts toys, and remembers them."""

    def __init__(self, before: Callable[[], None] = lambda: None) -> None:
        self.made: list[Toy] = []
        self._before = before

    def __call__(self) -> Toy:
        """Start one."""
        self._before()
        toy = Toy()
        self.made.append(toy)
        return toy


def test_take_when_places_wait_then_none_is_handed_out_twice() -> None:
    """A place is used for one program."""
    works = Works()
    pool = Pool(works, 2)
    taken = [pool.take() for _ in range(20)]
    assert len({id(toy) for toy in taken}) == 20
    pool.close()
    assert all(toy.destroyed == (toy not in taken) for toy in works.made)


def test_take_when_the_pool_is_empty_by_choice_then_a_place_is_started_at_once() -> None:
    """Without a pool nothing is started that nobody asked for."""
    works = Works()
    pool = Pool(works, 0)
    assert pool.take() is works.made[0]
    pool.close()
    assert len(works.made) == 1


def test_take_when_a_waiting_place_died_then_another_is_given() -> None:
    """What dies while it waits never meets a program."""
    works = Works()
    pool = Pool(works, 2)
    pool.fill()
    assert pool.wait_until_full(60)
    dead = list(works.made)
    for toy in dead:
        toy.living = False
    assert pool.take() not in dead
    pool.close()
    assert all(toy.destroyed == 1 for toy in dead)


def test_take_when_a_waiting_place_is_old_then_another_is_given() -> None:
    """What waited too long is replaced."""
    works = Works()
    pool = Pool(works, 1, age=0.05)
    pool.fill()
    assert pool.wait_until_full(60)
    old = works.made[0]
    time.sleep(0.1)
    assert pool.take() is not old
    pool.close()
    assert old.destroyed == 1


def test_take_when_the_pool_looks_at_a_place_then_it_is_not_handed_out_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two threads never read from one place: the pool's look would swallow a program's answer."""
    monkeypatch.setattr(pool_module, "_LOOK", 0.01)
    works, looking, go = Works(), threading.Event(), threading.Event()
    pool = Pool(works, 1)
    pool.fill()
    assert pool.wait_until_full(60)

    def look() -> bool:
        if threading.current_thread().name == "sandbox-pool":
            looking.set()
            assert go.wait(60)
        return True

    monkeypatch.setattr(works.made[0], "alive", look)
    assert looking.wait(60)
    taken: list[Toy] = []
    taker = threading.Thread(target=lambda: taken.append(pool.take()))
    taker.start()
    taker.join(0.2)
    assert taken == []
    go.set()
    taker.join(60)
    assert taken == works.made[:1]
    pool.close()


def test_fill_when_a_place_dies_and_nobody_asks_then_it_is_replaced() -> None:
    """The pool looks after what waits in it."""
    works = Works()
    pool = Pool(works, 1)
    pool.fill()
    assert pool.wait_until_full(60)
    works.made[0].living = False
    until = time.monotonic() + 60
    while len(works.made) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    assert pool.wait_until_full(60)
    pool.close()
    assert [toy.destroyed for toy in works.made] == [1, 1]


def test_close_when_a_place_is_being_started_then_that_is_destroyed_too() -> None:
    """Closing leaves nothing, also in the middle of starting."""
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        while not pool._closed:
            time.sleep(0.01)

    works = Works(wait)
    pool = Pool(works, 2)
    pool.fill()
    assert begun.wait(60)
    pool.close()
    assert [toy.destroyed for toy in works.made] == [1]
    with pytest.raises(ChannelClosedError):
        pool.take()


def test_take_when_places_cannot_be_started_then_the_reason_is_raised_and_it_recovers() -> None:
    """A failure is told to who needs a place, and is not for ever."""
    broken = [True]

    def fail() -> None:
        if broken[0]:
            raise SandboxFailureError("the engine is down")

    works = Works(fail)
    pool = Pool(works, 1)
    with pytest.raises(SandboxFailureError, match="the engine is down"):
        pool.take()
    broken[0] = False
    assert pool.take() in works.made
    assert pool.wait_until_full(60)
    pool.close()
