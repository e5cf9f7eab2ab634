"""The command `serve-simulated`: simulated models behind an OpenAI-compatible server."""

import asyncio
import os
import signal
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel

from langgraft._core.errors import InputError
from langgraft.benchmarks.harness.models import MeteredChatModel
from langgraft.benchmarks.harness.plans import PreparedPlan, look_here
from langgraft.benchmarks.simulated.alfworld import SimulatedALFWorld
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.benchmarks.simulated.chat import SimulatedChatModel
from langgraft.benchmarks.simulated.clerk import SimulatedClerk
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.benchmarks.simulated.engineer import SimulatedEngineer
from langgraft.benchmarks.simulated.faults import FaultScript, read_faults
from langgraft.benchmarks.simulated.server import serve
from langgraft.benchmarks.simulated.sql_writer import SimulatedSQLWriter
from langgraft.cli.printing import complain, say, write_json


def learners(prepared: PreparedPlan[Any] | None) -> Mapping[str, BaseChatModel]:
    """Return the models to serve, by name.

    Args:
        prepared: A plan; its simulated models are served, one of those that differ in nothing but
            their seed: that of the plan's first run. Without a plan, all that need none, in the
            order in which they are asked whether they understand.

    Raises:
        InputError: The plan has no simulated model.
    """
    if prepared is None:
        return _named(
            [
                SimulatedBabyAI(),
                SimulatedALFWorld(),
                SimulatedDataScientist(),
                SimulatedEngineer(),
                SimulatedSQLWriter(),
                SimulatedClerk(),  # last: it looks records up, whatever it is told
            ]
        )
    look_here()
    return _named(_of_runs(prepared))


def _of_runs(prepared: PreparedPlan[Any]) -> Iterator[BaseChatModel]:
    seen = set[str]()
    for run in prepared.graph:
        model = prepared.study.simulated_model(prepared.plan, run.spec)
        assert isinstance(model, MeteredChatModel)
        told = str({**model.identity, "seed": None, "kind": type(model.inner).__name__})
        if told not in seen:
            seen.add(told)
            yield model.inner


def _named(models: Iterable[BaseChatModel]) -> Mapping[str, BaseChatModel]:
    named: dict[str, BaseChatModel] = {}
    for model in models:
        name = model.model_name if isinstance(model, SimulatedChatModel) else type(model).__name__
        same = sum(each.partition("#")[0] == name for each in named)
        named[f"{name}#{same + 1}" if same else name] = model
    return named


def run(
    prepared: PreparedPlan[Any] | None,
    *,
    host: str,
    port: int,
    faults: Path | None,
    call_log: Path | None,
    noise: float,
    as_json: bool,
) -> None:
    """Serve until a signal ends it; the first line tells the URL.

    Raises:
        InputError: The script of faults is no good, or nobody can listen there.
    """
    script = FaultScript() if faults is None else read_faults(faults)
    served = learners(prepared)

    async def until_a_signal() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        # Without a log the calls would be kept, for as long as it serves.
        log = call_log or Path(os.devnull)
        async with serve(
            served, faults=script, noise=noise, call_log=log, host=host, port=port
        ) as server:
            if as_json:
                write_json({"base_url": server.base_url, "models": list(served)})
            else:
                say(server.base_url)
                complain(f"no language model: {', '.join(served)}; Ctrl-C ends")
            await stop.wait()
        complain(f"{server.count} calls")

    try:
        asyncio.run(until_a_signal())
    except OSError as error:
        raise InputError(f"cannot listen at {host}:{port}: {error.strerror}") from error
