"""Presets of the coding memory: what each one recalls, where in a tree search."""

import pytest
from langgraph.store.memory import InMemoryStore

from langgraft import CodingMemory, Episode, ErrorRecord, Outcome, RecallContext
from langgraft._core.errors import SettingsError
from langgraft.memory.model import ErrorKind
from langgraft.memory.providers.coding import CODING_PRESETS, CodingSettings, coding_preset

DOMAIN, TASK = "mle/leaf", "leaf"
SEEN = "TypeError: fit() got an unexpected keyword argument 'verbose'"


def failed(name: str, kind: ErrorKind, *, verified: bool = False) -> Episode:
    """Make the episode of a program that failed."""
    record = ErrorRecord("lightgbm", f"TypeError: {name} fit()", f"do {name}", kind, verified)
    return Episode(name, DOMAIN, TASK, "", (), Outcome(success=False), errors=(record,))


def kinds_recalled(settings: CodingSettings, stage: str, step: int) -> set[str]:
    """Ask a bank that has an entry of each kind, and a verified one."""
    memory = CodingMemory(InMemoryStore(), settings=settings)
    for kind in ("code", "environment", "resource"):
        memory.file(failed(f"{kind}s", kind))
    memory.file(failed("proven", "code", verified=True))
    seen = SEEN if stage == "debug" else ""
    asking = RecallContext(
        domain=DOMAIN, task_id=TASK, episode_id="run/0", stage=stage, step=step, observation=seen
    )
    found = memory.provide("", asking).items
    return {str(i.metadata["fix"]).removeprefix("do ").removesuffix("s") for i in found}


ALL = {"code", "environment", "resource", "proven"}
SPARED = ALL - {"resource"}


@pytest.mark.parametrize(
    ("preset", "stage", "step", "expected"),
    [
        ("described", "draft", 0, set()),
        ("described", "debug", 5, ALL),
        ("described", "improve", 5, ALL),
        ("implied", "draft", 0, ALL),
        ("implied", "debug", 5, ALL),
        ("kinds_by_stage", "draft", 0, SPARED),
        ("kinds_by_stage", "improve", 5, SPARED),
        ("kinds_by_stage", "debug", 5, ALL),
        ("scheduled", "draft", 0, set()),
        ("scheduled", "debug", 9, set()),
        ("scheduled", "debug", 10, ALL),
        ("scheduled", "improve", 10, SPARED),
        ("verified", "draft", 0, set()),
        ("verified", "debug", 5, {"proven"}),
    ],
)
def test_preset_when_asked_in_a_stage_recalls_what_it_is_for(
    preset: str, stage: str, step: int, expected: set[str]
) -> None:
    """Where memory speaks, from which step on, and which kinds of errors it tells."""
    settings = coding_preset(preset).model_copy(update={"top_k": 9})
    assert kinds_recalled(settings, stage, step) == expected


def test_presets_when_listed_have_settings_each_and_differ() -> None:
    """Every name that is explained can be had."""
    made = [CodingMemory(InMemoryStore(), settings=coding_preset(name)) for name in CODING_PRESETS]
    assert len({memory.architecture for memory in made}) == 5


def test_preset_when_misspelt_is_refused_with_the_names_there_are() -> None:
    """One line says what to write instead."""
    with pytest.raises(SettingsError, match=r"'descibed'.*described, implied"):
        coding_preset("descibed")
