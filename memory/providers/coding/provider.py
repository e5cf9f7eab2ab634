"""`CodingMemory`: errors and their fixes, by task and package (mle-agent-memory §3.3).

The stages of a tree are `draft`, `debug` and `improve`; steps count the programs of a search from
0, over all of its branches. An agent that works step by step has one stage, `start`: the message
that an attempt begins with. The settings of a preset are the same for both. What a bank holds when
a run begins is no setting: it is empty, or it was built by earlier runs.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, Self, TypeAlias, cast

from langgraph.store.base import GetOp, Item
from pydantic import Field as SettingsField
from pydantic import SkipValidation, field_validator, model_validator
from typing_extensions import override

from langgraft._core.canonical import JSON, portable_text
from langgraft._core.effects import adrive, drive
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory import bank
from langgraft.memory.model import (
    Annotate,
    BankContent,
    Change,
    Episode,
    ErrorKind,
    ErrorRecord,
    MemoryItem,
    Question,
    Verdict,
)
from langgraft.memory.provider import FILED, MemoryProvider, Need
from langgraft.memory.providers.coding.entries import (
    KIND,
    PROVEN,
    READ_OFF,
    TASK,
    CodingEntry,
    Filing,
    edited_entry,
    entries_key,
    entries_of,
    entry_of,
    has_words,
    in_place,
    same_place,
    shown_neighbours,
    without_entry,
)
from langgraft.memory.providers.coding.tracebacks import canonical_error, parse_traceback
from langgraft.memory.providers.retrieval import RetrievalSettings, retrieve
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.dense import Dense
from langgraft.memory.recall import Filter, Found, RecallContext, ranked_items
from langgraft.memory.stores.filters import passes
from langgraft.memory.stores.programs import Program

KINDS: Final[tuple[ErrorKind, ...]] = ("code", "environment", "resource")

KindsByStage: TypeAlias = tuple[tuple[str, tuple[ErrorKind, ...]], ...]


class CodingSettings(RetrievalSettings):
    """Settings of `CodingMemory`: what is recalled, and where in a search it is shown.

    The published system has all of the scope in one: memory on or off. Its own figures
    contradict its text on two of the choices (see `CodingMemory`), so that each is a setting.
    """

    stages: tuple[str, ...] = ("start", "debug", "improve")
    """Stages that memory speaks in. §3.3: a tree search is given memory when it debugs and when
    it improves, a chain agent in the first message of an attempt, which is the stage `start`."""
    start: Literal["warm", "cold"] = "warm"
    """`cold` recalls only what this bank took in itself, and none of what was imported. A bank that
    goes on from another's log or lies in a store since earlier runs took all of it in itself: to
    begin a search with nothing, give it an empty bank."""
    tasks: Literal["same", "all"] = "same"
    """Whose entries may be recalled (§3.3: those of the task alone)."""
    from_step: int = SettingsField(default=0, ge=0)
    """The first step that memory speaks in. §5 (Limitations) proposes to leave early exploration
    alone."""
    kinds_by_stage: KindsByStage = ()
    """Kinds that may be recalled, for stages where it is not all of them: `{"improve":
    ["code", "environment"]}`. §4.6: 40.7 % of one bank were timeouts, 57.9 % of what was recalled
    for buggy nodes were, and they steered the search to light models."""
    verified_only: bool = False
    """Recall only fixes with which a later program ran."""
    novelty: Literal["cause", "message"] = "cause"
    """What a judge is asked of a new error beside those kept: whether cause and fix are known, or,
    as the paper's Figure 6 has it, whether the very same message is; all else is filed there."""
    top_k: int = SettingsField(default=3, ge=1)
    """Entries per recall. The paper does not say; ours."""
    ranker: SkipValidation[Ranker] = Dense(ties="newest")
    """Cosine of embeddings (§3.3). The paper does not name the model; the default compares
    spelling and works offline. Any embeddings: `Dense("openai:text-embedding-3-small")`."""

    @field_validator("kinds_by_stage", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(sorted(value.items())) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _recalls_something(self) -> Self:
        if self.tasks == "same" and self.same_task == "exclude":
            msg = "tasks 'same' with same_task 'exclude' leaves nothing to recall; take tasks 'all'"
            raise ValueError(msg)
        return self

    def kinds(self, stage: str) -> tuple[ErrorKind, ...]:
        """Return the kinds that may be recalled at a stage."""
        return dict(self.kinds_by_stage).get(stage, KINDS)


LATE: Final = 10
"""The first step that counts as late (mle-agent-memory Tables 7 and 9: steps 0 to 9 are early)."""

_NOT_RESOURCES: Final[tuple[ErrorKind, ...]] = ("code", "environment")
_KEPT_APART: Final = dict.fromkeys(("start", "draft", "improve"), _NOT_RESOURCES)
"""Limits on time and memory are told to whoever repairs a program that ran into one, and to
nobody who chooses a model (§4.6: they steered the search to light ones)."""

_ALL: Final = ("start", "draft", "debug", "improve")

_MANY: Final = 20
"""Entries that are told where drafts are. The paper gives no number; a draft shows no error to
search by, so it is told the newest, and three of a bank of dozens warn of little."""

_CHOICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "described": {"stages": ("start", "debug", "improve")},
    "implied": {"stages": _ALL, "start": "warm", "top_k": _MANY},
    "kinds_by_stage": {
        "stages": _ALL,
        "kinds_by_stage": _KEPT_APART,
        "top_k": _MANY,
    },
    "scheduled": {
        "stages": _ALL,
        "from_step": LATE,
        "kinds_by_stage": _KEPT_APART,
        "top_k": _MANY,
    },
    "verified": {"stages": ("start", "debug", "improve"), "verified_only": True},
}

