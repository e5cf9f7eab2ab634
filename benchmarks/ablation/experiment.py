"""An agent of one's own, the tasks it is tried on, and their score: what `ablate` is given.

experiment = Experiment(
    build=lambda memory: create_agent(model, tools, middleware=[MemoryMiddleware(memory)]),
    train="train.jsonl",
    test="test.jsonl",
    score=lambda task, output: task.reference in output["messages"][-1].text,
)
"""

import functools
import hashlib
import inspect
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel

from langgraft._core.arguments import (
    check_argument,
    check_no_secrets,
    check_whole,
    named_fields,
)
from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.errors import InputError
from langgraft._core.files import read_bytes
from langgraft._core.untrusted import load_json
from langgraft.benchmarks.comparison.verdicts import MARGIN
from langgraft.memory.model import Episode
from langgraft.memory.recall import DEFAULT_TOKENS

Condition: TypeAlias = Literal[
    "random", "placebo", "instructions", "write_only", "full_history", "rerun"
]
"""What is tried beside a memory and none, by name; see `CONDITIONS`."""

CONDITIONS: Final[Mapping[str, str]] = {
    "random": "random items of the same bank instead of those found: takes relevance away",
    "placebo": "filler of the same length: takes content away",
    "instructions": "the frame of the block without an item: what being told of notes does",
    "write_only": "memory files and recalls nothing: what filing and reflecting do",
    "full_history": "every earlier attempt in the prompt, as far as there is room",
    "rerun": "no memory once more, with other samples: what chance alone does",
}
"""Every condition, and what it tells."""

_KEYS: Final = {
    "id": ("id", "task_id", "name"),
    "input": ("input", "inputs", "question", "prompt"),
    "kind": ("kind", "category"),
    "reference": ("reference", "reference_outputs", "outputs", "answer", "expected"),
}
"""What a task's fields are called in files, frames and datasets, the first that is there."""


@named_fields
@dataclass(frozen=True)
class Task:
    """One task that the agent is given."""

    id: str
    """Unique among the tasks of an experiment: train and test tasks must not meet."""
    input: Any
    """What the agent is given: a text, which a graph with `messages` gets as a human message, and a chain
    or a function as it is; or anything else, as it is. Or a test function: see `Experiment.test`."""
    kind: str = ""
    """What kind of task it is: help and harm are told by kind."""
    reference: Any = None
    """What the score goes by, such as the right answer. The agent is not given it."""

    @property
    def text(self) -> str:
        """What is asked, as memory keeps it."""
        given = self.input
        if callable(given):
            return inspect.getdoc(given) or self.id
        if isinstance(given, Mapping) and given.get("messages"):
            last = given["messages"][-1]
            return str(last[1] if isinstance(last, tuple) else _content(last))
        return given if isinstance(given, str) else _as_json(given)


def _content(message: Any) -> Any:
    return message.get("content") if isinstance(message, Mapping) else getattr(message, "text", "")


def _as_json(value: Any) -> str:
    return json.dumps(value, default=repr, sort_keys=True, ensure_ascii=False)


Tasks: TypeAlias = Any
"""Tasks in any form: a list of `Task`, mappings or test functions, a JSONL file, a frame of pandas, or
examples of LangSmith, as `client.list_examples` gives them."""
Build: TypeAlias = Callable[..., Any]
Model: TypeAlias = str | Callable[[int], BaseChatModel] | None

_FIELDS: Final[Mapping[str, Any]] = {
    "conditions": Sequence,
    "hypotheses": Sequence,
    "build": Callable,
    "score": Callable | None,
    "model": str | Callable | None,
    "bank": str | Path | None,
    "base_url": str | None,
    "feedback": Literal["environment", "self", "oracle"] | None,
    "margin": float,
    "solved": float,
    "temperature": float,
    "title": str,
}
_TAKEN: Final = ("none", "rerun")
"""Conditions without memory, whose names no memory can have."""


