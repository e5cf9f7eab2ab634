"""AIRA's policies (arXiv:2507.02554).

`UCTPolicy` searches by upper confidence bounds, without rollouts; `EvolutionPolicy` by generations of programs,
improved one by one or merged two by two.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Final

from langgraft._core.arguments import check_whole
from langgraft._core.canonical import JSON, seeded_fraction
from langgraft._core.errors import SettingsError
from langgraft.nodes.search.deps import Scope
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.policy import (
    JUST_BEGUN,
    Expansion,
    Progress,
    check_scope,
    check_share,
    fitness,
    is_repair,
    repair_first,
)

DIGITS: Final = 9
"""Places that values are rounded to before they are compared: ties are ties on every machine."""


@dataclass(frozen=True, slots=True)
class UCTPolicy:
    """UCT over programs, after the MCTS agent of AIRA (arXiv:2507.02554), as a rule for one step.

    The task is the root, drafts are its children, and improvements the children of a program that
    works. What a repair gave lies below what it repairs.

    1. A failure that nothing follows, after fewer than `debug_depth` repairs in a row: repair the
       earliest.
    2. The task has fewer than `children` drafts: another draft.
    3. Descend from the task: at a program that works, has a score and has fewer than `children`
       children, stop, and improve it; else go to the child with the best bound, of equal ones the
       earliest. Only children with a program to stop at in or below them are compared, and with
       `top` the best so many of them by mean value.
    4. Nowhere to stop: another draft, however many there are.

    The bound of a child is its mean value + c·√(ln N / n): `n` are the visits of the child, `N`
    those of its parent. Each program with a score is a visit of itself and of all above it, and is
    worth its score, from 0 (the worst of the search) to 1 (the best). Failures are no visits. What is
    under way is a visit that is worth 0 (a virtual loss) and a child of its parent: branches that
    run side by side spread out, and which of them ends first does not matter.

    | setting | here | AIRA |
    |---|---|---|
    | `children` | 5 | 5 |
    | `c` | 0.25 | 0.25 |
    | `decay` | 0: `c` stays; 1: it falls to 0 as the last step comes | - |
    | `top` | all | - |
    | `debug_depth` | 3 (mle-agent-memory Table 6) | 20 |

    Where it departs: AIRA expands a leaf by all its children at once and only then looks at their
    scores, here each step looks at all there are; there a leaf that failed for good can be chosen
    and improved, here never.
    """

    children: int = 5
    """Programs written from one, at most: drafts from the task, improvements from a program."""
    c: float = 0.25
    """Weight of what is little explored."""
    decay: float = 0.0
    """Share of `c` that is gone when all steps are used; it falls in a line."""
    top: int | None = None
    """Children that are compared on the way down, the best by mean value; `None`: all."""
    debug_depth: int = 3
    """Largest number of repairs in a row."""
    scope: Scope = "all"
    """Which attempts the writer is told of."""

    def __post_init__(self) -> None:
        """Refuse settings that no search can follow.

        Raises:
            SettingsError: One of them is out of its range.
        """
        check_whole("children", self.children)
        check_whole("debug_depth", self.debug_depth, 0)
        if self.top is not None:
            check_whole("top", self.top)
        number = isinstance(self.c, int | float) and not isinstance(self.c, bool)
        if not number or not 0 <= self.c < math.inf:
            msg = f"c={self.c!r:.80}: give a number of at least 0"
            raise SettingsError(msg)
        check_share("decay", self.decay)
        check_scope(self.scope)

    def describe(self) -> dict[str, JSON]:
        """Return the policy's name and settings as JSON."""
        return {"policy": "uct", **asdict(self)}

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
        """Return what to write next, as `SearchPolicy` has it; chance has no part in it.

        Raises:
            InputError: A program names a parent that does not come before it.
        """
        del step, seed
        if failure := repair_first(nodes, under_way, depth=self.debug_depth):
            return Expansion("debug", failure.id)
        tree = _Tree.grown(nodes, fitness(nodes, lower_is_better=lower_is_better), under_way)
        target = None
        if tree.width[None] >= self.children:
            target = self._descend(tree, self.c * (1 - self.decay * progress.steps))
        if target is None:
            return Expansion("draft", scope=self.scope)
        return Expansion("improve", target, scope=self.scope)

    def _descend(self, tree: "_Tree", c: float) -> str | None:
        """Return the program that is improved; `None` where there is none."""
        stops = {name for name in tree.scored if tree.width[name] < self.children}
        leading = {each for name in stops for each in tree.line(name)}
        at: str | None = None
        while at not in stops:
            ways = [child for child in tree.below[at] if child in leading]
            if not ways:
                return None
            ways = sorted(ways, key=tree.mean, reverse=True)[: self.top]  # equal ones as they were
            above = math.log(tree.visits[at])
            ways.sort(key=tree.order.__getitem__)
            at = max(ways, key=lambda way: tree.bound(way, c, above))
        return at


