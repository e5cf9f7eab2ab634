"""The plan of a transplant study: architectures and contents of two domains, crossed (memory-transplants §3.3).

A *source* domain, where memory was made, and a *target* domain, where solvers are evaluated. Each
memory system has settings for either (its two *architectures*) and leaves a bank in either (its two
*contents*). The seven conditions of the paper follow from the two by rule:

=============  ============  =======  =======
condition      architecture  content  mode
=============  ============  =======  =======
`NM`           none          none     static
`E_<TARGET>`   target        empty    dynamic
`E_<SOURCE>`   source        empty    dynamic
`C_ONLY`       target        source   static
`FULL`         source        source   static
`IN_DOM`       target        target   static
`CROSS`        source        target   static
=============  ============  =======  =======

A bank is built once for each solver, system, domain and draw of problems, by its own domain's
architecture and under `build_budget`; evaluation seed *n* reads the bank of draw *n*, whatever the
budget and the condition.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Self, TypeAlias

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)
from typing_extensions import override

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft._core.errors import SettingsError
from langgraft.benchmarks.comparison.verdicts import MARGIN
from langgraft.benchmarks.harness.plans import check_provider, is_shipped
from langgraft.benchmarks.harness.study import SIMULATED, BankSource, Plan, RunSpec, ServerUrl

Side: TypeAlias = Literal["source", "target"]
Mode: TypeAlias = Literal["static", "dynamic"]
Control: TypeAlias = Literal["random", "placebo", "framing", "write_only", "frozen"]

NONE = "none"
"""The provider of the system without memory, and the architecture of `NM`."""
NOISE = "NOISE"
"""The condition of runs without memory that share no reply with any other."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)
    """Short name, in runs and tables."""


class DomainSpec(_Part):
    """A domain: what its problems are, and where they lie."""

    problems: str
    """`math`, `livecodebench`, `humaneval`, or `generated`."""
    part: str = ""
    """Which of them, where there are several: of `generated` the domain; empty: its name."""
    file: Path | None = Field(default=None, exclude=True)
    """Where they lie; `None`: where `LANGGRAFT_DATA` says. What is in it counts, not its place."""


class System(_Part):
    """A memory system and its two architectures."""

    provider: str
    """Provider by name, or as `package.module:Class`; `none` is no memory."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """What both architectures have."""
    source: dict[str, JsonValue] = Field(default_factory=dict)
    """What the source domain's sets otherwise."""
    target: dict[str, JsonValue] = Field(default_factory=dict)
    """What the target domain's sets otherwise."""

    def settings_of(self, side: Side) -> dict[str, JSON]:
        """Return the settings of an architecture. Outcomes are an oracle's, and so declared."""
        own = self.source if side == "source" else self.target
        return {"feedback": "oracle", **self.settings, **own}

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> Self:
        if self.provider == NONE or is_shipped(info):
            return self
        try:
            for side in SIDES:
                check_provider(self.provider, self.settings_of(side))
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return self


SIDES: tuple[Side, Side] = ("source", "target")


class Solver(_Part):
    """A model that solves."""

    model: str | None = None
    """`None`: the plan's; else as the plan's `model`."""
    base_url: ServerUrl | None = None
    """Where its server listens, if not where the plan's does."""
    strengths: dict[str, JsonValue] = Field(default_factory=dict)
    """Of the simulated one: what it is declared to be able to."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One cell of the design."""

    name: str
    architecture: Side | Literal["none"]
    content: Side | Literal["empty", "none"]
    mode: Mode


