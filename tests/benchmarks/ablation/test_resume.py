"""An ablation stopped anywhere, by `kill -9`, a server or a cap, and gone on with; and what refuses that."""

import asyncio
import json
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ablation_cases import (
    AGENTS,
    MEMORY,
    Clerk,
    asked,
    experiment,
    function,
    is_right,
    lookups,
    middleware_agent,
    results,
    tried,
)
from gates import Gate
from warm_python import Warm, run_code, started

from langgraft._core.errors import InputError, LanggraftError, ResumeRefusedError
from langgraft.benchmarks.ablation import Ablation, Experiment, Task, ablate, open_ablation
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.simulated.server import serve

pytestmark = pytest.mark.matrix  # whole studies

SUPPORT = Path(__file__).parents[2] / "support"


def items(out: Path) -> dict[str, bytes]:
    """Return the bytes of all results."""
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("items.jsonl"))}


# Killed -----------------------------------------------------------------------------------

MODULE = """
from ablation_cases import Clerk, experiment as made, middleware_agent

class Held(Clerk):
    def reply(self, messages, sampling):
        exec({passing!r})
        return super().reply(messages, sampling)

experiment = made(
    build=middleware_agent, conditions=("write_only",), model=lambda seed: Held(seed=seed)
)
"""


def command(folder: Path, out: Path) -> Warm:
    """Begin an ablation, or go on with one, in a process of its own."""
    path = os.pathsep.join([str(folder), str(SUPPORT)])
    asking = ("ablate", "my_agent:experiment", "--credit", 1, "--out", out)
    return started(*asking, environment={**os.environ, "PYTHONPATH": path})


def finish(folder: Path, out: Path) -> None:
    """Begin an ablation, or go on with one, until it has ended well."""
    with command(folder, out) as process:
        done = process.ended()
    assert done.returncode == 0, done.stderr


@pytest.mark.kill
def test_ablation_when_killed_at_several_moments_then_leaves_the_same_bytes(
    tmp_path: Path,
) -> None:
    """After the first results, and in the test; then it is run again."""
    gate = Gate(tmp_path / "gate")
    (tmp_path / "my_agent.py").write_text(MODULE.format(passing=gate.code))
    gate.open(999)
    finish(tmp_path, tmp_path / "whole")
    whole, replies = items(tmp_path / "whole"), gate.came
    # Of four runs at a time nine replies are a result at least, once it is written.
    for passed in (9, 5):
        gate.open(passed)
        with command(tmp_path, tmp_path / "out") as process:
            gate.wait_for(passed + 1, process)
            while not any(items(tmp_path / "out").values()):
                time.sleep(0.01)
            process.kill()
            assert process.wait() == -signal.SIGKILL
    kept = sum(each.count(b"\n") for each in items(tmp_path / "out").values())
    gate.open(999)
    finish(tmp_path, tmp_path / "out")
    assert gate.came == replies - kept, "each result is of one reply, and none is asked for again"
    assert items(tmp_path / "out") == whole
    assert not verify_directory(tmp_path / "out")


# A server that fails ----------------------------------------------------------------------


@pytest.mark.parametrize("build", [AGENTS["create_agent"], AGENTS["function"]])
@pytest.mark.parametrize("call", [1, 9])
def test_ablation_when_a_server_fails_then_ends_unscored_and_goes_on_to_the_same_bytes(
    tmp_path: Path, build: Any, call: int
) -> None:
    """A lost connection is no wrong answer: what was done is kept, and run again the rest is done."""
    left = [0]

    def fails(memory: Any, model: Any) -> Any:
        return build(memory, Failing(seed=model.inner.seed, left=left))

    chosen: dict[str, Any] = {"build": fails, "conditions": ("random",), "concurrency": 1}
    whole = go(tmp_path / "whole", **chosen)
    left[0] = call
    with pytest.raises(
        LanggraftError, match=r"not finished: .*ConnectionError: lost.*run it again"
    ):
        go(tmp_path / "out", **chosen)
    found = go(tmp_path / "out", **chosen)
    assert items(found.out) == items(whole.out)
    assert all(each["error"] == "" for each in results(found, MEMORY))


class Failing(Clerk):
    """Loses its connection at one call."""

    left: Any  # a list would be copied

    def reply(self, messages: Any, sampling: Any) -> str:
        """Answer, or fail."""
        self.left[0] -= 1
        if self.left[0] == 0:
            raise ConnectionError("lost")
        return super().reply(messages, sampling)


def go(out: Path, *, concurrency: int | None = None, **fields: Any) -> Ablation:
    """Run an experiment with so many attempts under way."""
    return ablate(experiment(**fields), out=out, concurrency=concurrency)


# Another experiment -------------------------------------------------------------------------


def stricter(task: Task, output: Any) -> bool:
    """Score in a file of its own."""
    return is_right(task, output) and "not" not in str(output)


def other_agent(memory: Any, model: Any) -> Any:
    """Make an agent in a file of its own."""
    return function(memory, model)


