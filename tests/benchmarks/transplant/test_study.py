"""A transplant study that is played: banks, transplants, controls, resuming, and what is refused."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore
from storms import clients_closed
from transplant_log import transplant_plan
from typing_extensions import override

from langgraft._core.errors import InputError, LanggraftError, PlanError
from langgraft.benchmarks.harness import PlanLog, prepare, run_plan
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.log import start_deltas
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.harness.progress import NoProgress, ProgressEvent
from langgraft.benchmarks.harness.study import BankPlace
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.server import serve
from langgraft.benchmarks.studies import studies
from langgraft.benchmarks.transplant.domains import simulated_solver
from langgraft.benchmarks.transplant.plan import TransplantPlan
from langgraft.memory.bank import banks_under
from langgraft.nodes.problem import solve_prompt

pytestmark = pytest.mark.matrix  # whole studies

SYSTEMS = [
    {"name": "none", "provider": "none"},
    {
        "name": "lightweight",
        "provider": "lightweight",
        "source": {"every": 3},
        "target": {"every": 1},
    },
    {"name": "rag", "provider": "simple_rag", "source": {"max_items": 3}},
]
SMALL = transplant_plan(
    source={"name": "counting", "problems": "generated"},
    target={"name": "algebra", "problems": "generated"},
    systems=SYSTEMS,
    solvers=[{"name": "strong"}],
    budgets=[400],
    seeds=2,
    build_items=4,
    target_build_items=4,
    eval_items=3,
    noise_runs=1,
)


def played(plan: TransplantPlan, out: Path, **options: Any) -> PlanLog:
    """Play a plan and return its log."""
    study = studies()["transplant"]
    prepared = prepare(study, plan)
    asyncio.run(run_plan(prepared, out, model_for=study.simulated_model, **options))
    return PlanLog(out)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Play the small plan once."""
    return played(SMALL, tmp_path_factory.mktemp("study") / "out")


def of(log: PlanLog, **factors: Any) -> list[Mapping[str, Any]]:
    """Return the results of all runs with these factors."""
    return [
        result
        for run in log.runs
        if factors.items() <= run.factors.items()
        for result in log.results(run.name)
    ]


def test_results_when_played_carry_one_template_and_no_answer_of_others(log: PlanLog) -> None:
    """The digest stands with every item; the right answer is in no prompt, lesson or item."""
    results = of(log)
    assert {each["template"] for each in results} == {solve_prompt().sha256}
    assert len(results) == sum(run.length for run in log.runs)
    assert {each["reason"] for each in results} <= {"goal reached", "wrong answer"}


def test_prompts_when_nothing_is_recalled_are_those_without_memory(log: PlanLog) -> None:
    """NM, write-only and recall-off are asked the same, byte for byte."""
    without = {each["problem"]: each["prompt"] for each in of(log, condition="NM")}
    for control in ("write_only", "frozen"):
        arm = of(log, control=control)
        assert arm
        assert all(without[each["problem"]] == each["prompt"] for each in arm)
    told = [each for each in of(log, condition="IN_DOM", system="rag") if each["recalled"]]
    assert told
    assert all(without[each["problem"]] != each["prompt"] for each in told)


def test_framing_when_items_would_come_shows_the_frame_alone(log: PlanLog) -> None:
    """Another prompt, no items, and the same one for every problem but its text."""
    framed = of(log, control="framing", condition="IN_DOM")
    real = of(log, control="", condition="IN_DOM", system="lightweight")
    assert {each["recalled"] for each in framed} == {0}
    assert [each["tokens"] > 0 for each in framed] == [each["recalled"] > 0 for each in real]


