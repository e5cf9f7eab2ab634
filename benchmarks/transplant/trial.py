"""One transplant between two agents, measured beside no memory, the recipient's own bank and two controls.

    trial = measure_transplant("donor.jsonl", ExpeL(InMemoryStore()), build, tasks=["sum/1", "sum/2"])
    print(trial)

Every arm is evaluated on a frozen bank in a store of its own; donor and recipient are read, and no more.
"""

import math
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from langchain_core.runnables import Runnable, RunnableLambda
from typing_extensions import override

from langgraft._core.arguments import check_whole, checked
from langgraft._core.canonical import JSON
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError, LanggraftError
from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast, compare
from langgraft.benchmarks.comparison.verdicts import FEWEST_RUNS, NAMED, Verdict
from langgraft.benchmarks.harness.usage import replicate_scope
from langgraft.benchmarks.reporting.findings import control_findings, sentence
from langgraft.benchmarks.reporting.words import listing, plain, sample_of, several
from langgraft.memory.bank_format import read_items
from langgraft.memory.controls import Control, Placebo, RandomRetrieval
from langgraft.memory.model import BankContent, MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.stores.programs import Program as BankProgram
from langgraft.memory.transplanting import Transplant, copy_of, transplant_items
from langgraft.nodes.dialogue import Node
from langgraft.nodes.state import AgentInput

NONE: Final = "none"
OWN: Final = "own"
TRANSPLANTED: Final = "transplanted"
CONTROLS: Final = ("random", "placebo")

Donor: TypeAlias = MemoryProvider[Any] | Path | str | Sequence[MemoryItem]
"""Whose items are transplanted: a memory, a bank as a file of bare content, or items."""
Build: TypeAlias = Callable[[MemoryProvider[Any] | None], Any]
"""Makes the agent of an arm and run around its memory: see `measure_transplant`."""

_HEARD: ContextVar[list[Recall]] = ContextVar("langgraft_heard")
"""What memory recalled in the attempt under way."""


@dataclass(frozen=True, slots=True)
class Arm:
    """What came of one arm, over all tasks and runs."""

    name: str
    success: float
    """Mean outcome."""
    attempts: int
    asked: int
    """Attempts in which the agent asked memory."""
    recalled: int
    """Attempts in which memory recalled something."""
    tokens: float
    """Mean tokens recalled in an attempt, empty recalls included."""


@dataclass(frozen=True)
class TransplantTrial:
    """A transplant, and whether it helped; `print` says it in plain sentences.

    `arms` has what each was and came to.
    """

    transplant: Transplant
    """What was kept, dropped and derived anew."""
    comparison: Comparison
    """All arms against the one without memory; `random` and `placebo` are held to equivalence."""
    arms: tuple[Arm, ...]
    outcomes: tuple[Mapping[str, Any], ...]
    """As `compare` takes them: to compare against another baseline, such as `own`."""
    gained: tuple[str, ...]
    """Tasks solved in most runs with the transplant, and not without memory."""
    lost: tuple[str, ...]
    """Tasks solved in most runs without memory, and not with the transplant."""
    same_tasks: int
    """Items that were learned on the very tasks measured, and may be recalled for them."""
    repeats: bool
    """Whether every run of each arm came out the same."""

    @property
    def runs(self) -> int:
        """How often each task was attempted in each arm."""
        return len({row["run"] for row in self.outcomes})

    @property
    def verdict(self) -> Verdict | Literal["not tested"]:
        """What the transplant did; `not tested` where nothing was recalled in any task."""
        return self.verdict_of(TRANSPLANTED)

    def verdict_of(self, arm: str) -> Verdict | Literal["not tested"]:
        """Return the verdict on an arm with memory, against none."""
        recalled = next(each.recalled for each in self.arms if each.name == arm)
        return self.comparison[arm].verdict if recalled else "not tested"

    def lines(self) -> list[str]:
        """Say what was moved, what it did, and what to beware of, in plain sentences."""
        items = self.arms[0].attempts // self.runs
        solved = listing([f"{each.name} {plain(each.success)} %" for each in self.arms])
        shown = [
            f"{each.name} {each.tokens:.0f} tokens"
            f" (nothing in {each.attempts - each.recalled:,} of {each.attempts:,})"
            for each in self.arms
            if each.name != NONE
        ]
        return [
            *(f"WARNING: {each}" for each in self.warnings()),
            str(self.transplant),
            f"Solved, of {sample_of(items, self.runs, 'task')}: {solved}.",
            *map(self._sentence, self.comparison.family),
            control_findings(self.comparison),
            (
                f"From no memory to the transplant, {_tasks(self.gained, 'solved')} and"
                f" {_tasks(self.lost, 'no longer solved')}, by most of their runs."
            ),
            f"Recalled in an attempt: {listing(shown)}.",
        ]

    def _sentence(self, contrast: Contrast) -> str:
        if self.verdict_of(contrast.condition) == "not tested":
            return f"{contrast.condition} is not tested: nothing was recalled in any task."
        return sentence(contrast)

    def warnings(self) -> list[str]:
        """Say what stands in the way of a conclusion."""
        found = []
        if self.runs < FEWEST_RUNS:
            found.append(
                f"of {several(self.runs, 'run')} there is no verdict: it takes {FEWEST_RUNS}."
            )
        if self.verdict == "not tested":
            asked = any(each.asked for each in self.arms)
            why = (
                "nothing was recalled" if asked else "the agent never asked the memory it was given"
            )
            found.append(
                f"the transplant is not tested: {why} in any task, so that no difference is its doing."
            )
        if self.same_tasks:
            found.append(
                f"{several(self.same_tasks, 'item')} of the donor may be recalled for the very task"
                " they were learned on (`same_task`)."
            )
        if self.repeats and self.runs > 1:
            found.append(
                f"the {self.runs} runs of each arm are all the same: the agent repeats itself, and"
                " intervals tell of other tasks, not of other runs."
            )
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, JSON]:
        """Return all of it as JSON, without the items; what is infinite is `None`."""
        rows = [
            {name: None if _infinite(value) else value for name, value in row.items()}
            for row in self.comparison.rows()
        ]
        return {
            "transplant": self.transplant.to_json(),
            "verdict": self.verdict,
            "warnings": cast("JSON", self.warnings()),
            "arms": [
                {name: getattr(each, name) for name in Arm.__dataclass_fields__}
                for each in self.arms
            ],
            "comparison": cast("JSON", rows),
            "gained": list(self.gained),
            "lost": list(self.lost),
            "outcomes": cast("JSON", [dict(each) for each in self.outcomes]),
        }