@dataclass(frozen=True, slots=True)
class _Tree:
    """A journal as a tree with statistics; `None` is the task."""

    parents: Mapping[str, str | None]
    scored: Mapping[str, Fraction]
    order: Mapping[str, int]
    below: dict[str | None, list[str]] = field(default_factory=lambda: defaultdict(list))
    width: dict[str | None, int] = field(default_factory=lambda: defaultdict(int))
    """Children, with those under way."""
    visits: dict[str | None, int] = field(default_factory=lambda: defaultdict(int))
    worth: dict[str | None, Fraction] = field(default_factory=lambda: defaultdict(Fraction))

    @classmethod
    def grown(
        cls,
        nodes: Sequence[JournalNode],
        scored: Mapping[str, Fraction],
        under_way: Sequence[Expansion],
    ) -> "_Tree":
        """Make the tree; a merge, which other policies write, is a child of its first parent."""
        parents = {node.id: node.parent_id for node in nodes}
        tree = cls(parents, scored, {node.id: place for place, node in enumerate(nodes)})
        for node in nodes:
            tree.below[node.parent_id].append(node.id)
            tree.width[node.parent_id] += 1
            if node.id in scored:
                tree._visit(node.id, scored[node.id])
        for each in under_way:
            tree.width[each.parent_id] += 1
            tree._visit(each.parent_id, Fraction(0))
        return tree

    def line(self, name: str | None) -> list[str | None]:
        """Return a program and all above it, with the task at the end."""
        found = [name]
        while name is not None:
            name = self.parents[name]
            found.append(name)
        return found

    def mean(self, name: str) -> Fraction:
        """Return the mean value of what lies in and below a program."""
        return self.worth[name] / self.visits[name]

    def bound(self, name: str, c: float, log_above: float) -> float:
        """Return the upper confidence bound of a child."""
        return round(float(self.mean(name)) + c * math.sqrt(log_above / self.visits[name]), DIGITS)

    def _visit(self, name: str | None, worth: Fraction) -> None:
        for each in self.line(name):
            self.visits[each] += 1
            self.worth[each] += worth


