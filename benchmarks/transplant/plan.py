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
budget and the condition. Where a system has a `grid`, a bank is built with each of its candidates, and
each domain *selects* the one whose builds solved the most of its own build problems.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Final, Literal, Self, TypeAlias, cast

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
from langgraft.benchmarks.comparison.verdicts import MARGIN, Cell
from langgraft.benchmarks.harness.plans import check_provider, is_shipped
from langgraft.benchmarks.harness.study import SIMULATED, BankSource, Plan, RunSpec, ServerUrl

Side: TypeAlias = Literal["source", "target"]
Mode: TypeAlias = Literal["static", "dynamic"]
Control: TypeAlias = Literal["random", "placebo", "framing", "write_only", "frozen"]
Remedy: TypeAlias = Literal["admitted", "gated"]
"""What may mend negative transfer: only items that paired replay says to help, or AgentKB's gate."""

NONE = "none"
"""The provider of the system without memory, and the architecture of `NM`."""
NOISE = "NOISE"
"""The condition of runs without memory that share no reply with any other."""
DISCORDANCE: Final = 0.15
"""Share of problems on which two conditions differ, in the arithmetic of the plan's size."""
VARYING: Final[Mapping[str, float | None]] = {
    "noise_variance": 0.0,
    "effect_variance": DISCORDANCE,
    "order_sd": 0.0,
}
"""How outcomes are taken to vary before there are any."""
MOST_CANDIDATES: Final = 64
"""Of a grid."""
NO_POLICY: Final = frozenset(
    {"feedback", "same_task", "credit", "forgetting", "ranker", "part_characters"}
)
"""Settings that no grid holds: what counts as an outcome, and what items are and are found by. Nor
does one hold capacities (`max_…`), which do not bind on streams as short as these."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

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
    grid: dict[str, tuple[JsonValue, ...]] = Field(default_factory=dict)
    """Setting → values, of which each domain selects on its own build problems; none: nothing is
    selected."""

    def settings_of(self, side: Side, chosen: Mapping[str, JSON] | None = None) -> dict[str, JSON]:
        """Return the settings of an architecture. Outcomes are an oracle's, and so declared.

        Args:
            side: Whose.
            chosen: What was selected of the grid; `None`: nothing yet.
        """
        own = self.source if side == "source" else self.target
        return {"feedback": "oracle", **self.settings, **own, **(chosen or {})}

    @property
    def candidates(self) -> tuple[dict[str, JSON], ...]:
        """What the grid holds: every combination, in its order; without a grid none."""
        if not self.grid:
            return ()
        return tuple(
            dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())
        )

    @field_validator("grid")
    @classmethod
    def _binding(cls, grid: dict[str, tuple[JsonValue, ...]]) -> dict[str, tuple[JsonValue, ...]]:
        for name, values in grid.items():
            if name in NO_POLICY or name.startswith("max_") or name.endswith("_characters"):
                msg = f"{name!r} is no policy that can bind here: leave it out of the grid"
                raise ValueError(msg)
            if not values or any(value in values[:n] for n, value in enumerate(values)):
                msg = f"{name!r} needs values, each once, got {list(values)}"
                raise ValueError(msg)
        if prod(map(len, grid.values())) > MOST_CANDIDATES:
            msg = f"a grid has at most {MOST_CANDIDATES} candidates"
            raise ValueError(msg)
        return grid

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> Self:
        if self.provider == NONE or is_shipped(info):
            return self
        try:
            for side in SIDES:
                for chosen in self.candidates or (None,):
                    check_provider(self.provider, self.settings_of(side, chosen))
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return self


SIDES: tuple[Side, Side] = ("source", "target")
GATE: Final[Mapping[str, JSON]] = {"gate": True}
"""The setting of the remedy `gated`."""


class Solver(_Part):
    """A model that solves."""

    model: str | None = None
    """`None`: the plan's; else as the plan's `model`."""
    base_url: ServerUrl | None = None
    """Where its server listens, if not where the plan's does."""
    provider: str = Field(default="", max_length=200)
    """Who serves it, as they say: for the record, sent nowhere."""
    quantization: str = Field(default="", max_length=200)
    """Of its weights, as whoever serves it says: for the record, sent nowhere."""
    strengths: dict[str, JsonValue] = Field(default_factory=dict)
    """Of the simulated one: what it is declared to be able to."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One cell of the design."""

    name: str
    architecture: Side | Literal["none"]
    content: Side | Literal["empty", "none"]
    mode: Mode
    remedy: Remedy | None = None


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
    admitted: tuple[str, ...] = ()
    """Systems whose static conditions are played, too, with the items alone that help in paired replay."""
    gated: tuple[str, ...] = ()
    """Systems whose static conditions are played, too, with the disagreement gate (their setting `gate`)."""
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
        for name in ("controlled", "admitted", "gated"):
            if astray := sorted(set(getattr(self, name)) - known):
                msg = f"{name}: {astray[0]!r} is no system with memory in {sorted(known)}"
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _have_gates(self, info: ValidationInfo) -> Self:
        try:
            for each in self.systems:
                if each.name in self.gated and not is_shipped(info):
                    check_provider(each.provider, {**each.settings_of("target"), **GATE})
        except SettingsError as error:
            msg = f"gated: {error}"
            raise ValueError(msg) from error
        return self

    @property
    def domains(self) -> tuple[DomainSpec, DomainSpec]:
        """Source and target."""
        return self.source, self.target

    def domain_of(self, side: Side) -> DomainSpec:
        """Return one of them."""
        return self.source if side == "source" else self.target

    def system_of(self, run: RunSpec) -> System | None:
        """Return the system of a run that has a memory; `None` of one without."""
        found = next((each for each in self.systems if each.name == run.factors["system"]), None)
        bare = found is None or found.provider == NONE or run.factors["architecture"] == NONE
        return None if bare else found

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

    def same_architecture(
        self, system: System, chosen: Mapping[Side, Mapping[str, JSON]] | None = None
    ) -> bool:
        """Return whether a system's two architectures are one: then nothing of them can transfer.

        Args:
            system: The system.
            chosen: What each domain selected of its grid; `None`: nothing yet, so of a grid nobody knows.
        """
        if system.grid and chosen is None:
            return False
        one, other = (system.settings_of(side, (chosen or {}).get(side)) for side in SIDES)
        return one == other

    def remedied(self, system: str) -> tuple[Condition, ...]:
        """Return the static conditions of a system once more, with each remedy that it has."""
        having: Mapping[Remedy, tuple[str, ...]] = {"admitted": self.admitted, "gated": self.gated}
        return tuple(
            replace(each, name=f"{each.name}+{remedy}", remedy=remedy)
            for remedy, systems in having.items()
            if system in systems
            for each in self.conditions()
            if each.content in SIDES and each.mode == "static"
        )

    @override
    def limited(self, items: int) -> Self:
        """Return the plan with at most `items` problems a run; fewer than its levels have any."""
        sizes = ("build_items", "target_build_items", "eval_items")
        return self.model_copy(update={name: min(getattr(self, name), items) for name in sizes})

    @override
    @classmethod
    def with_model(
        cls,
        fields: Mapping[str, JSON],
        model: str | None,
        base_url: str | None,
        model_settings: Mapping[str, JSON] | None = None,
    ) -> dict[str, JSON]:
        """Return a plan's fields with another model, of every solver."""
        changed = super().with_model(fields, model, base_url, model_settings)
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