CODING_PRESETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "described": (
            "What the paper says (mle-agent-memory §3.3): memory guides debugging and improving,"
            " never a draft."
        ),
        "implied": (
            "What its figures show: the first valid program came at step 0.80 for 3.12 (Table 2),"
            " but the first five are drafts, so that drafts were given memory; and it held earlier"
            " runs from step 0 on, or there would have been nothing to give. Takes a bank that"
            " earlier runs built."
        ),
        "kinds_by_stage": (
            "As `implied`, but what ran into a limit on time or memory is told to debugging alone."
            " In the paper's dog-breed runs 40.7 % of the entries and 57.9 % of those recalled for"
            " buggy nodes were timeouts, and the search left deep models for light ones (§4.6)."
        ),
        "scheduled": (
            "What §5 proposes: off while the search is broad, on for late debugging. Silent in"
            " the steps that the paper calls early (0 to 9); from then on as `kinds_by_stage`. A"
            " search of few steps wants a smaller `from_step`."
        ),
        "verified": (
            "As `described`, with nothing but fixes that a later program ran with: §3.3 says that"
            " a fix resolved its error, but Fig. 5 takes what a review suggests when it fails."
        ),
    }
)
"""What each preset is and where it comes from."""


def coding_preset(name: str) -> CodingSettings:
    """Return the settings of a preset; `model_copy(update=…)` makes others of them.

    Args:
        name: One of `CODING_PRESETS`.

    Raises:
        SettingsError: There is no such preset.
    """
    if name not in _CHOICES:
        msg = f"no preset {name!r:.80} of CodingMemory; there are {', '.join(sorted(_CHOICES))}"
        raise SettingsError(msg)
    return CodingSettings.model_validate(_CHOICES[name])


NEIGHBORS: Final = 5
"""Entries of the same task and package that a new one is compared with (§3.3)."""
NOVELTY: Final = "novelty"
"""Kind of the question whether an error is new: `add` or `none`."""
_IMPORTED: Final = "notes.imported"
_VERIFIED: Final = "notes.verified"