def test_content_when_read_by_two_architectures_is_the_same_and_says_what_was_dropped(
    log: PlanLog,
) -> None:
    """C_ONLY and FULL read one bank; the smaller capacity drops the oldest, with its reason."""
    imported: dict[tuple[Any, ...], Any] = {
        (run.factors["system"], run.factors["condition"], run.factors["seed"]): log.results(
            run.name
        )[0]["imported"]
        for run in log.runs
        if run.source is not None and not run.factors["control"]
    }
    for system in ("lightweight", "rag"):
        for seed in (0, 1):
            for one, other in (("C_ONLY", "FULL"), ("IN_DOM", "CROSS")):
                first, second = imported[system, one, seed], imported[system, other, seed]
                assert first["digest"] == second["digest"]
    full, math = imported["rag", "CROSS", 0], imported["rag", "IN_DOM", 0]
    assert (full["exported"], full["kept"], len(full["dropped"])) == (4, 3, 1)
    assert full["dropped"][0][1] == "over the capacity of 3"
    assert (math["kept"], math["dropped"]) == (4, [])


class Unasked(SimulatedChatModel):
    """A model that must not be asked."""

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        raise AssertionError


def test_content_when_it_is_imported_asks_no_model(log: PlanLog) -> None:
    """A run that starts from another's bank has its own before the first reply."""
    study = studies()["transplant"]
    opened = 0
    for run in log.graph:
        if run.spec.source is not None and not run.spec.factors["control"]:
            place = BankPlace(InMemoryStore(), ("imported", run.id))
            deltas = start_deltas(log.path, log.graph, run)
            study.open(SMALL, run.spec, deltas, Unasked(model_name="unasked"), place)
            opened += bool(place.store.search(banks_under(("imported", run.id))))
    assert opened == 16  # two systems, four conditions, two seeds


def test_banks_when_evaluated_statically_stay_and_dynamically_grow(log: PlanLog) -> None:
    """Static runs log no delta; dynamic ones learn from the target's problems, as an oracle says."""
    for run in log.runs:
        changed = [delta for deltas in log.deltas(run.name) for delta in deltas if delta]
        if run.factors["kind"] == "eval" and run.factors["mode"] == "static":
            assert not changed
        elif run.factors["system"] != "none" and run.factors["architecture"] != "none":
            assert len(changed) == run.length


def test_plan_when_expanded_has_the_runs_of_the_paper() -> None:
    """5 systems x 7 conditions x 3 seeds x 2 budgets, and a bank for each system, domain and draw."""
    plan = transplant_plan(
        systems=[
            {"name": name, "provider": name}
            for name in ("none", "simple_rag", "lightweight", "agent_kb", "expel")
        ],
        solvers=[{"name": "strong"}],
        controlled=[],
        noise_runs=0,
    )
    runs = prepare(studies()["transplant"], plan).graph.runs
    kinds = [run.spec.factors["kind"] for run in runs]
    assert (kinds.count("eval"), kinds.count("build")) == (210, 24)
    assert [each.name for each in plan.conditions()] == [
        *("NM", "E_MATH", "E_CODE", "C_ONLY", "FULL", "IN_DOM", "CROSS")
    ]


@pytest.mark.kill
def test_items_when_runs_are_cut_off_and_resumed_are_the_same_bytes(tmp_path: Path) -> None:
    """A dynamic run with content goes on from what its first item brought over."""
    plan = SMALL.model_copy(
        update={"dynamic_content": True, "systems": SMALL.systems[:2], "seeds": 1, "controls": ()}
    )
    whole = played(plan, tmp_path / "whole")
    study = studies()["transplant"]
    prepared = prepare(study, plan)

    async def stopped(after: int) -> None:
        stop = asyncio.Event()

        class Stopper(NoProgress):
            def report(self, event: ProgressEvent) -> None:
                if event.kind == "item":
                    committed.append(event.run)
                    if len(committed) >= after:
                        stop.set()

        await run_plan(
            prepared,
            tmp_path / "parts",
            model_for=study.simulated_model,
            concurrency=1,
            stop=stop,
            progress=Stopper(),
        )

    committed: list[str] = []
    for after in (9, 30, 10_000):
        asyncio.run(stopped(after))
    again = PlanLog(tmp_path / "parts")
    for run in whole.runs:
        assert whole.results(run.name) == again.results(run.name), run.name
        assert whole.deltas(run.name) == again.deltas(run.name), run.name
    where = {"system": "lightweight", "condition": "C_ONLY+dynamic"}
    moved = [run for run in whole.runs if where.items() <= run.factors.items()]
    first = [whole.deltas(run.name)[0] for run in moved]
    assert first
    assert all(len(deltas) == 2 for deltas in first)  # what came over, and the first episode


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"target": {"name": "code", "problems": "generated"}}, "both called 'code'"),
        ({"controlled": ["none"]}, "'none' is no system with memory"),
        ({"budgets": [400, 400]}, "budgets must be distinct"),
        ({"systems": [{"name": "a", "provider": "nobody"}]}, "unknown provider 'nobody'"),
        ({"systems": [{"name": "a", "provider": "expel", "source": {"tpo_k": 1}}]}, "tpo_k"),
    ],
)
def test_plan_when_it_asks_for_what_cannot_be_is_refused(fields: dict[str, Any], said: str) -> None:
    """One line, before anything is read."""
    with pytest.raises(ValueError, match=said):
        transplant_plan(**fields)


