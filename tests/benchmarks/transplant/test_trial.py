"""A transplant between two agents that is measured: arms, frozen banks, verdicts, and what is refused."""

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item

from langgraft import Budget
from langgraft._core.canonical import seeded_fraction
from langgraft._core.errors import InputError, LanggraftError
from langgraft.benchmarks.comparison import compare
from langgraft.benchmarks.simulated.solver import KnownProblem, SimulatedSolver, Strengths
from langgraft.benchmarks.transplant import (
    TransplantTrial,
    ameasure_transplant,
    measure_transplant,
)
from langgraft.environments.problems.domain import AnswerDomain
from langgraft.environments.problems.generated import generate
from langgraft.graphs.solver import build_solver
from langgraft.memory import MemoryItem, MemoryProvider, Placebo, write_bundle, write_items
from langgraft.memory.controls import FILLER
from langgraft.memory.model import BankContent
from langgraft.memory.providers import SimpleRAG, SimpleRAGSettings

pytestmark = pytest.mark.matrix  # whole trials

Memory = MemoryProvider[Any]
Attempt = Callable[..., Any]

PROBLEMS = [p for p in generate("algebra", each=3) if p.kind in ("sums", "remainders")]
IDS = [each.id for each in PROBLEMS]
KNOWN = tuple(
    KnownProblem(
        text=each.text,
        kind=each.kind,
        level=each.level,
        right=each.answer,
        wrong=each.answer + "+1",
    )
    for each in PROBLEMS
)
KINDS = {each.kind: each.text for each in PROBLEMS}
ADVICE = [
    make_item(
        kind,
        text=f"When a problem is about {kind}: check the last step.",
        key=text,
        order_index=number,
    )
    for number, (kind, text) in enumerate(KINDS.items())
]
ASIDES = [
    item.model_copy(update={"text": f"The bus of line {number} leaves at nine."})
    for number, item in enumerate(ADVICE)
]
TASKS = [f"open door {number}" for number in range(12)]
DOORS = [
    make_item(f"d{n}", text=f"door {n} has a key", key=f"open door {n}", order_index=n)
    for n in range(12)
]


def rag(*items: MemoryItem, **settings: Any) -> SimpleRAG:
    """Return a memory whose bank holds these items."""
    memory = SimpleRAG(InMemoryStore(), settings=SimpleRAGSettings(**{"top_k": 1, **settings}))
    memory.restore(BankContent({item.id: item for item in items}))
    return memory


def solver(domain: AnswerDomain, *, arms: int) -> Callable[[Memory | None], Any]:
    """Return what builds a simulated solver; each run has a seed of its own, the same in all arms."""
    built = itertools.count()

    def build(memory: Memory | None) -> Any:
        model = SimulatedSolver(
            known=KNOWN,
            strengths=Strengths(otherwise=0.3, gain=0.6),
            seed=next(built) // arms,
            temperature=0,
        )
        return build_solver(model, domain=domain, memory=memory, learn=False)

    return build


class Agent:
    """An agent that succeeds where the block it was given names the door of its task."""

    def __init__(self, chance: float = 0.0) -> None:
        self.chance = chance
        self.blocks: dict[str, list[str]] = {}

    def __call__(self, memory: Memory | None) -> Attempt:
        """Build the function of a task."""

        def attempt(task: str, config: RunnableConfig) -> bool:
            found = "" if memory is None else memory.provide(task, asking(task_id=task)).text
            where = config["metadata"]
            self.blocks.setdefault(where["arm"], []).append(found)
            by_chance = seeded_fraction(task, where["run"]) < self.chance
            return by_chance or f"{task.removeprefix('open ')} has a key" in found

        return attempt


