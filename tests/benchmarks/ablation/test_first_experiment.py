"""README's experiment reaches each of the four verdicts, where memory is as the verdict says."""

from dataclasses import replace
from pathlib import Path

import pytest
from ablation_cases import bank_file

from examples.does_memory_help import TriesFixes
from langgraft.benchmarks.ablation import Experiment, ablate, preview_ablation

README = Path(__file__).resolve().parents[3] / "README.md"
DEVICES = ("wifi", "printer", "phone", "vpn")


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    """Return the experiment that README shows, with the simulated model of the example."""
    code = next(
        block
        for block in README.read_text().split("```python\n")
        if block.startswith("# my_app.py")
    )
    names: dict[str, object] = {"__name__": "my_app"}
    exec(code.partition("```")[0], names)
    found = names["experiment"]
    assert isinstance(found, Experiment)
    return replace(found, model=lambda seed: TriesFixes(seed=seed), conditions=("full_history",))


def verdict(experiment: Experiment, out: Path) -> str:
    """Run an experiment, and return the verdict on its memory."""
    found = ablate(experiment, out=out)
    (memory,) = (each for each in found.analysis.memories if each.name == "trajectory")
    assert found.verdicts["trajectory"] == memory.word
    return memory.word


def notes(path: Path, fix: str) -> Path:
    """Write a bank that says of each device that this fix worked."""
    told = {
        device: f"the {device} is down\n"
        f'Action: try_fix({{"device":"{device}","fix":"{fix}"}})\nit works again'
        for device in DEVICES
    }
    return bank_file(path, **told)


def test_first_experiment_when_memory_helps_then_helps(
    experiment: Experiment, tmp_path: Path
) -> None:
    """What worked on Monday is tried first on all other days."""
    assert verdict(experiment, tmp_path) == "helps"


def test_first_experiment_when_memory_is_useless_then_finds_no_difference(
    experiment: Experiment, tmp_path: Path
) -> None:
    """Notes that name no device's fix change no answer."""
    bank = bank_file(tmp_path / "b.jsonl", note="the wifi, printer, phone and vpn are down: smile")
    useless = replace(experiment, train=(), bank=bank)
    assert verdict(useless, tmp_path / "out") == "no detectable difference"


def test_first_experiment_when_memory_misleads_then_harms(
    experiment: Experiment, tmp_path: Path
) -> None:
    """Notes that praise a fix that works on no device."""
    misled = replace(experiment, train=(), bank=notes(tmp_path / "b.jsonl", "call the vendor"))
    assert verdict(misled, tmp_path / "out") == "harms"


def test_first_experiment_when_there_are_two_tasks_then_cannot_tell(
    experiment: Experiment, tmp_path: Path
) -> None:
    """Though memory solves both in every run; the preview says before how many tasks it takes."""
    two = replace(experiment, test=experiment.test[:2])
    assert verdict(two, tmp_path) == "cannot tell"
    told = str(preview_ablation(two))
    assert "19 test tasks" in told
    assert "43" in told