class CodingMemory(MemoryProvider[CodingSettings]):
    """Keeps each error with the package it belongs to and its fix, and recalls them by task.

    An entry is a `MemoryItem` of type `error_trace`: `metadata` has `package` (`general` where
    no package owns the error), `error` (canonical), `fix`, `kind`, `by` (`model` or `rules`) and,
    where a fix was left out, `fix_left_out`; and `verified` where the record itself came with proof
    that its fix works, as that of a repair that ran does. Notes: `seen` (how many records it stands
    for, from two on), `verified`, `imported`. What was verified later, by an episode that `resolves`
    another, is a note alone, and starts afresh in a bank that imports the entry.

    What is recalled: with an error in sight (an observation that shows one, or any observation
    when debugging) the entries nearest to it in canonical form; without one the newest, as there
    is nothing to compare (§3.3: a query does not reveal the code that is yet to be written).
    Finding the newest reads the bank once.

    An error is new unless an entry of the same task and package is exactly equal, or the judge
    answers `none` and names one of the five it was shown (without a name, the nearest). What is
    not answered when the episode is filed, is new. Where there is nothing to compare with, an equal
    entry, or one of the very same error that lacks the fix, no question is asked. An entry that
    stands for a record counts it; where the record has a fix and the entry none, or a proven one for
    the same error where the entry's is unproven, the record takes the entry's place and its count
    (§3.3: memory grows when "novel or substantially improved" knowledge is met).

    =================  ===================================  ======================================
    what               published (mle-agent-memory)         here
    =================  ===================================  ======================================
    fix                §3.3: what resolved the error;       the fix as recorded; verified apart,
                       Fig. 5: what the review suggests     by a note, once an episode that
                       when it fails                        `resolves` the failed one is filed,
                                                            unless that one says that another
                                                            fix worked; `verified_only`
    fixes left out     the summarizer is told to            a rule at filing (`fix_needs`); the
                                                            error is kept
    ADD / NONE         a model, always; told to prefer      a question where it can matter; the
                       ADD; NONE leaves no trace            unanswered is ADD; NONE counts
    threshold          "highly similar" (§3.3), "exactly    none: equality, or the judge
                       the same" (Fig. 6); no number
    query, k, model,   not given                            above; 3; hashing; package, error and
    rendering                                               fix on lines of their own
    package            Fig. 5: downloads are `general`;     as diagnosed
                       Table 4 has one under `timm`
    timeouts           entries like all others; they        a kind of their own; `kinds_by_stage`
                       mislead the search (§4.6)
    stages             §3.3: debug and improve; but the     `stages`
                       first valid node came at 0.80 for
                       3.12 (Table 2), among the drafts
    first store        as above, it held earlier runs of    `start`
                       the same task
    scope              the same task; cross-task and        `tasks`, `from_step`
                       scheduling as future work (§5)
    order              not given                            equal scores: newest first
    =================  ===================================  ======================================
    """

    name: ClassVar[str] = "coding"
    settings_model = CodingSettings
    derived = READ_OFF

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """Error records, and verdicts on whether they are new."""
        return frozenset({"errors", "verdicts"})

    def neighbours(
        self, record: ErrorRecord, k: int = NEIGHBORS, *, task_id: str | None = None
    ) -> list[MemoryItem]:
        """Return the `k` nearest entries of the record's package, nearest first.

        Args:
            record: The error, in any form.
            k: How many.
            task_id: The task whose entries count; `None`: those of all tasks.

        Raises:
            InputError: `k` is below 1, or the record holds a lone surrogate.
        """
        return drive(self._neighbors_of(record, k, task_id), self.store)

    async def aneighbours(
        self, record: ErrorRecord, k: int = NEIGHBORS, *, task_id: str | None = None
    ) -> list[MemoryItem]:
        """Do as `neighbours` does, asynchronously."""
        return await adrive(self._neighbors_of(record, k, task_id), self.store)

    # Recall -------------------------------------------------------------------------------

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        kinds = settings.kinds(context.stage)
        if context.stage not in settings.stages or context.step < settings.from_step or not kinds:
            return Found()
        where = self._where(context, kinds)
        error = error_in_sight(context)
        if has_words(error):
            found = yield from retrieve(
                self.namespace, error, settings, domain=context.domain, where=where
            )
        else:
            found = yield from self._newest(where)
        if settings.tasks == "all":
            return found
        # Exactly: a filter takes NUL for the character it is shown as.
        ours = tuple(hit for hit in found.items if hit[0].task_id == context.task_id)
        return Found(ours, found.query, found.tied)

    def _where(self, context: RecallContext, kinds: Sequence[ErrorKind]) -> Filter:
        """Return the filter of what may be recalled; items that tell no kind pass, unless only
        one kind does.
        """  # noqa: D205
        where = self._task_filter(context)
        if self.settings.tasks == "same":
            where[TASK] = portable_text(context.task_id)
        if self.settings.start == "cold":
            where[_IMPORTED] = {"$ne": True}
        if self.settings.verified_only:
            where[_VERIFIED] = True
        barred = set(KINDS).difference(kinds)
        if len(barred) == 1:
            where[KIND] = {"$ne": barred.pop()}
        elif barred:  # a filter names one kind that it is not, so here the one that it is
            where[KIND] = kinds[0]
        return where

    def _newest(self, where: Filter) -> Program[Found]:
        content = yield from bank.read_content(self.namespace)
        passing = [
            item
            for item in content.items.values()
            if passes(bank.item_record(item, content.notes.get(item.id, {})), where)
        ]
        passing.sort(key=lambda item: (-item.order_index, item.id))
        return Found(tuple((item, 0.0) for item in passing[: self.settings.top_k]))

    # Is it new? ---------------------------------------------------------------------------

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        (filed,) = yield from bank.read_state(self.namespace, [FILED + episode.id])
        if filed is not None:
            return ()
        asked: list[Question] = []
        for entry in entries_of(episode):
            near = yield from self._near(entry, NEIGHBORS, episode.task_id)
            if near and _equal(entry, near) is None and not _unsolved(entry, near):
                asked.append(_novelty(episode, entry, near, self.settings.novelty))
        return asked

    def _neighbors_of(
        self, record: ErrorRecord, k: int, task_id: str | None
    ) -> Program[list[MemoryItem]]:
        if k < 1:
            msg = f"{k} neighbors cannot be found; ask for at least 1"
            raise InputError(msg)
        entry = entry_of(record)
        return [] if entry is None else (yield from self._near(entry, k, task_id))

    def _near(self, entry: CodingEntry, k: int, task_id: str | None) -> Program[list[MemoryItem]]:
        where = same_place(entry.package, task_id)
        if not has_words(entry.key):  # such a text has no direction: only its equals are near it
            content = yield from bank.read_content(self.namespace)
            near = [i for i in content.items.values() if i.retrieval_key == entry.key]
            near = [item for item in near if in_place(item, entry.package, task_id)]
            return sorted(near, key=lambda item: (-item.order_index, item.id))[:k]
        found = yield from ranked_items(self.namespace, entry.key, k, where=where)
        near = [item for item, _ in found.items]
        if len(near) == k and _equal(entry, near) is None:
            # To a ranker others may be as near as an equal entry: it sees no case, say.
            same = where | {bank.INDEXED_FIELD: portable_text(entry.key)}
            found = yield from ranked_items(self.namespace, entry.key, k, where=same)
            equal = [item for item, _ in found.items if item.retrieval_key == entry.key]
            near = [*equal, *near][:k]
        return [item for item in near if in_place(item, entry.package, task_id)]

    # Filing -------------------------------------------------------------------------------

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        filing = Filing(self.namespace, episode, order_index)
        entries = entries_of(episode)
        for entry in entries:
            standing = filing.equal(entry) or (yield from self._known(entry, episode))
            if standing is None:
                yield from filing.add(entry)
                continue
            standing = filing.current(standing)
            if (yield from _better(filing, entry, standing)):
                yield from filing.replace(standing, entry)
            else:
                yield from filing.count(standing, entry)
        resolved = yield from self._resolved(episode)
        filing.verify(item for item in resolved if not _fixed_otherwise(item, entries))
        return filing.changes()

    def _known(self, entry: CodingEntry, episode: Episode) -> Program[MemoryItem | None]:
        """Return the entry that already stands for this one, if there is one."""
        near = yield from self._near(entry, NEIGHBORS, episode.task_id)
        equal = _equal(entry, near) or _unsolved(entry, near)
        if equal is not None or not near:
            return equal
        verdicts = yield from self._standing(episode.verdicts)
        return _named(_novelty(episode, entry, near, self.settings.novelty), near, verdicts)

    def _resolved(self, episode: Episode) -> Program[list[MemoryItem]]:
        """Return the entries whose fixes the episodes had that this one resolves."""
        keys = [entries_key(name) for name in dict.fromkeys(episode.resolves)]
        listed = yield from bank.read_state(self.namespace, keys)
        held = dict(pair for pairs in listed for pair in cast("list[tuple[str, int]]", pairs or []))
        records = yield [GetOp(self.namespace, bank.item_key(name)) for name in held]
        items = bank.loaded(cast("Sequence[Item | None]", records)).items
        # Another item may have the name by now: an import replaced the entry, say.
        return [
            items[name] for name in held if name in items and items[name].order_index == held[name]
        ]

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Sequence[Change]:
        return [Annotate(item.id, {"imported": True, **_proof(item)}) for item in items]

    # Changes by hand ----------------------------------------------------------------------

    @override
    def _edited(self, old: MemoryItem, new: MemoryItem) -> MemoryItem:
        return edited_entry(old, new)

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        if new is not None and new.text == old.text:
            return ()
        unproven = () if new is None else (Annotate(new.id, {"verified": None}),)
        return [*unproven, *without_entry(content, old)]


