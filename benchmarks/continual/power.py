"""What a plan will be able to see, said before anything is paid."""

from collections.abc import Sequence

from langgraft._core.errors import MissingExtraError
from langgraft.benchmarks.continual.cells import UNTRAINED, cell_key
from langgraft.benchmarks.continual.wording import detectable, sample_of
from langgraft.benchmarks.harness.statistics import planned_effect
from langgraft.benchmarks.harness.study import RunSpec


def detectable_line(runs: Sequence[RunSpec]) -> str:
    """Say which difference of a memory against none would be found four times in five.

    It is a plan's figure: the noise of an item is the one the papers' tables imply (evaluation
    §2.3), and neither the correction for several memories nor differing training orders are in
    it. The report says what the study could detect in the end.
    """
    tests = [run for run in runs if run.factors["kind"] != "train"]
    learned = [run for run in tests if cell_key(run).condition not in UNTRAINED]
    items = {item for run in learned for item in run.item_ids}
    replicates = {run.factors["replicate"] for run in learned}
    name = "detectable difference at 80 % power"
    try:
        effect = planned_effect(len(items), len(replicates))
    except MissingExtraError as error:
        return f"{name}: {error}"
    sizes = sample_of(len(items), len(replicates), "test item")
    reach = f"about {detectable(effect)}" if effect <= 1 else "none, the plan is too small"
    return f"{name}: {reach} ({sizes})"