@checked
def measure_transplant(
    donor: Donor,
    recipient: MemoryProvider[Any],
    build: Build,
    tasks: Sequence[str] | Mapping[str, Any],
    *,
    runs: int = FEWEST_RUNS,
    seed: int = 0,
    budget: Budget | None = None,
    max_concurrency: int = 1,
) -> TransplantTrial:
    """Transplant a memory into an agent, and measure whether that helps it.

    Args:
        donor: A memory, the path of a bank (bare content), or items.
        recipient: The memory of the agent that is to have them. Its class and settings are the
            architecture; what its bank holds is the arm `own`, which is left out where it holds nothing.
        build: Makes the agent around a memory, or around none (`None`); called for every arm and run.
            It returns a graph or other `Runnable`, or a function of a task, sync or async. What either
            gives back is the outcome: true or false, a number from 0 to 1, or a mapping with `success`.
        tasks: Names of tasks: a function is called with the name, a graph with it as `task_id`, as the
            agents of langgraft are. Or by name what either is given.
        runs: Attempts at each task in each arm.
        seed: Of the controls; each run draws others.
        budget: Room for recalled text in every arm; `None`: as the agent asks for.
        max_concurrency: Attempts under way at once.

    Returns:
        The trial: `print` it, or ask for its `verdict`, `comparison` and `transplant`.

    Raises:
        InputError: Something given is wrong, such as a file that is no bank, no items, or two tasks of
            one name; nothing has been run. Or an outcome is none.
        LanggraftError: A bank changed while it was evaluated.
        MissingExtraError: The extra `bench` is not installed.
        Exception: What the agent raises, with a note that names arm, run and task.
    """
    plan = _Plan(build, tasks, runs, seed, budget, max_concurrency)
    return run(plan.measured(donor, recipient), do)


@checked
async def ameasure_transplant(
    donor: Donor,
    recipient: MemoryProvider[Any],
    build: Build,
    tasks: Sequence[str] | Mapping[str, Any],
    *,
    runs: int = FEWEST_RUNS,
    seed: int = 0,
    budget: Budget | None = None,
    max_concurrency: int = 1,
) -> TransplantTrial:
    """Do as `measure_transplant` does, asynchronously."""
    plan = _Plan(build, tasks, runs, seed, budget, max_concurrency)
    return await arun(plan.measured(donor, recipient), ado)


