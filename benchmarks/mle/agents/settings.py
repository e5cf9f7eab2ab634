"""An agent's section of a plan: its own settings, with the published ones as defaults.

    agents:
      - tree                        # as it is by default
      - {name: chain, steps: 24}    # with settings of its own

`seeds`, `build_seeds`, models and temperature stand above, in the plan, for all agents; a section
that names one has it for its agent alone.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

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

from langgraft._core.errors import SettingsError
from langgraft.benchmarks.harness.plans import is_shipped
from langgraft.benchmarks.harness.study import ServerUrl
from langgraft.benchmarks.mle.conditions import spelled

if TYPE_CHECKING:  # listing runs needs none of it
    from langgraft.nodes.search.policy import SearchPolicy

AgentName: TypeAlias = Literal["tree", "chain", "mlab"]
"""The agents that plans of competitions name."""
PolicyName: TypeAlias = Literal["greedy", "uct", "evolution"]


def check_seeds(seeds: tuple[int, ...]) -> tuple[int, ...]:
    """Return seeds that a plan may have.

    Raises:
        ValueError: One is given twice, or below 0.
    """
    if len(set(seeds)) < len(seeds):
        msg = f"each may be given once, got {list(seeds)}"
        raise ValueError(msg)
    if any(seed < 0 for seed in seeds):
        msg = f"seeds are 0 or more, got {list(seeds)}"
        raise ValueError(msg)
    return seeds


class AgentSettings(BaseModel):
    """What the section of every agent may have."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: AgentName
    variant: str | None = Field(default=None, pattern=r"^[a-z0-9][a-z0-9._-]*$")
    """A word that tells this section from others of the same agent, such as that of another model:
    the agent is called `chain-<variant>` then, in runs and in reports; `None`: it is the only one."""
    seeds: tuple[int, ...] | None = None
    """Seeds of the runs that are compared; `None`: those of the plan."""
    build_seeds: tuple[int, ...] | None = None
    """Seeds of the runs that fill banks; `None`: those of the plan."""
    memory: tuple[str, ...] | None = None
    """Names of those of the plan's conditions that the agent has; `None`: all. To an agent that
    asks memory once, as a run begins, a condition that starts cold is none."""
    model: str | None = None
    """The model that acts; `None`: that of the plan."""
    base_url: ServerUrl | None = None
    """Where its server listens; `None`: where that of the plan's does."""
    feedback_model: str | None = None
    """The model that reviews, diagnoses and judges; `None`: that of the plan, or else the one
    that acts."""
    feedback_base_url: ServerUrl | None = None
    """Where its server listens; `None`: where that of the plan's does."""
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Sampling temperature of both; `None`: that of the plan."""
    feedback_temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Sampling temperature of what reviews, diagnoses and judges; `None`: `temperature`."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Most tokens of a reply of the model that acts, what it reasons before it included; `None`:
    that of the plan."""
    feedback_max_tokens: int | None = Field(default=None, ge=1)
    """Most tokens of a reply of the model for feedback; `None`: that of the plan."""
    steps: int = Field(ge=1)
    """How much a run may do: programs of a search, actions of the others."""
    seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall clock of one execution; `None`: that of the plan, or else the published one."""

    @model_validator(mode="before")
    @classmethod
    def _own(cls, given: Any) -> Any:
        for name in given if isinstance(given, Mapping) else ():
            having = [agent for agent, each in SECTIONS.items() if name in each.model_fields]
            if having and name not in cls.model_fields:
                msg = f"`{name}` is no setting of this agent, but of {' and '.join(having)}"
                raise ValueError(msg)
        return given

    @field_validator("seeds", "build_seeds")
    @classmethod
    def _seeds(cls, seeds: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if seeds is None else check_seeds(seeds)

    @field_validator("memory", mode="before")
    @classmethod
    def _words(cls, memory: Any) -> Any:
        return [spelled(each) for each in memory] if isinstance(memory, list | tuple) else memory

    @field_validator("seeds", "memory")
    @classmethod
    def _some(cls, given: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if given == ():
            msg = "give at least one"
            raise ValueError(msg)
        return given

    @model_validator(mode="after")
    def _urls_fit(self) -> Self:
        if self.base_url is not None and self.model is None:
            msg = "base_url is given, and no model"
            raise ValueError(msg)
        if self.feedback_base_url is not None and self.feedback_model is None:
            msg = "feedback_base_url is given, and no feedback_model"
            raise ValueError(msg)
        return self

    @property
    def published_seconds(self) -> float:
        """Wall clock of one execution as the agent's original has it."""
        return PUBLISHED_SECONDS

    @property
    def label(self) -> str:
        """What the agent is called among those of its plan, and in names of runs."""
        return self.name if self.variant is None else f"{self.name}-{self.variant}"

    @property
    def own_models(self) -> tuple[str, ...]:
        """Names of the fields that say which models, and where, as far as they are given."""
        return tuple(name for name in MODEL_FIELDS if getattr(self, name) is not None)


