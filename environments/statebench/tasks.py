"""Tasks of STATE-Bench, and the recorded trajectories of a language model at those for training."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from langgraft._core.arguments import check_argument, did_you_mean
from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, SettingsError
from langgraft.environments.statebench.attempts import Attempt, Score, ToolCall, Turn, User
from langgraft.environments.statebench.release import Code, find, import_code, read_json

Split: TypeAlias = Literal["train", "test"]
"""What tasks are for."""

SPLITS: Final[tuple[Split, ...]] = ("train", "test")
MOST_TASKS: Final = 10_000
"""Of a domain."""
MOST_TASK_BYTES: Final = 1 << 20
MOST_TRAJECTORY_BYTES: Final = 1 << 24

_NAME: Final = re.compile(r"[\w-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Task:
    """A task: what an agent is given, and what only its score sees.

    `domain` is the workflow, `split` what the task is for.
    """

    id: str
    """`<domain>/<the benchmark's name>`."""
    domain: str
    split: Split
    kind: str
    """The workflow it is of, as the benchmark says (`cancellation` …). No agent is told."""
    opening: str
    """What the user says first."""
    requirements: tuple[Mapping[str, JSON], ...] = field(repr=False)
    """The gold state: what must be true of the database in the end. No agent and no memory sees it."""
    _definition: Any = field(repr=False, compare=False)
    _code: Code = field(repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.id)

    def open(self, *, user: User | None = None) -> Attempt:
        """Begin an attempt, over a database of its own.

        Args:
            user: Who answers the agent; `None`: a `ScriptedUser`.

        Raises:
            InputError: The task's database cannot be read.
        """
        return Attempt(self._code, self.domain, self._definition, user)


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of executing recorded calls of tools again, each against a fresh database.

    `calls` counts them.
    """

    calls: int
    different: tuple[str, ...]
    """One line for each result that is not the recorded one; empty: all are identical."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What a language model did at a task for training, as the benchmark recorded it.

    `turns` are what was said and called at the `task`.
    """

    task: Task
    turns: tuple[Turn, ...]

    @property
    def calls(self) -> Iterator[ToolCall]:
        """The calls of tools, in order."""
        return (call for turn in self.turns for call in turn.calls)

    def replay(self) -> tuple[Replay, Score]:
        """Execute all calls against a fresh database; return how that went, and the end's score."""
        attempt = self.task.open()
        calls, different = 0, []
        for calls, call in enumerate(self.calls, 1):
            try:
                result = attempt.call(call.name, call.arguments)
            except InputError as error:
                result = str(error)
            if result != call.result:
                different.append(f"{self.task.id}, call {calls}: {call.name} gave {result!r:.200}")
        return Replay(calls, tuple(different)), attempt.score()


