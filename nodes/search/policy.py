"""Which programs to write next: `SearchPolicy`, AIDE's (`AIDEPolicy`), and the node `select`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from langgraph.types import Send

from langgraft._core.arguments import check_whole, checked
from langgraft._core.canonical import JSON, seeded_fraction
from langgraft._core.errors import InputError, SettingsError
from langgraft.nodes.node import Node, Update
from langgraft.nodes.search.deps import BranchState, SearchDeps, TreeState, Work
from langgraft.nodes.search.journal import Journal, JournalNode, Stage


@dataclass(frozen=True, slots=True)
class Expansion:
    """A program that is to be written, or is being written."""

    stage: Stage
    parent_id: str | None = None
    """The program to repair or to better; `None` for a draft."""


class SearchPolicy(Protocol):
    """Chooses what to do next; the same question has the same answer, in every process."""

    def choose(
        self,
        nodes: Sequence[JournalNode],
        *,
        step: int,
        seed: int,
        lower_is_better: bool,
        under_way: Sequence[Expansion] = (),
    ) -> Expansion:
        """Return what to write as program number `step`.

        Args:
            nodes: All programs so far, in the order of their steps.
            step: Number of the program to be written, from 0.
            seed: Of the search; chance is a function of this and `step`.
            lower_is_better: The metric's direction, from the competition's board.
            under_way: What else is being written meanwhile, in the order of the steps.
        """
        ...


_DRAFT = Expansion("draft")


@dataclass(frozen=True, slots=True)
class AIDEPolicy:
    """AIDE's policy, rule by rule (aideml 0.2.2, `Agent.search_policy`), with chance by seed.

    1. Fewer than `drafts` programs without a parent: another draft. So nothing is repaired or
       made better before program number `drafts`, counted from 0.
    2. With `debug_probability`: repair a program drawn with equal chances from the failed ones
       that nothing follows and whose debug depth is within the limit. If there is none, go on.
    3. No program works: another draft, however many there are.
    4. Make the best working program better; of equal ones the earliest.

    A program's *debug depth* is the number of repairs in a row that led to it, 0 if its parent
    works or it has none.

    | setting | here, AIDE and mle-agent-memory | AIDE as MLE-bench runs it |
    |---|---|---|
    | `drafts` | 5 (AIDE's; Table 6 does not name it) | 5 |
    | `debug_probability` | 0.5 (Table 6) | 1 |
    | `debug_depth` | 3 (Table 6) | 20 |
    | steps, not set here | AIDE 20, Table 6: 30 | 500 |

    Where it departs: AIDE never seeds its chance, here it is a function of the search's seed and
    the step; and several programs may be written at a time. What is being written counts as if it
    had been chosen: a draft as a draft, and a program under repair is followed by something. With
    one at a time it is AIDE.
    """

    drafts: int = 5
    """Programs written from nothing at the start."""
    debug_probability: float = 0.5
    """Chance that a failure is repaired, where one can be."""
    debug_depth: int = 3
    """Largest number of repairs in a row, as AIDE's setting names it; see `published_depth`."""
    published_depth: bool = True
    """Compare as AIDE's code does: a failure *at* the depth is still repaired, so 3 lets four
    repairs follow a draft. `False` holds to the setting's word: three."""

    def __post_init__(self) -> None:
        """Refuse settings that no search can follow.

        Raises:
            SettingsError: One of them is out of its range.
        """
        for name, least in (("drafts", 1), ("debug_depth", 0)):
            check_whole(name, getattr(self, name), least)
        chance = self.debug_probability
        number = isinstance(chance, int | float) and not isinstance(chance, bool)
        if not number or not 0 <= chance <= 1:
            msg = f"debug_probability={chance!r:.80}: give a number from 0 to 1"
            raise SettingsError(msg)
        if not isinstance(self.published_depth, bool):
            msg = f"published_depth={self.published_depth!r:.80}: give true or false"
            raise SettingsError(msg)

    def describe(self) -> dict[str, JSON]:
        """Return the policy's name and settings as JSON."""
        return {"policy": "aide", **asdict(self)}

    def choose(
        self,
        nodes: Sequence[JournalNode],
        *,
        step: int,
        seed: int,
        lower_is_better: bool,
        under_way: Sequence[Expansion] = (),
    ) -> Expansion:
        """Return what to write as program number `step`, as `SearchPolicy` has it.

        Raises:
            InputError: A program names a parent that does not come before it.
        """
        if _drafted(nodes, under_way) < self.drafts:
            return _DRAFT
        if seeded_fraction("aide", "debug", seed, step) < self.debug_probability:
            leaves = self.debuggable(nodes, under_way)
            if leaves:
                drawn = int(seeded_fraction("aide", "leaf", seed, step) * len(leaves))
                return Expansion("debug", leaves[drawn].id)
        return _greedy(nodes, lower_is_better=lower_is_better)

    def admissible(
        self,
        nodes: Sequence[JournalNode],
        *,
        lower_is_better: bool,
        under_way: Sequence[Expansion] = (),
    ) -> set[Expansion]:
        """Return all that the policy may choose, whatever the seed: for auditing a journal.

        Raises:
            InputError: A program names a parent that does not come before it.
        """
        if _drafted(nodes, under_way) < self.drafts:
            return {_DRAFT}
        leaves = self.debuggable(nodes, under_way) if self.debug_probability > 0 else ()
        repairs = {Expansion("debug", node.id) for node in leaves}
        if repairs and self.debug_probability == 1:
            return repairs
        return {*repairs, _greedy(nodes, lower_is_better=lower_is_better)}

    def debuggable(
        self, nodes: Sequence[JournalNode], under_way: Sequence[Expansion] = ()
    ) -> tuple[JournalNode, ...]:
        """Return the failures that may be repaired, in the order of their steps.

        Raises:
            InputError: A program names a parent that does not come before it.
        """
        followed = {node.parent_id for node in nodes} | {each.parent_id for each in under_way}
        depths = debug_depths(nodes)
        most = self.debug_depth if self.published_depth else self.debug_depth - 1
        return tuple(
            node
            for node in nodes
            if node.is_buggy and node.id not in followed and depths[node.id] <= most
        )


def debug_depths(nodes: Sequence[JournalNode]) -> Mapping[str, int]:
    """Return the debug depth of each program: the repairs in a row that led to it.

    Raises:
        InputError: A program names a parent that does not come before it.
    """
    failed: dict[str, bool] = {}
    depths: dict[str, int] = {}
    for node in nodes:
        if node.parent_id is not None and node.parent_id not in failed:
            msg = (
                f"node {node.id!r:.80} (step {node.step}) names the parent {node.parent_id!r:.80},"
                " which is no node of an earlier step"
            )
            raise InputError(msg)
        repairs = node.parent_id is not None and failed[node.parent_id]
        depths[node.id] = depths[str(node.parent_id)] + 1 if repairs else 0
        failed[node.id] = node.is_buggy
    return depths


def best_node(nodes: Sequence[JournalNode], *, lower_is_better: bool) -> JournalNode | None:
    """Return the best working program, of equal ones the earliest; `None` where none works."""
    working = [node for node in nodes if not node.is_buggy]
    return min(working, key=lambda node: _badness(node, lower_is_better), default=None)


def _badness(node: JournalNode, lower_is_better: bool) -> float:
    """Return what the best program has least of; a working one without a metric has most."""
    if node.metric is None:
        return math.inf
    return node.metric if lower_is_better else -node.metric


def _drafted(nodes: Sequence[JournalNode], under_way: Sequence[Expansion]) -> int:
    written = sum(node.parent_id is None for node in nodes)
    return written + sum(each.stage == "draft" for each in under_way)


def _greedy(nodes: Sequence[JournalNode], *, lower_is_better: bool) -> Expansion:
    best = best_node(nodes, lower_is_better=lower_is_better)
    return _DRAFT if best is None else Expansion("improve", best.id)


def unexplained(
    journal: Journal, policy: AIDEPolicy, *, lower_is_better: bool
) -> tuple[JournalNode, ...]:
    """Return the programs that a policy would never have had written when they were.

    Only for searches that wrote one program at a time: with several under way, a journal does not
    say what was known when each was chosen.

    Args:
        journal: Of any search.
        policy: With the settings that are supposed.
        lower_is_better: The metric's direction, from the competition's board.

    Raises:
        InputError: A program names a parent that does not come before it.
    """
    return tuple(
        node
        for number, node in enumerate(journal.nodes)
        if Expansion(journal.stage(node), node.parent_id)
        not in policy.admissible(journal.nodes[:number], lower_is_better=lower_is_better)
    )


@checked
def select_node(deps: SearchDeps, policy: SearchPolicy, *, width: int) -> Node[TreeState]:
    """Make the node that asks the policy for the programs of the next wave.

    There is none after the last step, nor when the hours of the search are over.

    Args:
        deps: What all nodes of the search depend on.
        policy: Chooses; it is shown what the wave already holds.
        width: Programs of a wave; the last may have fewer.
    """

    def select(state: TreeState) -> Update:
        nodes = deps.nodes(state["journal"])
        wave: list[Expansion] = []
        seconds = state.get("seconds", 0.0)
        most = 0 if deps.bounds.over(seconds) else min(width, deps.steps - len(nodes))
        while len(wave) < most:
            expansion = policy.choose(
                nodes,
                step=len(nodes) + len(wave),
                seed=state["seed"],
                lower_is_better=deps.lower_is_better,
                under_way=tuple(wave),
            )
            _check(expansion, nodes)
            wave.append(expansion)
        first = len(nodes)
        return {"wave": [_work(first + n, expansion, seconds) for n, expansion in enumerate(wave)]}

    return Node("select", select)


def branches(state: TreeState) -> list[Send] | str:
    """Send the programs of a wave to branches; without any, the search is at its end."""
    if not state["wave"]:
        return "choose"
    return [
        Send(
            "branch",
            BranchState(
                episode_id=state["episode_id"],
                preview=state["begun"]["preview"],
                journal=state["journal"],
                work=work,
            ),
        )
        for work in state["wave"]
    ]


def node_id(step: int) -> str:
    """Name the program of a step: the same in every run."""
    return f"{step:03d}"


def _work(step: int, expansion: Expansion, seconds: float) -> Work:
    return Work(
        step=step,
        id=node_id(step),
        stage=expansion.stage,
        parent_id=expansion.parent_id,
        seconds=seconds,
    )


def _check(expansion: Expansion, nodes: Sequence[JournalNode]) -> None:
    """Refuse what no branch can do: a policy may be anybody's.

    Raises:
        InputError: It repairs or betters nothing, or a draft has a parent.
    """
    known = {node.id for node in nodes}
    drafts = expansion.stage == "draft" and expansion.parent_id is None
    grows = expansion.stage in ("debug", "improve") and expansion.parent_id in known
    if not (drafts or grows):
        msg = (
            f"the policy chose {expansion!r}: a draft has no parent, and `debug` and `improve`"
            f" name a program of the journal, which has {len(nodes)}"
        )
        raise InputError(msg)
