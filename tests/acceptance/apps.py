"""Applications with memory under everything at once: many users, faults, kills, pauses, forks, summaries."""

import asyncio
import itertools
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
from chat_app import WORD, App, FaultyStore, canary, chat_app, chat_graph, shown
from chroma_server import chroma_server
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.store.base import BaseStore
from postgres_server import HOW_TO_GET_IT, available, running_server
from warm_python import CONTEXT, begin

from acceptance.app_worker import IN_THREAD, Conversations, Held, Job, saver_path, serve
from acceptance.figure import Figure, Setting, share
from langgraft._core.effects import ado, arun, do, run
from langgraft.memory.banks import Banks
from langgraft.memory.provider import EPISODES
from langgraft.memory.stores import open_store

FAILING: Final = 0.1
"""Share of the store's batches that fail."""
AT_ONCE: Final = 2
"""Processes of users at a time, where they are killed."""
KEPT: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
"""Tables of LangGraph's checkpointer in PostgreSQL."""
_BYTES: Final = re.compile(WORD.pattern.encode())


@dataclass
class Storm:
    """What came of it."""

    prompts: int = 0
    recalled: int = 0
    """Prompts in which something was recalled from another thread."""
    streamed: int = 0
    spans: int = 0
    checkpoints: int = 0
    episodes: int = 0
    left: int = 0
    """Of these, turns that failed or were abandoned."""
    killed: int = 0
    unbegun: int = 0
    """Turns whose process was killed before memory was asked, and that nobody went on with."""
    crossed: list[str] = field(default_factory=list)
    """Where something of another user was seen."""
    recalls_seen: list[str] = field(default_factory=list)
    """Where something recalled was seen beside prompts."""
    miscounted: list[str] = field(default_factory=list)

    def prompt(self, text: str) -> None:
        """Look at a prompt."""
        self.prompts += 1
        self._one_user(WORD.findall(text), "a prompt")
        own, _, block = text.partition("<recalled_memory>")
        self.recalled += bool(set(WORD.findall(block)) - set(WORD.findall(own)))

    def of_thread(self, found: Iterable[str], words: set[str], where: str) -> None:
        """Look at canaries that were found where only those of the thread may be."""
        strange = set(found) - words
        if not strange:
            return
        told = f"{', '.join(sorted(strange)[:3])} in {where}"
        whose = {_user(word) for word in words}
        crossed = [word for word in strange if _user(word) not in whose]
        (self.crossed if crossed else self.recalls_seen).append(told)

    def span(self, text: str) -> None:
        """Look at what a trace holds of one run."""
        self.spans += 1
        self._one_user(WORD.findall(text), "a trace")

    def bank(self, store: BaseStore, talk: Conversations) -> None:
        """Count episodes in a user's bank."""
        content = Banks(store)[talk.label].content()
        found = Counter(_word(item.text) for item in content.items.values())
        unknown = Counter(
            _word(item.text) for item in content.items.values() if item.success is None
        )
        self.episodes += found.total()
        self.left += unknown.total()
        self._one_user(found, "a bank")
        expected = talk.ended + talk.left
        for word in sorted(expected | found):
            if found[word] != expected[word]:
                self.miscounted.append(f"{word}: {found[word]} instead of {expected[word]}")
            elif unknown[word] != talk.left[word]:
                self.miscounted.append(f"{word}: {unknown[word]} with an outcome unknown")
        if content.state.get(EPISODES, 0) != expected.total():
            self.miscounted.append(f"{talk.label}: {content.state.get(EPISODES)} episodes")

    def raw(self, place: Path | str, words: dict[str, set[str]]) -> None:
        """Look at the bytes of all checkpoints in a file, or in a database of PostgreSQL."""
        for thread, *values in _in_postgres(place) if isinstance(place, str) else _in_file(place):
            self.checkpoints += 1
            for value in values:
                data = value.encode() if isinstance(value, str) else value or b""
                found = {word.decode() for word in _BYTES.findall(data)}
                self.of_thread(found, words.get(thread, set()), f"a checkpoint of {thread}")

    def _one_user(self, words: Iterable[str], where: str) -> None:
        users = {_user(word) for word in words}
        if len(users) > 1:
            self.crossed.append(f"users {', '.join(sorted(users))} in {where}")

    def figures(self, who: str, how: str) -> Iterator[Figure]:
        """Write it as rows."""
        looked = (
            f"{self.prompts:,} prompts, {self.streamed:,} parts of streams, {self.spans:,} spans,"
            f" {self.checkpoints:,} checkpoints and writes"
        )
        bound = "nothing, of enough"
        enough = self.prompts > 0 and self.checkpoints > 0
        yield Figure(
            f"{who}: nothing of one user is in another's prompt, stream, trace, checkpoint or bank",
            how,
            f"{len(self.crossed)} in {looked}{_named(self.crossed)}",
            bound,
            enough and not self.crossed,
        )
        yield Figure(
            f"{who}: what is recalled is in prompts, and in no stream and no checkpoint",
            how,
            f"in {self.recalled:,} prompts; {len(self.recalls_seen)} elsewhere"
            f"{_named(self.recalls_seen)}",
            bound,
            self.recalled > 0 and not self.recalls_seen,
        )
        good = max(0, self.episodes - len(self.miscounted))
        yield Figure(
            f"{who}: every turn is filed once, one that failed or was abandoned as of unknown outcome",
            how,
            f"{share(good, self.episodes, self.miscounted)}; {self.left:,} failed or abandoned",
            "all",
            self.episodes > 0 and not self.miscounted,
        )


