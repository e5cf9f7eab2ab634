"""Searches by other policies than AIDE's: merges, hints, scopes, an early end, a limit on time."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from counting_sandbox import CountingSandbox
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from tree_cases import BROKEN, good, mixed, programs, reply, reviewing, sandbox, searched, writing

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Job, PythonProgram
from langgraft.graphs import build_tree_agent
from langgraft.memory.providers import make_provider
from langgraft.nodes.search import (
    EvolutionPolicy,
    Expansion,
    JournalNode,
    MemoryArtifacts,
    Progress,
    UCTPolicy,
    read_search,
)
from langgraft.nodes.search.journal import node_json

pytestmark = pytest.mark.matrix  # whole searches by each policy

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

DRAFT = Expansion("draft")
BOTH = programs(reply(good(0.6), plan="Trees."), reply(good(0.7), plan="Lines."), reply(good(0.8)))


class Planned:
    """Wants these programs, one after the other, and then no more; notes what it is told."""

    def __init__(self, *wanted: Expansion) -> None:
        self.wanted = wanted
        self.told: list[Progress] = []

    def choose(
        self, nodes: Sequence[JournalNode], *, step: int, progress: Progress, **_: Any
    ) -> Expansion | None:
        """Return what was planned."""
        self.told.append(progress)
        return self.wanted[step] if step < len(self.wanted) else None


def test_merge_when_written_has_both_programs_before_it_and_names_them(
    competition: Competition,
) -> None:
    """The prompt shows both with their metrics, and the journal keeps both as parents."""
    code = BOTH.model_copy(update={"asked": []})
    _, search = searched(
        competition, code, policy=Planned(DRAFT, DRAFT, Expansion("merge", "001", "000")), steps=3
    )
    text = code.texts("write")[2]
    assert "# First solution, validation metric: 0.7\n" in text
    assert "# Second solution, validation metric: 0.6\n" in text
    assert text.index(good(0.7).strip()) < text.index(good(0.6).strip())
    merged = search.nodes[2]
    assert merged.parent_ids == ("001", "000")
    assert search.journal.stage(merged) == "merge"
    assert node_json(merged)["partner_id"] == "000"
    assert "partner_id" not in node_json(search.nodes[0])


def test_memory_when_a_merge_asks_it_speaks_as_to_an_improvement(competition: Competition) -> None:
    """Providers know three stages, and a merge makes what works better."""
    memory = make_provider("coding", InMemoryStore(), settings={"stages": ["improve"]})
    code = programs(reply(BROKEN.format(number=1)), reply(good(0.6)), reply(good(0.7)))
    policy = Planned(DRAFT, DRAFT, DRAFT, Expansion("merge", "001", "002"))
    _, search = searched(competition, code, policy=policy, steps=4, memory=memory)
    assert [bool(each.recalled) for each in search.nodes] == [False, False, False, True]


def test_hint_when_a_policy_gives_one_is_told_to_the_writer_of_that_program_alone(
    competition: Competition,
) -> None:
    """It stands before the rules, in one line."""
    code = BOTH.model_copy(update={"asked": []})
    policy = Planned(DRAFT, Expansion("draft", hint="Keep it\nsmall."))
    searched(competition, code, policy=policy, steps=2)
    plain, hinted = code.texts("write")
    assert "Keep it small.\n\n# Program" in hinted
    assert "Keep it" not in plain


@pytest.mark.parametrize(
    ("scope", "told"),
    [
        ("all", {"Trees.", "Lines.", "Forests."}),
        ("siblings", {"Forests."}),
        ("ancestors", {"Trees."}),
    ],
)
def test_scope_when_a_policy_narrows_it_leaves_other_attempts_out(
    scope: Any, told: set[str], competition: Competition
) -> None:
    """Siblings were written from the same program; ancestors are what a program descends from."""
    code = programs(
        *(reply(good(0.6), plan=plan) for plan in ("Trees.", "Lines.", "Forests.", "More."))
    )
    improved = Expansion("improve", "000")
    policy = Planned(DRAFT, DRAFT, improved, Expansion("improve", "000", scope=scope))
    searched(competition, code, policy=policy, steps=4)
    attempts = code.texts("write")[3].split("# Earlier attempts")[1].split("# Previous")[0]
    assert {
        plan for plan in ("Trees.", "Lines.", "Forests.") if f"Plan: {plan}" in attempts
    } == told


def test_search_when_its_policy_ends_it_submits_the_best_so_far(competition: Competition) -> None:
    """Steps that are left are not written."""
    policy = Planned(DRAFT, DRAFT)
    out, search = searched(competition, BOTH, policy=policy, steps=9, width=4)
    assert len(search.nodes) == 2
    assert out["chosen"] == "001"
    assert [each.steps for each in policy.told[:3]] == [0, 1 / 9, 2 / 9]


@pytest.mark.parametrize(
    "expansion",
    [
        Expansion("merge", "000"),
        Expansion("merge", "000", "000"),
        Expansion("merge", "000", "007"),
        Expansion("improve", "000", "001"),
    ],
)
def test_search_when_the_policy_merges_what_cannot_be_merged_is_stopped(
    expansion: Expansion, competition: Competition
) -> None:
    """A merge is of two different programs that work, and nothing else has two parents."""
    with pytest.raises(InputError, match="the policy chose"):
        searched(competition, BOTH, policy=Planned(DRAFT, DRAFT, expansion), steps=3)


def timed(competition: Competition, **settings: Any) -> Any:
    """Build a search whose programs run for six minutes each, by the sandbox's word."""
    sample = competition.sample_submission.read_bytes()

    def answer(job: Job, count: int) -> ExecutionResult:
        assert isinstance(job.program, PythonProgram)
        if job.program.arguments:
            return ExecutionResult(0, f"{len(sample)}\n", "", duration=0.1)
        printed = f"Validation metric: 0.{count:03d}\n"
        return ExecutionResult(0, printed, "", duration=360.0, files={"submission.csv": sample})

    return build_tree_agent(
        writing(lambda text, sample: reply(good())), competition=competition,
        sandbox=CountingSandbox(answer), feedback_model=reviewing(), **settings,
    )  # fmt: skip


