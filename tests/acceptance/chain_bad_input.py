"""What the chain agent is told of replies and outputs that are not as they should be."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore

from acceptance.chain_script import (
    Ran,
    Scripted,
    bash,
    does,
    in_turn,
    prepared,
    ran,
)
from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.chat import Reply, ToolUse
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.benchmarks.simulated.server import serve
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes import SubprocessSandbox
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import MIB, Limits, Sandbox
from langgraft.graphs.chain import build_chain_agent
from langgraft.memory.providers.coding import CodingMemory
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import Action, Observation

_GIB: Final = 1024 * MIB
_SHOWN: Final = 160


@dataclass(frozen=True, slots=True)
class Case:
    """A reply that is not as it should be, and what the agent must be told of it."""

    what: str
    reply: Reply
    told: tuple[str, ...]
    """Words of what it is told, in any letters."""
    action: str = "invalid"
    """What the log calls it."""


def _call(name: str, arguments: str) -> Reply:
    return Reply("", (ToolUse(name, arguments),))


CASES: Final = (
    Case("arguments that are no JSON", _call("run_bash", '{"command": "ls"'), ("one JSON object",)),
    Case("arguments nested 5,000 deep", _call("run_bash", "[" * 5000), ("one JSON object",)),
    Case("a tool that is not there", does("execute", code="1"), ("no tool", "run_python")),
    Case("a tool without a name", does(""), ("no tool",)),
    Case("an argument missing", does("run_bash"), ("command",)),
    Case("an argument too many", does("run_bash", command="ls", sudo=True), ("sudo",)),
    Case("an argument of the wrong type", does("run_python", code=7), ("code",)),
    Case(
        "two actions in one reply",
        Reply("Both.", (ToolUse("think", {"thought": "first"}), ToolUse("think", {"thought": "2"}))),
        ("Not done: 1 further call",),
        "think",
    ),
    Case(
        "an action that can be read and one that cannot",
        Reply("", (ToolUse("run_bash", "{"), ToolUse("think", {"thought": "good"}))),
        ("Not done: 1 further call",),
        "think",
    ),
    Case("an empty reply", Reply(""), ("",), "message"),
    Case("words without an action", Reply("I would use boosting."), ("",), "message"),
    Case("a reply of 2,000,000 characters", Reply("and so on " * 200_000), ("",), "message"),
    Case(
        "odd characters, NUL among them",
        does("run_python", code="print('\\x00 \\ud800 \u202e')"),
        (),
        "run_python",
    ),
    Case("NUL in a command", bash("echo \x00"), ("NUL",), "run_bash"),
    Case("half of a surrogate pair", bash("echo \ud800"), (), "run_bash"),
    Case(
        "binary output",
        bash("head -c 30000 /dev/zero | tr '\\0' '\\377'; printf '\\033[2J\\0'"),
        ("\ufffd",),
        "run_bash",
    ),
    Case("a program that reads input", does("run_python", code="input()"), ("Error",), "run_python"),
    Case("a cell that ends its kernel", does("run_python", code="import os; os._exit(3)"),
         ("KERNEL LOST",), "run_python"),
    Case("a path outside", does("edit_file", command="view", path="../../etc/passwd"),
         ("Not done",), "edit_file"),
    Case("an absolute path", does("edit_file", command="create", path="/x", file_text="x"),
         ("Not done",), "edit_file"),
    Case("a folder for a file", does("edit_file", command="view", path="input"),
         ("Not done",), "edit_file"),
)  # fmt: skip

LISTED: Final = (
    Case("arguments that are a list", _call("run_bash", '["ls"]'), ("one JSON object",)),
    Case("arguments that are null", _call("run_bash", "null"), ("Not done",)),
)
"""Runs of their own: a provider's client makes no message of these."""

BIG: Final = (
    Case("a file of 1 GB is shown", does("edit_file", command="view", path="big.txt"),
         ("Not done",), "edit_file"),
    Case("a file of 1 GB is changed",
         does("edit_file", command="str_replace", path="big.txt", old_str="a", new_str="b"),
         ("Not done",), "edit_file"),
    Case("a file of 1 GB is printed", bash("cat big.txt"), ("TOO MUCH OUTPUT",), "run_bash"),
    Case("a script of 1 GB is run", bash("cp --sparse=always big.txt big.py; python3 big.py"), (),
         "run_bash"),
    Case("a submission of 1 GB is checked", does("validate_submission"), ("submission",),
         "validate_submission"),
)  # fmt: skip
"""After a file of 1 GB was made, in a sandbox that lets it."""
_MAKES_BIG: Final = bash("truncate -s 1G big.txt; truncate -s 1G submission.csv; ls")

FULL: Final = (
    Case("a file of 1 GB is written where 512 MiB are allowed",
         bash("head -c 1073741824 /dev/zero > big.txt"), ("size limit",), "run_bash"),
    Case("a cell writes 1 GB into a file",
         does("run_python", code="open('b', 'wb').write(bytes(2**30))"), ("Error",), "run_python"),
)  # fmt: skip
"""In a container."""


