"""The library of generated games: no data needed, and no ALFWorld scores to be had."""

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.games import FAMILIES, Game, check_family
from langgraft.environments.alfworld.generator.make import make_game

SPLITS: Final[dict[str, range]] = {"train": range(200), "test": range(200, 300)}
"""Split → seeds."""

SAMPLE: Final = 20
"""How many games of a family tell one generator from another."""


@dataclass(frozen=True, slots=True)
class GeneratedLibrary:
    """Games made on demand by family and seed, from the installed package's rules.

    Use it to try things out and in tests. The rooms are smaller than the released ones: success
    rates on these games say nothing of the ALFWorld benchmark.
    """

    world: ClassVar[str] = "alfworld-generated"

    def splits(self) -> tuple[str, ...]:
        """Return the splits there are."""
        return tuple(SPLITS)

    def names(self, family: str, split: str) -> tuple[str, ...]:
        """Return the seeds of a split.

        Raises:
            SettingsError: There is no such family or split.
        """
        check_family(family)
        if split not in SPLITS:
            raise SettingsError(f"generated games have no split {split!r}: {', '.join(SPLITS)}")
        return tuple(map(str, SPLITS[split]))

    def find(self, family: str, name: str) -> Game:
        """Make the game of a seed.

        Raises:
            SettingsError: There is no such family or seed.
            MissingExtraError: alfworld is not installed.
        """
        check_family(family)
        if re.fullmatch("0|[1-9][0-9]{0,2}", name):
            for split, seeds in SPLITS.items():
                if int(name) in seeds:
                    return make_game(family, int(name), split)
        raise SettingsError(
            f"no generated game {name!r}: they are named by a seed from 0 to {SPLITS['test'][-1]}"
        )

    def describe(self, *families: str) -> dict[str, JSON]:
        """Say what is in use: it changes when the generator or the package's rules do.

        Args:
            families: Those that are in use; with none named, all of them.
        """
        games: dict[str, JSON] = {}
        for family in families or FAMILIES:
            first = [self.find(family, str(seed)) for seed in range(SAMPLE)]
            games[family] = digest([[game.domain, game.grammar, game.problem] for game in first])
        return {"world": self.world, "games": games}
