"""`langgraft solve`: one competition, from its data to a submission."""

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langgraft._core.arguments import validation_as
from langgraft._core.errors import (
    BudgetExceededError,
    CompetitionError,
    InfrastructureError,
    SettingsError,
)
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.progress import (
    EXIT_COMPLETE,
    EXIT_INCOMPLETE,
    EXIT_INTERRUPTED,
)
from langgraft.benchmarks.harness.schedule import stop_on_signals
from langgraft.benchmarks.harness.study import SIMULATED
from langgraft.benchmarks.mle.agents.settings import SECTIONS, as_section
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.runs import runs_of
from langgraft.benchmarks.mle.session import Models, models_of
from langgraft.benchmarks.mle.solution import RESPONSES, WORK, Order, Solution, check, solve
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.cli.printing import complain
from langgraft.cli.running import real_model
from langgraft.cli.solve_progress import Progress
from langgraft.environments.competitions.layout import CONFIG, is_competition_id
from langgraft.memory.stores.named import store_kind

NO_MEMORY: Final = ("off", "none")


@dataclass(frozen=True)
class Asked:
    """What a user typed."""

    competition: str
    fields: Mapping[str, Any]
    """Of the plan, where they were given."""
    agent: str
    settings: Mapping[str, Any]
    """Of the agent's section, where they were given."""
    seed: int
    memory: str
    out: Path | None


def order_of(asked: Asked) -> Order:
    """Turn what a user typed into an order; nothing is written.

    Raises:
        SettingsError: A value is not possible.
        CompetitionError: There is no such competition.
    """
    fields = {key: value for key, value in asked.fields.items() if value is not None}
    name, folders = asked.competition, list(fields.pop("folders", ()))
    if not is_competition_id(name) or (Path(name) / CONFIG).is_file():
        own = _own_folder(name)
        folders.insert(0, own.parent)
        name = own.name
    fixed = {"competitions": [name], "seeds": [asked.seed], "build_seeds": [], "memory": ["off"]}
    fixed["agents"] = [_section(asked)]
    with validation_as(SettingsError):
        plan = MlePlan.model_validate({**fields, **fixed, "folders": folders})
    folder = f"solve-{name}" if asked.agent == "tree" else f"solve-{name}-{asked.agent}"
    order = Order(plan, asked.out or Path("runs") / folder, _store(asked.memory))
    order.competition()
    return order


def _section(asked: Asked) -> dict[str, Any]:
    """Return the agent's section of the plan.

    Raises:
        SettingsError: There is no such agent, or it has no such option.
    """
    try:
        section: dict[str, Any] = as_section(asked.agent)
    except ValueError as error:
        raise SettingsError(f"--agent: {error}") from error
    given = {name: value for name, value in asked.settings.items() if value is not None}
    if foreign := [name for name in given if name not in SECTIONS[asked.agent].model_fields]:
        having = [name for name, each in SECTIONS.items() if foreign[0] in each.model_fields]
        msg = f"--{foreign[0]} is not for --agent {asked.agent}, but for {' and '.join(having)}"
        raise SettingsError(msg)
    return {**section, **given}


def _own_folder(name: str) -> Path:
    folder = Path(name).resolve()
    if not (folder / CONFIG).is_file():
        msg = f"{name!r:.80} is neither a competition's id nor a folder that holds {CONFIG}"
        raise CompetitionError(msg)
    return folder


def _store(memory: str) -> str | None:
    """Return the store that a memory's name stands for; a folder is a Chroma database."""
    if memory in NO_MEMORY:
        return None
    if not memory or Path(memory).is_file():
        msg = f"--memory {memory!r:.80} is no folder; `off` is without memory"
        raise SettingsError(msg)
    spec = memory if memory == "memory" or ":" in memory else f"chroma:{Path(memory).resolve()}"
    store_kind(spec)
    return spec


def run(asked: Asked, *, as_json: bool) -> int:
    """Solve a competition, telling of each program or step; return the exit code."""
    order = order_of(asked)
    competition = order.competition()
    with ExitStack() as opened:
        make_models(order, None)  # a real one is checked before anything is written
        check(order)
        models = make_models(order, opened)
        progress = Progress(order, competition, as_json=as_json)
        progress.begin()
        try:
            solution = asyncio.run(_solved(order, models, progress))
        except (InfrastructureError, BudgetExceededError) as error:
            complain(f"langgraft: {' '.join(str(error).split())}")
            complain(_AGAIN)
            return EXIT_INCOMPLETE
    if solution is None:
        complain(_AGAIN)
        return EXIT_INTERRUPTED
    progress.end(solution)
    return EXIT_COMPLETE if solution.submitted else EXIT_INCOMPLETE


_AGAIN: Final = "not finished; run the same command again to go on"


async def _solved(order: Order, models: Models, progress: "Progress") -> Solution | None:
    """Solve; `None` where somebody asked to stop."""
    stop = asyncio.Event()
    with stop_on_signals(stop):
        solving = asyncio.create_task(solve(order, models, progress.tell))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({solving, stopping}, return_when=asyncio.FIRST_COMPLETED)
            return solving.result() if solving.done() else None
        finally:
            for task in (solving, stopping):
                task.cancel()
            await asyncio.gather(solving, stopping, return_exceptions=True)


def make_models(order: Order, opened: ExitStack | None) -> Models:
    """Make the models; with `opened`, replies of real ones are kept in the folder.

    Raises:
        InputError: A model cannot be set up.
    """
    plan = order.plan
    if plan.model == SIMULATED:
        (run,) = runs_of(plan)
        return MleStudy().simulated_model(plan, run), None
    responses = None
    if opened is not None:
        responses = opened.enter_context(ResponseCache(order.out / WORK / RESPONSES))
    return models_of(plan, order.settings, real_model(plan, responses))
