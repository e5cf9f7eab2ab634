"""The chain agent through `ChatOpenAI` over HTTP, metered and cached: whatever a provider does."""

from pathlib import Path
from typing import Any

import pytest
from chain_cases import call, calls, ran, scripted, spoiled
from tree_cases import good, sandbox, toy

from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.faults import Fault, FaultKind, failing
from langgraft.benchmarks.simulated.server import ModelServer, serve
from langgraft.environments.competitions.competition import Competition
from langgraft.graphs import build_chain_agent
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import (
    CONDENSATION,
    Action,
    EventLog,
    log_lines,
    read_log,
    steps_of,
)

pytestmark = pytest.mark.matrix  # whole runs over HTTP

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

REPLIES = (
    call("run_bash", "I look.", command="ls input"),
    calls(("run_python", {"code": good(0.6)}), ("finish", {})),
    spoiled("run_python", '{"code": '),
    call("execute_bash", command="ls"),
    call("edit_file", command="create", path="a.py", file_text="x = '\u00e9'"),
    "Shall I go on?",
    call("think", thought="hm"),
    call("run_bash", command="python3 a.py"),
    call("validate_submission"),
    call("finish", message="done"),
)
FAULTS = {
    2: Fault(FaultKind.FINISH_REASON, reason="content_filter"),
    4: failing(400, code="context_length_exceeded", message="maximum context length is 9 tokens"),
    7: failing(400, code="content_policy_violation", message="refused: content_policy, id 71"),
    8: failing(500, message="try again"),
}


async def over_http(
    server: ModelServer, competition: Competition, responses: ResponseCache | None = None
) -> tuple[dict[str, Any], EventLog]:
    """Run the agent with a model behind a socket."""
    artifacts = MemoryArtifacts()
    model = make_model(
        "openai:simulated", base_url=server.base_url, api_key="none", responses=responses
    )
    async with sandbox(competition) as place:
        agent = build_chain_agent(
            model, competition=competition, sandbox=place, artifacts=artifacts, seconds=60,
            limits=RunLimits(steps=100),
        )  # fmt: skip
        out = await agent.ainvoke({"episode_id": "e"})
    return out, read_log(artifacts, out["log"])


async def test_run_when_a_provider_fails_in_many_ways_goes_on(tmp_path: Path) -> None:
    """Filters, refusals, overflows and faults are heard as what they are, without ids of theirs."""
    async with serve(scripted(*REPLIES), faults=FAULTS.get) as server:
        out, log = await over_http(server, toy(tmp_path / "toy"))
    assert (out["ended"], out["metric"]) == ("finished", 0.6)
    failures = [
        each.arguments.get("failure")
        for each in log.events
        if isinstance(each, Action) and (each.source, each.name) == ("agent", "message")
    ]
    assert failures == ["content_filter", None, "content_filter"]
    assert sum(each.name == CONDENSATION for each in log.events if isinstance(each, Action)) == 1
    assert "id 71" not in log_lines(log)
    assert out["steps"] == len(REPLIES)


async def test_run_when_replies_are_kept_is_repeated_without_a_call(tmp_path: Path) -> None:
    """In process, over HTTP and from the cache of replies the log is the same."""
    competition = toy(tmp_path / "toy")
    _, expected = ran(competition, scripted(*REPLIES))
    with ResponseCache(tmp_path / "responses.sqlite") as responses:
        async with serve(scripted(*REPLIES)) as server:
            _, first = await over_http(server, competition, responses)
            calls_made = len(server.calls)
            _, again = await over_http(server, competition, responses)
            assert len(server.calls) == calls_made == len(REPLIES)
    assert log_lines(first) == log_lines(again) == log_lines(expected)
    done = [step.action for step in steps_of(first)]
    assert done == [
        "run_bash", "run_python", "invalid", "invalid", "edit_file", "message", "think", "run_bash",
        "validate_submission", "finish",
    ]  # fmt: skip