@named_fields
@dataclass(frozen=True)
class Experiment:
    """Whether memory helps an agent: the agent, its tasks, its score, and what is compared.

    Beside what is said below: `conditions` are those played beside none and the memories (see
    `Condition`), `temperature` that of a model by name, `title` heads the page, `seed` begins all
    draws.

    Raises:
        InputError: Something given is wrong; the message names what and where. Nothing has been run.
    """

    build: Build
    """Makes the agent: `build(memory)`, or `build(memory, model)` where the harness provides the model:
    a second parameter gets it that has no default, or is called `model`.
    `memory` is a provider in every condition (one that recalls nothing, where there is none), so that
    the agent is the same in all. It returns a graph or other `Runnable`, or a function of a task's
    input, sync or async. It is called for every run."""
    test: Tasks
    """Tasks that each condition is tried on, with a frozen bank. A test function takes the agent, calls
    it (`agent("question")`) and asserts, or returns a score; it needs no `score`."""
    train: Tasks = ()
    """Tasks that a memory learns from before, in an order of its own in each replicate. With several
    sources, by name, one bank is made from each, and each is a condition. An attempt is filed with its
    score, whether or not the graph files turns by itself."""
    score: Callable[..., Any] | None = None
    """`score(task, output)`: whether a task was solved, or a number from 0 to 1; sync or async. Or an
    evaluator of openevals or agentevals, which takes `inputs`, `outputs` and `reference_outputs`. A
    failed assertion is a 0."""
    memory: str | Mapping[str, Any] = "trajectory"
    """The memory system, by its name in plans or as `package.module:Class`. Several by name: each a
    provider, or `{"provider": …, "settings": {…}}`."""
    conditions: Sequence[Condition] = (
        "random",
        "placebo",
        "instructions",
        "write_only",
        "full_history",
    )
    replicates: int = 5
    """How often everything is repeated: other samples, another order of training."""
    episodes: Any = ()
    """Filed instead of playing `train`: what an agent did elsewhere."""
    bank: Path | str | None = None
    """A bank, as `export_items` or `langgraft memory export` wrote it, instead of training."""
    model: Model = None
    """`None`: the agent has its own, which no cache keeps and no cap stops. A name such as
    `openai:gpt-4.1-mini`: the harness's, cached, capped and retried. Or a function of a seed that makes
    a simulated one."""
    base_url: str | None = None
    """URL of an OpenAI-compatible server for a model by name, such as `http://localhost:8000/v1`. Without a key in
    `OPENAI_API_KEY` none is sent."""
    temperature: float = 0.5
    max_tokens: int = 4096
    """Most tokens of a reply of a model by name."""
    feedback: Literal["environment", "self", "oracle"] | None = "environment"
    """Whose word the score of a training task is to memory. `oracle`: gold answers that no agent would
    have in earnest; the memory is then declared to learn from them. `None`: memory is not told."""
    budget: int = DEFAULT_TOKENS
    """Most tokens of a block of recalled memory."""
    margin: float = MARGIN
    """Difference up to which a control counts as none, and which a guard must find."""
    solved: float = 0.5
    """Score from which a task counts as solved, where it is a number."""
    calls: int = 1
    """Model calls an attempt takes, for the preview."""
    title: str = ""
    seed: int = 0
    hypotheses: Sequence[Mapping[str, Any]] = ()
    """What is claimed before anything is run, as a plan has it (docs/statistics.md): by `condition`, or by
    the `memory`, `source` and `control` that it is made of, of the measure `score`."""

    def __post_init__(self) -> None:
        self._check_fields()
        memories(self)
        object.__setattr__(self, "test", read_tasks(self.test, "test"))
        object.__setattr__(self, "train", _sources(self.train, "train", read_tasks))
        object.__setattr__(self, "episodes", _sources(self.episodes, "episodes", _episodes))
        if self.bank is not None:
            object.__setattr__(self, "bank", Path(self.bank).expanduser())
        given = [name for name in ("train", "episodes", "bank") if getattr(self, name)]
        if len(given) > 1:
            msg = f"`{given[0]}` and `{given[1]}` are both given: a bank comes from one of them"
            raise InputError(msg)
        if not self.test:
            msg = "there are no `test` tasks to try memory on"
            raise InputError(msg)
        self._check_tasks()

    def _check_fields(self) -> None:
        told = {name: getattr(self, name) for name in ("model", "base_url", "memory", "title")}
        try:
            check_no_secrets(told)
        except ValueError as error:
            raise InputError(str(error)) from error
        for name in ("replicates", "calls", "budget", "max_tokens"):
            check_whole(name, getattr(self, name))
        check_whole("seed", self.seed, least=0)
        if isinstance(self.model, BaseChatModel):
            msg = (
                "`model` is a name such as 'openai:gpt-4.1-mini', or a function of a seed;"
                f" {type(self.model).__name__} itself belongs into `build`"
            )
            raise InputError(msg)
        for name, hint in _FIELDS.items():
            check_argument(f"`{name}`", getattr(self, name), hint)
        second = self._second
        if self.model is None and second is not None and second.default is second.empty:
            msg = "`build` takes a model: give the experiment one (`model=…`), or let it take the memory alone"
            raise InputError(msg)
        if unknown := [each for each in self.conditions if each not in CONDITIONS]:
            msg = f"there is no condition {unknown[0]!r}; there are {', '.join(CONDITIONS)}"
            raise InputError(msg)
        if twice := _twice(self.conditions):
            msg = f"the condition {twice!r} is named twice"
            raise InputError(msg)
        if not 0 < self.margin < 1 or not 0 < self.solved <= 1:
            msg = f"`margin` and `solved` are shares such as 0.1 and 0.5, got {self.margin!r} and {self.solved!r}"
            raise InputError(msg)

    def _check_tasks(self) -> None:
        known = {each.id: each for each in self.test}
        for tasks in ((), *self.train.values()):
            if twice := _twice(each.id for each in (*self.test, *tasks)):
                msg = f"the task {twice!r:.80} is given twice: each is of train or of test, once"
                raise InputError(msg)
            for each in tasks:
                if _told(known.setdefault(each.id, each)) != _told(each):
                    msg = f"two sources of `train` have different tasks of the id {each.id!r:.80}"
                    raise InputError(msg)
        scored = self.score is not None
        if unscored := [each for each in known.values() if not (scored or callable(each.input))]:
            msg = (
                "`score` is needed: score(task, output) says whether a task was solved, such as"
                f" {unscored[0].id!r:.80}"
            )
            raise InputError(msg)

    @property
    def tasks(self) -> Mapping[str, Task]:
        """All tasks by id."""
        trained = [task for tasks in self.train.values() for task in tasks]
        return {task.id: task for task in (*trained, *self.test)}

    @property
    def wants_model(self) -> bool:
        """Whether `build` takes the model as well, where there is one."""
        place = self._second
        return place is not None and (place.default is place.empty or place.name == "model")

    @property
    def _second(self) -> inspect.Parameter | None:
        try:
            parameters = inspect.signature(self.build).parameters.values()
        except (TypeError, ValueError):
            return None
        places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        return places[1] if len(places) > 1 else None

    def fingerprint(self) -> dict[str, JSON]:
        """Return digests of the tasks and of the files that build and score are written in."""
        return {
            "tasks": digest([_told(task) for task in self.tasks.values()]),
            "episodes": digest(
                {name: [each.to_json() for each in filed] for name, filed in self.episodes.items()}
            ),
            "bank": file_digest(self.bank),
            "code": {
                name: _code_digest(getattr(self, name))
                for name in ("build", "score")
                if getattr(self, name) is not None
            },
        }


