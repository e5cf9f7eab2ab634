"""What is compared in a continual study: memories, their controls, and crossed probes."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, model_validator

from langgraft._core.errors import SettingsError
from langgraft.benchmarks.harness.plans import (
    check_provider,
    is_foreign,
    is_shipped,
    provider_place,
)
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
