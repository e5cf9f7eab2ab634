"""Searches that are stopped or killed and taken up again, and what their checkpoints weigh."""

import json
from pathlib import Path
from typing import Any

import pytest
from counting_sandbox import CountingSandbox
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from tree_cases import RuleModel, good, mixed, reply, reviewing, sandbox, searched, toy, writing
from warm_python import ran_script

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Job, PythonProgram
from langgraft.graphs import build_tree_agent
from langgraft.memory.providers import make_provider
from langgraft.nodes.search import MemoryArtifacts, read_search, restore_memory

pytestmark = pytest.mark.kill  # searches cut off and taken up again

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

SUPPORT = Path(__file__).resolve().parent.parent / "support"


def worked(*arguments: str) -> dict[str, Any]:
    """Run `tree_worker.py`, and return what it printed."""
    done = ran_script(SUPPORT / "tree_worker.py", *arguments)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    made: dict[str, Any] = json.loads(done.stdout)
    return made


@pytest.mark.kill
@pytest.mark.parametrize("seed", [3])
def test_search_when_its_process_is_killed_again_and_again_ends_the_same(
    seed: int, tmp_path: Path
) -> None:
    """Journal, bank, choice and best solution are those of a search that nobody disturbed.

    Branches in flight go on from where each was, under the strict serializer, without a warning.
    """
    made = worked(str(tmp_path), str(seed), "2")
    assert made["kills"] == 2
    assert made["killed"] == made["whole"]
    assert len(json.loads(made["whole"]["journal"])) == 10
    assert json.loads(made["whole"]["bank"])["items"]


@pytest.mark.kill
def test_search_when_killed_with_merges_under_way_ends_the_same(tmp_path: Path) -> None:
    """Four times the process kills itself inside a merge, with another branch at work."""
    made = worked(str(tmp_path), "merges")
    assert made["kills"] == 4
    assert made["killed"] == made["whole"]
    nodes = json.loads(made["whole"]["journal"])
    assert sum("partner_id" in node for node in nodes) >= 2
    in_flight = [each for each in made["found"] if "merge" in each]
    assert len(in_flight) == 4
    assert all(any(place.startswith("branch/") for place in each) for each in in_flight)


