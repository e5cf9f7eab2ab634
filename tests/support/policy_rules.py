"""The rules of UCT and of evolution, stated a second time, and journals to try them on.

Nothing here shares code or approach with `langgraft.nodes.search.aira` and `.evolution`. A journal is
a table of rows; what is above a program is asked of the table each time; UCT is a contest of all
programs that may be improved, in rounds, and nobody descends; evolution counts individuals by
following repairs back. Everything is counted anew at every question.
"""

import math
from collections.abc import Iterator
from fractions import Fraction
from random import Random

from langgraft._core.canonical import seeded_fraction
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.policy import Expansion

Told = tuple[str, str | None, str | None]
"""Stage, parent and partner."""


class Table:
    """A journal, and what is under way, to be asked about."""

    def __init__(self, nodes: list[JournalNode], begun: list[Expansion], lower: bool) -> None:
        self.rows = {node.id: node for node in nodes}
        self.names = [node.id for node in nodes]
        self.begun = begun
        self.sign = -1 if lower else 1

    def valid(self, name: str) -> bool:
        """Say whether a program has a score."""
        row = self.rows[name]
        return not row.is_buggy and row.metric is not None and math.isfinite(row.metric)

    def score(self, name: str) -> Fraction:
        """Return a score of which more is better."""
        metric = self.rows[name].metric
        assert metric is not None
        return self.sign * Fraction(metric)

    def worth(self, name: str) -> Fraction:
        """Return where a score lies between the worst and the best."""
        scores = [self.score(each) for each in self.names if self.valid(each)]
        spread = max(scores) - min(scores)
        return (self.score(name) - min(scores)) / spread if spread else Fraction(1, 2)

    def above(self, name: str | None) -> Iterator[str]:
        """Yield a program, its parent, the parent of that, and so on."""
        if name is not None:
            yield name
            yield from self.above(self.rows[name].parent_id)

    def mends(self, name: str) -> bool:
        """Say whether a program is a repair."""
        row = self.rows[name]
        return (
            not row.partner_id and bool(row.parent_id) and self.rows[row.parent_id or ""].is_buggy
        )

    def repairs(self, name: str) -> int:
        """Count the repairs in a row that end in a program."""
        return 1 + self.repairs(self.rows[name].parent_id or "") if self.mends(name) else 0

    def children(self, name: str | None) -> int:
        """Count what was written from a program, or from nothing, or is being written."""
        written = sum(self.rows[each].parent_id == name for each in self.names)
        return written + sum(each.parent_id == name for each in self.begun)

    def to_repair(self, most: int) -> str | None:
        """Return the first failure that is to be repaired."""
        for name in self.names:
            fresh = self.rows[name].is_buggy and not self.children(name)
            if fresh and self.repairs(name) < most:
                return name
        return None


def uct_choice(table: Table, *, children: int, c: float, top: int | None, debug_depth: int) -> Told:
    """Say what UCT does next; `c` as it is at this step."""
    if failure := table.to_repair(debug_depth):
        return "debug", failure, None
    runners = [n for n in table.names if table.valid(n) and table.children(n) < children]
    if table.children(None) < children or not runners:
        return "draft", None, None
    lines = {name: list(table.above(name))[::-1] for name in runners}

    def below(name: str | None) -> list[str]:
        return [
            n for n in table.names if table.valid(n) and (name is None or name in table.above(n))
        ]

    def lost(name: str | None) -> int:
        return sum(name is None or name in table.above(each.parent_id) for each in table.begun)

    def mean(name: str) -> Fraction:
        found = below(name)
        return sum(map(table.worth, found), Fraction(0)) / (len(found) + lost(name))

    def bound(name: str, parent: str | None) -> float:
        tried = len(below(name)) + lost(name)
        all_tried = len(below(parent)) + lost(parent)
        return round(float(mean(name)) + c * math.sqrt(math.log(all_tried) / tried), 9)

    reached: str | None = None
    for level in range(len(table.names)):
        # Those who stand in the way of others are improved themselves.
        here = sorted({line[level] for line in lines.values()}, key=table.names.index)
        rivals = sorted(here, key=lambda n: (-mean(n), table.names.index(n)))[:top]
        best = max(bound(each, reached) for each in rivals)
        reached = next(n for n in here if n in rivals and bound(n, reached) == best)
        if reached in runners:
            break
        lines = {n: line for n, line in lines.items() if line[level] == reached}
    return "improve", reached, None