class TransplantPlan(Plan):
    """Five systems in seven conditions, by default as in memory-transplants §4."""

    study: Literal["transplant"] = "transplant"
    temperature: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Sampling temperature (§4.3: 0)."""
    max_tokens: int = Field(default=2048, ge=1)
    """Most tokens of a reply."""
    source: DomainSpec
    target: DomainSpec
    systems: tuple[System, ...] = Field(min_length=1, max_length=100)
    solvers: tuple[Solver, ...] = Field(default=(Solver(name="solver"),), min_length=1)
    budgets: tuple[int, ...] = Field(default=(400, 800), min_length=1, max_length=100)
    """Tokens of a block of recalled memory (§4.4)."""
    seeds: int = Field(default=3, ge=1, le=1000)
    """Orders of the evaluated problems, and draws of problems that banks are built from (§4.4)."""
    build_items: int = Field(default=60, ge=1)
    """Problems of the source domain that a bank is built from (§4.1)."""
    target_build_items: int = Field(default=30, ge=1)
    """The same of the target domain (§4.1)."""
    eval_items: int = Field(default=100, ge=1)
    """Problems of the target domain that all runs are evaluated on (§4.1)."""
    eval_levels: tuple[tuple[str, PositiveInt], ...] = ()
    """Level → weight among the evaluated problems, given as a mapping; none: whatever levels come."""
    build_budget: int = Field(default=800, ge=0)
    """Tokens of a block while banks are built."""
    dynamic_content: bool = False
    """Play the conditions with content in dynamic mode, too."""
    controlled: tuple[str, ...] = ()
    """Systems whose conditions have controls (§4.5: LIGHTWEIGHT_MEMORY)."""
    controls: tuple[Control, ...] = ("random", "placebo", "framing", "write_only", "frozen")
    """Which. `write_only` is of dynamic conditions, and `frozen`, recall off, of static ones."""
    noise_runs: int = Field(default=3, ge=0, le=1000)
    """Runs without memory that share no reply: how much the endpoint itself varies."""
    margin: float = Field(default=MARGIN, gt=0, lt=1)
    """Difference in accuracy up to which controls count as equivalent."""
    seed: int = 42

    @field_validator("eval_levels", mode="before")
    @classmethod
    def _as_pairs(cls, levels: object) -> object:
        return tuple(levels.items()) if isinstance(levels, Mapping) else levels

    @field_validator("systems", "solvers")
    @classmethod
    def _one_each(cls, parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
        names = [each.name for each in parts]
        if len(set(names)) < len(names):
            msg = f"names must be distinct, got {names}"
            raise ValueError(msg)
        return parts

    @field_validator("budgets")
    @classmethod
    def _each_once(cls, budgets: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(budgets)) < len(budgets) or min(budgets) < 0:
            msg = f"budgets must be distinct and at least 0, got {list(budgets)}"
            raise ValueError(msg)
        return budgets

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.source.name == self.target.name:
            msg = f"source and target are both called {self.source.name!r}"
            raise ValueError(msg)
        known = {each.name for each in self.systems if each.provider != NONE}
        if astray := sorted(set(self.controlled) - known):
            msg = f"controlled: {astray[0]!r} is no system with memory in {sorted(known)}"
            raise ValueError(msg)
        return self

    @property
    def domains(self) -> tuple[DomainSpec, DomainSpec]:
        """Source and target."""
        return self.source, self.target

    def domain_of(self, side: Side) -> DomainSpec:
        """Return one of them."""
        return self.source if side == "source" else self.target

    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions of each system, in the paper's order."""
        found = [
            Condition("NM", "none", "none", "static"),
            Condition(f"E_{self.target.name.upper()}", "target", "empty", "dynamic"),
            Condition(f"E_{self.source.name.upper()}", "source", "empty", "dynamic"),
            Condition("C_ONLY", "target", "source", "static"),
            Condition("FULL", "source", "source", "static"),
            Condition("IN_DOM", "target", "target", "static"),
            Condition("CROSS", "source", "target", "static"),
        ]
        if self.dynamic_content:
            found += [
                replace(each, name=f"{each.name}+dynamic", mode="dynamic") for each in found[3:]
            ]
        return tuple(found)

    def same_architecture(self, system: System) -> bool:
        """Return whether a system's two architectures are one: then nothing of them can transfer."""
        return system.settings_of("source") == system.settings_of("target")

    @override
    def limited(self, items: int) -> Self:
        """Return the plan with at most `items` problems a run; fewer than its levels have any."""
        sizes = ("build_items", "target_build_items", "eval_items")
        return self.model_copy(update={name: min(getattr(self, name), items) for name in sizes})

    @override
    @classmethod
    def with_model(
        cls, fields: Mapping[str, JSON], model: str | None, base_url: str | None
    ) -> dict[str, JSON]:
        """Return a plan's fields with another model, of every solver."""
        changed = super().with_model(fields, model, base_url)
        solvers = changed.get("solvers")
        if model is None or not isinstance(solvers, Sequence):
            return changed
        own: dict[str, JSON] = {
            "model": None,
            "base_url": None,
            **({} if model == SIMULATED else {"strengths": {}}),
        }
        changed["solvers"] = [{**each, **own} for each in solvers if isinstance(each, Mapping)]
        return changed


