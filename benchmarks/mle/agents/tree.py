"""The tree agent of a study: a search over programs, as AIDE makes it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.files import atomic_write
from langgraft.benchmarks.mle.agents.base import (
    SOLUTION,
    Agent,
    AgentResult,
    Graph,
    Left,
    Parts,
    Place,
    Solved,
    must_be,
)
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings, TreeSettings
from langgraft.graphs.tree import build_tree_agent, tree_memory_needs
from langgraft.memory.model import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.search.deps import CurrentTreePrompts, TreePrompts
from langgraft.nodes.search.ends import FRESH_SPLITS, arestore_memory, bank_of
from langgraft.nodes.search.journal import Journal, JournalNode, node_json, read_search

JOURNAL: Final = "journal.json"
TREE: Final = "tree.html"

IGNORANCE: Final = 1.6
"""Of the simulated model: about one draft in six is without a mistake then. A first valid program
comes late, as in the paper (Table 2: at 3.12 without memory)."""

CALLS_A_STEP: Final[Mapping[str, int]] = {"write": 3, "review": 2, "diagnose": 2, "judge": 2}
"""Model calls that a program takes at most: a reply, and its corrections."""


class TreeAgent(Agent):
    """Searches over whole programs by a policy; each is run, reviewed and kept in a journal."""

    name: ClassVar[AgentName] = "tree"
    title: ClassVar[str] = "tree search (AIDE)"
    unit: ClassVar[str] = "programs"
    prompts: ClassVar[tuple[str, ...]] = (
        "tree_draft",
        "tree_improve",
        "tree_debug",
        "tree_merge",
        "tree_draft_current",
        "tree_improve_current",
        "tree_debug_current",
        "tree_draft_complexity",
        "tree_improve_complexity",
        "tree_rules",
        "tree_split",
        "tree_review",
        "tree_repair",
        "bounds",
        "diagnose",
        "diagnose_by_example",
        "judge_novelty",
        "judge_novelty_message",
        "repair",
    )
    files: ClassVar[tuple[str, ...]] = (SOLUTION,)
    record_file: ClassVar[str] = JOURNAL
    cached: ClassVar[bool] = True

    @override
    def most_calls(self, settings: AgentSettings, *, memory: bool) -> int:
        """Return the calls of all steps; only memory has anything judged."""
        asked = CALLS_A_STEP["judge"] if memory else 0
        written = sum(CALLS_A_STEP.values()) - CALLS_A_STEP["judge"]
        return must_be(settings, TreeSettings).steps * (written + asked)

    @override
    def most_executions(self, settings: AgentSettings) -> int:
        """Return the programs of all steps, and those that are scored again."""
        section = must_be(settings, TreeSettings)
        again = len(FRESH_SPLITS) * section.candidates if section.candidates > 1 else 0
        return section.steps + again

    @override
    def at_once(self, settings: AgentSettings) -> int:
        """Return the width of the search."""
        return must_be(settings, TreeSettings).width

    @override
    def simulated_model(self, *, temperature: float) -> tuple[BaseChatModel, Mapping[str, JSON]]:
        """Return the simulated data scientist."""
        from langgraft.benchmarks.simulated.data_scientist import (  # noqa: PLC0415  (not for real models)
            SimulatedDataScientist,
        )

        model = SimulatedDataScientist(temperature=temperature, ignorance=IGNORANCE)
        return model, {"ignorance": IGNORANCE}

    @override
    def graph(self, parts: Parts, place: Place) -> Graph:
        """Build the search; the best solution so far lies in the folder `best` of its place."""
        section = must_be(parts.settings, TreeSettings)
        return build_tree_agent(
            parts.model,
            folder=place.best,
            policy=section.search_policy(),
            steps=section.steps,
            folds=section.folds,
            width=section.width,
            candidates=section.candidates,
            hours=section.hours,
            invalid_is_bug=section.invalid_is_bug,
            prompts=(CurrentTreePrompts if section.operators == "current" else TreePrompts)(
                diagnose=parts.diagnosis
            ),
            **parts.arguments(place),
        )

    @override
    def check_memory(self, memory: MemoryProvider[Any], *, learn: bool) -> None:
        """Refuse what the builder of the graph would refuse."""
        tree_memory_needs(memory, learn=learn)

    @override
    def told(self, left: Left) -> Sequence[JournalNode]:
        """Return the programs in the journal."""
        return read_search(left.artifacts, str(left.state.get("journal") or "")).nodes

    @override
    def read(self, left: Left, run: str) -> AgentResult:
        """Read the journal and what was chosen."""
        state = left.state
        search = read_search(left.artifacts, str(state["journal"]), run=run)
        chosen = str(state.get("chosen") or "")
        solution = next((node for node in search.nodes if node.id == chosen), None)
        return AgentResult(
            record=search.reference,
            fields={
                "journal": [node_json(node) for node in search.nodes],
                "chosen": chosen,
                "candidates": [dict(each) for each in state.get("candidates") or ()],
            },
            deltas=search.deltas,
            validation=state.get("metric"),
            submission=str(state.get("submission") or ""),
            files={} if solution is None else {SOLUTION: solution.code.encode("utf-8", "replace")},
        )

    @override
    def bank_of(self, left: Left) -> BankContent:
        """Return what the search's journal says that memory held."""
        return bank_of(left.artifacts, left.state)

    @override
    async def restore(self, memory: MemoryProvider[Any], left: Left) -> None:
        """Make memory what the search's journal says that it was."""
        await arestore_memory(memory, left.artifacts, left.state)

    @override
    def leave(self, came: AgentResult, out: Path, about: Solved) -> Mapping[str, Path]:
        """Write the journal, and the search as a page."""
        from langgraft.benchmarks.mle.tree_page import write_tree_page  # noqa: PLC0415

        text = canonical_json(came.fields["journal"])
        # As they are read again, whichever process wrote them: what is a mapping has an order.
        nodes = tuple(map(JournalNode.model_validate, json.loads(text)))
        write_tree_page(
            Journal(about.run, about.competition.id, nodes),
            out / TREE,
            title=about.competition.name,
            lower_is_better=about.competition.board.thresholds.lower_is_better,
            chosen=str(came.fields["chosen"]),
            report=about.report,
            simulated=about.simulated,
        )
        atomic_write(out / JOURNAL, f"{text}\n".encode())
        return {"journal": out / JOURNAL, "tree": out / TREE}
