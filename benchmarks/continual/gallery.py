"""All figures of a report: those there is something to draw for.

matplotlib belongs to the extra `bench`: import this module only where figures are drawn.
"""

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.figures import (
    decomposition_bars,
    forest,
    subset_bars,
    transfer_bars,
    within_cross,
)
from langgraft.benchmarks.continual.learning_figures import (
    learning,
    milestone_lines,
    retention_lines,
)
from langgraft.benchmarks.continual.retrieval_figures import (
    dilution_lines,
    diversity_panels,
    within_task,
)


def draw(analysis: Analysis) -> dict[str, str]:
    """Return the figures as SVG by name."""
    drawn = {}
    if any(contrast.estimate for contrast in (*analysis.family, *analysis.beside)):
        drawn["forest"] = forest(analysis)
    if any(row.transfer.estimate is not None for row in analysis.transfers):
        drawn["forward"] = transfer_bars(analysis, "forward")
        drawn["subsets"] = subset_bars(analysis)
        drawn["decomposition"] = decomposition_bars(analysis)
        drawn["within-cross"] = within_cross(analysis)
        drawn["backward"] = transfer_bars(analysis, "backward")
    if any(curve.length for curve in analysis.curves):
        drawn["learning"] = learning(analysis)
    if any(milestone.accuracy.estimate for milestone in analysis.milestones):
        drawn["milestones"] = milestone_lines(analysis)
        drawn["retention"] = retention_lines(analysis)
    if any(cell.spread("top1_share") is not None for cell in within_task(analysis)):
        drawn["retrieval"] = diversity_panels(analysis)
    if any(row.own_share.estimate is not None for row in analysis.dilution.tested):
        drawn["dilution"] = dilution_lines(analysis)
    return drawn