def _sources(given: Any, what: str, read: Callable[[Any, str], Any]) -> dict[str, Any]:
    if isinstance(given, Mapping):
        for name in given:
            # The one source of an experiment is named by nothing, and comes back where it is copied.
            if not _is_name(name) and not (name == "" and len(given) == 1):
                msg = f"a source of `{what}` is named by a text without '~', '@' and '/', got {name!r:.80}"
                raise InputError(msg)
        sources = {name: read(each, f"{what}, source {name!r}") for name, each in given.items()}
        if empty := [name for name, found in sources.items() if not found]:
            msg = f"{what}, source {empty[0]!r}: is empty"
            raise InputError(msg)
        return sources
    found = read(given, what)
    return {"": found} if found else {}


def _is_name(name: Any) -> bool:
    """Whether it can be part of the name of a run, where signs part it from others."""
    return isinstance(name, str) and bool(name) and not any(sign in name for sign in "~@/")


def _episodes(given: Any, what: str) -> tuple[Episode, ...]:
    if not isinstance(given, Iterable):
        msg = f"`{what}` is a list of episodes, got {given!r:.80}"
        raise InputError(msg)
    found = tuple(given)
    if wrong := [each for each in found if not isinstance(each, Episode)]:
        msg = f"{what}: expected episodes, got {wrong[0]!r:.80}"
        raise InputError(msg)
    if twice := _twice(each.id for each in found):
        msg = f"{what}: the episode {twice!r:.80} is given twice"
        raise InputError(msg)
    return found


def _twice(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def read_tasks(given: Tasks, what: str) -> tuple[Task, ...]:
    """Read tasks in any form.

    Args:
        given: See `Tasks`.
        what: What they are, for messages.

    Raises:
        InputError: The file cannot be read, or what stands somewhere is no task.
    """
    if isinstance(given, str | Path):
        rows = _lines(Path(given))
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):
        rows = given.to_dict("records")
    elif isinstance(given, Iterable):
        rows = list(given)
    else:
        msg = f"`{what}` is a list of tasks, a JSONL file or a frame, got {given!r:.80}"
        raise InputError(msg)
    return tuple(_task(row, f"{what}, task {number}") for number, row in enumerate(rows, 1))


def _lines(path: Path) -> list[Any]:
    rows = []
    for number, line in enumerate(read_bytes(path.expanduser()).splitlines(), 1):
        if line.strip():
            try:
                rows.append(load_json(line))
            except ValueError as error:
                msg = f"{path}, line {number}: is no JSON: {error}"
                raise InputError(msg) from error
    return rows