def evolution_choice(
    table: Table,
    *,
    seed: int,
    step: int,
    generation: int,
    population: int,
    crossover: float,
    crossover_from: int,
    tournament: int | None,
    debug_depth: int,
) -> Told:
    """Say what evolution does next."""
    if failure := table.to_repair(debug_depth):
        return "debug", failure, None
    founders = [name for name in table.names if not table.mends(name)]
    count = len(founders) + len([each for each in table.begun if each.stage != "debug"])
    age = count - count % generation

    def founder(name: str) -> str:
        return founder(table.rows[name].parent_id or "") if table.mends(name) else name

    old = [n for n in table.names if table.valid(n) and founders.index(founder(n)) < age]
    ranked = sorted(old, key=lambda n: (-table.worth(n), table.names.index(n)))[:population]
    if not ranked:
        return "draft", None, None

    def draw(members: list[str], what: str) -> str:
        if tournament is not None:
            drawn = [
                members[
                    math.floor(seeded_fraction("evolution", what, k, seed, step) * len(members))
                ]
                for k in range(tournament)
            ]
            return min(drawn, key=ranked.index)
        total = sum(map(table.worth, members), Fraction(0))
        mark = Fraction(seeded_fraction("evolution", what, seed, step))
        for end in range(1, len(members) + 1):
            part = sum(map(table.worth, members[:end]), Fraction(0))
            if mark < (part / total if total else Fraction(end, len(members))):
                return members[end - 1]
        raise AssertionError

    first = draw(ranked, "parent")
    rest = [name for name in ranked if name != first]
    coin = seeded_fraction("evolution", "crossover", seed, step)
    if count // generation >= crossover_from and rest and coin < crossover:
        return "merge", first, draw(rest, "partner")
    return "improve", first, None


def bushy_journal(random: Random, *, most: int = 30) -> list[JournalNode]:
    """Make a journal of any shape: merges, lone failures, ties, scores that are missing or huge."""
    bugginess = random.choice([0.0, 0.2, 0.5, 0.9])
    roots = random.choice([0.1, 0.3, 0.6])
    metrics = random.choice([[0.5], [0.0, 0.25, 0.5, 1.0], [-1.7e308, 0.1, 0.3, 1.7e308], None])
    nodes: list[JournalNode] = []
    for step in range(random.randrange(most + 1)):
        parent = None if not nodes or random.random() < roots else random.choice(nodes)
        working = [node.id for node in nodes if not node.is_buggy and node is not parent]
        partner = None
        if parent is not None and not parent.is_buggy and working and random.random() < 0.2:
            partner = random.choice(working)
        metric = random.random() if metrics is None else random.choice(metrics)
        buggy = random.random() < bugginess
        nodes.append(
            JournalNode(
                step=step,
                id=f"{step:03d}",
                parent_id=None if parent is None else parent.id,
                partner_id=partner,
                plan="a plan",
                code="pass",
                metric=None if buggy or random.random() < 0.05 else metric,
                is_buggy=buggy,
            )
        )
    return nodes


def under_way(random: Random, nodes: list[JournalNode]) -> list[Expansion]:
    """Begin some programs that a wave may hold."""
    begun: list[Expansion] = []
    free = [node for node in nodes if node.is_buggy]
    working = [node.id for node in nodes if not node.is_buggy]
    for _ in range(random.choice([0, 0, 1, 2, 3])):
        match random.choice(["draft", "improve", "debug", "merge"]):
            case "improve" if working:
                begun.append(Expansion("improve", random.choice(working)))
            case "merge" if len(working) > 1:
                first, second = random.sample(working, 2)
                begun.append(Expansion("merge", first, second))
            case "debug" if free:
                begun.append(Expansion("debug", free.pop(random.randrange(len(free))).id))
            case _:
                begun.append(Expansion("draft"))
    return begun