PUBLISHED_SECONDS: Final = 7200.0
"""Of a program of the tree (mle-agent-memory Table 6)."""

MODEL_FIELDS: Final = ("model", "base_url", "feedback_model", "feedback_base_url")
"""Fields of a section that name models."""


class PolicySettings(BaseModel):
    """The policy of a tree search: its name, and settings of its own.

    policy: uct
    policy: {name: evolution, crossover: 0.3}

    All have `scope`: which attempts a writer is told of, `all`, `siblings` or `ancestors`. The other
    settings of `greedy`, AIDE's policy, stand in the agent's section, as does everybody's `debug_depth`.
    """

    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)
    __pydantic_extra__: dict[str, JsonValue]

    name: PolicyName

    @model_validator(mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        return {"name": given} if isinstance(given, str) else given


_OF_GREEDY: Final = ("drafts", "debug_probability", "published_depth")
"""Settings of a tree's section that are the greedy policy's alone."""


class TreeSettings(AgentSettings):
    """The tree search, as mle-agent-memory Table 6 has AIDE; AIDE's own defaults where it is silent."""

    name: Literal["tree"] = "tree"
    steps: int = Field(default=30, ge=1)
    """Programs of a search (Table 6: 30)."""
    drafts: int = Field(default=5, ge=1)
    """Programs written from nothing at the start (AIDE's default; Table 6 does not name it)."""
    debug_probability: float = Field(default=0.5, ge=0, le=1)
    """Chance that a failure is repaired where one can be (Table 6: 0.5)."""
    debug_depth: int = Field(default=3, ge=0)
    """Largest number of repairs in a row, read as AIDE's code does (Table 6: 3)."""
    published_depth: bool = True
    """Whether a failure of exactly `debug_depth` repairs may be repaired once more, as AIDE's code
    has it; `False` reads the number as its name says, as other policies do."""
    policy: PolicySettings = PolicySettings(name="greedy")
    """What chooses the next program: `greedy` (AIDE's), `uct` or `evolution` (AIRA's). Each makes
    another agent of the plan: `tree`, `tree-uct`, `tree-evolution`."""
    operators: Literal["published", "current"] = "published"
    """What programs are asked for with: AIDE's prompts, which the paper's agents had, or prompts
    that tell and ask more (after AIRA), a repair its chain of failures among it: that is a memory
    of errors of its own. `current` makes another agent of the plan: `tree-current`."""
    folds: int = Field(default=5, ge=2)
    """Folds of cross-validation that programs are told of (AIDE's default)."""
    width: int = Field(default=1, ge=1)
    """Programs written and run at once within a search; AIDE: one."""
    candidates: int = Field(default=1, ge=1)
    """Best programs that are scored again on fresh splits before one is submitted; AIDE submits
    the best validation metric, which is 1."""
    hours: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall clock of a search (§4.1 and MLE-bench: 24); `None`: `steps` alone end it. A program
    whose result is looked up counts as long as it ran."""
    invalid_is_bug: bool = True
    """Whether a program whose submission is not valid counts as a failure; `False`: only one
    without a submission does (AIDE as MLE-bench runs it)."""

    @property
    @override
    def label(self) -> str:
        """`tree`, policy and operators where they are others than AIDE's, and the variant."""
        policy = None if self.policy.name == "greedy" else self.policy.name
        operators = None if self.operators == "published" else self.operators
        return "-".join(filter(None, (self.name, policy, operators, self.variant)))

    def search_policy(self) -> "SearchPolicy":
        """Return the policy.

        Raises:
            SettingsError: It has no such setting, or a setting is out of its range.
        """
        from langgraft.nodes.search.aira import EvolutionPolicy, UCTPolicy  # noqa: PLC0415
        from langgraft.nodes.search.policy import AIDEPolicy  # noqa: PLC0415

        given: dict[str, Any] = dict(self.policy.model_extra or {})
        made: type[AIDEPolicy | UCTPolicy | EvolutionPolicy] = {
            "greedy": AIDEPolicy,
            "uct": UCTPolicy,
            "evolution": EvolutionPolicy,
        }[self.policy.name]
        own: dict[str, Any] = {"debug_depth": self.debug_depth}
        if made is AIDEPolicy:
            own |= {name: getattr(self, name) for name in _OF_GREEDY}
        known = {each.name for each in fields(made)} - set(own)
        if strange := sorted(set(given) - known):
            there = ", ".join(sorted(known))
            msg = f"policy {self.policy.name} has no setting {strange[0]!r:.80}; it has {there}"
            raise SettingsError(msg)
        return made(**given, **own)

    @model_validator(mode="after")
    def _policy_fits(self, info: ValidationInfo) -> Self:
        if is_shipped(info) or (self.policy.name == "greedy" and not self.policy.model_extra):
            return self  # to check it would import it, and listing plans needs none of that
        for name in _OF_GREEDY:
            if (
                self.policy.name != "greedy"
                and getattr(self, name) != type(self).model_fields[name].default
            ):
                msg = f"`{name}` is a setting of the policy greedy, and not of {self.policy.name}"
                raise ValueError(msg)
        try:
            self.search_policy()
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return self


class StepSettings(AgentSettings):
    """What agents that work step by step have in common: their limits."""

    hours: float = Field(default=24.0, gt=0, allow_inf_nan=False)
    """Wall clock of a run (MLE-bench: 24)."""
    dollars: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """What the model calls of a run may cost; `None` sets no limit."""
    prompt_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars for a million tokens of a prompt; needed with `dollars`, which decides results, as
    `prices` of the plan must not."""
    completion_price: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """Dollars for a million tokens of a reply; needed with `dollars`."""
    use_all_time: bool = True
    """Whether the agent is asked to go on until its steps and hours are used (MLE-bench asks
    OpenHands so); `False`: it may finish when it sees nothing left that is worth trying."""

    @property
    @override
    def published_seconds(self) -> float:
        """A whole run: OpenHands as MLE-bench runs it has no other bound, and MLAgentBench none."""
        return self.hours * 3600

    @model_validator(mode="after")
    def _priced(self) -> Self:
        prices = (self.prompt_price, self.completion_price)
        if self.dollars is not None and None in prices:
            msg = "`dollars` needs prompt_price and completion_price, in dollars a million tokens"
            raise ValueError(msg)
        if self.dollars is None and prices != (None, None):
            msg = "prices are given, and no limit in `dollars` that they would serve"
            raise ValueError(msg)
        return self


RECOVERIES: Final = 3
"""New attempts of a run at the most, unless a plan says otherwise."""


class ChainSettings(StepSettings):
    """The chain of actions, as MLE-bench runs OpenHands: 500 steps, 24 hours."""

    name: Literal["chain"] = "chain"
    steps: int = Field(default=500, ge=1)
    """Actions of a run (MLE-bench: 500)."""
    context: int | None = Field(default=None, ge=1)
    """Tokens that the model can take; above, what is oldest is left out. `None`: only when the
    model's server says that it is too much."""
    soft_seconds: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    """Wall clock after which a command goes on as a job that the agent can look at and end (today's
    OpenHands: 120, or 10 without output); `None`: commands are waited for, as MLE-bench has it."""
    on_stuck: Literal["stop", "recover"] = "stop"
    """What follows when it goes in circles: the run ends, as in OpenHands without anybody to ask,
    or goes on from before the circle, in a new attempt."""
    recoveries: int = Field(default=RECOVERIES, ge=0)
    """New attempts of a run at the most, where it is to recover."""

    @model_validator(mode="after")
    def _recovers(self) -> Self:
        if self.on_stuck == "stop" and self.recoveries != RECOVERIES:
            msg = "recoveries are given, and on_stuck is not `recover`"
            raise ValueError(msg)
        return self


class MlabSettings(StepSettings):
    """MLAB, as MLE-bench runs it: 2,000 steps, 24 hours, a window of 3 steps, 10 retries."""

    name: Literal["mlab"] = "mlab"
    steps: int = Field(default=2000, ge=1)
    """Actions of a run (MLE-bench: 2,000)."""
    window: int = Field(default=3, ge=1)
    """Steps that the model is shown (MLAgentBench: 3)."""
    retries: int = Field(default=10, ge=0)
    """Corrections of a reply whose form is not kept, before the run ends (MLE-bench: 10)."""


Section: TypeAlias = Annotated[
    TreeSettings | ChainSettings | MlabSettings, Field(discriminator="name")
]
"""An agent's section of a plan."""

SECTIONS: Final[Mapping[str, type[AgentSettings]]] = {
    "tree": TreeSettings,
    "chain": ChainSettings,
    "mlab": MlabSettings,
}
"""Classes of the sections by the agents' names."""


def as_section(given: Any) -> Any:
    """Return the section that a plan's entry of `agents` stands for: its name alone, or all of it.

    Raises:
        ValueError: It names no agent.
    """
    if isinstance(given, AgentSettings):
        return given
    section = {"name": given} if isinstance(given, str) else given
    known = ", ".join(SECTIONS)
    if not isinstance(section, dict) or "name" not in section:
        msg = f"an agent is its name, or a section with a `name` ({known})"
        raise ValueError(msg)
    if str(section["name"]) not in SECTIONS:
        msg = f"no agent is called {section['name']!r:.80}; there are {known}"
        raise ValueError(msg)
    return section
