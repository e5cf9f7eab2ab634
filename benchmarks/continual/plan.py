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

Of a plan with several pairs of task families, each pair has all of these runs, under names that
begin with its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal, Self, TypeAlias, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import override

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft._core.errors import SettingsError
from langgraft.benchmarks.comparison.verdicts import MARGIN
from langgraft.benchmarks.continual.worlds import (
    ForeignWorld,
    TaskList,
    World,
    WorldPath,
    world_of,
)
from langgraft.benchmarks.harness.plans import (
    check_provider,
    is_foreign,
    is_shipped,
    provider_place,
)
from langgraft.benchmarks.harness.study import SIMULATED, BankSource, Plan, RunSpec
from langgraft.memory.providers import provider_settings


class Condition(BaseModel):
    """One memory to be studied."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """Short name in tables."""
    provider: str
    """Provider by name, or as `package.module:Class`."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the provider."""
    distillation: Literal["plain", "by_outcome"] = "plain"
    """How lessons come of an episode: `plain` asks for them, once; `by_outcome` asks apart about
    success, failure and two attempts, and keeps what holds and is new."""
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

    model_config = ConfigDict(extra="forbid", frozen=True)

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

    model_config = ConfigDict(extra="forbid", frozen=True)

    retrieval: str
    """The condition whose settings read."""
    pool: str
    """The condition whose banks are read."""

    @property
    def name(self) -> str:
        """Name in tables."""
        return f"{self.retrieval}@{self.pool}"


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


Sequence_: TypeAlias = Literal["A>B", "B>A"]

MOST_PARTS = 100
"""Pairs, conditions, controls or probes of a plan."""

MOST_RUNS = 1000
"""Model seeds that are kept for the baseline; those of its re-run come after them."""

DEFAULT_A, DEFAULT_B = "babyai/action_obj_door", "babyai/find_obj"
"""The families of the study on BabyAI."""


class Tasks(BaseModel):
    """The two task families of the sequence."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    A: str = DEFAULT_A
    B: str = DEFAULT_B

    @model_validator(mode="after")
    def _two(self) -> Self:
        if self.A == self.B:
            msg = f"tasks A and B are both {self.A!r}"
            raise ValueError(msg)
        return self


class TaskPair(Tasks):
    """Two task families, and how their world is played."""

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
        """The two families alone."""
        return Tasks(A=self.A, B=self.B)


class ContinualPlan(Plan):
    """Two task families in sequence, both directions, several memories; or several such pairs.

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
    sequences: tuple[Sequence_, ...] = ("A>B", "B>A")
    """The directions to study."""
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
    memory_tokens: int | None = Field(default=None, ge=0)
    """Room for recalled text, in tokens; `None` sets no limit."""

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
        }
        return self.model_copy(update=fields)

    @property
    def played_in(self) -> World:
        """The world of the two task families, where there are no pairs.

        Raises:
            SettingsError: There is no such world, or each family has its own.
        """
        if self.world is not None:
            return ForeignWorld(self.world)
        found, other = world_of(self.tasks.A), world_of(self.tasks.B)
        if found.name != other.name:
            msg = (
                f"{self.tasks.A!r} is of {found.name}, {self.tasks.B!r} of {other.name}: a stream"
                " is played in one world"
            )
            raise SettingsError(msg)
        return found

    @override
    @classmethod
    def with_model(
        cls, fields: Mapping[str, JSON], model: str | None, base_url: str | None
    ) -> dict[str, JSON]:
        """Return a plan's fields with another model; a real one has no use for the learner's."""
        changed = super().with_model(fields, model, base_url)
        if model in {None, SIMULATED}:
            return changed
        pairs = cast("Sequence[Mapping[str, JSON]]", changed.get("pairs") or ())
        return {**changed, "learner": {}, "pairs": [{**pair, "learner": {}} for pair in pairs]}

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
    def _directions(cls, sequences: tuple[Sequence_, ...]) -> tuple[Sequence_, ...]:
        if not sequences or len(set(sequences)) < len(sequences):
            msg = "give 'A>B', 'B>A' or both, each once"
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
            msg = f"tasks: name the two families of {self.world!r} that are studied"
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
    def _model_fits(self) -> Self:
        if self.base_url is not None and self.model == SIMULATED:
            msg = f"base_url {self.base_url!r} is not for the simulated model: name one in `model`"
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

RERUN_SEED_OFFSET = MOST_RUNS
"""Keeps the samples of the re-run apart from those of the baseline."""


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


