"""What the papers print, as data: one YAML file a paper, by section and table.

Reports show these figures beside ours. They are a language model's.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Annotated, Any, Final, Literal, TypeAlias

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.dataclasses import dataclass

World: TypeAlias = Literal["ALFWorld", "BabyAI"]
Role: TypeAlias = Literal["raw", "agg", "ind", "step"]
Task: TypeAlias = Literal["A", "B"]
Sequence: TypeAlias = Literal["A>B", "B>A"]
Place: TypeAlias = tuple[Sequence, World, Role]
"""Sequence, world and condition."""
Cell: TypeAlias = tuple[float, float]
"""A mean and its standard error."""
Pair: TypeAlias = tuple[Cell, Cell]
"""The same measure without and with memory."""

ROLES: Final[Mapping[Role, str]] = {
    "raw": "Raw",
    "agg": "Insight (Cond-Agg)",
    "ind": "Cond-Ind",
    "step": "Cond-Step",
}
"""Conditions of continual-memory; its Insight of Study 1 and Cond-Agg of Study 2 are one (§A.1.4,
§A.1.5)."""
STUDY_1: Final[tuple[Role, ...]] = ("raw", "agg")
STUDY_2: Final[tuple[Role, ...]] = ("agg", "ind", "step")


def _split_keys(table: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    return {tuple(key.split()): row for key, row in table.items()}


_KEYED: Final = BeforeValidator(_split_keys)
"""Rows under keys of several words: `A>B ALFWorld raw`."""


def _add_sections(sections: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"section": name, **row} for name, rows in sections.items() for row in rows]


_CONFIG: Final = ConfigDict(extra="forbid")


class _Printed(BaseModel, frozen=True, extra="forbid"):
    """What a paper prints."""


class Family(_Printed):
    """A task family of Table 2."""

    domain: str
    baseline: int
    """Success without memory."""
    solved: int
    """n_s: test items solved without memory."""
    failed: int
    """n_f."""


class Forward(_Printed):
    """A row of Tables 3 and 5: `X→T` is tested on T."""

    scratch: float
    crossed: float
    transfer: float
    delta_rr: float
    about: bool = False
    """Whether ΔRR is printed as about so."""
    delta_nl: float | None
    """`None` where it is left out: under ten items."""


class Backward(_Printed):
    """A row of Tables 4 and 6: `X→Y` is tested on X."""

    transfer: float
    delta_rr: float


class Hyperparameters(_Printed):
    """Table 8."""

    model: str
    train_items: int
    test_items: int
    runs: int
    seed: int
    workers: int
    milestones: int
    max_tokens: int
    temperature: float
    requery_interval: int
    success_only: bool
    retrieval: str


class Scratch(_Printed):
    """Appendix C: success within a task, and Cond-Step less Cond-Ind on task B of ALFWorld."""

    scratch: Annotated[Mapping[tuple[World, Task, Role], float], _KEYED]
    step_lead: float


class Collapse(_Printed):
    """Cond-Ind on task B of BabyAI: Figure 11, appendix D, case 4 (`top1_queries` of `queries`)."""

    unique: int
    retrieved: int
    coverage: float
    top1: float
    top1_queries: int
    queries: int
    loss: int


class Diversity(_Printed):
    """Appendix D: BabyAI, within a task."""

    context_diversity: Annotated[Mapping[tuple[Task, Role], float], _KEYED]
    least_key_diversity: float
    collapse: Collapse


class ContinualMemory(_Printed):
    """Continual-memory: shares in percent, differences in points."""

    table_2: Annotated[Mapping[tuple[World, Task], Family], _KEYED]
    table_3: Annotated[Mapping[Place, Forward], _KEYED]
    table_4: Annotated[Mapping[Place, Backward], _KEYED]
    table_5: Annotated[Mapping[Place, Forward], _KEYED]
    table_6: Annotated[Mapping[Place, Backward], _KEYED]
    table_8: Hyperparameters
    appendix_c: Scratch
    appendix_d: Diversity


@dataclass(frozen=True, config=_CONFIG)
class Finding:
    """A published figure and what comes of recomputing it."""

    section: str
    """Table or section it is printed in."""
    figure: str
    printed: str
    recomputed: str
    holds: bool | None
    """Whether the printed figure can be had; `None` where nothing is printed, only added up."""

    @property
    def where(self) -> str:
        """Section and figure together."""
        return f"{self.section}: {self.figure}"


class Run(_Printed):
    """A run of appendix C, as far as its errors are listed."""

    task: str
    condition: str
    run: int
    steps: int
    late: int
    """Its printed `late_err`."""
    errors: tuple[tuple[int, str, str], ...]
    """Step, class and what the message names, of each error that is listed."""
    more: int = 0
    """Errors that are said to be there, and are not listed."""


class Outcomes(_Printed):
    """Table 1: runs of a task, and outcomes in percent by agent."""

    seeds: Mapping[str, int]
    outcomes: Mapping[str, Mapping[str, Pair]]


class Medals(_Printed):
    """Table 5: tasks of a modality, and any medal in percent by agent and modality."""

    tasks: Mapping[str, int]
    medals: Mapping[str, Mapping[str, tuple[Pair, str]]]


class Cases(_Printed):
    """§4.6."""

    leaf: tuple[tuple[str, int, float], tuple[str, int, float]]
    leaf_retrievals: int
    dogs: tuple[tuple[str, float, int, int], ...]
    entries: tuple[int, int, float]
    retrievals: tuple[int, int, float]
    scores: tuple[float, float]


class Similarity(_Printed):
    """Appendix B."""

    within: Cell
    across: Cell
    t: float
    p: float
    d: float
    fewer: int


class Timelines(_Printed):
    """Appendix C."""

    loop_share: int
    runs: tuple[Run, ...]


class MLEAgentMemory(_Printed):
    """Mle-agent-memory; what its tables and sections hold is told in the file."""

    section_4_1: Mapping[str, int]
    table_1: Outcomes
    section_4_2: tuple[tuple[str, str, str], ...]
    section_4_3: Mapping[str, float]
    table_2: Mapping[str, tuple[Cell, Cell, str]]
    table_3: Mapping[str, tuple[Cell, Cell, str]]
    table_5: Medals
    table_6: Mapping[str, int]
    section_4_6: Cases
    table_7: Mapping[str, tuple[float, float]]
    table_9: Mapping[str, tuple[float, float, float]]
    appendix_b: Similarity
    appendix_c: Timelines
    recomputed: Annotated[tuple[Finding, ...], BeforeValidator(_add_sections)]


@cache
def continual_memory() -> ContinualMemory:
    """Return what the paper on memory as continual learning prints."""
    return ContinualMemory.model_validate(_read("continual-memory"))


@cache
def mle_agent_memory() -> MLEAgentMemory:
    """Return what the paper on dynamic coding memory prints."""
    return MLEAgentMemory.model_validate(_read("mle-agent-memory"))


def _read(name: str) -> Any:
    text = resources.files(__package__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)