CHANGES: dict[str, tuple[Callable[[], Experiment], str]] = {
    "task": (lambda: experiment(test=asked("ada", "cyd", "fay")), "tests|tasks"),
    "reference": (
        lambda: experiment(
            test=[Task(e.id, e.input, e.kind, 7) for e in asked("ada", "bob", "fay")]
        ),
        "tasks",
    ),
    "training": (lambda: experiment(train=lookups("ada")), "sources|tasks"),
    "score": (lambda: experiment(score=stricter), "score"),
    "build": (lambda: experiment(build=other_agent), "build"),
    "replicates": (lambda: experiment(replicates=3), "replicates"),
    "conditions": (lambda: experiment(conditions=("placebo",)), "conditions"),
    "settings": (
        lambda: experiment(memory={MEMORY: {"provider": MEMORY, "settings": {"top_k": 2}}}),
        "top_k|memories",
    ),
    "seed": (lambda: experiment(seed=1), "seed"),
}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of a finished run."""
    return tried(tmp_path_factory.mktemp("begun") / "out").out


@pytest.mark.parametrize(("change", "named"), CHANGES.values(), ids=CHANGES)
def test_ablation_when_something_changed_then_is_refused_by_name(
    begun: Path, change: Callable[[], Experiment], named: str
) -> None:
    """Other tasks, code or settings; what is on disk stays as it is."""
    before = items(begun)
    with pytest.raises(ResumeRefusedError, match=named):
        ablate(change(), out=begun)
    assert items(begun) == before


def test_ablation_when_finished_and_run_again_then_asks_nothing(
    begun: Path, tmp_path: Path
) -> None:
    """It is read again from its log, and so is its page, without the program."""
    again = tried(begun)
    opened = open_ablation(begun)
    assert str(opened) == str(again)
    assert opened.page.read_text() == again.page.read_text()
    with pytest.raises(InputError):
        open_ablation(tmp_path / "nothing")


# Over HTTP --------------------------------------------------------------------------------


OVER_HTTP = """
import asyncio, json, sys
from pathlib import Path
from ablation_cases import Clerk, experiment, middleware_agent, results
from langchain_openai import ChatOpenAI
from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.ablation import ablate
from langgraft.benchmarks.simulated.faults import failing
from langgraft.benchmarks.simulated.server import serve

async def main():
    async with serve(Clerk(), faults=[None, None, failing(503)]) as server:
        def build(memory):
            model = ChatOpenAI(model="c", base_url=server.base_url, api_key="none", max_retries=0)
            return middleware_agent(memory, model)

        made = experiment(build=build, model=None, replicates=1)
        try:
            await asyncio.to_thread(ablate, made, out="out", concurrency=1)
        except LanggraftError as error:
            first = str(error)
        found = await asyncio.to_thread(ablate, made, out="out", concurrency=1)
    print(json.dumps([first, results(found, "none"), results(found, "trajectory")]))

asyncio.run(main())
"""


def test_agent_when_its_model_is_a_server_then_is_tried_over_http(tmp_path: Path) -> None:
    """A 503 ends the run unscored; connections that LangChain keeps of the loop before cost no score.

    In a process of its own, as these are never closed.
    """
    path = {"PYTHONPATH": str(SUPPORT)}
    told = run_code(OVER_HTTP, tmp_path, environment={**os.environ, **path})
    first, none, memory = json.loads(told)
    assert re.match("not finished: .*503", first)
    assert [each["error"] for each in none] == ["", "", ""]
    assert [each["score"] for each in none] == [0, 0, 1]
    assert [each["score"] for each in memory] == [1, 1, 1]
    assert all(each["usage"]["prompt_tokens"] > 5 for each in memory)
    assert all(each["usage"]["replies"] == 1 for each in memory)


async def test_model_by_name_when_capped_then_stops_and_asks_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replies are kept: with a higher cap the rest is asked, and a rerun has samples of its own."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    seen: list[int] = []
    async with serve(Clerk(), faults=seen.append) as server:
        made = experiment(
            model="openai:clerk",
            base_url=server.base_url,
            replicates=1,
            conditions=("write_only", "rerun"),
        )
        with pytest.raises(LanggraftError, match=r"not finished: .*run it again"):
            await asyncio.to_thread(ablate, made, out=tmp_path, max_calls=4, concurrency=1)
        assert len(seen) <= 4
        found = await asyncio.to_thread(ablate, made, out=tmp_path, max_calls=50, concurrency=1)
    assert found.verdicts == {MEMORY: "cannot tell"}
    attempts = sum(len(each.attempts) for each in found.analysis.arms) + len(lookups("ada", "bob"))
    assert len(seen) == attempts - 3, "without memory and writing only, the same is asked"


def test_model_that_refuses_for_good_when_asked_then_ends_the_run_with_its_reason(
    tmp_path: Path,
) -> None:
    """A wrong key is no wrong answer, and repeating helps nothing."""

    class RefusedError(Exception):
        status_code = 401

    class Refusing(Clerk):
        def reply(self, messages: Any, sampling: Any) -> str:
            raise RefusedError("invalid api key")

    with pytest.raises(InputError, match="invalid api key"):
        go(tmp_path, build=lambda memory: middleware_agent(memory, Refusing()), model=None)
