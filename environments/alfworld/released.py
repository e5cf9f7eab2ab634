"""Released games: which there are, which are dealt to `train` and `test`, and what is left out."""

import threading
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest, seeded_fraction, text_digest
from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.games import FAMILIES, Game, Library, check_family
from langgraft.environments.alfworld.reading import Folder, LeftOutError, read_game

OWN_SPLITS: Final = ("train", "valid_seen", "valid_unseen", "valid_train")
"""The names that releases give their folders; `valid_train` is in json_2.1.1 alone."""

TRAIN_GAMES: Final = 200
TEST_GAMES: Final = 100
"""How many games of a family are dealt: the sizes of the continual-memory paper."""

SEED: Final = "langgraft/alfworld/splits/1"
"""What the dealing depends on, besides the names of the games. Never change it."""

_KEPT: Final = 256
"""Games kept ready; each takes some 70 kB, and reading one anew some 5 ms."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One game on a list."""

    split: str
    """The split of the data."""
    source: str
    data: Callable[[], Mapping[str, Any]]
    """Reads what its `game.tw-pddl` holds."""


@dataclass(slots=True)
class Listing:
    """The games of a family."""

    entries: dict[str, Entry] = field(default_factory=dict)
    left_out: dict[str, tuple[str, Entry]] = field(default_factory=dict)
    """Name → the reason why it is no game of the benchmark, such as `is damaged`."""

    def add(self, folder: Folder, entry: Entry, check: Callable[[], None] | None = None) -> None:
        """Put a game on the list, or note why not; of two with one name, the first counts."""
        if folder.trial in self.entries or folder.trial in self.left_out:
            return
        try:
            folder.check()
            if check is not None:
                check()
        except LeftOutError as reason:
            self.left_out[folder.trial] = (str(reason), entry)
        except GameError:
            self.left_out[folder.trial] = ("is damaged", entry)
        else:
            self.entries[folder.trial] = entry


def deal(names: Iterable[str], family: str) -> dict[str, tuple[str, ...]]:
    """Deal a family's training games out to `train` (200) and `test` (100); `spare` is the rest.

    A game's place depends on its family and name alone: not on the order of files, the machine,
    or whether the data is a tree or a pack. Where there are fewer than 300 games, two of three go
    to `train`. The releases hold up to three trials of one and the same errand in one and the same
    room, in which things lie elsewhere: of json_2.1.2's 100 held-out games, 40 (`pick_and_place`)
    to 76 (`look_at_obj`) have such a sister in `train`.
    """
    ranked = sorted(names, key=lambda name: (seeded_fraction(SEED, family, name), name))
    dealt = min(len(ranked), TRAIN_GAMES + TEST_GAMES)
    train = dealt * TRAIN_GAMES // (TRAIN_GAMES + TEST_GAMES)
    return {
        "train": tuple(ranked[:train]),
        "test": tuple(ranked[train:dealt]),
        "spare": tuple(ranked[dealt:]),
    }


class ReleasedLibrary(Library):
    """What trees and packs of released games have in common.

    The splits are `train` and `test`, dealt from the release's own training games, and the
    release's own `valid_seen`, `valid_unseen` and `valid_train`, as far as there are any.
    """

    world: ClassVar[str] = "alfworld"

    def __init__(self, label: str, own_splits: Iterable[str]) -> None:
        self._label = label
        self._own = tuple(split for split in OWN_SPLITS if split in set(own_splits))
        self._lock = threading.RLock()
        self._listings: dict[str | None, Listing] = {}
        self._splits: dict[str, dict[str, tuple[str, ...]]] = {}
        self._kept = lru_cache(_KEPT)(self._read)

    @abstractmethod
    def _list(self, family: str | None) -> Listing:
        """List the games of a family; of `None`, those that are of no family."""

    @override
    def splits(self) -> tuple[str, ...]:
        dealt = ("train", "test") if "train" in self._own else ()
        return (*dealt, *(split for split in self._own if split != "train"))

    @override
    def names(self, family: str, split: str) -> tuple[str, ...]:
        check_family(family)
        if split not in self.splits():
            why = "" if "train" in self._own else " (train and test are dealt from training games)"
            there = ", ".join(self.splits())
            raise SettingsError(f"{self._label} has no split {split!r}; there are {there}{why}")
        names = self._split(family)[split]
        if not names:
            raise SettingsError(f"{self._label} has no game of {family} in {split}")
        return names

    @override
    def find(self, family: str, name: str) -> Game:
        check_family(family)
        return self._kept(family, name)

    def left_out(self, *families: str) -> dict[str, int]:
        """Count the games that are not played: reason → how many.

        Args:
            families: Those that are asked about; with none named, all there is in the data.
        """
        reasons: Counter[str] = Counter()
        asked: tuple[str | None, ...] = families or (*FAMILIES, None)
        for family in asked:
            listing = self._listing(family)
            reasons.update(reason for reason, _ in listing.left_out.values())
        return dict(sorted(reasons.items()))

    @override
    def describe(self, *families: str) -> dict[str, JSON]:
        return {
            "world": self.world,
            "games": {family: self._describe(family) for family in families or FAMILIES},
        }

    def _describe(self, family: str) -> JSON:
        check_family(family)
        described: dict[str, JSON] = {"left_out": self.left_out(family)}
        for split, names in self._split(family).items():
            if split != "spare":
                games: list[JSON] = [self._digest(family, name) for name in names]
                described[split] = {"games": len(names), "digest": digest(games)}
        return described

    def _digest(self, family: str, name: str) -> JSON:
        data = self._listing(family).entries[name].data()
        keys = ("pddl_domain", "grammar", "pddl_problem")
        return [name, *(text_digest(ascii(data.get(key))) for key in keys)]

    def _read(self, family: str, name: str) -> Game:
        listing = self._listing(family)
        if name in listing.left_out:
            reason, entry = listing.left_out[name]
            entry.data()  # says in full what is damaged
            raise GameError(f"the game {reason}, so it is not played", source=entry.source)
        if name not in listing.entries:
            raise SettingsError(f"{self._label} has no game {name!r} of {family}")
        entry = listing.entries[name]
        splits = self._split(family)
        split = next(split for split, names in splits.items() if name in names)
        return read_game(entry.data(), name=name, family=family, split=split, source=entry.source)

    def _listing(self, family: str | None) -> Listing:
        with self._lock:
            if family not in self._listings:
                self._listings[family] = self._list(family)
            return self._listings[family]

    def _split(self, family: str) -> dict[str, tuple[str, ...]]:
        with self._lock:
            if family not in self._splits:
                self._splits[family] = self._divide(family)
            return self._splits[family]

    def _divide(self, family: str) -> dict[str, tuple[str, ...]]:
        own: dict[str, list[str]] = {split: [] for split in self._own}
        for name, entry in sorted(self._listing(family).entries.items()):
            own[entry.split].append(name)
        divided = deal(own.pop("train"), family) if "train" in own else {}
        return divided | {split: tuple(names) for split, names in own.items()}
