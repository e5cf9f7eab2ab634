"""Secrets that are planted wherever a user may have some are found in nothing that langgraft writes."""

import asyncio
import contextlib
import io
import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from mle_study import PROGRAM
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from planted_secrets import ENVIRONMENT, HEADER, KEY, PASSWORD, TELLING, TOKEN, leaks
from toy_competition import ID, write_competition
from tree_cases import RuleModel, feedback, reply

from langgraft import Banks, MemoryMiddleware, TrajectoryMemory
from langgraft._core.confidential import without_secrets
from langgraft.benchmarks.ablation import Experiment, ablate
from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
from langgraft.benchmarks.simulated.faults import Fault, FaultKind
from langgraft.benchmarks.simulated.server import serve
from langgraft.cli.app import run_command_line

PLAN = {
    "study": "continual",
    "model": "openai:simulated",
    "train_items": 2,
    "test_items": 2,
    "runs": 1,
    "baseline_runs": 1,
    "rerun": False,
    "sequences": ["A>B"],
    "conditions": [{"name": "agg", "provider": "insight"}],
}


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant secrets in the environment."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@contextlib.contextmanager
def server(
    answer: Callable[[int], Fault | None], model: BaseChatModel | None = None
) -> Iterator[str]:
    """Serve a model, and now and then an error that repeats the request's headers."""
    ready, stop, url = threading.Event(), threading.Event(), []

    async def work() -> None:
        async with serve(model or SimulatedBabyAI(), faults=answer) as served:
            url.append(served.base_url)
            ready.set()
            await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(work(),))
    thread.start()
    ready.wait()
    try:
        yield url[0]
    finally:
        stop.set()
        thread.join()


def refusing(status: int) -> Fault:
    """Return an answer that tells what it should not."""
    body = json.dumps({"error": {"message": TELLING, "code": "odd", "type": "odd"}}).encode()
    return Fault(FaultKind.BODY, status=status, body=body)


def langgraft(*arguments: object) -> tuple[int, str]:
    """Run a command in this process; return its code, and all that it said."""
    said = io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        patch.setattr(sys, "argv", ["langgraft", *map(str, arguments)])
        try:
            run_command_line()
        except SystemExit as ended:
            return int(ended.code or 0), said.getvalue()
    return 0, said.getvalue()


class Runs(BaseTracer):
    """Keeps the errors of runs, as LangSmith would."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[str] = []

    def _persist_run(self, run: Run) -> None:
        """Nothing is sent."""

    def _on_chain_error(self, run: Run) -> None:
        self.errors.append(str(run.error))


def written(folder: Path, **fields: Any) -> Path:
    """Write a plan."""
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**PLAN, **fields}))
    return path


@pytest.mark.matrix
def test_run_when_a_server_repeats_the_key_leaves_it_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A plan that gets through, all that is made of its directory, and what every command says of it."""
    out = tmp_path / "out"
    with server(lambda call: refusing(503) if call in {1, 4, 5} else None) as url:
        plan = written(tmp_path, base_url=url)
        code, said = langgraft("run", plan, "--out", out, "--json")
    assert code == 0, said
    assert "x-gateway: <hidden>" in caplog.text
    told = [said, caplog.text]
    for words in (
        ("status", out, "--json"),
        ("report", out),
        ("verify", out, "--json"),
        ("export", out, "--format", "sft", "--out", tmp_path / "sft"),
        ("export", out, "--format", "inspect", "--out", tmp_path / "inspect"),
        ("cache", "stats", out),
        ("cache", "export", out, "--out", tmp_path / "replies.jsonl"),
        ("preview", plan, "--json"),
    ):
        code, said = langgraft(*words)
        told.append(said)
        assert code == 0, said
    assert (tmp_path / "replies.jsonl").stat().st_size > 1000
    assert not leaks(tmp_path, *told)


