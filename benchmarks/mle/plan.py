"""The plan of a study of competitions, with its runs.

    build/<competition>                one search a build seed, one after another, from an empty bank
    <memory>/<competition>/seed-<n>    one search

Of a plan with other agents than one tree each name begins with the agent, `chain/build/…` or
`tree-uct/build/…`. A bank belongs to one agent: what an agent meets is what another one would not.

A warm condition starts from the bank that the build run of its competition left. Conditions of
`CodingMemory` share it as far as their settings decide what is recalled, and nothing of what is kept.
A condition whose settings do (`novelty`, say), or of another provider, has a build run of its own,
`build-<memory>/<competition>`.

Runs of one competition come one after another, and within it the seeds of a condition: so runs
that are under way together use one sandbox, and what one condition ran first is known when the
next one asks for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias, cast

from pydantic import Field, field_serializer, field_validator, model_validator
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.verdicts import MARGIN, Cell
from langgraft.benchmarks.harness.study import SIMULATED, BankSource, Plan, RunSpec, ServerUrl
from langgraft.benchmarks.mle.agents.settings import (
    MODEL_FIELDS,
    SECTIONS,
    AgentSettings,
    Section,
    TreeSettings,
    as_section,
    check_seeds,
)
from langgraft.benchmarks.mle.conditions import (
    BUILD,
    BUILDER,
    NAMED,
    MemoryCondition,
    check_chosen,
    check_conditions,
    conditions_of,
)
from langgraft.environments.competitions.layout import is_competition_id
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.docker.engine import IMAGE
from langgraft.environments.sandboxes.sandbox import Limits

CPUS: Final = 1.0
"""Processors of a program, unless a plan says otherwise: searches that run side by side then take
no time from each other, and a program's time limit means the same whatever else runs."""

PackageName: TypeAlias = Annotated[str, Field(pattern=r"^[^\s$](?:[^\n\r$]{0,98}[^\s$])?$")]
"""One of a plan's packages, in a line."""

_FAMILIES: Final = ("shipped", "lite")