class StateBench:
    """The benchmark, read from a copy of it. Tasks and trajectories are read when they are asked for."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self.root: Final = code.root
        """Where it was read from."""

    @property
    def domains(self) -> tuple[str, ...]:
        """The names of its three domains."""
        return tuple(self._code.domains)

    def tasks(self, domain: str | None = None, split: Split | None = None) -> list[Task]:
        """Return tasks in the benchmark's order: of one domain and split, or of all.

        Raises:
            SettingsError: There is no such domain or split.
            InputError: A file of the benchmark is absent, or not what it should be.
        """
        for what, given, known in (("domain", domain, self.domains), ("split", split, SPLITS)):
            if given is not None and given not in known:
                msg = f"there is no {what} {given!r}{did_you_mean(str(given), known)}; there are {known}"
                raise SettingsError(msg)
        domains = self.domains if domain is None else (domain,)
        tasks = (task for each in domains for task in self._tasks[each])
        return [task for task in tasks if split in (None, task.split)]

    def task(self, id: str) -> Task:  # noqa: A002  (what it is called everywhere)
        """Return one task.

        Raises:
            SettingsError: There is no such task.
        """
        for task in self.tasks():
            if task.id == id:
                return task
        msg = f"there is no task {id!r:.120}; an id is <domain>/<name>, as {self.tasks()[0].id!r}"
        raise SettingsError(msg)

    def trajectories(self, domain: str | None = None) -> list[Trajectory]:
        """Return the recorded trajectories, one a task for training, in the order of `tasks`.

        Raises:
            SettingsError: There is no such domain.
            InputError: A trajectory is absent, or not what it should be.
        """
        return [self._trajectory(task) for task in self.tasks(domain, "train")]

    def replay(self) -> Replay:
        """Execute every recorded call of a tool again (of version 0.8.1: 2,842, in a second or two).

        That all results are identical shows that this copy, this Python and what stands between them
        and an agent do as they did where the trajectories were recorded.
        """
        replays = [trajectory.replay()[0] for trajectory in self.trajectories()]
        return Replay(sum(r.calls for r in replays), tuple(d for r in replays for d in r.different))

    @cached_property
    def _tasks(self) -> dict[str, list[Task]]:
        return {domain: list(self._read(domain)) for domain in self.domains}

    def _read(self, domain: str) -> Iterator[Task]:
        path = self._code.inside("domains", domain, "splits", "train_test.json")
        splits = read_json(path, MOST_TASK_BYTES)
        listed = splits.get("splits") if isinstance(splits, Mapping) else None
        if not isinstance(listed, Mapping) or any(not _names(listed.get(s)) for s in SPLITS):
            msg = f"{path}: lists no tasks as `splits: {{train: [names], test: [names]}}`"
            raise InputError(msg)
        names = [name for split in SPLITS for name in listed[split]]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            msg = f"{path}: lists a task twice: {', '.join(twice[:5])}"
            raise InputError(msg)
        for split in SPLITS:
            for name in listed[split]:
                yield self._task(domain, split, name)

    def _task(self, domain: str, split: Split, name: str) -> Task:
        path = self._code.inside("domains", domain, "tasks", f"{name}.json")
        given = read_json(path, MOST_TASK_BYTES)
        try:
            # An absolute path, as otherwise the benchmark's code looks into the working directory first.
            database = str(self._database(given["task_env_path"]))
            made = self._code.task.from_dict({**given, "task_env_path": database})
            for text in (made.opening_message, made.user_id, made.now, made.task_type or ""):
                check_argument("a text of the task", text, str)
            requirements = tuple(dict(each) for each in made.state_requirements)
        except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"{path}: is no task of STATE-Bench ({type(error).__name__}: {error})"
            raise InputError(msg) from error
        return Task(
            id=f"{domain}/{name}",
            domain=domain,
            split=split,
            kind=made.task_type or "",
            opening=made.opening_message,
            requirements=requirements,
            _definition=made,
            _code=self._code,
        )

    def _database(self, written: str) -> Path:
        """Return where a task's database is: a file of the benchmark."""
        path = (self._code.root / written).resolve()
        if not path.is_relative_to(self._code.inside().resolve()):
            msg = f"its database {written!r:.120} lies outside of the benchmark"
            raise ValueError(msg)
        if not path.is_file():
            msg = f"its database {written!r:.120} is absent"
            raise ValueError(msg)
        return path

    def _trajectory(self, task: Task) -> Trajectory:
        folder = self._code.root / "datasets" / "train_task_trajectories"
        path = folder / f"{task.id}.json"
        given = read_json(path, MOST_TRAJECTORY_BYTES)
        try:
            turns = tuple(_turn(each) for each in given["conversation"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = f"{path}: is no trajectory of STATE-Bench ({type(error).__name__}: {error})"
            raise InputError(msg) from error
        return Trajectory(task, turns)


def load(path: Path | str | None = None) -> StateBench:
    """Open the benchmark.

    Args:
        path: A folder with the package `state_bench` in it, or an archive of one (`.tar.xz`, `.tar.gz`),
            which is unpacked once into a folder of caches. `None`: the installed package, or else what
            lies in the folder `statebench` of `LANGGRAFT_DATA`. Its Python is executed.

    Raises:
        SettingsError: There is no copy; the message says how to get one.
        InputError: It is damaged, or not what is expected.
    """
    return StateBench(import_code(find(path)))


def _names(value: object) -> bool:
    return (
        isinstance(value, list)
        and 0 < len(value) <= MOST_TASKS
        and all(isinstance(name, str) and _NAME.fullmatch(name) for name in value)
    )


def _turn(given: Mapping[str, Any]) -> Turn:
    role, text = given["role"], given.get("content") or ""
    if role not in ("system", "user", "assistant") or not isinstance(text, str):
        msg = f"a turn of role {role!r:.40}"
        raise ValueError(msg)
    calls = cast("Sequence[Mapping[str, Any]]", given.get("tool_calls") or ())
    return Turn(
        role, text, tuple(ToolCall(c["name"], dict(c["arguments"]), c["result"]) for c in calls)
    )
