"""One corpus of a ranked store: an index, the filter fields, and what may be out of date."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from langgraft.memory.rankers.base import RankerIndex
from langgraft.memory.stores.fields import FieldIndex
from langgraft.memory.stores.records import Address, Entry, Namespace


@dataclass(slots=True, eq=False)
class Watched:
    """A prefix whose records are being read."""

    prefix: Namespace

    disturbed: bool = field(default=False, kw_only=True)
    """A write was under way meanwhile; see `Corpora.undisturbed`."""

    def covers(self, address: Address) -> bool:
        """Say whether a record lies under the prefix."""
        return address[0][: len(self.prefix)] == self.prefix


@dataclass(slots=True, eq=False)
class Filling(Watched):
    """A reading of fields that an indexed corpus lacks."""

    updates: dict[Address, Entry | None] = field(default_factory=dict)
    """What was entered in the corpus since it began."""


@dataclass(slots=True, eq=False)
class Corpus(Watched):
    """One index over all documents under a namespace prefix."""

    index: RankerIndex

    fields: FieldIndex = field(default_factory=FieldIndex)
    """Of the same documents: the filter keys that searches have named."""

    fillings: list[Filling] = field(default_factory=list)
    """Readings of further fields that are under way."""

    dirty: dict[Address, int] = field(default_factory=dict)
    """Records written since they were read, with the version of the last write."""

    read: dict[Address, int] = field(default_factory=dict)
    """Versions as of which changed records were read; an older reading never replaces one."""

    def enter(self, address: Address, entry: Entry | None) -> None:
        """Bring one record up to date, given what the store has; `None`: no document."""
        if entry is None:
            self.index.remove(address)
        else:
            self.index.put(address, entry.text, entry.order)
        enter_fields(self.fields, address, entry)
        for filling in self.fillings:
            filling.updates[address] = entry

    def adopt(self, fields: FieldIndex, updates: Mapping[Address, Entry | None]) -> None:
        """Take over fields that were read, after bringing them up to date."""
        for address, entry in updates.items():
            enter_fields(fields, address, entry)
        self.fields.adopt(fields)


def enter_fields(fields: FieldIndex, address: Address, entry: Entry | None) -> None:
    """Bring the fields of one record up to date; only documents have any."""
    if entry is None:
        fields.remove(address)
    else:
        fields.put(address, entry.value)
