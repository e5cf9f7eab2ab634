"""The plan of a continual-learning study: what is compared, with the paper's Table 8 as defaults, and its runs.

Compared are memories, their controls, and crossed probes. Which runs a plan asks for
(continual-memory §2.1, §A.1.1), for each condition and repetition:

    train A, train B                     *scratch*: from an empty bank
    train A>B, train B>A                 *cross-task*: from the bank the first phase left
    test … after A, B                    the scratch accuracies
    test … after A>B, B>A                later task: forward transfer; earlier: backward

Every evaluation reads a frozen bank; those of the earlier task are the paper's *eval-only
probes*. The baseline and its re-run have no bank, and controls read a condition's banks; those
whose transfer is asked for are tested after A and B alone, too.

Longer sequences are the same with more phases: `train A>B>C` begins with the bank that `train A>B`
left, which all sequences that begin so share, and each phase ends with tests of the tasks met so far,
and of those to come where a plan asks for them. `train A+B` is one stream in which tasks are mixed.

Of a plan with several pairs of task families, each pair has all of these runs, under names that
begin with its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self, TypeAlias, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.benchmarks.comparison.verdicts import MARGIN, Cell
from langgraft.benchmarks.continual.worlds import ForeignWorld, World, WorldPath, world_of
from langgraft.benchmarks.harness.plans import (
    check_provider,
    is_foreign,
    is_shipped,
    provider_place,
)
from langgraft.benchmarks.harness.study import SIMULATED, Plan, RunSpec
from langgraft.memory.providers import provider_settings

if TYPE_CHECKING:  # loads the stores, which a list of plans does not need
    from langgraft.memory.recall import Budget


class Condition(BaseModel):
    """One memory to be studied."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """Short name in tables."""
    provider: str
    """Provider by name, or as `package.module:Class`."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the provider."""
    distillation: Literal["plain", "by_outcome", "strategies"] = "plain"
    """How lessons come of an episode: `plain` asks for them, once; `by_outcome` asks apart about
    success, failure and two attempts, and keeps what holds and is new; `strategies` asks why it
    succeeded or failed, for strategies with titles."""
    mends: str | None = None
    """The condition this one is to be an improvement on, where it is one: reports compare them."""

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> Self:
        if is_shipped(info):
            return self
        try:
            check_provider(self.provider, self.settings)
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return self


class ControlCondition(BaseModel):
    """A negative control: a condition's banks, with something else recalled from them.

    A frozen bank without recall needs no condition of its own: that is the baseline.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    control: Literal["random", "random-own", "placebo", "shuffled"]
    of: str
    """The condition whose banks are used."""
    transfer: bool = False
    """Whether it is tested after A alone and B alone, too, so that its transfer can be told."""

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.of}+{self.control}"


class CrossedProbe(BaseModel):
    """One condition's way of retrieving, tried on the banks another condition left.

    Conditions that train for themselves differ in what they keep *and* in how they retrieve it:
    their comparison confounds the two (continual-memory Appendix C). A probe trains nothing; it
    is tested on the final banks of `pool` with the settings of `retrieval`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    retrieval: str
    """The condition whose settings read."""
    pool: str
    """The condition whose banks are read."""

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.retrieval}@{self.pool}"


def tested_cell(factors: Mapping[str, JSON]) -> Cell | None:
    """Return what a run tests, as hypotheses name it; `None`: it trains, or tests midway or what is to come."""
    sequence, task = str(factors["sequence"]), str(factors["task"])
    if factors["kind"] != "evaluate" or factors["at"] is not None:
        return None
    if sequence and task not in phases(sequence):
        return None
    pair = {PAIR: str(factors[PAIR])} if PAIR in factors else {}
    return {**pair, "condition": str(factors["condition"]), "sequence": sequence, "task": task}


def paper_conditions() -> tuple[Condition, ...]:
    """Return the four conditions of continual-memory: Raw, Cond-Agg, Cond-Ind, Cond-Step."""
    individual: dict[str, JsonValue] = {"granularity": "individual", "top_k": 3}
    return (
        Condition(name="raw", provider="trajectory", settings={"top_k": 1}),
        Condition(
            name="agg", provider="insight", settings={"granularity": "aggregate", "top_k": 1}
        ),
        Condition(name="ind", provider="insight", settings=individual),
        Condition(name="step", provider="insight", settings={**individual, "requery_interval": 4}),
    )