class Flaky(MemoryArtifacts):
    """Artifacts whose disk is full at one moment: right after memory took a program in."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    def keep(self, content: bytes) -> str:
        """Keep, or fail once."""
        if content.startswith(b'{"deltas":'):
            self.left -= 1
            if self.left == 0:
                raise OSError("no space left")
        return super().keep(content)


def test_program_when_memory_has_it_and_the_journal_has_not_is_filed_once(tmp_path: Path) -> None:
    """Restored from the journal, the bank takes it in again, and nothing is lost or doubled."""
    competition = toy(tmp_path / "toy")
    thread: Any = {"configurable": {"thread_id": "t"}}

    def agent(place: Any, artifacts: Any, memory: Any, saver: Any = None) -> Any:
        return build_tree_agent(
            writing(), competition=competition, sandbox=place, artifacts=artifacts, memory=memory,
            feedback_model=reviewing(), steps=6, width=2, seconds=60, checkpointer=saver,
        )  # fmt: skip

    def memory_of(store: InMemoryStore) -> Any:
        return make_provider("coding", store, settings={"stages": ["draft", "debug", "improve"]})

    with sandbox(competition) as place:
        whole = memory_of(InMemoryStore())
        expected = agent(place, MemoryArtifacts(), whole).invoke({"episode_id": "s"})
        artifacts, saver, store = Flaky(4), InMemorySaver(), InMemoryStore()
        with pytest.raises(OSError, match="no space"):
            agent(place, artifacts, memory_of(store), saver).invoke({"episode_id": "s"}, thread)
        memory = memory_of(store)
        again = agent(place, artifacts, memory, saver)
        restore_memory(memory, artifacts, again.get_state(thread).values)
        assert again.invoke(None, thread) == expected
    assert memory.content().to_bytes() == whole.content().to_bytes()


def test_search_when_it_is_given_more_steps_goes_on_as_if_it_had_had_them(
    competition: Competition,
) -> None:
    """The same `episode_id` on the thread goes on; another one begins anew."""
    expected, _ = searched(competition, writing(), steps=7)
    artifacts, saver = MemoryArtifacts(), InMemorySaver()
    thread: Any = {"configurable": {"thread_id": "t"}}
    with sandbox(competition) as place:

        def agent(steps: int, code: RuleModel) -> Any:
            return build_tree_agent(
                code, competition=competition, sandbox=place, artifacts=artifacts,
                feedback_model=reviewing(), steps=steps, seconds=60, checkpointer=saver,
            )  # fmt: skip

        begun = agent(4, writing()).invoke({"episode_id": "s"}, thread)
        more = writing()
        assert agent(7, more).invoke({"episode_id": "s"}, thread) == expected
        assert len(more.texts("write")) >= 3
        assert not any(sample.startswith("s/003/") for sample, _ in more.asked)
        other = agent(4, writing()).invoke({"episode_id": "other"}, thread)
    assert len(read_search(artifacts, begun["journal"]).nodes) == 4
    assert len(read_search(artifacts, other["journal"]).nodes) == 4
    assert other["journal"] != begun["journal"]


def test_search_when_a_model_cannot_be_reached_stops_and_goes_on_where_it_was(
    competition: Competition,
) -> None:
    """Such an error is nobody's bad program; what is done is not asked for again."""
    expected, _ = searched(competition, writing(), steps=4, width=2)
    artifacts, saver = MemoryArtifacts(), InMemorySaver()
    thread: Any = {"configurable": {"thread_id": "t"}}

    def cut(text: str, sample: str) -> str:
        if sample.startswith("s/003/"):
            raise ConnectionError("cut off")
        return mixed(text, sample)

    with sandbox(competition) as place:

        def agent(code: RuleModel) -> Any:
            return build_tree_agent(
                code, competition=competition, sandbox=place, artifacts=artifacts,
                feedback_model=reviewing(), steps=4, width=2, seconds=60, checkpointer=saver,
            )  # fmt: skip

        with pytest.raises(ConnectionError):
            agent(writing(cut)).invoke({"episode_id": "s"}, thread, durability="sync")
        again = writing()
        assert agent(again).invoke(None, thread) == expected
    assert {sample.split("/")[1] for sample, _ in again.asked} == {"003"}


def weigh(folder: Path, steps: int) -> tuple[int, int]:
    """Search without running anything; return the bytes and the longest checkpoint."""
    folder.mkdir()
    competition = toy(folder / "toy")
    sample = competition.sample_submission.read_bytes()

    def answer(job: Job, count: int) -> ExecutionResult:
        assert isinstance(job.program, PythonProgram)
        if job.program.arguments:
            return ExecutionResult(0, f"{len(sample)}\n", "", duration=0.1)
        printed = f"{'x' * 20_000}\nValidation metric: 0.{count:03d}\n"
        return ExecutionResult(0, printed, "", duration=0.1, files={"submission.csv": sample})

    def rule(text: str, sample: str) -> str:
        return reply(good() + "# padding\n" * 2_000)

    database = folder / "checkpoints.sqlite"
    with SqliteSaver.from_conn_string(str(database)) as saver:
        agent = build_tree_agent(
            writing(rule), competition=competition, sandbox=CountingSandbox(answer),
            feedback_model=reviewing(), memory=make_provider("coding", InMemoryStore(), settings={}),
            folder=folder, steps=steps, width=2, candidates=2, checkpointer=saver,
        )  # fmt: skip
        thread: Any = {"configurable": {"thread_id": "a thread of usual length"}}
        agent.invoke({"episode_id": "mle/competition/seed-1"}, thread, durability="sync")
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        query = "SELECT max(length(checkpoint)) FROM checkpoints"
        ((longest,),) = saver.conn.execute(query).fetchall()
    return database.stat().st_size, longest


def test_checkpoints_when_a_search_goes_on_grow_with_its_steps_alone(tmp_path: Path) -> None:
    """A step costs less than 50 kB, at the thirtieth as at the first; no program is in there."""
    sizes = {steps: weigh(tmp_path / str(steps), steps) for steps in (8, 16, 32)}
    early, late = ((sizes[b][0] - sizes[a][0]) / (b - a) for a, b in ((8, 16), (16, 32)))
    assert late < 50_000
    assert abs(late - early) < 0.15 * early
    assert max(longest for _, longest in sizes.values()) < 5_000
