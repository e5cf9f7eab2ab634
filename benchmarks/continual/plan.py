"""The plan of a continual-learning study, with the paper's Table 8 as its defaults."""

from collections.abc import Mapping, Sequence
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

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.benchmarks.comparison.verdicts import MARGIN
from langgraft.benchmarks.continual.conditions import (
    Condition,
    ControlCondition,
    CrossedProbe,
    check_readable,
    paper_conditions,
)
from langgraft.benchmarks.continual.worlds import World, world_of
from langgraft.benchmarks.harness.plans import is_shipped
from langgraft.benchmarks.harness.study import SIMULATED, Plan

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
    learner: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the simulated learner, such as `mimicry` of ALFWorld's."""
    pairs: tuple[TaskPair, ...] = Field(default=(), max_length=MOST_PARTS)
    """Several pairs of task families, each a study of its own; `semantics`, `tasks` and `learner`
    are the one pair's where there are none."""
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
            "semantics": pair.semantics or next(iter(_semantics(pair.tasks)), "compat"),
            "learner": pair.learner,
            "pairs": (),
        }
        return self.model_copy(update=fields)

    @property
    def world(self) -> World:
        """The world of the two task families, where there are no pairs.

        Raises:
            SettingsError: There is no such world, or each family has its own.
        """
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
        for name in ("tasks", "semantics", "learner") if self.pairs else ():
            if getattr(self, name) != alone[name].get_default(call_default_factory=True):
                msg = f"{name}: with `pairs`, each pair has its own; it cannot stand beside them"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _semantics_fit(self) -> Self:
        for name, part in self.parts.items():
            known = _semantics(part.tasks)
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
