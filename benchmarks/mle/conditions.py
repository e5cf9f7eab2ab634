"""What a run is given of memory: the conditions of a study, by name or spelled out."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationInfo,
    field_validator,
    model_validator,
)

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.benchmarks.harness.plans import check_provider, is_shipped
from langgraft.memory.providers import provider_settings

if TYPE_CHECKING:  # listing runs needs none of it
    from langgraft.memory.settings import ProviderSettings

Start: TypeAlias = Literal["off", "cold", "warm"]

CODING: Final = "coding"
"""The provider of mle-agent-memory, which presets are of."""

DEFAULT_PRESET: Final = "implied"

_KEEPING: Final = frozenset({"credit", "feedback", "forgetting", "novelty", "ranker"})
"""Settings of `CodingMemory` that decide what a bank comes to hold."""

BUILD: Final = "build"
"""The phase, and the memory, of runs that fill banks."""


class MemoryCondition(BaseModel):
    """One memory to be studied, or none.

    A condition has a `preset` of `CodingMemory` or a `provider` with its `settings`, or is a
    `control` of another condition. Where it says nothing of that, it is the preset `implied`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    """Short name in tables."""
    start: Start = "cold"
    """What a search begins with: `off`, without memory at all; `cold`, with an empty bank that it
    fills itself; `warm`, with the bank that the plan's build seeds left. mle-agent-memory reports
    one condition for the last two; its figures need the last (§3.3 against Table 2)."""
    preset: str | None = None
    """Settings of `CodingMemory` by name, such as `described`, `implied`, `scheduled`."""
    provider: str | None = None
    """Another provider by name, or as `package.module:Class`."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Settings of the provider; of a preset, those that are other than it has them."""
    control: Literal["random", "placebo", "shuffled"] | None = None
    """What is recalled in the place of what condition `of` would be told, from the same bank. A
    control files nothing, so that its bank stays as it was built."""
    of: str | None = None
    """The condition that a control is of; it starts warm."""
    resampled: bool = False
    """Other samples of the model under the same seeds: without memory, what chance alone does."""

    @field_validator("name", "start", mode="before")
    @classmethod
    def _word(cls, given: Any) -> Any:
        return spelled(given)

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        told = bool(self.preset or self.provider or self.settings)
        if (self.control is None) != (self.of is None):
            msg = f"condition {self.name!r}: `control` and `of` belong together"
            raise ValueError(msg)
        if self.start == "off" and (told or self.control):
            msg = f"condition {self.name!r} starts 'off' and so has no memory to set up"
            raise ValueError(msg)
        if self.control and told:
            msg = f"condition {self.name!r}: a control has the settings of {self.of!r}, none of its own"
            raise ValueError(msg)
        if self.preset and self.provider:
            msg = f"condition {self.name!r}: give `preset` or `provider`, not both"
            raise ValueError(msg)
        if self.resampled and self.start != "off":
            msg = f"condition {self.name!r}: only without memory is `resampled` a comparison"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _known(self, info: ValidationInfo) -> Self:
        if is_shipped(info):
            return self
        try:
            if self.provider is None:
                self.architecture()
            else:
                check_provider(self.provider, cast("Mapping[str, JSON]", self.settings))
        except SettingsError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def provider_name(self) -> str:
        """The provider's name."""
        return self.provider or CODING

    @property
    def keeps_alike(self) -> bool:
        """Whether its bank would hold what that of `CodingMemory` holds by default.

        Presets differ in what is recalled, and in nothing that is kept.
        """
        return self.provider_name == CODING and not _KEEPING & set(self.settings)

    def architecture(self) -> "ProviderSettings":
        """Return the provider's settings, checked.

        Raises:
            SettingsError: There is no such preset, provider or setting.
        """
        given = cast("Mapping[str, JSON]", self.settings)
        if self.provider is not None:
            return provider_settings(self.provider, given)
        from langgraft.memory.providers.coding import CodingSettings, coding_preset  # noqa: PLC0415

        chosen = coding_preset(self.preset or DEFAULT_PRESET).model_dump(exclude_unset=True)
        settings = provider_settings(CODING, {**chosen, **given})
        assert isinstance(settings, CodingSettings)
        return settings


def spelled(word: Any) -> Any:
    """Return the word `off` where YAML made a truth value of it."""
    return "off" if word is False else word


# Validated where a plan names them: that imports the provider.
_OURS: Final = MemoryCondition.model_construct


def _warm(name: str, preset: str | None = None) -> MemoryCondition:
    return _OURS(name=name, start="warm", preset=preset or name)


def _control(name: Literal["random", "placebo", "shuffled"]) -> MemoryCondition:
    return _OURS(name=name, start="warm", control=name, of="warm")


NAMED: Final[Mapping[str, MemoryCondition]] = {
    each.name: each
    for each in (
        _OURS(name="off", start="off"),
        _OURS(name="rerun", start="off", resampled=True),
        _OURS(name="cold", start="cold", preset=DEFAULT_PRESET),
        _OURS(name="described", start="cold", preset="described"),
        _warm("warm", DEFAULT_PRESET),
        _warm("scheduled"),
        _warm("kinds_by_stage"),
        _warm("verified"),
        _control("placebo"),
        _control("shuffled"),
        _control("random"),
    )
}
"""Conditions that a plan may name.

`cold` and `warm` differ in the bank they begin with and in nothing else; `described` is the
published text to the letter (debug and improve, nothing before the search).
"""

BUILDER: Final = _OURS(name=BUILD, start="cold", preset=DEFAULT_PRESET)
"""The memory of the searches that fill banks for conditions of `CodingMemory`."""


def conditions_of(given: Sequence[Any]) -> tuple[Any, ...]:
    """Return the conditions that a plan lists, in the place of their names.

    Raises:
        ValueError: There is none of a name.
    """
    named = [spelled(each) for each in given]
    for each in named:
        if isinstance(each, str) and each not in NAMED:
            msg = f"no memory condition is called {each!r:.80}; there are {', '.join(NAMED)}"
            raise ValueError(msg)
    return tuple(NAMED[each] if isinstance(each, str) else each for each in named)


def check_conditions(conditions: Sequence[MemoryCondition]) -> None:
    """Refuse conditions that cannot be told apart, and controls of nothing.

    Raises:
        ValueError: There are some.
    """
    by_name = {each.name: each for each in conditions}
    if len(by_name) < len(conditions) or BUILD in by_name:
        names = [each.name for each in conditions]
        msg = f"condition names must be distinct and none {BUILD!r}, got {names}"
        raise ValueError(msg)
    for each in conditions:
        if each.of is None:
            continue
        of = by_name.get(each.of)
        if of is None or of.control is not None or of.start != "warm":
            msg = (
                f"control {each.name!r} is of {each.of!r}, which is no condition of the plan"
                " that starts warm"
            )
            raise ValueError(msg)


def check_chosen(agent: str, chosen: Sequence[str], conditions: Sequence[MemoryCondition]) -> None:
    """Refuse conditions of an agent that the plan does not have, and controls without theirs.

    Raises:
        ValueError: There are some.
    """
    by_name = {each.name: each for each in conditions}
    for name in chosen:
        if name not in by_name:
            known = ", ".join(by_name)
            msg = f"{agent}'s memory {name!r:.80} is no condition of the plan, which has {known}"
            raise ValueError(msg)
        if (of := by_name[name].of) is not None and of not in chosen:
            msg = f"{agent} has the control {name!r} and not {of!r}, which it is of"
            raise ValueError(msg)