def test_search_when_its_hours_are_used_up_ends_and_goes_on_knowing_what_it_used(
    competition: Competition,
) -> None:
    """The share is taken from the state: another process, years later, sees the same one."""
    artifacts, thread = MemoryArtifacts(), {"configurable": {"thread_id": "t"}}
    saver = InMemorySaver()

    def agent(steps: int, policy: Planned) -> Any:
        return timed(
            competition, artifacts=artifacts, checkpointer=saver, policy=policy, steps=steps,
            hours=0.4, clock=lambda: 0.0,
        )  # fmt: skip

    first, second = Planned(*[DRAFT] * 9), Planned(*[DRAFT] * 9)
    agent(2, first).invoke({"episode_id": "s"}, thread)
    out = agent(9, second).invoke({"episode_id": "s"}, thread)
    nodes = read_search(artifacts, out["journal"]).nodes
    assert len(nodes) == 4
    assert [each.time for each in (*first.told, *second.told)] == [0, 0.25, 0.5, 0.75]


def test_search_when_another_policy_is_to_go_on_with_it_is_refused(
    competition: Competition,
) -> None:
    """What a thread has begun names its policy, settings included."""
    thread: Any = {"configurable": {"thread_id": "t"}}
    artifacts, saver = MemoryArtifacts(), InMemorySaver()
    with sandbox(competition) as place:

        def agent(steps: int, policy: Any) -> Any:
            return build_tree_agent(
                BOTH, competition=competition, sandbox=place, artifacts=artifacts,
                feedback_model=reviewing(), policy=policy, steps=steps, checkpointer=saver,
            )  # fmt: skip

        agent(1, UCTPolicy(c=0.5)).invoke({"episode_id": "s"}, thread)
        held = agent(1, UCTPolicy(c=0.5)).get_state(thread).values["begun"]["policy"]
        assert (held["policy"], held["c"]) == ("uct", 0.5)
        for other in (UCTPolicy(), None):
            with pytest.raises(InputError, match="was begun with the policy"):
                agent(2, other).invoke({"episode_id": "s"}, thread)
        out = agent(2, UCTPolicy(c=0.5)).invoke({"episode_id": "s"}, thread)
    assert len(read_search(artifacts, out["journal"]).nodes) == 2


@pytest.mark.matrix
@pytest.mark.parametrize(
    "policy",
    [
        UCTPolicy(children=2, debug_depth=1),
        EvolutionPolicy(generation=3, crossover=1.0, crossover_from=1, debug_depth=1),
    ],
    ids=["uct", "evolution"],
)
def test_journal_when_branches_end_in_another_order_is_the_same(
    policy: Any, competition: Competition
) -> None:
    """What is chosen depends on what is in the journal, never on who came first."""

    def slow(late: int) -> Any:
        def rule(text: str, sample: str) -> Any:
            if int(sample.split("/")[1]) % 3 == late:
                time.sleep(0.15)
            return mixed(text, sample)

        return rule

    journals = {
        canonical_json([node_json(each) for each in search.nodes])
        for late in (0, 2)
        for _, search in [
            searched(competition, writing(slow(late)), policy=policy, steps=12, width=3)
        ]
    }
    assert len(journals) == 1
