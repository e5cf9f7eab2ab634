"""`EvolutionPolicy`: generations of programs, improved one by one or merged two by two."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from langgraft._core.arguments import check_whole
from langgraft._core.canonical import JSON, seeded_fraction
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