class _Observed(Control):
    """What the agent of an arm is given: it recalls as the memory does, and files nothing.

    Args:
        inner: The memory of the arm.
        budget: Room for recalled text, whatever the agent says; `None`: as it says.
    """

    name: ClassVar[str] = "observed"

    def __init__(self, inner: MemoryProvider[Any], budget: Budget | None) -> None:
        super().__init__(inner)
        self.budget = budget
        self.outside: list[Recall] = []
        """Recalls outside of any attempt, such as while the agent is built."""

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the architecture that it wraps."""
        return self.inner.describe()

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> BankProgram[Recall]:
        recall = yield from self._real(query, context, self.budget or budget)
        _HEARD.get(self.outside).append(recall)
        return recall


@dataclass(frozen=True)
class _Plan:
    """A trial as it was asked for."""

    build: Build
    tasks: Sequence[str] | Mapping[str, Any]
    runs: int
    seed: int
    budget: Budget | None
    max_concurrency: int

    def measured(
        self, donor: Donor, recipient: MemoryProvider[Any]
    ) -> Program[Call, TransplantTrial]:
        """Transplant, attempt everything, and compare."""
        self._check()
        items = yield from _items(donor)
        fresh = copy_of(recipient)
        transplant = transplant_items(items, fresh)
        own: BankContent = yield Call(recipient.content, recipient.acontent)
        banks: dict[str, MemoryProvider[Any] | None] = {NONE: None}
        if own.items:
            banks[OWN] = copy_of(recipient, own, frozen=True)
        moved_in = copy_of(recipient, fresh.content(), frozen=True)
        banks |= dict.fromkeys((TRANSPLANTED, *CONTROLS), moved_in)
        rows: list[dict[str, Any]] = []
        for number in range(self.runs):  # arms within runs: an endpoint that drifts favors none
            for arm, bank in banks.items():
                rows += yield from self._attempted(arm, number, bank)
        return self._trial(transplant, items, recipient, rows)

    def _check(self) -> None:
        require("scipy.special", extra="bench", purpose="A comparison")
        for name in ("runs", "max_concurrency"):
            check_whole(name, getattr(self, name))
        if not self.tasks:
            msg = "there are no tasks to measure a transplant on"
            raise InputError(msg)
        seen: set[str] = set()
        for task in self.tasks:
            if not isinstance(task, str):
                msg = f"a task is named by a text, got {task!r:.80}; what it is given: {{name: input}}"
                raise InputError(msg)
            if task in seen:
                msg = f"the task {task!r:.80} is listed twice: name each once"
                raise InputError(msg)
            seen.add(task)

    def _attempted(
        self, arm: str, number: int, bank: MemoryProvider[Any] | None
    ) -> Program[Call, list[dict[str, Any]]]:
        """Attempt all tasks in one run of an arm, on a bank that stays as it is."""
        memory = (
            None if bank is None else _Observed(self._controlled(arm, number, bank), self.budget)
        )
        before = None if bank is None else bank.content().digest
        with _noted(f"in run {number} of arm {arm!r}, building the agent"):
            agent = _runnable(self.build(memory))
        attempt = _attempt(agent, arm, number, named=not isinstance(self.tasks, Mapping))
        given = (
            self.tasks if isinstance(self.tasks, Mapping) else {each: each for each in self.tasks}
        )
        inputs = [(place, task, each) for place, (task, each) in enumerate(given.items())]
        rows: list[dict[str, Any]] = []
        config: Any = {"max_concurrency": self.max_concurrency}
        size = 1 if self.max_concurrency == 1 else len(inputs)  # one by one: in the caller's thread
        for first in range(0, len(inputs), size):
            some = inputs[first : first + size]
            rows += yield Call(attempt.batch, attempt.abatch, some, config)
        if bank is not None and bank.content().digest != before:
            msg = (
                f"in run {number} of arm {arm!r} the agent changed the bank, which was to be frozen"
            )
            raise LanggraftError(msg)
        if memory is not None:
            rows[0]["heard"] += memory.outside
        return rows

    def _controlled(self, arm: str, number: int, bank: MemoryProvider[Any]) -> MemoryProvider[Any]:
        match arm:
            case "random":
                return RandomRetrieval(bank, seed=self.seed + number)
            case "placebo":
                return Placebo(bank, seed=self.seed + number)
            case _:
                return bank

    def _trial(
        self,
        transplant: Transplant,
        items: Sequence[MemoryItem],
        recipient: MemoryProvider[Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> TransplantTrial:
        outcomes = tuple({n: v for n, v in row.items() if n != "heard"} for row in rows)
        of: dict[str, dict[str, list[float]]] = {}  # arm → task → outcomes by run
        for row in outcomes:
            of.setdefault(row["condition"], {}).setdefault(row["item"], []).append(row["outcome"])
        solved = {
            arm: {task for task, found in by_task.items() if sum(found) > len(found) / 2}
            for arm, by_task in of.items()
        }
        open_to_all = recipient.settings.same_task == "allow"
        return TransplantTrial(
            transplant=transplant,
            comparison=compare(outcomes, baseline=NONE, controls=CONTROLS),
            arms=tuple(
                _arm(name, [row for row in rows if row["condition"] == name]) for name in of
            ),
            outcomes=outcomes,
            gained=tuple(t for t in self.tasks if t in solved[TRANSPLANTED] - solved[NONE]),
            lost=tuple(t for t in self.tasks if t in solved[NONE] - solved[TRANSPLANTED]),
            same_tasks=sum(open_to_all and item.task_id in of[NONE] for item in items),
            repeats=all(len({*each}) == 1 for by_task in of.values() for each in by_task.values()),
        )


def _items(donor: Donor) -> Program[Call, list[MemoryItem]]:
    """Return the donor's items.

    Raises:
        InputError: There are none, or the file is no bank.
    """
    if isinstance(donor, MemoryProvider):
        content: BankContent = yield Call(donor.content, donor.acontent)
        items = [*content.items.values()]
    elif isinstance(donor, Path | str):
        items = [*read_items(Path(donor))]
    else:
        items = [*donor]
    if strange := next((each for each in items if not isinstance(each, MemoryItem)), None):
        msg = f"`donor` holds what is no MemoryItem: {strange!r:.80}"
        raise InputError(msg)
    if not items:
        msg = "the donor holds no items: there is nothing to transplant"
        raise InputError(msg)
    return items


def _runnable(agent: Any) -> Runnable[Any, Any]:
    if isinstance(agent, Runnable):
        return agent
    if not callable(agent):
        msg = f"`build` must return a graph or a function of a task, got {agent!r:.80}"
        raise InputError(msg)
    return _Function(agent)


class _Function(RunnableLambda[Any, Any]):
    """A function of a task; it is called with a task's name, and a graph with a state."""