@pytest.mark.matrix
def test_solve_when_programs_print_their_environment_leaves_no_key_anywhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A model's program looks for keys and prints what it finds, beside a server that repeats them."""

    def rule(text: str, sample: str) -> str:
        if text.startswith(("You review", "A program failed", "You decide", "You look back")):
            return feedback(text, sample)
        return reply("import os\nprint('found:', dict(os.environ))\n" + PROGRAM.format(off=0.5))

    write_competition(tmp_path / "mine")
    out = tmp_path / "out"
    with server(
        lambda call: refusing(503) if call in {0, 3} else None, RuleModel(rule=rule)
    ) as url:
        code, said = langgraft(
            *("solve", ID, "--folder", tmp_path / "mine", "--data-dir", tmp_path / "data"),
            *("--out", out, "--steps", 3, "--seconds", 20, "--sandbox", "subprocess", "--json"),
            *("--model", "openai:simulated", "--base-url", url),
            *("--feedback-model", "openai:simulated"),
            *("--memory", tmp_path / "memory"),
        )
    assert code == 0, said
    assert "x-gateway: <hidden>" in caplog.text
    assert any(b"found:" in path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert not leaks(tmp_path, said, caplog.text)


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_run_when_the_key_is_refused_says_so_without_it(
    tmp_path: Path, debug: tuple[str, ...]
) -> None:
    """The message names the variable's purpose, and a traceback hides what the client quotes."""
    with server(lambda _: refusing(401)) as url:
        plan = written(tmp_path, base_url=url)
        code, said = langgraft(*debug, "run", plan, "--out", tmp_path / "out")
    assert code == 2
    assert "check the API key" in said
    assert "Incorrect API key provided: <hidden>" in said
    assert ("Traceback" in said) is bool(debug)
    assert not leaks(tmp_path, said)


@pytest.mark.parametrize(
    "fields",
    [
        {"base_url": f"https://ada:{PASSWORD}@example.org/v1"},
        {"base_url": f"https://example.org/v1?key={KEY}"},
        {"model_settings": {"openai_api_key": KEY}},
        {"model_settings": {"default_headers": {"x-gateway": HEADER}}},
        {"model_settings": {"extra_body": {"api_key": KEY}}},
        {"model_settings": {"extra_body": {"route": [{"headers": {"x-gateway": HEADER}}]}}},
        {"model_settings": {"extra_body": {"note": f"as {TOKEN} says"}}},
        {"model_settings": {"extra_body": {"proxy": f"http://ada:{PASSWORD}@proxy"}}},
    ],
)
def test_plan_when_it_holds_a_secret_is_refused_before_anything_is_written(
    tmp_path: Path, fields: dict[str, Any]
) -> None:
    """Plans are kept and shown, so that secrets have no place in them."""
    plan = written(tmp_path, **fields)
    for words in (("run", plan, "--out", tmp_path / "out"), ("preview", plan, "--json")):
        code, said = langgraft(*words)
        assert code == 2, said
        assert "OPENAI_API_KEY" in said or "provider's variable" in said, said
        assert not [each for each in leaks(tmp_path, said) if each != str(plan)]
    assert not (tmp_path / "out").exists()


def test_plan_when_its_settings_only_sound_like_secrets_is_taken(tmp_path: Path) -> None:
    """Numbers of tokens, and what a chat template is told, are settings as others are."""
    settings = {"max_completion_tokens": 9, "extra_body": {"stop_token_ids": [1], "keyword": "a"}}
    code, said = langgraft("preview", written(tmp_path, model_settings=settings))
    assert code == 0, said


def test_ablation_when_the_agent_fails_with_a_token_leaves_it_nowhere(tmp_path: Path) -> None:
    """What an application's exceptions quote is in no log, page, table or summary."""

    def build(memory: Any) -> Any:
        def agent(question: str) -> str:
            if "2" in question:
                raise RuntimeError(f"POST https://ada:{PASSWORD}@api/v1: {TELLING}")
            return question

        return agent

    tasks = [{"id": f"t{n}", "input": f"What is {n}?"} for n in range(4)]
    found = ablate(
        Experiment(build, tasks[2:], tasks[:2], lambda task, output: output == task.input),
        out=tmp_path / "out",
    )
    told = [str(found), found.summary(), json.dumps(found.to_json()), found.frame().to_csv()]
    assert "<hidden>" in told[-1]
    assert not leaks(tmp_path, *told)


def test_app_when_it_is_served_keeps_secrets_out_of_banks_logs_and_spans(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of the configuration, the context, the model and a failing store enter no bank and no log."""

    class Broken(InMemoryStore):
        def batch(self, ops: Any) -> Any:
            raise ConnectionError(f"cannot connect to postgresql://ada:{PASSWORD}@db: {TELLING}")

    caplog.set_level(logging.DEBUG, "langgraft")
    model = GenericFakeChatModel(messages=(AIMessage("Restart it.") for _ in range(9)))
    setting = {"thread_id": "1", "api_key": KEY, "authorization": f"Bearer {TOKEN}"}
    asked: Any = {"messages": [("user", "The wifi is down")]}
    with Banks(tmp_path / "users.sqlite", "trajectory") as banks:
        middleware = MemoryMiddleware(banks, user=lambda runtime: runtime.context["user"])
        agent: Any = create_agent(
            model,
            [],
            middleware=[middleware],
            checkpointer=InMemorySaver(),
            context_schema=dict,
        )
        config: Any = {"configurable": setting, "metadata": {"gateway": HEADER}}
        agent.invoke(asked, config, context={"user": "ada", "token": TOKEN})
        banks["ada"].export_items(tmp_path / "bank.jsonl")
        assert len(banks["ada"].content().items) == 1
    broken: Any = create_agent(
        model, [], middleware=[MemoryMiddleware(TrajectoryMemory(Broken()), on_error="warn")]
    )
    exporter, provider, runs = InMemorySpanExporter(), TracerProvider(), Runs()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = trace.get_tracer("langgraft", tracer_provider=provider)
    monkeypatch.setattr("langgraft.nodes.memory._TRACER", tracer)
    assert broken.invoke(asked, {"callbacks": [runs]})["messages"][-1].text == "Restart it."
    failed = [span.to_json() for span in exporter.get_finished_spans() if span.events]
    assert len(failed) == len(runs.errors) == 2  # a recall and a filing
    assert all("ConnectionError: cannot connect to" in each for each in [*failed, *runs.errors])
    assert "Memory failed, the agent answers without it" in caplog.text
    ours = [record.getMessage() for record in caplog.records if "langgraft" in record.name]
    assert not leaks(tmp_path, *ours, *failed, *runs.errors)


def test_text_when_it_holds_no_secret_is_left_as_it_is() -> None:
    """Words, paths, URLs and e-mail addresses of errors stay readable."""
    text = "GET https://example.org/v1/models?limit=3: 404, ask ada@example.org about sk-learn"
    assert without_secrets(text) == text