class MlePlan(Plan):
    """Agents with several memories at machine-learning competitions.

    Defaults are the paper's where it states them (mle-agent-memory Table 6), each agent's in its
    section (`langgraft.benchmarks.mle.agents.settings`). Its
    models for the tree are o3 for code and GPT-4.1 for feedback: `model: openai:o3`,
    `feedback_model: openai:gpt-4.1`, with a key of one's own.

    `data_dir`, `folders` and `weights` say where data is found on this machine: they are no part of
    what is studied, and a run may be gone on with from another place. The data itself is: by
    checksums.
    """

    study: Literal["mle"] = "mle"
    agents: tuple[Section, ...] = (TreeSettings(),)
    """The agents, by name or with settings of their own: `tree` searches over programs as AIDE
    does, or by another policy, `chain` acts step by step as OpenHands' CodeActAgent, `mlab` as
    MLAgentBench's agent. One of them may stand there several times, with a `variant` each."""
    memory: tuple[MemoryCondition, ...] = (NAMED["off"], NAMED["cold"], NAMED["warm"])
    """The conditions, by name (`off`, `cold`, `warm`, `scheduled`, `placebo` …) or spelled out."""
    competitions: tuple[str, ...] = Field(default_factory=lambda: _named_competitions("shipped"))
    """Ids of the competitions, `shipped` for those that ship, or `lite` for MLE-bench's 22."""
    only_prepared: bool = False
    """Leave out competitions whose data is not there and that nobody can prepare on the way; the
    manifest tells which they were. A plan without it is refused as long as one is missing."""
    folders: tuple[Path, ...] = Field(default=(), exclude=True)
    """Folders of competitions of one's own, `<folder>/<id>/config.yaml`."""
    data_dir: Path | None = Field(default=None, exclude=True)
    """Where data lies and is prepared; `None`: in the user's cache."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the runs that are compared, each under every condition."""
    build_seeds: tuple[int, ...] = (100, 101, 102)
    """Seeds of the runs that fill the banks of warm conditions, one after another; none of them
    may be among `seeds`."""
    margin: float = Field(default=MARGIN, gt=0, lt=1)
    """Difference in a rate up to which controls and re-runs count as equivalent to no memory."""
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall clock of one execution of every agent; `None`: of each as published, 7,200 for the tree
    (Table 6), and for the others as long as a run may take."""
    feedback_model: str | None = None
    """The model that reviews and diagnoses (Table 6: GPT-4.1); `None`: `model`."""
    feedback_base_url: ServerUrl | None = None
    """Where its server listens; `None`: where that of `model` does."""
    call_seconds: float = Field(default=1800.0, gt=0, exclude=True)
    """How long one call of a real model may take in all, and its server be silent, in seconds: a model
    that reasons writes nothing for minutes. It decides no result."""
    embedder: str | None = None
    """What `CodingMemory` compares errors by, as LangChain's `init_embeddings` names it, such as
    `openai:text-embedding-3-small` (§3.3 has a model and does not name it); `None`: by spelling,
    without a key. A condition with a `ranker` of its own keeps that."""
    diagnosis_examples: bool = False
    """Whether the model that diagnoses failures is shown examples (Figure 5; the examples are ours)."""
    temperature: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """Sampling temperature (AIDE's default; reasoning models such as o3 take 1 alone)."""
    max_tokens: int = Field(default=16384, ge=1)
    """Most tokens a reply may have: a whole program, and what a model reasons before it (gpt-4o
    writes no more; o3 may have reasoned as much before it writes: an agent's section can say more)."""
    memory_tokens: int | None = Field(default=None, ge=0)
    """Room for recalled text, in tokens; `None` sets no limit."""
    sandbox: Literal["docker", "subprocess"] = "docker"
    """Where programs run. `subprocess` isolates nothing: programs can do all that you can. It is
    for programs of the simulated model or one's own, and never taken unless it is named here."""
    image: str = IMAGE
    """The image that programs run in; `langgraft sandbox build` makes the default."""
    limits: Limits = Limits(cpus=CPUS)
    """What a program may use; `seconds` stands above. One processor unless it says otherwise."""
    gpus: Literal["all"] | int | None = None
    """Graphics processors of a program: how many, or `all`."""
    weights: Path | None = Field(default=None, exclude=True)
    """Folder of pretrained weights that programs find (`langgraft.benchmarks.mle.sandboxes.weights_in`);
    its names and digest are part of what is studied."""
    packages: tuple[PackageName, ...] | None = None
    """What agents are told that programs can import, also with versions (`torch 2.9`). `None`:
    what the image's label says, and what is asked of an image without one, once. Of `subprocess`
    it is what our own image is made with."""

    @override
    def limited(self, items: int) -> Self:
        """Return the plan with at most `items` build seeds: a run that is compared has one item."""
        sections = [
            each
            if each.build_seeds is None
            else each.model_copy(update={"build_seeds": each.build_seeds[:items]})
            for each in self.agents
        ]
        fewer = {"build_seeds": self.build_seeds[:items], "agents": tuple(sections)}
        return self.model_copy(update=fewer)

    @classmethod
    @override
    def with_model(
        cls,
        fields: Mapping[str, JSON],
        model: str | None,
        base_url: str | None,
        model_settings: Mapping[str, JSON] | None = None,
    ) -> dict[str, JSON]:
        """Name another model for every agent; the simulated one gives its own feedback."""
        changed = super().with_model(fields, model, base_url, model_settings)
        if model is None:
            return changed
        gone = MODEL_FIELDS if model == SIMULATED else MODEL_FIELDS[:2]
        changed |= dict.fromkeys(gone[2:])
        if model == SIMULATED:
            changed["embedder"] = None
        sections = changed.get("agents")
        if isinstance(sections, list):
            without = dict.fromkeys(gone)
            changed["agents"] = [
                {**each, **without} if isinstance(each, dict) else each for each in sections
            ]
        return changed

    @model_validator(mode="before")
    @classmethod
    def _in_a_section(cls, given: Any) -> Any:
        astray = sorted(set(given) & _OF_AGENTS) if isinstance(given, Mapping) else ()
        if astray:
            name = astray[0]
            owner = next(each for each in SECTIONS if name in SECTIONS[each].model_fields)
            msg = (
                f"`{name}` is an agent's own: it stands in its section, as in"
                f" `agents: [{{name: {owner}, {name}: …}}]`"
            )
            raise ValueError(msg)
        return given

    @field_validator("agents", mode="before")
    @classmethod
    def _sections(cls, agents: Any) -> Any:
        if not isinstance(agents, list | tuple):
            msg = "give a list, as in `agents: [tree, {name: chain, steps: 24}]`"
            raise ValueError(msg)  # noqa: TRY004 - pydantic's own errors are of this class
        return tuple(map(as_section, agents))

    @field_validator("competitions", mode="before")
    @classmethod
    def _family(cls, competitions: Any) -> Any:
        return _named_competitions(competitions)

    @field_validator("memory", mode="before")
    @classmethod
    def _by_name(cls, memory: Any) -> Any:
        return conditions_of(memory) if isinstance(memory, list | tuple) else memory

    @field_validator("embedder")
    @classmethod
    def _embedder_named(cls, name: str | None) -> str | None:
        if name is not None and not all(part.strip() for part in f"{name}:".split(":")[:2]):
            msg = "name a provider and a model, as in `openai:text-embedding-3-small`"
            raise ValueError(msg)
        return name

    @field_validator("limits", mode="before")
    @classmethod
    def _one_processor(cls, limits: Any) -> Any:
        if not isinstance(limits, dict):
            return limits
        if "seconds" in limits:
            msg = "`seconds` of an execution is a field of the plan itself, not of its limits"
            raise ValueError(msg)
        return {"cpus": CPUS, **limits}

    @field_serializer("limits")
    def _without_seconds(self, limits: Limits) -> dict[str, Any]:
        return limits.model_dump(exclude={"seconds"})

    @field_validator("agents", "competitions", "seeds", "memory")
    @classmethod
    def _some(cls, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if not given:
            msg = "give at least one"
            raise ValueError(msg)
        return given

    @field_validator("agents")
    @classmethod
    def _one_each(cls, agents: tuple[AgentSettings, ...]) -> tuple[AgentSettings, ...]:
        names = [each.label for each in agents]
        if len(set(names)) < len(names):
            msg = (
                "each agent may be given once, and the tree once with each policy and operators,"
                f" unless `variant` tells them apart; got {names}"
            )
            raise ValueError(msg)
        return agents

    @field_validator("competitions")
    @classmethod
    def _ids(cls, competitions: tuple[str, ...]) -> tuple[str, ...]:
        _check_ids(competitions)
        return competitions

    @field_validator("seeds", "build_seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        return check_seeds(seeds)

    @field_validator("memory")
    @classmethod
    def _conditions_fit(cls, memory: tuple[MemoryCondition, ...]) -> tuple[MemoryCondition, ...]:
        check_conditions(memory)
        return memory

    @model_validator(mode="after")
    def _seeds_apart(self) -> Self:
        for each in self.agents:
            warm = any(condition.start == "warm" for condition in self.memory_of(each))
            seeds, build_seeds = self.seeds_of(each), self.build_seeds_of(each)
            if shared := sorted(set(seeds) & set(build_seeds)):
                msg = (
                    f"seeds {shared} build banks and are compared: a warm run of {each.label} would"
                    " know itself"
                )
                raise ValueError(msg)
            if warm and not build_seeds:
                msg = (
                    f"a condition of {each.label} starts warm, and there are no build_seeds to make"
                    " its bank"
                )
                raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _memory_fits(self) -> Self:
        for agent in self.agents:
            check_chosen(agent.label, agent.memory or (), self.memory)
        return self

    @model_validator(mode="after")
    def _models_fit(self) -> Self:
        own = {name: getattr(self, name) for name in MODEL_FIELDS[1:]}
        given = [name for name, value in own.items() if value is not None]
        given += [f"{each.label}'s {name}" for each in self.agents for name in each.own_models]
        if self.model == SIMULATED and given:
            msg = f"{given[0]} is not for the simulated model: name a model in `model`"
            raise ValueError(msg)
        if any(SIMULATED in {each.model, each.feedback_model} for each in self.agents):
            msg = "an agent's own model cannot be the simulated one: it is for all agents or none"
            raise ValueError(msg)
        if self.feedback_base_url is not None and self.feedback_model is None:
            msg = "feedback_base_url is given, and no feedback_model"
            raise ValueError(msg)
        return self

    def agent(self, name: str) -> AgentSettings:
        """Return an agent's section, by its label.

        Raises:
            KeyError: The plan has no such agent.
        """
        return {each.label: each for each in self.agents}[name]

    def seeds_of(self, agent: AgentSettings) -> tuple[int, ...]:
        """Return the seeds of an agent's runs that are compared."""
        return self.seeds if agent.seeds is None else agent.seeds

    def build_seeds_of(self, agent: AgentSettings) -> tuple[int, ...]:
        """Return the seeds of an agent's runs that fill banks."""
        return self.build_seeds if agent.build_seeds is None else agent.build_seeds

    def memory_of(self, agent: AgentSettings) -> tuple[MemoryCondition, ...]:
        """Return the conditions of an agent's runs."""
        if agent.memory is None:
            return self.memory
        return tuple(each for each in self.memory if each.name in agent.memory)

    def temperature_of(self, agent: AgentSettings) -> float:
        """Return the sampling temperature of an agent's models."""
        return self.temperature if agent.temperature is None else agent.temperature

    def named(self, agent: str, rest: str) -> str:
        """Return a name within the plan: of a tree alone `rest`, otherwise with the agent first."""
        alone = [each.name for each in self.agents] == ["tree"]
        return rest if alone else f"{agent}/{rest}"

    def seconds_of(self, agent: AgentSettings) -> float:
        """Return the wall clock of one execution of an agent."""
        given = self.seconds if agent.seconds is None else agent.seconds
        return agent.published_seconds if given is None else given

    def limits_of(self, agent: AgentSettings) -> Limits:
        """Return the limits of an agent's programs, their time included."""
        return self.limits.model_copy(update={"seconds": self.seconds_of(agent)})

    def condition(self, name: str) -> MemoryCondition:
        """Return a condition by its name.

        Raises:
            KeyError: There is none of that name.
        """
        return {each.name: each for each in self.memory}[name]

    def filled_by(self, condition: MemoryCondition) -> MemoryCondition:
        """Return the condition whose memory fills a condition's bank: of a control, what it is of."""
        return condition if condition.of is None else self.condition(condition.of)

    def registry(self) -> Registry:
        """Return where the competitions are found.

        Raises:
            CompetitionError: A folder of competitions is not there.
        """
        return Registry(self.data_dir, folders=self.folders)


_OF_AGENTS: Final = frozenset(
    name for section in SECTIONS.values() for name in section.model_fields
) - {"name", *MlePlan.model_fields}
"""Settings that stand in the section of an agent, and not in the plan."""


def _named_competitions(given: Any) -> Any:
    """Return the ids that `shipped` or `lite` stands for; what is no word is returned as it is.

    Raises:
        ValueError: It is another word.
    """
    if not isinstance(given, str):
        return given
    if given not in _FAMILIES:
        msg = f"give a list of ids, or one of {', '.join(_FAMILIES)}; got {given!r:.80}"
        raise ValueError(msg)
    if given == "lite":
        return tuple(Registry().get_lite_competition_ids())
    return tuple(Registry().get_shipped_competition_ids())


def _check_ids(ids: Sequence[str]) -> None:
    """Refuse what cannot be an id, and one that is given twice.

    Raises:
        ValueError: There is one.
    """
    if len(set(ids)) < len(ids):
        msg = f"each may be given once, got {list(ids)}"
        raise ValueError(msg)
    for each in ids:
        if not is_competition_id(each):
            msg = f"{each!r:.80} cannot be the id of a competition"
            raise ValueError(msg)


SEARCH: Final = "search"
"""The phase of runs that are compared."""


def runs_of(plan: MlePlan) -> Iterator[RunSpec]:
    """List the runs of a plan, sources first."""
    return runs_at(plan, plan.competitions)


def runs_at(plan: MlePlan, competitions: Iterable[str]) -> Iterator[RunSpec]:
    """List the runs of a plan at some of its competitions, sources first."""
    for agent, competition in product(plan.agents, competitions):
        for builder in _builders(plan.memory_of(agent)):
            yield _build(plan, agent, competition, builder)
        for condition in plan.memory_of(agent):
            for seed in plan.seeds_of(agent):
                yield _search(plan, agent, competition, condition, seed)


def agent_of(spec: RunSpec) -> str:
    """Return the label of a run's agent."""
    return str(spec.factors["agent"])


def memory_of(plan: MlePlan, run: RunSpec) -> MemoryCondition:
    """Return the memory of a run: a condition of the plan, or the builder of its bank."""
    name = condition_of(run)
    return BUILDER if name == BUILD else plan.condition(name)


def condition_of(spec: RunSpec) -> str:
    """Return the memory condition of a run."""
    return str(spec.factors["memory"])


def competition_of(spec: RunSpec) -> str:
    """Return the competition of a run."""
    return str(spec.factors["competition"])


def seed_of(spec: RunSpec) -> int:
    """Return the seed of a run."""
    return int(cast("int", spec.factors["seed"]))


def tested_cell(spec: RunSpec) -> Cell | None:
    """Return what a run tests, as hypotheses name it; `None`: it builds a bank."""
    if spec.factors.get("phase") == BUILD:
        return None
    return {
        "agent": str(spec.factors.get("agent") or ""),
        "condition": condition_of(spec),
        "competition": competition_of(spec),
    }


def seed_of_item(item_id: str) -> int:
    """Return the seed that an item stands for."""
    return int(item_id.removeprefix("seed-"))


def _item(seed: int) -> str:
    return f"seed-{seed}"


def _builders(conditions: Iterable[MemoryCondition]) -> list[MemoryCondition]:
    """Return the memories that banks are built with, each once."""
    found = {}
    for condition in conditions:
        if condition.start == "warm" and condition.control is None:
            builder = BUILDER if condition.keeps_alike else condition
            found[builder.name] = builder
    return list(found.values())


def _builder_of(plan: MlePlan, condition: MemoryCondition) -> MemoryCondition:
    own = plan.filled_by(condition)
    return BUILDER if own.keeps_alike else own


def _build_name(
    plan: MlePlan, agent: AgentSettings, builder: MemoryCondition, competition: str
) -> str:
    phase = BUILD if builder is BUILDER else f"{BUILD}-{builder.name}"
    return plan.named(agent.label, f"{phase}/{competition}")


def _build(
    plan: MlePlan, agent: AgentSettings, competition: str, builder: MemoryCondition
) -> RunSpec:
    seeds = plan.build_seeds_of(agent)
    factors: Mapping[str, JSON] = {
        "agent": agent.label,
        "memory": builder.name,
        "competition": competition,
        "seed": seeds[0],
        "phase": BUILD,
    }
    name = _build_name(plan, agent, builder, competition)
    return RunSpec(plan.study, name, factors, tuple(map(_item, seeds)))


def _search(
    plan: MlePlan, agent: AgentSettings, competition: str, condition: MemoryCondition, seed: int
) -> RunSpec:
    factors: Mapping[str, JSON] = {
        "agent": agent.label,
        "memory": condition.name,
        "competition": competition,
        "seed": seed,
        "phase": SEARCH,
    }
    source = None
    if condition.start == "warm":
        builder = _builder_of(plan, condition)
        source = BankSource(_build_name(plan, agent, builder, competition))
    name = plan.named(agent.label, f"{condition.name}/{competition}/{_item(seed)}")
    return RunSpec(plan.study, name, factors, (_item(seed),), source)