def check_readable(probe: CrossedProbe, retrieval: Condition, pool: Condition) -> None:
    """Check that what one condition keeps is of the kind that the other one reads.

    Raises:
        ValueError: It is not.
    """
    if probe.retrieval == probe.pool:
        msg = f"probe {probe.name!r} reads its own banks: that is the condition itself"
        raise ValueError(msg)
    if provider_place(retrieval.provider) != provider_place(pool.provider):
        msg = (
            f"probe {probe.name!r}: {pool.provider!r} keeps what {retrieval.provider!r} does not"
            " read; retrieval and pool must be of one provider"
        )
        raise ValueError(msg)
    if is_foreign(pool.provider):
        return  # what its settings mean is not known
    wanted, kept = (
        getattr(provider_settings(each.provider, each.settings), "granularity", None)
        for each in (retrieval, pool)
    )
    if wanted != kept:
        msg = (
            f"probe {probe.name!r}: the pool's granularity is {kept!r}, the retrieval's {wanted!r};"
            " they must be equal"
        )
        raise ValueError(msg)


Order: TypeAlias = Literal["blocked", "shuffled", "interleaved", "curriculum"]

MIXED: frozenset[Order] = frozenset({"shuffled", "interleaved"})
"""Orders in which the tasks of a sequence are one stream."""

LETTERS = "ABCDEFGH"
"""What tasks can be called."""

MOST_PARTS = 100
"""Pairs, conditions, controls or probes of a plan."""

MOST_RUNS = 1000
"""Model seeds that are kept for the baseline; those of its re-run come after them."""

DEFAULT_A, DEFAULT_B = "babyai/action_obj_door", "babyai/find_obj"
"""The families of the study on BabyAI."""