@dataclass(frozen=True, slots=True)
class EvolutionPolicy:
    """Evolution of programs, after the evolutionary agent of AIRA (arXiv:2507.02554), step by step.

    An *individual* is a draft, an improvement or a merge, with all its repairs. The first
    `generation` individuals are generation 0, the next ones generation 1, and so on.

    1. A failure that nothing follows, after fewer than `debug_depth` repairs in a row: repair the
       earliest.
    2. Generation 0: a draft.
    3. The population are the programs with a score whose individuals are of earlier generations, of
       these the best `population`, of equal ones the earlier. There is none: a draft.
    4. From generation `crossover_from` on, with the chance `crossover` and two in the population:
       merge two different ones. Otherwise improve one.

    A parent is drawn in proportion to its fitness, from 0 (the worst score of the search) to 1 (the
    best), evenly where all of it is 0; or, with `tournament`, as the best of that many that are drawn
    evenly and may be the same. The second parent is drawn likewise from the others. Chance is a
    function of the search's seed and the step.

    What is under way counts as an individual of its generation, and its outcome for nobody: parents
    are of earlier generations, and of what is in the journal.

    | setting | here | AIRA |
    |---|---|---|
    | `generation` | 5 | 5 |
    | `population` | 10 | 500, and a newcomer has to be as good as the mean |
    | `crossover` | 0.5 | 0.5 |
    | `crossover_from` | 2 | 2 |
    | `tournament` | none | none: proportional, at a temperature of 1 |
    | `debug_depth` | 3 (mle-agent-memory Table 6) | 10 |

    Where it departs: one population and no islands (AIRA's runs have one, too); the best survive,
    where AIRA admits by the mean: in thirty programs a population of 500 would forget nothing.
    """

    generation: int = 5
    """Individuals of a generation."""
    population: int = 10
    """Programs that parents are drawn from, at most."""
    crossover: float = 0.5
    """Chance that an individual is a merge of two."""
    crossover_from: int = 2
    """The first generation with merges."""
    tournament: int | None = None
    """Members that compete to be a parent; `None`: drawn in proportion to fitness."""
    debug_depth: int = 3
    """Largest number of repairs in a row."""
    scope: Scope = "all"
    """Which attempts the writer is told of."""

    def __post_init__(self) -> None:
        """Refuse settings that no search can follow.

        Raises:
            SettingsError: One of them is out of its range.
        """
        for name, least in (("generation", 1), ("population", 1), ("crossover_from", 1)):
            check_whole(name, getattr(self, name), least)
        check_whole("debug_depth", self.debug_depth, 0)
        if self.tournament is not None:
            check_whole("tournament", self.tournament)
        check_share("crossover", self.crossover)
        check_scope(self.scope)

    def describe(self) -> dict[str, JSON]:
        """Return the policy's name and settings as JSON."""
        return {"policy": "evolution", **asdict(self)}

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
        if failure := repair_first(nodes, under_way, depth=self.debug_depth):
            return Expansion("debug", failure.id)
        number = individuals(nodes)
        begun = len(set(number.values())) + sum(each.stage != "debug" for each in under_way)
        now = begun // self.generation
        worth = fitness(nodes, lower_is_better=lower_is_better)
        members = [name for name in worth if number[name] < now * self.generation]
        members = sorted(members, key=worth.__getitem__, reverse=True)[: self.population]
        if not members:
            return Expansion("draft", scope=self.scope)
        drawn = self._drawn(members, worth, "parent", seed, step)
        others = [name for name in members if name != drawn]
        merges = now >= self.crossover_from and bool(others)
        if merges and seeded_fraction("evolution", "crossover", seed, step) < self.crossover:
            partner = self._drawn(others, worth, "partner", seed, step)
            return Expansion("merge", drawn, partner, scope=self.scope)
        return Expansion("improve", drawn, scope=self.scope)

    def _drawn(
        self, members: Sequence[str], worth: Mapping[str, Fraction], what: str, seed: int, step: int
    ) -> str:
        """Draw a parent; members stand with the best first, of equal ones the earlier."""
        if self.tournament is not None:
            places = (
                int(seeded_fraction("evolution", what, entry, seed, step) * len(members))
                for entry in range(self.tournament)
            )
            return members[min(places)]
        weights = [worth[name] for name in members]
        if not any(weights):
            weights = [Fraction(1)] * len(members)
        left = Fraction(seeded_fraction("evolution", what, seed, step)) * sum(weights)
        for name, weight in zip(members, weights, strict=True):
            if left < weight:
                return name
            left -= weight
        raise AssertionError("a share below 1 falls on one of them")


def individuals(nodes: Sequence[JournalNode]) -> dict[str, int]:
    """Return the number of the individual that each program belongs to, from 0 in order of steps."""
    failed: dict[str, bool] = {}
    number: dict[str, int] = {}
    begun = 0
    for node in nodes:
        if is_repair(node, failed):
            number[node.id] = number[str(node.parent_id)]
        else:
            number[node.id] = begun
            begun += 1
        failed[node.id] = node.is_buggy
    return number