def _attempt(
    agent: Runnable[Any, Any], arm: str, number: int, *, named: bool
) -> Node[tuple[int, str, Any]]:
    """Make what attempts one task: from its place, name and input to a row of outcomes."""
    thread = uuid.uuid4().hex

    def begin(state: tuple[int, str, Any]) -> Program[Any, dict[str, Any]]:
        place, task, given = state
        if named and not isinstance(agent, _Function):
            # The same in every arm: some memories go by an episode's name or place.
            given = AgentInput(task_id=task, episode_id=f"{task}/{number}", episode_index=place)
        where: dict[str, Any] = {"arm": arm, "run": number, "task": task}
        config: Any = {"metadata": where, "configurable": {"thread_id": f"{thread}/{place}"}}
        heard: list[Recall] = []
        token = _HEARD.set(heard)
        try:
            with _noted(f"in run {number} of arm {arm!r}, task {task!r}"):
                # Arms that ask a cached model the very same share its reply; runs do not.
                with replicate_scope(f"run-{number}"):
                    answer = yield Call(agent.invoke, agent.ainvoke, given, config)
                outcome = _outcome(answer)
        finally:
            _HEARD.reset(token)
        return {"item": task, "run": number, "condition": arm, "outcome": outcome, "heard": heard}

    return Node.running("attempt", begin)


def _outcome(given: Any) -> float:
    value = given.get("success") if isinstance(given, Mapping) else given
    if isinstance(value, bool | int | float) and 0 <= value <= 1:
        return float(value)
    msg = (
        "the outcome of an attempt is true or false, a number from 0 to 1, or a mapping with"
        f" `success`, got {given!r:.80}"
    )
    raise InputError(msg)


@contextmanager
def _noted(where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


def _arm(name: str, rows: Sequence[Mapping[str, Any]]) -> Arm:
    heard: list[list[Recall]] = [row["heard"] for row in rows]
    return Arm(
        name=name,
        success=math.fsum(row["outcome"] for row in rows) / len(rows),
        attempts=len(rows),
        asked=sum(map(bool, heard)),
        recalled=sum(any(each) for each in heard),
        tokens=sum(recall.tokens for each in heard for recall in each) / len(rows),
    )


def _tasks(names: Sequence[str], what: str) -> str:
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    told = f" ({listing([*names[:NAMED], *more])})" if names else ""
    return f"{several(len(names), 'task')}{told} {'is' if len(names) == 1 else 'are'} {what}"


def _infinite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
