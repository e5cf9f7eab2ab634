"""The plan of a tree study: the published settings (mle-agent-memory Table 6) as its defaults."""

from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field, field_serializer, field_validator, model_validator
from typing_extensions import override

from langgraft.benchmarks.harness.study import SIMULATED, Plan
from langgraft.benchmarks.mle.conditions import BUILD, NAMED, MemoryCondition, spelled
from langgraft.environments.competitions.layout import is_competition_id
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.docker.engine import IMAGE
from langgraft.environments.sandboxes.limits import Limits

CPUS: Final = 1.0
"""Processors of a program, unless a plan says otherwise: searches that run side by side then take
no time from each other, and a program's time limit means the same whatever else runs."""

AgentName = Literal["tree"]


def shipped_competitions() -> tuple[str, ...]:
    """Return the ids of the competitions that ship."""
    return tuple(Registry().get_shipped_competition_ids())


class MlePlan(Plan):
    """Agents with several memories at machine-learning competitions.

    Defaults are the paper's where it states them (mle-agent-memory Table 6): 30 steps, 7,200 s for
    an execution, debug probability 0.5, debug depth 3. Its models are o3 for code and GPT-4.1 for
    feedback: `model: openai:o3`, `feedback_model: openai:gpt-4.1`, with a key of one's own.

    `data_dir` and `folders` say where data is found on this machine: they are no part of what is
    studied, and a run may be gone on with from another place. The data itself is: by checksums.
    """

    study: Literal["mle"] = "mle"
    agents: tuple[AgentName, ...] = ("tree",)
    """The agents: `tree` searches over programs as AIDE does."""
    memory: tuple[MemoryCondition, ...] = (NAMED["off"], NAMED["cold"], NAMED["warm"])
    """The conditions, by name (`off`, `cold`, `warm`, `scheduled`, `placebo` …) or spelled out."""
    competitions: tuple[str, ...] = Field(default_factory=shipped_competitions)
    """Ids of the competitions; those that ship unless others are named."""
    folders: tuple[Path, ...] = Field(default=(), exclude=True)
    """Folders of competitions of one's own, `<folder>/<id>/config.yaml`."""
    data_dir: Path | None = Field(default=None, exclude=True)
    """Where data lies and is prepared; `None`: in the user's cache."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the searches that are compared, each under every condition."""
    build_seeds: tuple[int, ...] = (100, 101, 102)
    """Seeds of the searches that fill the banks of warm conditions, one after another; none of
    them may be among `seeds`."""
    steps: int = Field(default=30, ge=1)
    """Programs of a search (Table 6: 30)."""
    seconds: float = Field(default=7200.0, gt=0, allow_inf_nan=False)
    """Wall clock of one execution (Table 6: 7,200)."""
    drafts: int = Field(default=5, ge=1)
    """Programs written from nothing at the start (AIDE's default; Table 6 does not name it)."""
    debug_probability: float = Field(default=0.5, ge=0, le=1)
    """Chance that a failure is repaired where one can be (Table 6: 0.5)."""
    debug_depth: int = Field(default=3, ge=0)
    """Largest number of repairs in a row, read as AIDE's code does (Table 6: 3)."""
    published_depth: bool = True
    """Whether a failure of exactly `debug_depth` repairs may be repaired once more, as AIDE's code
    has it; `False` reads the number as its name says."""
    folds: int = Field(default=5, ge=2)
    """Folds of cross-validation that programs are told of (AIDE's default)."""
    width: int = Field(default=1, ge=1)
    """Programs written and run at once within a search; AIDE: one."""
    candidates: int = Field(default=1, ge=1)
    """Best programs that are scored again on fresh splits before one is submitted; AIDE submits
    the best validation metric, which is 1."""
    feedback_model: str | None = None
    """The model that reviews and diagnoses (Table 6: GPT-4.1); `None`: `model`."""
    feedback_base_url: str | None = None
    """Where its server listens; `None`: where that of `model` does."""
    temperature: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """Sampling temperature (AIDE's default; reasoning models such as o3 take 1 alone)."""
    max_tokens: int = Field(default=16384, ge=1)
    """Most tokens a reply may have: a whole program, and what a model reasons before it."""
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

    @override
    def limited(self, items: int) -> Self:
        """Return the plan with at most `items` build seeds: a search run has one item."""
        return self.model_copy(update={"build_seeds": self.build_seeds[:items]})

    @field_validator("memory", mode="before")
    @classmethod
    def _by_name(cls, memory: Any) -> Any:
        if not isinstance(memory, list | tuple):
            return memory
        named = [spelled(each) for each in memory]
        for each in named:
            if isinstance(each, str) and each not in NAMED:
                msg = f"no memory condition is called {each!r:.80}; there are {', '.join(NAMED)}"
                raise ValueError(msg)
        return tuple(NAMED[each] if isinstance(each, str) else each for each in named)

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

    @field_validator("agents", "competitions", "seeds", "build_seeds")
    @classmethod
    def _distinct(cls, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(set(given)) < len(given):
            msg = f"each may be given once, got {list(given)}"
            raise ValueError(msg)
        return given

    @field_validator("competitions")
    @classmethod
    def _ids(cls, competitions: tuple[str, ...]) -> tuple[str, ...]:
        for each in competitions:
            if not is_competition_id(each):
                msg = f"{each!r:.80} cannot be the id of a competition"
                raise ValueError(msg)
        return competitions

    @field_validator("seeds", "build_seeds")
    @classmethod
    def _not_negative(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if any(seed < 0 for seed in seeds):
            msg = f"seeds are 0 or more, got {list(seeds)}"
            raise ValueError(msg)
        return seeds

    @field_validator("memory")
    @classmethod
    def _conditions_fit(cls, memory: tuple[MemoryCondition, ...]) -> tuple[MemoryCondition, ...]:
        by_name = {each.name: each for each in memory}
        if len(by_name) < len(memory) or BUILD in by_name:
            names = [each.name for each in memory]
            msg = f"condition names must be distinct and none {BUILD!r}, got {names}"
            raise ValueError(msg)
        for each in memory:
            if each.of is None:
                continue
            of = by_name.get(each.of)
            if of is None or of.control is not None or of.start != "warm":
                msg = (
                    f"control {each.name!r} is of {each.of!r}, which is no condition of the plan"
                    " that starts warm"
                )
                raise ValueError(msg)
        return memory

    @model_validator(mode="after")
    def _seeds_apart(self) -> Self:
        if shared := sorted(set(self.seeds) & set(self.build_seeds)):
            msg = f"seeds {shared} build banks and are compared: a warm search would know itself"
            raise ValueError(msg)
        if not self.build_seeds and any(each.start == "warm" for each in self.memory):
            msg = "a condition starts warm, and there are no build_seeds to make its bank"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _models_fit(self) -> Self:
        if self.model == SIMULATED:
            given = [
                name
                for name in ("base_url", "feedback_model", "feedback_base_url")
                if getattr(self, name) is not None
            ]
            if given:
                msg = f"{given[0]} is not for the simulated model: name a model in `model`"
                raise ValueError(msg)
        if self.feedback_base_url is not None and self.feedback_model is None:
            msg = "feedback_base_url is given, and no feedback_model"
            raise ValueError(msg)
        return self

    @property
    def program_limits(self) -> Limits:
        """The limits of a program, its time included."""
        return self.limits.model_copy(update={"seconds": self.seconds})

    def condition(self, name: str) -> MemoryCondition:
        """Return a condition by its name.

        Raises:
            KeyError: There is none of that name.
        """
        return {each.name: each for each in self.memory}[name]

    def registry(self) -> Registry:
        """Return where the competitions are found.

        Raises:
            CompetitionError: A folder of competitions is not there.
        """
        return Registry(self.data_dir, folders=self.folders)
