"""The tree agent through `ChatOpenAI` over HTTP: whatever a model replies, the search ends."""

from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore
from tree_cases import good, reply, reviewing, sandbox, toy, writing

from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.faults import Fault, FaultKind, failing
from langgraft.benchmarks.simulated.server import serve
from langgraft.graphs import build_tree_agent
from langgraft.memory.providers import make_provider
from langgraft.nodes.search import MemoryArtifacts, read_search

pytestmark = pytest.mark.matrix  # whole searches over HTTP

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

REPLIES = (
    "",
    "I would rather talk about the weather.",
    "Plan.\n```python\nprint(",
    "Plan.\n```python\n" + "x = 1\n" * 40_000 + "```",
    "Plan.\n```bash\npip install torch\n```",
    "Plan.\n```python\nprint('\x00 \ud83d')\n```",
    "```" * 5_000,
)
"""What models write in place of a program; each goes on for as long as it is asked again."""
FAULTS = {
    22: Fault(FaultKind.FINISH_REASON, reason="content_filter"),
    25: Fault(FaultKind.FINISH_REASON, reason="length"),
    28: failing(400, code="context_length_exceeded", message="maximum context length is 9 tokens"),
    31: failing(400, code="content_policy_violation", message="refused: content_policy"),
}


async def test_search_when_replies_are_hostile_ends_with_a_reason_for_each(tmp_path: Path) -> None:
    """Malformed, empty, over-long, refused and code-less replies make buggy programs, and a good
    one afterwards still wins.
    """  # noqa: D205
    competition, artifacts = toy(tmp_path / "toy"), MemoryArtifacts()
    asked = 0

    def write(text: str, sample: str) -> str:
        nonlocal asked
        asked += 1
        number = (asked - 1) // 3
        return REPLIES[number] if number < len(REPLIES) else reply(good(0.6))

    def review(text: str, sample: str) -> str:
        return ("", "{" * 2_000, '{"is_bug": null}', "ok " * 50_000)[len(text) % 4]

    memory = make_provider("coding", InMemoryStore(), settings={})
    async with (
        serve(writing(write), faults=FAULTS.get) as coder,
        serve(reviewing(review)) as reviewer,
        sandbox(competition) as place,
    ):
        code, feedback = (
            make_model(
                "openai:simulated",
                base_url=server.base_url,
                api_key="none",
            )
            for server in (coder, reviewer)
        )
        agent = build_tree_agent(
            code, competition=competition, sandbox=place, feedback_model=feedback, memory=memory,
            artifacts=artifacts, steps=16, seconds=60,
        )  # fmt: skip
        out = await agent.ainvoke({"episode_id": "s"})
    nodes = read_search(artifacts, out["journal"]).nodes
    assert len(nodes) == 16
    assert out["metric"] == 0.6
    empty, prose, cut, long, shell, odd, fences, *_ = nodes
    for node in (empty, prose, long, shell, fences):
        assert node.code == ""
        assert node.reasons[0].startswith("the reply held no program: ")
    assert (cut.exc_type, cut.code) == ("SyntaxError", "print(\n")
    assert odd.is_buggy
    reasons = " ".join(reason for node in nodes for reason in node.reasons)
    assert "content_filter" in reasons
    assert "context_length" in reasons
    assert all(node.is_buggy == bool(node.reasons) for node in nodes)
