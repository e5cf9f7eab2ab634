"""Which programs to write next: `SearchPolicy`, AIDE's (`AIDEPolicy`), and the node `select`.

Other policies have modules of their own, and share what stands here: which failures can be repaired,
and what a score is worth among those of a search.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, get_args

from langgraph.types import Send

from langgraft._core.arguments import check_whole, checked
from langgraft._core.canonical import JSON, seeded_fraction
from langgraft._core.errors import InputError, SettingsError
from langgraft.nodes.dialogue import Node, Update
from langgraft.nodes.search.deps import BranchState, Scope, SearchDeps, TreeState, Work
from langgraft.nodes.search.journal import Journal, JournalNode, Stage


@dataclass(frozen=True, slots=True)
class Expansion:
    """A program that is to be written, or is being written.

    `stage` says whether it is a draft, a repair or an improvement.
    """

    stage: Stage
    parent_id: str | None = None
    """The program to repair or to better, or the first of a merge; `None` for a draft."""
    partner_id: str | None = None
    """The second program of a merge."""
    hint: str = ""
    """What the writer is told beside the prompt, in a line or two."""
    scope: Scope = "all"
    """Which of the search's attempts the writer is told of."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a search is used up; shares from 0 to 1, of what the search was given."""

    steps: float = 0.0
    """Of its programs: those that are written or under way."""
    time: float = 0.0
    """Of its hours, as its state has recorded them; 0 where there is no limit."""


JUST_BEGUN = Progress()


class SearchPolicy(Protocol):
    """Chooses what to do next; the same question has the same answer, in every process.

    It looks at what it is told and at nothing else: no clock, and no chance but that of `seed`. What
    `describe()` returns as JSON, if there is one, says which policy it is: a search goes on with the
    policy that it was begun with.
    """

    def choose(
        self,
        nodes: Sequence[JournalNode],
        *,
        step: int,
        seed: int,
        lower_is_better: bool,
        under_way: Sequence[Expansion] = (),
        progress: Progress = JUST_BEGUN,
    ) -> Expansion | None:
        """Return what to write as program number `step`; `None` ends the search.

        Args:
            nodes: All programs so far, in the order of their steps.
            step: Number of the program to be written, from 0.
            seed: Of the search; chance is a function of this and `step`.
            lower_is_better: The metric's direction, from the competition's board.
            under_way: What else is being written meanwhile, in the order of the steps. What comes
                of it is not known: which branch is done first must not matter.
            progress: How much of the search is used up.
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
    scope: Scope = "all"
    """Which attempts the writer is told of; AIDE: all."""

    def __post_init__(self) -> None:
        """Refuse settings that no search can follow.

        Raises:
            SettingsError: One of them is out of its range.
        """
        for name, least in (("drafts", 1), ("debug_depth", 0)):
            check_whole(name, getattr(self, name), least)
        check_share("debug_probability", self.debug_probability)
        if not isinstance(self.published_depth, bool):
            msg = f"published_depth={self.published_depth!r:.80}: give true or false"
            raise SettingsError(msg)
        check_scope(self.scope)

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
        progress: Progress = JUST_BEGUN,
    ) -> Expansion:
        """Return what to write as program number `step`, as `SearchPolicy` has it.

        Raises:
            InputError: A program names a parent that does not come before it.
        """
        del progress
        if _drafted(nodes, under_way) < self.drafts:
            return replace(_DRAFT, scope=self.scope)
        if seeded_fraction("aide", "debug", seed, step) < self.debug_probability:
            leaves = self.debuggable(nodes, under_way)
            if leaves:
                drawn = int(seeded_fraction("aide", "leaf", seed, step) * len(leaves))
                return Expansion("debug", leaves[drawn].id)
        return replace(_greedy(nodes, lower_is_better=lower_is_better), scope=self.scope)

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
        most = self.debug_depth if self.published_depth else self.debug_depth - 1
        return failed_leaves(nodes, under_way, most=most)


def failed_leaves(
    nodes: Sequence[JournalNode], under_way: Sequence[Expansion], *, most: int
) -> tuple[JournalNode, ...]:
    """Return the failures that nothing follows, of a debug depth of at most `most`, in order.

    Raises:
        InputError: A program names a parent that does not come before it.
    """
    followed = {node.parent_id for node in nodes} | {each.parent_id for each in under_way}
    depths = debug_depths(nodes)
    return tuple(
        node
        for node in nodes
        if node.is_buggy and node.id not in followed and depths[node.id] <= most
    )


def repair_first(
    nodes: Sequence[JournalNode], under_way: Sequence[Expansion], *, depth: int
) -> JournalNode | None:
    """Return the earliest failure that a policy with at most `depth` repairs in a row repairs now.

    Raises:
        InputError: A program names a parent that does not come before it.
    """
    return next(iter(failed_leaves(nodes, under_way, most=depth - 1)), None)


def is_repair(node: JournalNode, failed: Mapping[str, bool]) -> bool:
    """Say whether a program is a repair, by what is known of the programs before it."""
    return node.parent_id is not None and node.partner_id is None and failed[node.parent_id]


def fitness(nodes: Sequence[JournalNode], *, lower_is_better: bool) -> dict[str, Fraction]:
    """Return what each score is worth among all of them: 1 the best, 0 the worst, 1/2 if all are equal.

    Only programs that work and have a finite metric have one. Fractions are exact: sums and means
    of them do not depend on an order.
    """
    scores = {
        node.id: Fraction(node.metric)
        for node in nodes
        if not node.is_buggy and node.metric is not None and math.isfinite(node.metric)
    }
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if low == high:
        return dict.fromkeys(scores, Fraction(1, 2))
    worst, best = (high, low) if lower_is_better else (low, high)
    return {name: (score - worst) / (best - worst) for name, score in scores.items()}


def check_share(name: str, value: object) -> None:
    """Refuse a setting that is no number from 0 to 1.

    Raises:
        SettingsError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        msg = f"{name}={value!r:.80}: give a number from 0 to 1"
        raise SettingsError(msg)