class Tasks(BaseModel):
    """The task families of the sequences, by the letters that name them there: two, or up to eight."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    A: str = DEFAULT_A
    B: str = DEFAULT_B
    C: str | None = None
    D: str | None = None
    E: str | None = None
    F: str | None = None
    G: str | None = None
    H: str | None = None

    @property
    def named(self) -> dict[str, str]:
        """The families there are, by letter."""
        found = {letter: getattr(self, letter) for letter in LETTERS}
        return {letter: family for letter, family in found.items() if family is not None}

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        fields: dict[str, JsonValue] = write(self)
        return {n: value for n, value in fields.items() if n not in LETTERS or value is not None}

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        letters: dict[str, str] = {}
        for letter, family in self.named.items():
            if family in letters:
                msg = f"tasks {letters[family]} and {letter} are both {family!r}"
                raise ValueError(msg)
            letters[family] = letter
        return self


class TaskPair(Tasks):
    """Two task families or more, and how their world is played."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)
    """Short name: the beginning of its runs' names, and the folder of its report."""
    A: str
    B: str
    world: WorldPath | None = None
    """The object of a world that is not langgraft's own, as `package.module:Object`."""
    semantics: str | None = None
    """One of the ways its world can be played; `None` takes the world's default."""
    learner: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the world's simulated learner, such as `mimicry` of ALFWorld's."""

    @property
    def tasks(self) -> Tasks:
        """The families alone."""
        return Tasks(**self.named)


class ContinualPlan(Plan):
    """Task families in sequence, several memories; or several pairs (or more) of such families.

    Defaults are those of continual-memory Table 8, on BabyAI, but for its 2 runs: from two one
    cannot tell (docs/statistics.md).
    """

    study: Literal["continual"] = "continual"
    temperature: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """Sampling temperature."""
    max_tokens: int = Field(default=4096, ge=1)
    """Most tokens a reply may have."""
    semantics: str = "compat"
    """`compat` plays a world as AgentGym does, which is what the paper used."""
    tasks: Tasks = Tasks()
    world: WorldPath | None = None
    """The object of a world that is not langgraft's own, as `package.module:Object`; its task
    families are called what it calls them."""
    learner: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the simulated learner, such as `mimicry` of ALFWorld's."""
    pairs: tuple[TaskPair, ...] = Field(default=(), max_length=MOST_PARTS)
    """Several pairs of task families, each a study of its own; `semantics`, `tasks`, `world` and
    `learner` are the one pair's where there are none."""
    conditions: tuple[Condition, ...] = Field(
        default_factory=paper_conditions, max_length=MOST_PARTS
    )
    controls: tuple[ControlCondition, ...] = Field(default=(), max_length=MOST_PARTS)
    probes: tuple[CrossedProbe, ...] = Field(default=(), max_length=MOST_PARTS)
    """One condition's retrieval on another's banks; outside the family of hypotheses."""
    sequences: tuple[str, ...] = Field(default=("A>B", "B>A"), max_length=MOST_PARTS)
    """Which tasks follow one another: letters joined by `>`."""
    order: Order = "blocked"
    """How a sequence's instances follow one another: a phase a task, each phase in an order of chance
    (`blocked`) or from easy to hard (`curriculum`, equals by chance), or its tasks in one stream: by
    chance (`shuffled`) or in turns (`interleaved`)."""
    tests: Literal["met", "all"] | None = None
    """Which tasks are tested after a phase: those met so far, or all of the sequence. `None`: all
    where a sequence has more than two."""
    online_baseline: bool = False
    """Play the training instances without memory, too: what success in training is compared with."""
    train_items: int = Field(default=200, ge=1, le=200)
    """Instances per phase."""
    test_items: int = Field(default=100, ge=1, le=100)
    """Held-out instances per task family."""
    runs: int = Field(default=5, ge=1, le=MOST_RUNS)
    """Independent repetitions: another order of the training instances, other samples. Below 3
    there is no verdict."""
    baseline_runs: int = Field(default=5, ge=1, le=MOST_RUNS)
    """Repetitions without memory; what conditions are compared with is the mean of all of them."""
    rerun: bool = True
    """Repeat the baseline with other samples: what no difference at all looks like."""
    margin: float = Field(default=MARGIN, gt=0, lt=1)
    """Difference in success up to which controls and the re-run count as equivalent to no memory."""
    seed: int = 42
    milestones: int = Field(default=1, ge=1)
    """Evaluations per phase, evenly spaced; the last is at its end."""
    max_rounds: int | None = Field(default=None, ge=1, le=1000)
    """Replies of the agent an episode (the paper: 20 to 50); `None` takes the world's own rule."""
    memory_tokens: int | None = Field(default=None, ge=0)
    """Room for recalled text, in tokens; `None` sets no limit."""
    memory_introduction: str | None = Field(default=None, max_length=1000)
    """The first line of the block of recalled text; empty: none; `None`: that of `Budget`. Where transfer
    between tasks is the question, it should not tell an agent what to make of notes on other tasks."""
    memory_place: Literal["start", "end"] = "end"
    """Where what memory recalls later in an episode stands: before the latest observation (`end`), so
    that prompts keep their beginning, or before the first (`start`)."""

    @override
    def limited(self, items: int) -> Self:
        """Return the plan with at most `items` items a phase, and milestones that fit them."""
        train_items = min(self.train_items, items)
        sizes = {
            "train_items": train_items,
            "test_items": min(self.test_items, items),
            "milestones": min(self.milestones, train_items),
        }
        return self.model_copy(update=sizes)

    @property
    def budget(self) -> "Budget":
        """The room for recalled text, and how it begins."""
        from langgraft.memory.recall import BLOCK_INTRODUCTION, Budget  # noqa: PLC0415

        introduction = self.memory_introduction
        if introduction is None:
            introduction = BLOCK_INTRODUCTION
        return Budget(self.memory_tokens, introduction=introduction)

    @property
    def parts(self) -> Mapping[str, "ContinualPlan"]:
        """Each pair as a plan of its own, by name; the plan itself, by `""`, without pairs."""
        if not self.pairs:
            return {"": self}
        return {pair.name: self._of_pair(pair) for pair in self.pairs}

    def _of_pair(self, pair: TaskPair) -> "ContinualPlan":
        fields = {
            "title": f"{self.title}: {pair.name}" if self.title else pair.name,
            "tasks": pair.tasks,
            "world": pair.world,
            "semantics": pair.semantics or next(iter(_semantics(pair.tasks)), "compat"),
            "learner": pair.learner,
            "pairs": (),
            "hypotheses": (),
        }
        return self.model_copy(update=fields)

    @property
    def played_in(self) -> World:
        """The world of the task families, where there are no pairs.

        Raises:
            SettingsError: There is no such world, or each family has its own.
        """
        if self.world is not None:
            return ForeignWorld(self.world)
        found = world_of(self.tasks.A)
        for family in self.tasks.named.values():
            if (other := world_of(family)).name != found.name:
                msg = (
                    f"{self.tasks.A!r} is of {found.name}, {family!r} of {other.name}: a stream"
                    " is played in one world"
                )
                raise SettingsError(msg)
        return found

    @override
    @classmethod
    def with_model(
        cls,
        fields: Mapping[str, JSON],
        model: str | None,
        base_url: str | None,
        model_settings: Mapping[str, JSON] | None = None,
    ) -> dict[str, JSON]:
        """Return a plan's fields with another model; a real one has no use for the learner's."""
        changed = super().with_model(fields, model, base_url, model_settings)
        if model in {None, SIMULATED}:
            return changed
        pairs = cast("Sequence[Mapping[str, JSON]]", changed.get("pairs") or ())
        return {**changed, "learner": {}, "pairs": [{**pair, "learner": {}} for pair in pairs]}

    @model_validator(mode="after")
    def _introduced(self, info: ValidationInfo) -> Self:
        if self.memory_introduction is not None and not is_shipped(info):
            try:
                _ = self.budget
            except SettingsError as error:
                raise ValueError(f"memory_introduction: {error}") from error
        return self

    @field_validator("conditions")
    @classmethod
    def _named(cls, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        names = [condition.name for condition in conditions]
        if not names:
            msg = "a study needs at least one condition"
            raise ValueError(msg)
        if len(set(names)) < len(names) or {"none", "rerun"} & set(names):
            msg = f"condition names must be distinct and not 'none' or 'rerun', got {names}"
            raise ValueError(msg)
        return conditions

    @field_validator("conditions")
    @classmethod
    def _mending(cls, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
        names = {condition.name for condition in conditions}
        for condition in conditions:
            if condition.mends is not None and condition.mends not in names - {condition.name}:
                others = sorted(names - {condition.name})
                msg = f"condition {condition.name!r} mends {condition.mends!r}, not one of {others}"
                raise ValueError(msg)
        return conditions

    @field_validator("sequences")
    @classmethod
    def _letters(cls, sequences: tuple[str, ...]) -> tuple[str, ...]:
        if not sequences or len(set(sequences)) < len(sequences):
            msg = "give at least one, such as 'A>B' or 'A>B>C', and each once"
            raise ValueError(msg)
        for sequence in sequences:
            tasks = sequence.split(">", len(LETTERS))
            if len(tasks) < 2 or len(set(tasks)) < len(tasks) or set(tasks) - {*LETTERS}:  # noqa: PLR2004
                msg = f"a sequence is two letters of tasks or more, each once, joined by '>' (got {sequence!r:.60})"
                raise ValueError(msg)
        return sequences

    @model_validator(mode="after")
    def _controls_fit(self) -> Self:
        conditions = {condition.name for condition in self.conditions}
        seen: set[str] = set()
        for control in self.controls:
            if control.of not in conditions:
                msg = f"control {control.name!r} is of no condition in {sorted(conditions)}"
                raise ValueError(msg)
            if control.name in seen:
                msg = f"control {control.name!r} is given twice"
                raise ValueError(msg)
            seen.add(control.name)
        return self

    @model_validator(mode="after")
    def _probes_fit(self, info: ValidationInfo) -> Self:
        conditions = {condition.name: condition for condition in self.conditions}
        seen: set[str] = set()
        for probe in self.probes:
            for role, name in (("retrieval", probe.retrieval), ("pool", probe.pool)):
                if name not in conditions:
                    msg = f"probe {probe.name!r}: {role} {name!r} is no condition in"
                    raise ValueError(f"{msg} {sorted(conditions)}")
            if probe.name in seen:
                msg = f"probe {probe.name!r} is given twice"
                raise ValueError(msg)
            seen.add(probe.name)
            if not is_shipped(info):
                check_readable(probe, conditions[probe.retrieval], conditions[probe.pool])
        return self

    @model_validator(mode="after")
    def _numbers_fit(self) -> Self:
        if self.baseline_runs < self.runs:
            msg = f"baseline_runs ({self.baseline_runs}) must be at least runs ({self.runs})"
            raise ValueError(msg)
        if self.milestones > self.train_items:
            msg = f"{self.milestones} milestones do not fit into train_items ({self.train_items})"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _pairs_fit(self) -> Self:
        names = [pair.name for pair in self.pairs]
        if len(set(names)) < len(names):
            msg = f"pairs must have distinct names, got {names}"
            raise ValueError(msg)
        alone = ContinualPlan.model_fields
        for name in ("tasks", "world", "semantics", "learner") if self.pairs else ():
            if getattr(self, name) != alone[name].get_default(call_default_factory=True):
                msg = f"{name}: with `pairs`, each pair has its own; it cannot stand beside them"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _world_fits(self) -> Self:
        if self.world is not None and self.tasks == Tasks():
            msg = f"tasks: name the families of {self.world!r} that are studied"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _semantics_fit(self) -> Self:
        for name, part in self.parts.items():
            known = _semantics(part.tasks) if part.world is None else ()
            if known and part.semantics not in known:
                where = f"pair {name!r}: " if name else ""
                choices = " or ".join(repr(each) for each in known)
                msg = f"{where}semantics: input should be {choices} (got {part.semantics!r})"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _sequences_fit(self) -> Self:
        asked = {task for sequence in self.sequences for task in phases(sequence)}
        for name, part in self.parts.items():
            where, named = f"pair {name!r}: " if name else "", part.tasks.named
            if unknown := sorted(asked - set(named)):
                msg = f"{where}sequences name task {unknown[0]}, but tasks are {', '.join(named)}"
                raise ValueError(msg)
            if idle := sorted(set(named) - asked):
                msg = (
                    f"{where}task {idle[0]} is in none of the sequences {', '.join(self.sequences)}"
                )
                raise ValueError(msg)
        mixed = [frozenset(phases(sequence)) for sequence in self.sequences]
        if self.order in MIXED and len(set(mixed)) < len(mixed):
            msg = (
                f"order {self.order!r} makes one stream of a sequence's tasks: of sequences with the"
                f" same tasks give one, got {', '.join(self.sequences)}"
            )
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _model_fits(self) -> Self:
        if self.base_url is not None and self.model == SIMULATED:
            msg = f"base_url {self.base_url!r} is not for the simulated model: name one in `model`"
            raise ValueError(msg)
        if self.model_settings and self.model == SIMULATED:
            msg = "model_settings are for a real model, not for the simulated one: name one in `model`"
            raise ValueError(msg)
        if self.model != SIMULATED and any(part.learner for part in self.parts.values()):
            msg = (
                f"learner settings are for the simulated model, not for {self.model!r}: remove them"
            )
            raise ValueError(msg)
        return self


def _semantics(tasks: Tasks) -> tuple[str, ...]:
    """Return how the world of two families can be played; nothing for one that there is not."""
    try:
        return world_of(tasks.A).semantics
    except SettingsError:  # the runs cannot be listed, which says why
        return ()


PAIR = "pair"
"""The factor that names a run's pair, in plans of several pairs."""


def phases(sequence: str) -> tuple[str, ...]:
    """Return the tasks of a sequence or of a mixture, in order; none of no memory's `""`."""
    return tuple(filter(None, sequence.replace("+", ">").split(">")))


def of_pair(run: RunSpec, pair: str) -> RunSpec:
    """Return a run under the name it has in a plan of several pairs."""
    source = run.source
    if source is not None:
        source = replace(source, run=f"{pair}/{source.run}")
    factors = {**run.factors, PAIR: pair}
    return replace(run, name=f"{pair}/{run.name}", factors=factors, source=source)


def alone(run: RunSpec) -> RunSpec:
    """Return a run of a pair under the name it has in a plan of that pair alone."""
    prefix = f"{run.factors[PAIR]}/"
    source = run.source
    if source is not None:
        source = replace(source, run=source.run.removeprefix(prefix))
    factors = {name: value for name, value in run.factors.items() if name != PAIR}
    return replace(run, name=run.name.removeprefix(prefix), factors=factors, source=source)
