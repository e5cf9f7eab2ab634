"""Ablate an agent in CI: a test that fails when memory no longer helps (`examples/ablation_in_ci.yml` runs it).

`pytest examples/ablation_in_ci.py` plays the help desk of `does_memory_help.py` with memory and without, and with
its controls. With a real model, `ablate(…, max_dollars=2)` stops before it costs more.
"""

import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).parents[1])
)  # your own application is installed, or lies beside

from examples.does_memory_help import experiment
from langgraft.benchmarks.ablation import ablate

OUT = Path("runs/ablation")


def test_memory_when_ablated_helps() -> None:
    """Memory helps, and no check of the experiment failed (controls that ought to do nothing, prompts)."""
    found = ablate(experiment, out=OUT)
    Path("verdict.md").write_text(found.summary(), encoding="utf-8")  # for the pull request
    assert found.verdicts["trajectory"] == "helps", found
    assert found.exit_code == 0, found


if __name__ == "__main__":
    test_memory_when_ablated_helps()
    print(Path("verdict.md").read_text(encoding="utf-8"))
