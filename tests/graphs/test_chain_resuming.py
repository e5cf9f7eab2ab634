"""Memory in the chain agent, and runs that are killed between any two nodes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from chain_cases import ToolModel, call, ran, scripted
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from tree_cases import BROKEN, feedback, good, reviewing, sandbox, toy

from langgraft import CodingMemory, CodingSettings
from langgraft.environments.competitions.competition import Competition
from langgraft.graphs import build_chain_agent
from langgraft.memory.model import BankContent, fold
from langgraft.nodes.artifacts import FolderArtifacts, MemoryArtifacts
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import RECALL, Action, EventLog, log_lines, read_log, steps_of
from langgraft.nodes.workbench.start import restore_run_memory

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

ERROR = "TypeError: fit() got an unexpected keyword argument 'rate'"
FAILING = BROKEN.format(number=1)
WORK = (
    call("run_python", "I set things up.", code="open('n.txt', 'a').write('x'); metric = 0.6"),
    call("run_python", "I fit.", code=FAILING),
    call("run_python", "Pass eta only. So it runs. And more.",
         code=FAILING.replace(", rate=1", "")),
    *[call("run_python", code="open('nothing')")] * 3,
    call("edit_file", command="create", path="s.py", file_text=good(0.7)),
    call("run_python", code="print(metric, open('n.txt').read())\nexec(open('s.py').read())"),
    call("finish"),
)  # fmt: skip
SETTINGS = CodingSettings(stages=("start",))


def memory_of() -> CodingMemory:
    """Make a memory that speaks as an attempt begins."""
    return CodingMemory(InMemoryStore(), settings=SETTINGS)


def review(text: str, sample: str) -> str:
    """Diagnose by what is shown; every error is new."""
    return '{"action": "add"}' if sample.endswith("/judge") else feedback(text, sample)


def agent_of(competition: Competition, place: Any, memory: Any, **settings: Any) -> Any:
    """Build an agent that recovers from circles."""
    return build_chain_agent(
        scripted(*WORK), competition=competition, sandbox=place, feedback_model=reviewing(review),
        memory=memory, on_stuck="recover", seconds=60, limits=RunLimits(steps=100), **settings,
    )  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run that nobody disturbed."""

    out: dict[str, Any]
    log: EventLog
    bank: BankContent


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the agent from end to end."""
    memory, artifacts = memory_of(), MemoryArtifacts()
    competition = toy(tmp_path_factory.mktemp("toy"))
    with sandbox(competition) as place:
        agent = agent_of(competition, place, memory, artifacts=artifacts)
        out = agent.invoke({"episode_id": "run"})
    return Run(out, read_log(artifacts, out["log"]), memory.content())


def test_memory_when_executions_fail_keeps_them_and_what_put_them_right(whole: Run) -> None:
    """Each failure is filed, a retry that runs proves its fix, and the next attempt is told both."""
    log, content = whole.log, whole.bank
    steps = steps_of(log)
    assert [step.attempt for step in steps] == [0] * 6 + [1] * 3
    assert [step.error is not None for step in steps[:3]] == [False, True, False]
    proven = [item for item in content.items.values() if item.metadata.get("verified")]
    assert [item.metadata["fix"] for item in proven] == ["Pass eta only. So it runs."]
    assert fold(log.deltas, memory_of().content()).to_bytes() == content.to_bytes()
    recalls = [each for each in log.events if isinstance(each, Action) and each.name == RECALL]
    assert [bool(each.arguments["text"]) for each in recalls] == [False, True]
    assert ERROR in steps[-1].recalled
    assert steps[7].output.startswith("0.6 x\n")


def test_memory_when_it_is_only_read_is_told_in_the_first_message_and_taught_nothing(
    competition: Competition,
) -> None:
    """An agent that does not learn begins with what memory holds, and leaves it as it is."""
    memory = memory_of()
    settings: dict[str, Any] = {"feedback_model": reviewing(review), "memory": memory}
    ran(competition, scripted(*WORK), **settings)
    before = memory.content().to_bytes()
    model = scripted(call("run_python", code=FAILING), call("finish"))
    _, log = ran(competition, model, learn=False, **settings)
    assert ERROR in model.asked[0][1].text
    assert ERROR in model.asked[1][1].text
    assert memory.content().to_bytes() == before
    assert log.deltas == ()


def test_run_when_killed_between_any_two_nodes_ends_with_the_same_log(
    whole: Run, tmp_path: Path
) -> None:
    """New graphs, kernels and connections after each node: log, bank and submission are those of a
    run that nobody disturbed.
    """  # noqa: D205
    competition = toy(tmp_path / "toy")
    thread: Any = {"configurable": {"thread_id": "t"}}
    given: Any = {"episode_id": "run"}
    kept, stops = FolderArtifacts(tmp_path / "artifacts"), 0
    while True:
        memory = memory_of()
        database = str(tmp_path / "checkpoints.sqlite")
        with SqliteSaver.from_conn_string(database) as saver, sandbox(competition) as place:
            agent = agent_of(competition, place, memory, artifacts=kept, checkpointer=saver)
            restore_run_memory(memory, kept, agent.get_state(thread).values)
            out = agent.invoke(given, thread, durability="sync", interrupt_after="*")
            if not agent.get_state(thread).next:
                break
        given, stops = None, stops + 1
    assert stops > 30
    assert out == whole.out
    assert log_lines(read_log(kept, out["log"])) == log_lines(whole.log)
    assert memory.content().to_bytes() == whole.bank.to_bytes()


def test_run_when_a_call_of_the_model_dies_goes_on_where_it_was(competition: Competition) -> None:
    """A provider that breaks off in mid-run costs no step and nothing that was done."""
    calls = 0

    def rule(messages: Any, step: int) -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ConnectionError("the provider is gone")
        return work[step]

    work = (WORK[0], WORK[-2], WORK[-1])
    _, expected = ran(competition, scripted(*work))
    artifacts = MemoryArtifacts()
    thread: Any = {"configurable": {"thread_id": "t"}}
    with sandbox(competition) as place, SqliteSaver.from_conn_string(":memory:") as saver:
        agent = build_chain_agent(
            ToolModel(rule=rule), competition=competition, sandbox=place, artifacts=artifacts,
            seconds=60, limits=RunLimits(steps=100), checkpointer=saver,
        )  # fmt: skip
        with pytest.raises(ConnectionError):
            agent.invoke({"episode_id": "e"}, thread)
        out = agent.invoke(None, thread)
    assert log_lines(read_log(artifacts, out["log"])) == log_lines(expected)