def error_in_sight(context: RecallContext) -> str:
    """Return the error that the agent sees, in canonical form, or nothing.

    When debugging all that is seen counts, whether or not it reads like a traceback.
    """
    seen = context.observation
    if context.stage == "debug" or parse_traceback(seen) is not None:
        return canonical_error(seen)
    return ""


def _proof(item: MemoryItem) -> dict[str, JSON]:
    """Return the note that an item's fix works, if it came with proof of that."""
    proven = item.metadata.get(PROVEN) is True and bool(item.metadata.get("fix"))
    return {"verified": True} if proven else {}


def _equal(entry: CodingEntry, near: Sequence[MemoryItem]) -> MemoryItem | None:
    return next((item for item in near if item.retrieval_key == entry.key), None)


def _unsolved(entry: CodingEntry, near: Sequence[MemoryItem]) -> MemoryItem | None:
    """Return an entry of the very same error that has no fix, where this one has."""
    if not entry.fix:
        return None
    same = (item for item in near if item.metadata.get("error") == entry.error)
    return next((item for item in same if not item.metadata.get("fix")), None)


def _better(filing: Filing, entry: CodingEntry, standing: MemoryItem) -> Program[bool]:
    """Say whether an entry tells more than the one that stands for its error.

    A fix is better than none, and one that is proven better than another one for the same error
    that nobody has proven.
    """
    known = standing.metadata.get("fix")
    if not entry.fix or not known:
        return bool(entry.fix)
    if not entry.verified or known == entry.fix or standing.metadata.get("error") != entry.error:
        return False
    notes = yield from filing.notes(standing)
    return notes.get("verified") is not True


def _fixed_otherwise(item: MemoryItem, entries: Sequence[CodingEntry]) -> bool:
    """Say whether other fixes of an entry's error are told to have worked: its own is a guess then."""
    known = item.metadata
    error = known.get("package"), known.get("error")
    same = [entry for entry in entries if (entry.package, entry.error) == error]
    worked = {entry.fix for entry in same if entry.verified}
    return bool(worked) and known.get("fix") not in worked


def _novelty(
    episode: Episode, entry: CodingEntry, near: Sequence[MemoryItem], same: str
) -> Question:
    shows: dict[str, JSON] = {
        "task": episode.task_id,
        "record": entry.shown(),
        "neighbours": shown_neighbours(near),
    }
    if same != "cause":
        shows["same"] = same
    return Question(NOVELTY, episode.id, shows)


def _named(
    question: Question, near: Sequence[MemoryItem], verdicts: Sequence[Verdict]
) -> MemoryItem | None:
    """Return what a judge says already stands for the record; an unknown id is no answer."""
    for verdict in verdicts:
        if verdict.question_id == question.id:
            if verdict.action != "none":
                return None
            if verdict.item_id is None:
                return near[0]
            return next((item for item in near if item.id == verdict.item_id), None)
    return None