def _in_file(path: Path) -> list[Any]:
    with closing(sqlite3.connect(path)) as database:
        return [
            *database.execute("SELECT thread_id, checkpoint, metadata FROM checkpoints"),
            *database.execute("SELECT thread_id, value, '' FROM writes"),
        ]


def _in_postgres(uri: str) -> Iterator[Any]:
    """Yield the thread and all other values of each row: bytes as they are, the rest as text."""
    with psycopg.connect(uri) as connection:
        for table in KEPT:
            found = connection.execute(f"SELECT * FROM {table} LIMIT 0".encode())
            assert found.description is not None
            kinds = {column.name: column.type_display for column in found.description}
            read = [name if kind == "bytea" else f"{name}::text" for name, kind in kinds.items()]
            yield from connection.execute(
                f"SELECT thread_id, {', '.join(read)} FROM {table}".encode()
            )


def measure(setting: Setting) -> list[Figure]:
    """Hold many conversations at once, on every store, and see who saw what."""
    count, turns = setting.size(100, 10), setting.size(20, 6)
    numbers = itertools.count(0, count)
    figures: list[Figure] = []

    def users() -> range:
        """Return users that nobody has met."""
        first = next(numbers)
        return range(first, first + count)

    with ExitStack() as stack:
        stores = {"SQLite": f"sqlite:{setting.work / 'memory.sqlite'}"}
        if available():
            stores["PostgreSQL"] = stack.enter_context(running_server())
        else:
            figures.append(Figure("Applications on PostgreSQL", HOW_TO_GET_IT, "", "", False))
        stores["a Chroma server"] = stack.enter_context(chroma_server())
        ways: dict[str, Callable[..., Storm]] = {
            "threads": by_threads,
            "tasks": by_tasks,
            "tasks, in a graph with memory's nodes,": partial(by_tasks, make=chat_graph),
        }
        for number, (name, spec) in enumerate(stores.items()):
            # Small, each store is tried once, and processes on a file alone.
            used = ways if not setting.reduced else [sorted(ways)[-number % len(ways)]]
            for way in used:
                setting.say(f"{count} users with {turns} turns each, as {way} over {name}")
                folder = _folder(setting, f"{number}-{list(ways).index(way)}")
                storm = ways[way](spec, folder, users(), turns)
                how = (
                    f"{count} users with {turns} turns each at once, {FAILING:.0%} of batches failing;"
                    f"{'' if 'graph' in way else ' summaries,'} approvals, broken turns, new answers, forks"
                )
                figures += storm.figures(f"{way.capitalize()} over {name}", how)
            if not setting.reduced or number == 0:
                setting.say(f"{count} users with {turns} turns each, killed, over {name}")
                folder = _folder(setting, f"{number}-killed")
                storm = by_killed_processes(spec, folder, users(), turns)
                figures += _killed(f"processes over {name}", storm, count * turns)
        setting.say(f"{count} users with {turns} turns each, killed, in a graph over SQLite")
        folder = _folder(setting, "graph-killed")
        storm = by_killed_processes(stores["SQLite"], folder, users(), turns, chat_graph)
        name = "processes of a graph with memory's nodes over SQLite"
        figures += _killed(name, storm, count * turns)
    return figures


def _folder(setting: Setting, name: str) -> Path:
    folder = setting.work / name
    folder.mkdir()
    return folder


def _killed(name: str, storm: Storm, turns: int) -> Iterator[Figure]:
    how = f"{turns:,} turns, {storm.killed} of them ended by SIGKILL; another process goes on"
    yield from storm.figures(f"Killed {name}", how)
    yield Figure(
        f"Killed {name}: enough are killed",
        how,
        f"{storm.killed / turns:.1%}; {storm.unbegun} before memory was asked, and then abandoned",
        "at least 5 % of the turns",
        storm.killed >= turns / 20,
    )


@contextmanager
def _saver(spec: str, path: Path) -> Iterator[Any]:
    """Keep checkpoints where memory is, if that is PostgreSQL, or else in a file."""
    if not spec.startswith("postgresql:"):
        with SqliteSaver.from_conn_string(str(path)) as saver:
            yield saver
        return
    with PostgresSaver.from_conn_string(spec) as kept:
        kept.setup()
        yield kept