def check_scope(scope: object) -> None:
    """Refuse what is no scope of attempts.

    Raises:
        SettingsError: It is none.
    """
    known = get_args(Scope)
    if scope not in known:
        msg = f"scope={scope!r:.80}: give one of {', '.join(known)}"
        raise SettingsError(msg)


def debug_depths(nodes: Sequence[JournalNode]) -> Mapping[str, int]:
    """Return the debug depth of each program: the repairs in a row that led to it.

    Raises:
        InputError: A program names a parent that does not come before it.
    """
    failed: dict[str, bool] = {}
    depths: dict[str, int] = {}
    for node in nodes:
        for parent in node.parent_ids:
            if parent not in failed:
                msg = (
                    f"node {node.id!r:.80} (step {node.step}) names the parent {parent!r:.80},"
                    " which is no node of an earlier step"
                )
                raise InputError(msg)
        depths[node.id] = depths[str(node.parent_id)] + 1 if is_repair(node, failed) else 0
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
        if Expansion(journal.stage(node), node.parent_id, node.partner_id)
        not in policy.admissible(journal.nodes[:number], lower_is_better=lower_is_better)
    )


@checked
def select_node(deps: SearchDeps, policy: SearchPolicy, *, width: int) -> Node[TreeState]:
    """Make the node that asks the policy for the programs of the next wave.

    A wave without programs ends the search: the steps or the hours are used up, or the policy says
    so.

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
            step = len(nodes) + len(wave)
            expansion = policy.choose(
                nodes,
                step=step,
                seed=state["seed"],
                lower_is_better=deps.lower_is_better,
                under_way=tuple(wave),
                progress=Progress(step / deps.steps, deps.bounds.share(seconds)),
            )
            if expansion is None:
                break
            _check(expansion, nodes)
            wave.append(expansion)
        first = len(nodes)
        return {"wave": [_work(first + n, expansion, seconds) for n, expansion in enumerate(wave)]}

    return Node("select", select)


def identity_of(policy: SearchPolicy) -> dict[str, Any]:
    """Return what a search notes of its policy: what it says of itself, or else its class."""
    describe = getattr(policy, "describe", None)
    if callable(describe):
        return dict(describe())
    return {"policy": f"{type(policy).__module__}:{type(policy).__qualname__}"}


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
    work = Work(
        step=step,
        id=node_id(step),
        stage=expansion.stage,
        parent_id=expansion.parent_id,
        seconds=seconds,
    )
    if expansion.partner_id is not None:
        work["partner_id"] = expansion.partner_id
    if expansion.hint.strip():
        work["hint"] = " ".join(expansion.hint.split())
    if expansion.scope != "all":
        work["scope"] = expansion.scope
    return work


def _check(expansion: Expansion, nodes: Sequence[JournalNode]) -> None:
    """Refuse what no branch can do: a policy may be anybody's.

    Raises:
        InputError: It repairs or betters nothing, a draft has a parent, or a merge has not two
            different ones that work.
    """
    known = {node.id for node in nodes}
    parents = (expansion.parent_id, expansion.partner_id)
    match expansion.stage:
        case "draft":
            possible = parents == (None, None)
        case "merge":
            working = {node.id for node in nodes if not node.is_buggy}
            possible = len(working.intersection(parents)) == len(parents)
        case _:
            possible = parents[0] in known and parents[1] is None
    if not possible:
        msg = (
            f"the policy chose {expansion!r}: a draft has no parent, `debug` and `improve` name one"
            f" program of the journal, which has {len(nodes)}, and `merge` two that work"
        )
        raise InputError(msg)