@pytest.fixture(scope="module")
def domain() -> Iterator[AnswerDomain]:
    """Yield the problems with their grader."""
    made = AnswerDomain("algebra", PROBLEMS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def helping(domain: AnswerDomain) -> TransplantTrial:
    """Measure once what a solver gains by advice for every kind of its problems."""
    donor, recipient = rag(*ADVICE), rag(*ASIDES[:2])
    before = donor.content().digest, recipient.content().digest
    trial = measure_transplant(donor, recipient, solver(domain, arms=5), IDS, seed=1)
    assert (donor.content().digest, recipient.content().digest) == before
    return trial


# What it finds ------------------------------------------------------------------------------


def test_donor_when_its_advice_fits_is_found_to_help(helping: TransplantTrial) -> None:
    """The recipient's own asides and the placebo of the advice are not."""
    assert helping.verdict == "helped"
    assert helping.comparison["own"].verdict == "no detectable difference"
    assert [arm.name for arm in helping.arms] == [
        "none",
        "own",
        "transplanted",
        "random",
        "placebo",
    ]
    estimate = helping.comparison["transplanted"].estimate
    assert estimate is not None
    assert estimate.value > 0.3
    assert len(helping.gained) > len(PROBLEMS) / 4
    assert helping.lost == ()
    assert "transplanted helped: +" in str(helping)
    assert "WARNING" not in str(helping)


def test_placebo_when_an_agent_goes_by_content_is_equivalent_to_no_memory() -> None:
    """It is shown to be, as a control is held to; the transplant it imitates helps."""
    tasks = [f"open door {number}" for number in range(60)]
    doors = [make_item(task, text=f"{task[5:]} has a key", key=task) for task in tasks]
    numbered = [door.model_copy(update={"order_index": n}) for n, door in enumerate(doors)]
    trial = measure_transplant(numbered, rag(), Agent(), tasks)
    assert trial.verdict == "helped"
    assert trial.comparison.holds(trial.comparison["placebo"])
    assert "equivalent to no memory within ±10 pp" in str(trial)
    assert trial.gained == tuple(tasks)


def test_outcomes_when_compared_by_hand_give_the_same(helping: TransplantTrial) -> None:
    """They are what `compare` takes, paired by task and run, of any baseline."""
    again = compare(helping.outcomes, baseline="none", controls=["random", "placebo"])
    assert again == helping.comparison
    assert compare(helping.outcomes, baseline="own")["transplanted"].verdict == "helped"
    arms: dict[str, dict[tuple[str, int], float]] = {}
    for row in helping.outcomes:
        arms.setdefault(row["condition"], {})[row["item"], row["run"]] = row["outcome"]
    assert [len(pairs) for pairs in arms.values()] == [3 * len(PROBLEMS)] * 5
    assert arms["placebo"] == arms["own"] == arms["none"] != arms["transplanted"]


def test_donor_when_it_says_nothing_to_the_point_is_not_found_to_help(
    domain: AnswerDomain,
) -> None:
    """It is recalled all the same."""
    trial = measure_transplant(ASIDES, rag(), solver(domain, arms=4), IDS)
    assert trial.verdict == "no detectable difference"
    assert [arm.name for arm in trial.arms] == ["none", "transplanted", "random", "placebo"]
    assert trial.arms[1].recalled == trial.arms[1].attempts
    assert trial.arms[1].tokens > 0


def test_donor_when_nothing_is_recalled_is_not_tested() -> None:
    """Whatever the outcomes are, and it is said first; an agent that never asks is told apart."""
    strange = [make_item("s", text="submarines", key="submarines")]
    trial = measure_transplant(strange, rag(), Agent(0.5), TASKS)
    assert trial.verdict == "not tested"
    assert trial.lines()[0].startswith(
        "WARNING: the transplant is not tested: nothing was recalled"
    )
    assert "transplanted is not tested" in str(trial)
    deaf = measure_transplant(DOORS, rag(), lambda _: lambda _: True, TASKS)
    assert deaf.verdict == "not tested"
    assert "the agent never asked the memory it was given" in deaf.lines()[0]


def test_runs_when_they_are_few_or_all_the_same_are_warned_of() -> None:
    """Two give no verdict; three that repeat each other are one observation."""
    few = measure_transplant(DOORS, rag(), Agent(0.3), TASKS, runs=2)
    assert few.verdict == "too few runs"
    assert few.lines()[0] == "WARNING: of 2 runs there is no verdict: it takes 3."
    same = measure_transplant(DOORS, rag(), lambda _: lambda _: True, TASKS)
    assert any("the agent repeats itself" in line for line in same.warnings())
    assert not any("repeats" in line for line in few.warnings())


def test_items_when_learned_on_the_tasks_measured_are_warned_of() -> None:
    """Unless the recipient's settings keep them from their own task."""
    known = [item.model_copy(update={"task_id": TASKS[0]}) for item in DOORS[:2]]
    trial = measure_transplant([*known, *DOORS[2:]], rag(), Agent(0.3), TASKS)
    assert any(line.startswith("2 items of the donor may be recalled") for line in trial.warnings())
    apart = measure_transplant(known, rag(same_task="exclude"), Agent(0.3), TASKS)
    assert not any("of the donor may be recalled" in line for line in apart.warnings())


def test_transplant_when_items_have_no_place_says_which_and_why() -> None:
    """The recipient's own upkeep decides, and the trial goes by what it kept."""
    trial = measure_transplant(DOORS, rag(max_items=4), Agent(), TASKS)
    assert (trial.transplant.exported, trial.transplant.kept) == (12, 4)
    assert {reason for _, reason in trial.transplant.dropped} == {"over the capacity of 4"}
    assert str(trial.transplant) in trial.lines()
    assert "4 were kept and 8 dropped (over the capacity of 4: 8)" in str(trial)
    assert trial.gained == tuple(TASKS[8:])


def test_trial_when_written_as_json_has_no_number_that_json_has_not() -> None:
    """Where no difference could be detected, that one is infinite."""
    trial = measure_transplant(DOORS[:1], rag(), Agent(), TASKS[:1])
    told = json.loads(json.dumps(trial.to_json(), allow_nan=False))
    assert told["verdict"] == trial.verdict
    assert told["transplant"]["kept"] == 1
    assert [arm["name"] for arm in told["arms"]] == ["none", "transplanted", "random", "placebo"]
    assert len(told["outcomes"]) == 12


# What the arms are ----------------------------------------------------------------------------


def test_arms_when_recalled_from_are_what_they_say() -> None:
    """None, the recipient's own, the donor's, others of the donor's, filler as long."""
    agent = Agent()
    own = make_item("own", text="door rules of old", key="open door")
    measure_transplant(DOORS, rag(own), agent, TASKS)
    blocks = agent.blocks
    assert {*blocks["none"]} == {""}
    assert all("door rules of old" in block for block in blocks["own"])
    assert all(
        f"door {n % 12} has a key" in block for n, block in enumerate(blocks["transplanted"])
    )
    assert all("has a key" in block for block in blocks["random"])
    assert sum(one != other for one, other in _pairs(blocks, "random")) > 24
    assert blocks["random"][:12] != blocks["random"][12:24]  # each run draws others
    assert all(any(words[:9] in block for words in FILLER) for block in blocks["placebo"])
    assert all(len(one) == len(other) for one, other in _pairs(blocks, "placebo"))


def _pairs(blocks: Mapping[str, list[str]], arm: str) -> list[tuple[str, str]]:
    return list(zip(blocks[arm], blocks["transplanted"], strict=True))


def test_arms_when_an_agent_files_learn_nothing() -> None:
    """What an agent that learns files passes by: a later task is asked on the same bank."""
    recalled: list[str] = []

    def build(memory: Memory | None) -> Attempt:
        def attempt(task: str) -> bool:
            if memory is not None:
                recalled.append(memory.provide(task, asking(task_id=task)).text)
                assert not memory.file(make_episode(task, task=task))
                assert not memory.manage()
            return True

        return attempt

    donor, recipient = rag(*DOORS), rag()
    measure_transplant(donor, recipient, build, TASKS[:2])
    assert recipient.content() == BankContent()
    assert not any("toggle" in text for text in recalled)


def test_bank_when_an_agent_gets_around_the_freeze_is_an_error() -> None:
    """Written past the memory; it is told which arm and run."""

    def build(memory: Memory | None) -> Attempt:
        def attempt(task: str) -> bool:
            store: Any = memory and memory.inner.store  # type: ignore[attr-defined]
            while hasattr(store, "store"):
                store = store.store
            if memory is not None:
                store.delete(memory.namespace, store.search(memory.namespace)[0].key)
            return True

        return attempt

    with pytest.raises(LanggraftError, match="in run 0 of arm 'transplanted' the agent changed"):
        measure_transplant(DOORS, rag(), build, TASKS)


def test_memory_when_asked_while_an_agent_is_built_counts_as_asked() -> None:
    """An agent may ask once for all its tasks: that is a test of what it was told."""

    def build(memory: Memory | None) -> Attempt:
        found = "" if memory is None else memory.provide(TASKS[0], asking()).text
        return lambda task: f"{task[5:]} has a key" in found

    trial = measure_transplant(DOORS, rag(), build, TASKS)
    assert trial.verdict != "not tested"
    assert trial.gained == (TASKS[0],)


def test_budget_when_given_bounds_every_arm() -> None:
    """Whatever the agent itself asks for."""
    agent = Agent()
    trial = measure_transplant(DOORS, rag(), agent, TASKS, budget=Budget(tokens=0))
    assert {*agent.blocks["transplanted"]} == {""}
    assert trial.verdict == "not tested"


# Agents of every shape ----------------------------------------------------------------------


async def test_agent_when_async_or_concurrent_comes_to_the_same() -> None:
    """Sync, async and several attempts at once; recalls are told apart by attempt."""
    agent = Agent(0.3)
    trial = measure_transplant(DOORS, rag(), agent, TASKS)

    def abuild(memory: Memory | None) -> Attempt:
        async def attempt(task: str, config: RunnableConfig) -> bool:
            await asyncio.sleep(0)
            if memory is not None:
                assert (await memory.aprovide(task, asking(task_id=task))).items
            return bool(agent(memory)(task, config))

        return attempt

    others = [
        await ameasure_transplant(DOORS, rag(), agent, TASKS),
        await ameasure_transplant(DOORS, rag(), abuild, TASKS, max_concurrency=5),
        await asyncio.to_thread(measure_transplant, DOORS, rag(), agent, TASKS, max_concurrency=3),
    ]
    for other in others:
        assert other.outcomes == trial.outcomes
        assert other.comparison == trial.comparison
        assert [arm.recalled for arm in other.arms] == [0, 36, 36, 36]


def test_agent_when_it_is_any_runnable_is_given_its_task_as_it_is() -> None:
    """A mapping says what a name stands for; outcomes may be parts of one."""
    given: list[Any] = []

    def answer(state: Any) -> dict[str, float]:
        given.append(state)
        return {"success": 0.5}

    def build(memory: Memory | None) -> Any:
        return RunnableLambda(answer)

    trial = measure_transplant(DOORS, rag(), build, {"a": {"messages": []}, "b": {"messages": [1]}})
    assert given[:2] == [{"messages": []}, {"messages": [1]}]
    assert {row["outcome"] for row in trial.outcomes} == {0.5}
    assert trial.gained == trial.lost == ()


def test_agent_when_it_raises_is_no_wrong_answer() -> None:
    """The error is the agent's own, with a note of where."""

    def build(memory: Memory | None) -> Attempt:
        def attempt(task: str) -> bool:
            if memory is not None and task == TASKS[3]:
                msg = "no such door"
                raise KeyError(msg)
            return True

        return attempt

    for workers in (1, 4):
        with pytest.raises(KeyError) as caught:
            measure_transplant(DOORS, rag(), build, TASKS, max_concurrency=workers)
        assert "in run 0 of arm 'transplanted', task 'open door 3'" in caught.value.__notes__


def test_task_when_the_domain_has_none_of_it_is_named_before_a_model_is_asked(
    domain: AnswerDomain,
) -> None:
    """A solver refuses it in the first arm."""
    with pytest.raises(InputError, match="has no problem 'algebra/none'") as caught:
        measure_transplant(ADVICE, rag(), solver(domain, arms=4), ["algebra/none"])
    assert "in run 0 of arm 'none', task 'algebra/none'" in caught.value.__notes__


@pytest.mark.parametrize("outcome", [None, "yes", 2, -0.1, float("nan"), {"score": 1}])
def test_outcome_when_it_is_none_is_refused_at_once(outcome: Any) -> None:
    """Not after everything has been paid for."""
    with pytest.raises(InputError, match="the outcome of an attempt is") as caught:
        measure_transplant(DOORS, rag(), lambda _: lambda _: outcome, TASKS)
    assert "in run 0 of arm 'none', task 'open door 0'" in caught.value.__notes__


# What is refused before anything is run -------------------------------------------------------


class Demanding(SimpleRAG):
    """A memory that is made of more than a store."""

    def __init__(self, store: Any, client: str) -> None:
        super().__init__(store)
        self.client = client


def _not_a_bank(folder: Path) -> Path:
    (folder / "notes.txt").write_text("remember the milk\n")
    return folder / "notes.txt"


def _bundle(folder: Path) -> Path:
    write_bundle(folder / "bank.bundle", BankContent({item.id: item for item in DOORS}))
    return folder / "bank.bundle"


def _empty(folder: Path) -> Path:
    write_items(folder / "empty.jsonl", [])
    return folder / "empty.jsonl"


GOLD = make_item("gold", metadata={"feedback": "oracle"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"donor": rag()}, "the donor holds no items"),
        ({"donor": []}, "the donor holds no items"),
        ({"donor": _empty}, "the donor holds no items"),
        ({"donor": _not_a_bank}, r"notes\.txt, row 1"),
        ({"donor": _bundle}, "this is a bundle"),
        ({"donor": Path("/no/where.jsonl")}, r"/no/where\.jsonl"),
        ({"donor": ["a note"]}, "`donor` holds what is no MemoryItem: 'a note'"),
        ({"donor": {"a": 1}}, "`donor` of measure_transplant must be"),
        ({"donor": [GOLD]}, "gold answers"),
        ({"recipient": SimpleRAG}, "got the class SimpleRAG"),
        ({"recipient": Placebo(rag())}, "Placebo is a control: give the memory that it wraps"),
        ({"recipient": Demanding(InMemoryStore(), "c")}, "Demanding cannot be copied"),
        ({"tasks": []}, "there are no tasks"),
        ({"tasks": {}}, "there are no tasks"),
        ({"tasks": "open door 1"}, "`tasks` of measure_transplant must be"),
        ({"tasks": ["a", "b", "a"]}, "the task 'a' is listed twice"),
        ({"tasks": ["a", ["b"]]}, r"a task is named by a text, got \['b'\]"),
        ({"runs": 0}, "runs must be a whole number of at least 1"),
        ({"max_concurrency": 0}, "max_concurrency must be a whole number of at least 1"),
        ({"run": 3}, "takes no `run`: did you mean 'runs'"),
    ],
)
def test_trial_when_it_cannot_be_is_refused_before_anything_is_run(
    given: dict[str, Any], said: str, tmp_path: Path
) -> None:
    """One clear error, and no agent is built."""
    built: list[Any] = []
    fields = {"donor": DOORS, "recipient": rag(), "build": built.append, "tasks": TASKS, **given}
    if callable(fields["donor"]):
        fields["donor"] = fields["donor"](tmp_path)
    with pytest.raises(InputError, match=said):
        measure_transplant(**fields)
    assert built == []


def test_agent_when_none_is_built_is_refused() -> None:
    """A builder that forgets to return its graph."""
    with pytest.raises(InputError, match="`build` must return a graph or a function of a task"):
        measure_transplant(DOORS, rag(), lambda _: None, TASKS)


def test_donor_when_it_is_a_file_gives_the_same_as_its_memory(tmp_path: Path) -> None:
    """Content travels as canonical JSONL, whose digest is that of the items."""
    rag(*DOORS).export_items(tmp_path / "doors.jsonl")
    read = measure_transplant(str(tmp_path / "doors.jsonl"), rag(), Agent(), TASKS)
    held = measure_transplant(rag(*DOORS), rag(), Agent(), TASKS)
    assert read.transplant.digest == held.transplant.digest
    assert read.outcomes == held.outcomes
