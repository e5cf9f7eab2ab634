"""What a plan will be able to see, said before anything is paid."""

from collections.abc import Sequence

from langgraft._core.errors import MissingExtraError
from langgraft.benchmarks.comparison.power import planned_difference
from langgraft.benchmarks.comparison.verdicts import FEWEST_RUNS
from langgraft.benchmarks.continual.cells import UNTRAINED, cell_key
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.reporting.words import detectable, sample_of, several


def detectable_line(runs: Sequence[RunSpec]) -> str:
    """Say which difference of a memory against none would be found four times in five.

    It is a plan's figure: the noise of an item is the one the papers' tables imply (evaluation
    §2.3), and that orders of training shift success by 5 points is an assumption. The report says
    what the study could detect in the end.
    """
    tests = [run for run in runs if run.factors["kind"] != "train"]
    learned = [run for run in tests if cell_key(run).condition not in UNTRAINED]
    memories = {run.factors["condition"] for run in runs if run.factors["kind"] == "train"}
    items = {item for run in learned for item in run.item_ids}
    replicates = {run.factors["replicate"] for run in learned}
    untrained = {
        (key.condition, run.factors["replicate"])
        for run in tests
        if (key := cell_key(run)).condition in UNTRAINED
    }
    name = "detectable difference at 80 % power"
    sizes = sample_of(len(items), len(replicates), "test item")
    if len(replicates) < FEWEST_RUNS:
        return f"{name}: none, no verdict below {FEWEST_RUNS} runs ({sizes})"
    try:
        effect = planned_difference(
            len(items),
            len(replicates),
            baseline_runs=len(untrained),
            contrasts=len(memories),
        )
    except MissingExtraError as error:
        return f"{name}: {error}"
    reach = f"about {detectable(effect)}" if effect <= 1 else "none, the plan is too small"
    compared = several(len(memories), "memory", "memories")
    return f"{name}: {reach} ({sizes}, {compared} compared, an order effect of 5 pp assumed)"