def measure(setting: Setting) -> list[Figure]:
    """Hand all cases to the agent: in process, and over HTTP through ChatOpenAI."""
    competition = prepared(setting)
    inputs = {"input": competition.public_dir}
    with ExitStack() as opened:
        roomy = opened.enter_context(SubprocessSandbox(Limits(file=4 * _GIB), inputs=inputs))
        contained = opened.enter_context(DockerSandbox(inputs=inputs))
        setting.say("bad replies and outputs, in process")
        here = _run(competition, roomy)
        setting.say("bad replies and outputs, over HTTP and in Docker")
        clients = ("init_chat_model", "the harness's model")[: setting.size(2, 1)]
        clients = ("init_chat_model", "the harness's model")[: setting.size(2, 1)]
        there = [
            (name, asyncio.run(_over_http(competition, contained, name, cases)), cases)
            for name in clients
            for cases in ([*CASES, *FULL], LISTED)
        ]
    found = [("in process", here, [*CASES, *LISTED, *BIG]), *there]
    return [*_rows(found), *(_whole(name, came, cases) for name, came, cases in found)]


def _run(competition: Competition, sandbox: Sandbox) -> Ran:
    first, then = ([case.reply for case in cases] for cases in ([*CASES, *LISTED], BIG))
    artifacts = MemoryArtifacts()
    model = Scripted(script=in_turn([*first, _MAKES_BIG, *then]))
    agent = build_chain_agent(model, **_parts(competition, sandbox, artifacts))
    return ran(agent.invoke({"episode_id": "bad", "seed": 0}), artifacts)


async def _over_http(
    competition: Competition, sandbox: Sandbox, client: str, cases: Sequence[Case]
) -> Ran:
    script = in_turn([case.reply for case in cases])
    artifacts = MemoryArtifacts()
    async with serve(Scripted(script=script)) as server:
        agent = build_chain_agent(
            _client(client, server.base_url), **_parts(competition, sandbox, artifacts)
        )
        try:
            final = await agent.ainvoke({"episode_id": "bad", "seed": 0})
        except Exception as error:  # noqa: BLE001  (what no reply may do is to be told)
            return Ran(f"{type(error).__name__}: {' '.join(str(error).split())[:_SHOWN]}", 0, ())
    return ran(final, artifacts)


def _client(name: str, url: str) -> BaseChatModel:
    if name == "init_chat_model":
        return init_chat_model("openai:simulated", base_url=url, api_key="none", max_retries=0)
    return make_model("openai:simulated", base_url=url, api_key="none")


def _parts(
    competition: Competition, sandbox: Sandbox, artifacts: MemoryArtifacts
) -> dict[str, Any]:
    return {
        "competition": competition,
        "sandbox": sandbox,
        "artifacts": artifacts,
        "feedback_model": SimulatedDataScientist(),
        "memory": CodingMemory(InMemoryStore()),
        "limits": RunLimits(steps=100),
        "seconds": 60,
    }


# What came of it ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Told:
    """What came of a reply."""

    action: str
    text: str
    """What was observed, or what the user answered, or both."""


def _steps(came: Ran) -> list[_Told]:
    """Return each step of a run with all that the agent was told of it."""
    told: dict[int, list[str]] = {}
    names: dict[int, str] = {}
    for event in came.events:
        if isinstance(event, Action) and event.source == "agent":
            names[event.id] = event.name
        elif isinstance(event, Observation) and event.cause in names:
            told.setdefault(event.cause, []).append(event.text)
        elif isinstance(event, Action) and event.source == "user" and event.cause in names:
            told.setdefault(event.cause, []).append(str(event.arguments.get("text", "")))
    return [_Told(name, "\n".join(told.get(place, []))) for place, name in names.items()]


def _told_of(came: Ran, cases: Sequence[Case]) -> Mapping[str, _Told]:
    steps = _steps(came)
    if len(steps) > len(cases) + 1:  # the one that made the files
        del steps[len(cases) - len(BIG)]
    return {case.what: step for case, step in zip(cases, steps, strict=False)}


def _defined(case: Case, told: _Told | None) -> bool:
    if told is None or told.action != case.action or not told.text.strip():
        return False
    return all(word.lower() in told.text.lower() for word in case.told)


def _rows(found: Sequence[tuple[str, Ran, Sequence[Case]]]) -> list[Figure]:
    """Write a row for each case: what the agent is told, whatever way it came."""
    every = {case.what: case for _, _, cases in found for case in cases}
    rows = []
    for what, case in every.items():
        tried = [each for each in found if case in each[2]]
        ways = [name for name, _, _ in tried]
        seen = [_told_of(came, cases).get(what) for _, came, cases in tried]
        wrong = [name for name, told in zip(ways, seen, strict=True) if not _defined(case, told)]
        shown = next((told for told in seen if told is not None), _Told("nothing", ""))
        text = " ".join(ascii(" ".join(shown.text.split()))[1:-1].split())
        short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …"
        rows.append(
            Figure(
                f"The chain agent and {what}",
                ", ".join(ways),
                f"{shown.action}: “{short}”" + (f"; otherwise {', '.join(wrong)}" if wrong else ""),
                f"{case.action}, and told",
                not wrong,
            )
        )
    return rows


def _whole(name: str, came: Ran, cases: Sequence[Case]) -> Figure:
    steps = _steps(came)
    made = 1 if any(case in BIG for case in cases) else 0
    wanted = len(cases) + made + 1
    return Figure(
        "None of these ends a run",
        f"one run of {len(cases)} such replies and `finish`, {name}",
        f"{share(len(steps), wanted)} steps, ended by {came.ended}",
        "all steps, finished",
        (len(steps), came.ended) == (wanted, "finished"),
    )