def _task(row: Any, where: str) -> Task:
    if isinstance(row, Task):
        task = row
    elif callable(row):
        task = Task(getattr(row, "__name__", None) or type(row).__name__, row)
    elif isinstance(row, Mapping):
        task = _from_fields(row, where)
    elif hasattr(row, "inputs"):  # an example of LangSmith
        task = _from_fields(
            {"id": str(row.id), "inputs": row.inputs, "outputs": getattr(row, "outputs", None)}
            | _kind_in(getattr(row, "metadata", None) or {}),
            where,
        )
    else:
        msg = f"{where}: expected a task, a mapping with id and input, or a test function; got {row!r:.80}"
        raise InputError(msg)
    if not isinstance(task.id, str) or not task.id or "#" in task.id:
        msg = f"{where}: its id is a text without '#', got {task.id!r:.80}"
        raise InputError(msg)
    if not isinstance(task.kind, str):
        msg = f"{where}: its kind is a text, got {task.kind!r:.80}"
        raise InputError(msg)
    try:
        digest(_told(task))
    except UnicodeEncodeError as error:
        msg = f"{where}, {task.id!r:.80}: is no UTF-8 text: surrogates not allowed"
        raise InputError(msg) from error
    return task


def _kind_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an example's metadata say of its kind; nothing else there is the task's."""
    return {name: metadata[name] for name in _KEYS["kind"] if name in metadata}


def _told(task: Task) -> list[JSON]:
    """Return a task as its digest has it."""
    return [task.id, _given(task.input), task.kind, _given(task.reference)]


def _is_there(value: Any) -> bool:
    """Whether a field holds anything: what a frame lacks is NaN."""
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _from_fields(row: Mapping[str, Any], where: str) -> Task:
    found = {
        name: next((row[key] for key in keys if _is_there(row.get(key))), None)
        for name, keys in _KEYS.items()
    }
    for name in ("id", "input"):
        if found[name] is None:
            msg = f"{where}: has no {name!r} ({' or '.join(_KEYS[name])}); there is {', '.join(map(str, row))}"
            raise InputError(msg)
    return Task(str(found["id"]), found["input"], str(found["kind"] or ""), found["reference"])


def _given(value: Any) -> JSON:
    """Return what a digest is made of: a value, or for code its source."""
    if callable(value):
        return _source(value)
    return _as_json(value)


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return getattr(function, "__qualname__", type(function).__qualname__)


def _code_digest(function: Any) -> str:
    """Return the digest of the file that a function is written in, or of what can be told of it."""
    while isinstance(function, functools.partial):
        function = function.func
    module = sys.modules.get(getattr(inspect.unwrap(function), "__module__", "") or "")
    path = getattr(module, "__file__", None)
    if path is None:
        return digest(_source(function))
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def file_digest(path: Path | str | None) -> str | None:
    """Return the SHA-256 of a file; `None` of none.

    Raises:
        RunDirectoryError: It cannot be read.
    """
    return None if path is None else hashlib.sha256(read_bytes(Path(path).expanduser())).hexdigest()


def memories(experiment: Experiment) -> dict[str, tuple[str, dict[str, JSON]]]:
    """Return the memories of an experiment by name: provider and settings.

    Raises:
        InputError: One is not of the form that `Experiment.memory` says.
    """
    given = experiment.memory
    if isinstance(given, str):
        given = {given.rpartition(":")[2]: given}
    if not isinstance(given, Mapping):
        msg = (
            "`memory` is a provider by name, such as 'trajectory' or 'package.module:Class', or several"
            f" by name, as each run makes its own; got {given!r:.80}"
        )
        raise InputError(msg)
    found: dict[str, tuple[str, dict[str, JSON]]] = {}
    for name, each in given.items():
        provider, settings = each, {}
        if isinstance(each, Mapping):
            provider, settings = each.get("provider"), dict(each.get("settings") or {})
            if set(each) - {"provider", "settings"}:
                provider = None
        if not isinstance(provider, str) or not _is_name(name) or name in _TAKEN:
            msg = (
                f"memory {name!r}: expected a name without '~', '@' and '/', other than"
                f" {' and '.join(map(repr, _TAKEN))}, and a provider by name"
                f" or {{'provider': …, 'settings': …}}, got {each!r:.80}"
            )
            raise InputError(msg)
        if experiment.feedback == "oracle":
            settings = {"feedback": "oracle", **settings}
        try:
            canonical_json(cast("JSON", settings))
        except (TypeError, ValueError) as error:
            msg = f"memory {name!r}: its settings are no JSON: {error}"
            raise InputError(msg) from error
        found[name] = provider, settings
    if not found:
        msg = "`memory` names no memory to try"
        raise InputError(msg)
    return found