def by_threads(
    spec: str, folder: Path, users: range, turns: int, make: Callable[..., App] = chat_app
) -> Storm:
    """Hold each user's conversations in a thread; in PostgreSQL, checkpoints lie there, too."""
    path = folder / "checkpoints.sqlite"
    with open_store(spec) as store, _saver(spec, path) as saver:
        faulty = FaultyStore(store, FAILING)
        talks = _talks(_app(make, faulty, saver), users, turns)
        with ThreadPoolExecutor(len(users)) as pool:
            list(pool.map(lambda talk: run(talk.all_turns(), do), talks))
        faulty.share = 0
        storm = Storm()
        for talk in talks:
            run(talk.flush(), do)
            for thread in talk.words:
                _look_back(storm, talk, thread, run(talk.history(thread), do))
        _look(storm, store, talks, spec if isinstance(saver, PostgresSaver) else path)
    return storm


def by_tasks(
    spec: str, folder: Path, users: range, turns: int, make: Callable[..., App] = chat_app
) -> Storm:
    """Hold each user's conversations in a task of one event loop."""
    path = folder / "checkpoints.sqlite"
    storm = Storm()

    async def hold(store: BaseStore) -> list[Conversations]:
        async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
            faulty = FaultyStore(store, FAILING)
            talks = _talks(_app(make, faulty, saver), users, turns)
            await asyncio.gather(*(arun(talk.all_turns(), ado) for talk in talks))
            faulty.share = 0
            for talk in talks:
                await arun(talk.flush(), ado)
                for thread in talk.words:
                    _look_back(storm, talk, thread, await arun(talk.history(thread), ado))
            return talks

    with open_store(spec) as store:
        talks = asyncio.run(hold(store))
        _look(storm, store, talks, path)
    return storm


def by_killed_processes(
    spec: str, folder: Path, users: range, turns: int, make: Callable[..., App] = chat_app
) -> Storm:
    """Hold each user's conversations in processes that are killed now and then."""
    storm = Storm()
    with open_store(spec) as store:  # two processes cannot make the tables of PostgreSQL at once
        with ThreadPoolExecutor(AT_ONCE) as pool:
            jobs = [Job(spec, folder, user, turns, make=make) for user in users]
            talks = list(pool.map(lambda job: _served(storm, job), jobs))
        for talk in talks:
            storm.raw(saver_path(folder, talk.user), talk.words)
            storm.bank(store, talk)
    return storm


def _served(storm: Storm, job: Job) -> Conversations:
    """Have a job done, by one process after the other."""
    nobody: Any = None
    talk = Conversations(nobody, job.user, job.turns, IN_THREAD)
    for turn in range(job.turns):
        talk.words.setdefault(talk.thread(turn), set()).add(canary(job.user, turn))
    while True:
        over = False
        for held in _process(job):
            if held is None:
                over = True
                continue
            talk.ended += held.ended
            talk.left += held.left
            begun = held.ended.total() + held.left.total()
            storm.unbegun += not begun
            for prompt in held.prompts:
                storm.prompt(prompt)
            for thread, streams in held.streams.items():
                _streams(storm, streams, talk.words[thread], thread)
            job = replace(job, first=held.turn + 1, broken="")
        if over:
            return talk
        storm.killed += 1
        job = replace(job, broken="resume" if storm.killed % 2 else "abandon")


def _process(job: Job) -> Iterator[Held | None]:
    """Yield what a process tells until it ends."""
    CONTEXT.set_forkserver_preload(["acceptance.app_worker"])
    receiving, sending = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=serve, args=(job, sending))
    begin(process)
    sending.close()
    with receiving, suppress(EOFError):
        while True:
            yield receiving.recv()
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        msg = f"the process of user {job.user} ended with {process.exitcode}"
        raise RuntimeError(msg)


def _app(make: Callable[..., App], store: BaseStore, saver: Any) -> App:
    return make(
        Banks(store, settings={"top_k": 3}, max_open=16),
        store=None,
        checkpointer=saver,
        outcome=lambda _: True,
    )


def _talks(app: App, users: range, turns: int) -> list[Conversations]:
    return [Conversations(app, user, turns, 5 if turns > 6 else 3) for user in users]


def _look_back(storm: Storm, talk: Conversations, thread: str, states: list[Any]) -> None:
    for state in states:
        storm.checkpoints += 1
        storm.of_thread(WORD.findall(shown(state)), talk.words[thread], f"a state of {thread}")


def _streams(storm: Storm, streams: list[str], words: set[str], thread: str) -> None:
    for part in streams:
        storm.streamed += 1
        storm.of_thread(WORD.findall(part), words, f"a stream of {thread}")


def _look(storm: Storm, store: BaseStore, talks: list[Conversations], kept: Path | str) -> None:
    for prompt in talks[0].app.model.seen:
        storm.prompt(prompt)
    words: dict[str, set[str]] = {}
    for talk in talks:
        words |= talk.words
        for thread, seen in talk.seen.items():
            _streams(storm, seen.streams, talk.words[thread], thread)
            for _, text in seen.spans:
                storm.span(text)
        storm.bank(store, talk)
    storm.raw(kept, words)


def _user(word: str) -> str:
    return word.removeprefix("zq").partition("t")[0]


def _word(text: str) -> str:
    found = WORD.search(text)
    return found[0] if found else ""


def _named(wrong: list[str]) -> str:
    return f": {'; '.join(wrong[:5])}" if wrong else ""