def build_name(solver: str, system: str, domain: str, draw: int) -> str:
    """Return the name of the run that builds a bank."""
    return f"{solver}/build/{system}/{domain}/{draw}"


@dataclass(frozen=True, slots=True)
class RunList:
    """Builds the runs of a plan from its splits."""

    plan: TransplantPlan
    evaluated: Sequence[str]
    builds: Mapping[Side, Sequence[Sequence[str]]]

    def all(self) -> Iterator[RunSpec]:
        """List all runs, those that build banks first."""
        plan = self.plan
        for solver in plan.solvers:
            for system in plan.systems:
                if system.provider != NONE:
                    yield from self._builds(solver.name, system.name)
            for number in range(plan.noise_runs):
                noise = Condition(NOISE, "none", "none", "static")
                yield self._run(solver.name, min(plan.budgets), NONE, noise, number, "")
            for budget in plan.budgets:
                for system in plan.systems:
                    for condition in plan.conditions():
                        for seed in range(plan.seeds):
                            for control in self._controls(system, condition):
                                yield self._run(
                                    solver.name, budget, system.name, condition, seed, control
                                )

    def _controls(self, system: System, condition: Condition) -> Iterator[str]:
        yield ""
        if system.name not in self.plan.controlled or condition.architecture == "none":
            return
        idle = "write_only" if condition.mode == "static" else "frozen"
        yield from (each for each in self.plan.controls if each != idle)

    def _builds(self, solver: str, system: str) -> Iterator[RunSpec]:
        plan = self.plan
        for side in SIDES:
            name = plan.domain_of(side).name
            for draw, problems in enumerate(self.builds[side]):
                factors: dict[str, JSON] = {
                    "kind": "build",
                    "solver": solver,
                    "system": system,
                    "condition": "build",
                    "architecture": side,
                    "content": "empty",
                    "mode": "dynamic",
                    "budget": plan.build_budget,
                    "seed": draw,
                    "draw": draw,
                    "control": "",
                    "model_seed": plan.seed,
                }
                yield RunSpec(
                    study=plan.study,
                    name=build_name(solver, system, name, draw),
                    factors=factors,
                    item_ids=tuple(problems),
                )

    def _run(  # noqa: PLR0917  (the factors of the design)
        self, solver: str, budget: int, system: str, condition: Condition, seed: int, control: str
    ) -> RunSpec:
        plan = self.plan
        memory = next((s for s in plan.systems if s.name == system and s.provider != NONE), None)
        side = condition.content
        source = None
        if memory is not None and side in SIDES:
            assert side in {"source", "target"}
            domain = plan.source.name if side == "source" else plan.target.name
            source = BankSource(build_name(solver, system, domain, seed))
        factors: dict[str, JSON] = {
            "kind": "eval",
            "solver": solver,
            "system": system,
            "condition": condition.name,
            "architecture": condition.architecture,
            "content": condition.content,
            "mode": condition.mode,
            "budget": budget,
            "seed": seed,
            "draw": seed if source else None,
            "control": control,
            "model_seed": plan.seed,
        }
        called = f"{condition.name}~{control}" if control else condition.name
        return RunSpec(
            study=plan.study,
            name=f"{solver}/{budget}/{system}/{called}/{seed}",
            factors=factors,
            item_ids=tuple(
                sorted(
                    self.evaluated, key=lambda each: seeded_fraction("order", plan.seed, seed, each)
                )
            ),
            source=source,
            frozen=memory is None or condition.mode == "static",
        )