@cache
def _in_order(problems: tuple[str, ...], plan_seed: int, seed: int) -> tuple[str, ...]:
    """Return problems in the order of a seed (gate G4); hundreds of runs ask for each."""
    return tuple(sorted(problems, key=lambda each: seeded_fraction("order", plan_seed, seed, each)))


def tested_cell(run: RunSpec) -> Cell | None:
    """Return what a run tests, as hypotheses name it; `None`: it builds, or there is no memory in its condition."""
    f = run.factors
    memoryless = f["architecture"] != NONE and run.source is None and run.frozen
    if f["kind"] != "eval" or memoryless:
        return None
    condition = f"{f['condition']}~{f['control']}" if f["control"] else str(f["condition"])
    return {
        "solver": str(f["solver"]),
        "budget": cast("int", f["budget"]),
        "system": str(f["system"]),
        "condition": condition,
    }


@dataclass(frozen=True, slots=True)
class RunList:
    """Builds the runs of a plan from its splits."""

    plan: TransplantPlan
    evaluated: Sequence[str]
    builds: Mapping[Side, Sequence[Sequence[str]]]

    def all(self) -> Iterator[RunSpec]:
        """List all runs: those that build banks and choose first."""
        plan = self.plan
        for solver in plan.solvers:
            for system in plan.systems:
                if system.provider != NONE:
                    for side in SIDES:
                        yield from self._builds(solver.name, system, side)
                    yield from self._admissions(solver.name, system)
            for number in range(plan.noise_runs):
                noise = Condition(NOISE, "none", "none", "static")
                nobody = System(name=NONE, provider=NONE)
                yield self._run(solver.name, min(plan.budgets), nobody, noise, number, "")
            for budget in plan.budgets:
                for system in plan.systems:
                    yield from self._evaluations(solver.name, budget, system)

    def _evaluations(self, solver: str, budget: int, system: System) -> Iterator[RunSpec]:
        for condition in (*self.plan.conditions(), *self.plan.remedied(system.name)):
            for seed in range(self.plan.seeds):
                for control in self._controls(system, condition):
                    yield self._run(solver, budget, system, condition, seed, control)

    def _controls(self, system: System, condition: Condition) -> Iterator[str]:
        yield ""
        controlled = system.name in self.plan.controlled and condition.remedy is None
        if not controlled or condition.architecture == "none":
            return
        idle = "write_only" if condition.mode == "static" else "frozen"
        yield from (each for each in self.plan.controls if each != idle)

    def _builds(self, solver: str, system: System, side: Side) -> Iterator[RunSpec]:
        """List the builds of a system in a domain, and where it has a grid what is selected of them."""
        plan, listed = self.plan, list[str]()
        build = Condition("build", side, "empty", "dynamic")
        for place, candidate in enumerate(system.candidates or (None,)):
            for draw, problems in enumerate(self.builds[side]):
                name = self._stage("build", solver, system, side, draw)
                if candidate is not None:
                    name = f"{name}@{place}"
                factors = self._factors("build", solver, system, build, plan.build_budget, draw)
                listed.append(name)
                yield RunSpec(
                    study=plan.study,
                    name=name,
                    factors={**factors, "chosen": candidate},
                    item_ids=tuple(problems),
                )
        if not system.candidates:
            return
        for draw in range(len(self.builds[side])):
            yield RunSpec(
                study=plan.study,
                name=self._stage("select", solver, system, side, draw),
                factors=self._factors("select", solver, system, build, plan.build_budget, draw),
                item_ids=("selection",),
                reads=tuple(listed),
            )

    def _admissions(self, solver: str, system: System) -> Iterator[RunSpec]:
        """List the replays that say which items help, on the target domain's build problems."""
        plan = self.plan
        for condition in plan.remedied(system.name):
            if condition.remedy != "admitted":
                continue
            for draw, problems in enumerate(self.builds["target"]):
                yield RunSpec(
                    study=plan.study,
                    name=f"{solver}/admit/{system.name}/{condition.name}/{draw}",
                    factors=self._factors(
                        "admit", solver, system, condition, plan.build_budget, draw
                    ),
                    item_ids=tuple(problems),
                    source=self._bank(solver, system, condition, draw),
                    reads=self._selected(solver, system, condition),
                )

    def _run(  # noqa: PLR0917  (the factors of the design)
        self,
        solver: str,
        budget: int,
        system: System,
        condition: Condition,
        seed: int,
        control: str,
    ) -> RunSpec:
        plan = self.plan
        source: BankSource | None = None
        reads: tuple[str, ...] = ()
        if system.provider != NONE and condition.architecture != "none":
            source = self._bank(solver, system, condition, seed)
            reads = self._selected(solver, system, condition)
            if condition.remedy == "admitted":
                source = BankSource(f"{solver}/admit/{system.name}/{condition.name}/{seed}")
        called = f"{condition.name}~{control}" if control else condition.name
        return RunSpec(
            study=plan.study,
            name=f"{solver}/{budget}/{system.name}/{called}/{seed}",
            factors=self._factors("eval", solver, system, condition, budget, seed, control),
            item_ids=_in_order(tuple(self.evaluated), plan.seed, seed),
            source=source,
            frozen=system.provider == NONE or condition.mode == "static",
            reads=reads,
        )

    def _factors(  # noqa: PLR0917  (the factors of the design)
        self,
        kind: Literal["build", "select", "admit", "eval"],
        solver: str,
        system: System,
        condition: Condition,
        budget: int,
        seed: int,
        control: str = "",
    ) -> dict[str, JSON]:
        """Return the factors of a run; beside the plan they decide what it is."""
        built = system.provider != NONE and (kind != "eval" or condition.content in SIDES)
        return {
            "kind": kind,
            "solver": solver,
            "system": system.name,
            "condition": condition.name,
            "architecture": condition.architecture,
            "content": condition.content,
            "mode": condition.mode,
            "remedy": condition.remedy,
            "budget": budget,
            "seed": seed,
            "draw": seed if built else None,
            "control": control,
            "model_seed": self.plan.seed,
        }

    def _stage(self, stage: str, solver: str, system: System, side: Side, draw: int) -> str:
        return f"{solver}/{stage}/{system.name}/{self.plan.domain_of(side).name}/{draw}"

    def _bank(
        self, solver: str, system: System, condition: Condition, draw: int
    ) -> BankSource | None:
        """Return the bank of a condition's content: that of the settings its domain has selected."""
        side = condition.content
        if side != "source" and side != "target":  # noqa: PLR1714  (mypy narrows by it)
            return None
        stage = "select" if system.candidates else "build"
        return BankSource(self._stage(stage, solver, system, side, draw))

    def _selected(self, solver: str, system: System, condition: Condition) -> tuple[str, ...]:
        """Return the run that tells what the domain of a condition's architecture has selected."""
        side = condition.architecture
        if side == "none" or not system.candidates:
            return ()
        return (self._stage("select", solver, system, side, 0),)