class RunList:
    """Builds the runs of one pair of task families."""

    def __init__(self, plan: ContinualPlan, world: TaskList) -> None:
        self._plan = plan
        self._domains = {"A": plan.tasks.A, "B": plan.tasks.B}
        self._train = {
            task: world.tasks(domain, "train")[: plan.train_items]
            for task, domain in self._domains.items()
        }
        self._test = {
            task: world.tasks(domain, "test")[: plan.test_items]
            for task, domain in self._domains.items()
        }
        # Drawn when a run first asks: a plan of too many runs is refused before most of them are.
        self._orders: dict[tuple[str, int], tuple[str, ...]] = {}

    def all(self) -> Iterator[RunSpec]:
        """List all runs, sources first."""
        plan = self._plan
        yield from self._bare("none", plan.baseline_runs, seed_offset=0)
        if plan.rerun:
            yield from self._bare("rerun", plan.runs, seed_offset=RERUN_SEED_OFFSET)
        for condition in plan.conditions:
            for replicate in range(plan.runs):
                for run in self._condition(condition, replicate):
                    yield _mending(run, condition)
        for control in plan.controls:
            for replicate in range(plan.runs):
                yield from self._control(control, replicate)
        for probe in plan.probes:
            for replicate in range(plan.runs):
                yield from self._probe(probe, replicate)

    def _bare(self, condition: str, runs: int, *, seed_offset: int) -> Iterator[RunSpec]:
        for replicate in range(runs):
            for task in "AB":
                yield self._bare_test(condition, replicate, task, replicate + seed_offset)

    def _control(self, control: ControlCondition, replicate: int) -> Iterator[RunSpec]:
        for task in "AB" if control.transfer else "":
            yield self._test_run(control.name, replicate, task, task, bank_of=control.of)
        for sequence in self._plan.sequences:
            for task in "AB":
                yield self._test_run(control.name, replicate, sequence, task, bank_of=control.of)

    def _probe(self, probe: CrossedProbe, replicate: int) -> Iterator[RunSpec]:
        crossed: dict[str, JSON] = {"retrieval": probe.retrieval, "pool": probe.pool}
        for sequence in self._plan.sequences:
            for task in "AB":
                run = self._test_run(probe.name, replicate, sequence, task, bank_of=probe.pool)
                yield replace(run, factors={**run.factors, **crossed})

    def _condition(self, condition: Condition, replicate: int) -> Iterator[RunSpec]:
        name = condition.name
        for task in "AB":
            yield self._train_run(name, replicate, task)
            yield from self._tests_along(name, replicate, task, task)
        for sequence in self._plan.sequences:
            earlier, later = sequence.split(">")
            yield self._train_run(name, replicate, sequence)
            yield from self._tests_along(name, replicate, sequence, later)
            yield from self._tests_along(name, replicate, sequence, earlier)

    def _tests_along(
        self, condition: str, replicate: int, sequence: str, task: str
    ) -> Iterator[RunSpec]:
        length = len(self._train[sequence[-1]])
        steps = self._plan.milestones
        for milestone in range(1, steps):
            at = milestone * length // steps
            yield self._test_run(condition, replicate, sequence, task, at=at)
        yield self._test_run(condition, replicate, sequence, task)

    def _order(self, task: str, replicate: int) -> tuple[str, ...]:
        """Order the training instances by chance, the same way for all conditions."""
        if (task, replicate) not in self._orders:
            seed = self._plan.seed
            self._orders[task, replicate] = tuple(
                sorted(
                    (item.id for item in self._train[task]),
                    key=lambda name: seeded_fraction("order", seed, replicate, name),
                )
            )
        return self._orders[task, replicate]

    def _train_run(self, condition: str, replicate: int, sequence: str) -> RunSpec:
        task = sequence[-1]
        source = None
        if ">" in sequence:
            source = BankSource(_train_name(condition, replicate, sequence[0]))
        factors = self._factors("train", condition, replicate, sequence, task, seed=replicate)
        return RunSpec(
            study=self._plan.study,
            name=_train_name(condition, replicate, sequence),
            factors=factors,
            item_ids=self._order(task, replicate),
            source=source,
        )

    def _test_run(
        self,
        condition: str,
        replicate: int,
        sequence: str,
        task: str,
        *,
        at: int | None = None,
        bank_of: str | None = None,
    ) -> RunSpec:
        factors = self._factors("evaluate", condition, replicate, sequence, task, seed=replicate)
        when = sequence if at is None else f"{sequence} at {at}"
        return RunSpec(
            study=self._plan.study,
            name=f"{condition}/{replicate}/test {task} after {when}",
            factors={**factors, "at": at},
            item_ids=tuple(item.id for item in self._test[task]),
            source=BankSource(_train_name(bank_of or condition, replicate, sequence), at),
            frozen=True,
        )

    def _bare_test(self, condition: str, replicate: int, task: str, seed: int) -> RunSpec:
        return RunSpec(
            study=self._plan.study,
            name=f"{condition}/{replicate}/test {task}",
            factors={
                **self._factors("evaluate", condition, replicate, "", task, seed=seed),
                "at": None,
            },
            item_ids=tuple(item.id for item in self._test[task]),
            frozen=True,
        )

    def _factors(
        self, kind: str, condition: str, replicate: int, sequence: str, task: str, *, seed: int
    ) -> dict[str, JSON]:
        return {
            "kind": kind,
            "condition": condition,
            "replicate": replicate,
            "sequence": sequence,
            "task": task,
            "domain": self._domains[task],
            "model_seed": self._plan.seed + seed,
        }


def _mending(run: RunSpec, condition: Condition) -> RunSpec:
    """Say in a run which condition its own is to improve on, where it is to improve on one."""
    if condition.mends is None:
        return run
    return replace(run, factors={**run.factors, "mends": condition.mends})


def _train_name(condition: str, replicate: int, sequence: str) -> str:
    return f"{condition}/{replicate}/train {sequence}"
