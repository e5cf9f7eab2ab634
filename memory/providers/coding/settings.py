"""Settings of `CodingMemory`: what is recalled and where in a search, and presets by name.

The stages of a tree are `draft`, `debug` and `improve`; steps count the programs of a search from
0, over all of its branches. An agent that works step by step has one stage, `start`: the message
that an attempt begins with. The settings of a preset are the same for both. What a bank holds when
a run begins is no setting: it is empty, or it was built by earlier runs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import Field as SettingsField
from pydantic import SkipValidation, field_validator, model_validator

from langgraft._core.errors import SettingsError
from langgraft.memory.episodes import ErrorKind
from langgraft.memory.providers.retrieval import RetrievalSettings
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.dense import Dense

KINDS: Final[tuple[ErrorKind, ...]] = ("code", "environment", "resource")

KindsByStage: TypeAlias = tuple[tuple[str, tuple[ErrorKind, ...]], ...]


class CodingSettings(RetrievalSettings):
    """Settings of `CodingMemory`: what is recalled, and where in a search it is shown.

    The published system has all of the scope in one: memory on or off. Its own figures
    contradict its text on two of the choices (see `CodingMemory`), so that each is a setting.
    """

    stages: tuple[str, ...] = ("start", "debug", "improve")
    """Stages that memory speaks in. §3.3: a tree search is given memory when it debugs and when
    it improves, a chain agent in the first message of an attempt, which is the stage `start`."""
    start: Literal["warm", "cold"] = "warm"
    """`cold` recalls only what this bank took in itself, and none of what was imported. A bank that
    goes on from another's log or lies in a store since earlier runs took all of it in itself: to
    begin a search with nothing, give it an empty bank."""
    tasks: Literal["same", "all"] = "same"
    """Whose entries may be recalled (§3.3: those of the task alone)."""
    from_step: int = SettingsField(default=0, ge=0)
    """The first step that memory speaks in. §5 (Limitations) proposes to leave early exploration
    alone."""
    kinds_by_stage: KindsByStage = ()
    """Kinds that may be recalled, for stages where it is not all of them: `{"improve":
    ["code", "environment"]}`. §4.6: 40.7 % of one bank were timeouts, 57.9 % of what was recalled
    for buggy nodes were, and they steered the search to light models."""
    verified_only: bool = False
    """Recall only fixes with which a later program ran."""
    top_k: int = SettingsField(default=3, ge=1)
    """Entries per recall. The paper does not say; ours."""
    ranker: SkipValidation[Ranker] = Dense(ties="newest")
    """Cosine of embeddings (§3.3). The paper does not name the model; the default compares
    spelling and works offline. Any embeddings: `Dense("openai:text-embedding-3-small")`."""

    @field_validator("kinds_by_stage", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(sorted(value.items())) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _recalls_something(self) -> Self:
        if self.tasks == "same" and self.same_task == "exclude":
            msg = "tasks 'same' with same_task 'exclude' leaves nothing to recall; take tasks 'all'"
            raise ValueError(msg)
        return self

    def kinds(self, stage: str) -> tuple[ErrorKind, ...]:
        """Return the kinds that may be recalled at a stage."""
        return dict(self.kinds_by_stage).get(stage, KINDS)


LATE: Final = 10
"""The first step that counts as late (mle-agent-memory Tables 7 and 9: steps 0 to 9 are early)."""

_NOT_RESOURCES: Final[tuple[ErrorKind, ...]] = ("code", "environment")
_KEPT_APART: Final = dict.fromkeys(("start", "draft", "improve"), _NOT_RESOURCES)
"""Limits on time and memory are told to whoever repairs a program that ran into one, and to
nobody who chooses a model (§4.6: they steered the search to light ones)."""

_ALL: Final = ("start", "draft", "debug", "improve")

_MANY: Final = 20
"""Entries that are told where drafts are. The paper gives no number; a draft shows no error to
search by, so it is told the newest, and three of a bank of dozens warn of little."""

_CHOICES: Final[Mapping[str, Mapping[str, Any]]] = {
    "described": {"stages": ("start", "debug", "improve")},
    "implied": {"stages": _ALL, "start": "warm", "top_k": _MANY},
    "kinds_by_stage": {
        "stages": _ALL,
        "kinds_by_stage": _KEPT_APART,
        "top_k": _MANY,
    },
    "scheduled": {
        "stages": _ALL,
        "from_step": LATE,
        "kinds_by_stage": _KEPT_APART,
        "top_k": _MANY,
    },
    "verified": {"stages": ("start", "debug", "improve"), "verified_only": True},
}

CODING_PRESETS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "described": (
            "What the paper says (mle-agent-memory §3.3): memory guides debugging and improving,"
            " never a draft."
        ),
        "implied": (
            "What its figures show: the first valid program came at step 0.80 for 3.12 (Table 2),"
            " but the first five are drafts, so that drafts were given memory; and it held earlier"
            " runs from step 0 on, or there would have been nothing to give. Takes a bank that"
            " earlier runs built."
        ),
        "kinds_by_stage": (
            "As `implied`, but what ran into a limit on time or memory is told to debugging alone."
            " In the paper's dog-breed runs 40.7 % of the entries and 57.9 % of those recalled for"
            " buggy nodes were timeouts, and the search left deep models for light ones (§4.6)."
        ),
        "scheduled": (
            "What §5 proposes: off while the search is broad, on for late debugging. Silent in"
            " the steps that the paper calls early (0 to 9); from then on as `kinds_by_stage`. A"
            " search of few steps wants a smaller `from_step`."
        ),
        "verified": (
            "As `described`, with nothing but fixes that a later program ran with: §3.3 says that"
            " a fix resolved its error, but Fig. 5 takes what a review suggests when it fails."
        ),
    }
)
"""What each preset is and where it comes from."""


def coding_preset(name: str) -> CodingSettings:
    """Return the settings of a preset; `model_copy(update=…)` makes others of them.

    Args:
        name: One of `CODING_PRESETS`.

    Raises:
        SettingsError: There is no such preset.
    """
    if name not in _CHOICES:
        msg = f"no preset {name!r:.80} of CodingMemory; there are {', '.join(sorted(_CHOICES))}"
        raise SettingsError(msg)
    return CodingSettings.model_validate(_CHOICES[name])