@pytest.mark.parametrize(
    ("fields", "error", "said"),
    [
        ({"source": {"name": "code", "problems": "sudoku"}}, PlanError, "'sudoku' are not one of"),
        (
            {"source": {"name": "code", "problems": "math", "file": "/no/where"}},
            PlanError,
            "there is no",
        ),
        (
            {"eval_items": 5000},
            InputError,
            "evaluation: too few problems to draw from: 600 of 5000",
        ),
        ({"eval_levels": {"Level 9": 1}}, InputError, "0 of 100 in stratum 'Level 9'"),
    ],
)
def test_plan_when_its_problems_are_not_there_is_refused_before_any_run(
    fields: dict[str, Any], error: type[LanggraftError], said: str
) -> None:
    """One line that says which domain, and what is missing."""
    with pytest.raises(error, match=said):
        prepare(studies()["transplant"], transplant_plan(**fields))


def test_plan_when_problems_have_a_bad_line_names_it(tmp_path: Path) -> None:
    """The file and the line, before any run."""
    rows = [{"problem": "p", "level": "Level 3", "type": "Algebra", "solution": r"\boxed{1}"}]
    path = tmp_path / "math.jsonl"
    path.write_text("\n".join(map(json.dumps, [*rows, {**rows[0], "level": "hard"}])))
    plan = transplant_plan(target={"name": "math", "problems": "math", "file": str(path)})
    with pytest.raises(InputError, match=r"math\.jsonl, line 2: unknown level 'hard'"):
        prepare(studies()["transplant"], plan)


async def test_items_when_the_solver_is_behind_http_are_those_of_the_solver_itself(
    tmp_path: Path, log: PlanLog
) -> None:
    """Through ChatOpenAI, with a cache: equal prompts are paid once, and only usage differs."""
    study = studies()["transplant"]
    inner = simulated_solver(SMALL, SMALL.solvers[0], SMALL.seed)
    async with clients_closed(), serve(inner) as server:
        served: dict[str, Any] = {"model": "openai:simulated", "base_url": server.base_url}
        plan = SMALL.model_copy(update={**served, "seeds": 1, "systems": SMALL.systems[:2]})
        prepared = prepare(study, plan)
        with ResponseCache(tmp_path / "cache.sqlite") as kept:

            def model_for(_: object, __: object) -> MeteredChatModel:
                return make_model(
                    "openai:simulated",
                    base_url=server.base_url,
                    temperature=0,
                    api_key="none",
                    responses=kept,
                )

            # One at a time: two that ask the same at once are both answered, and both pay.
            outcome = await run_plan(
                prepared, tmp_path / "http", model_for=model_for, concurrency=1
            )
    assert outcome.complete
    again = PlanLog(tmp_path / "http")
    for each in again.runs:
        for ours, theirs in zip(log.results(each.name), again.results(each.name), strict=True):
            assert {**ours, "usage": None} == {**theirs, "usage": None}
    # Of equal prompts only those of the noise arm are paid again.
    asked = {call.digest for call in server.calls}
    noise = len(of(again, condition="NOISE"))
    assert len(server.calls) == len(asked) + noise < 2 * len(of(again))
