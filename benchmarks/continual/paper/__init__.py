"""The report over all pairs of a study: the tables and figures of continual-memory, with ours.

roles     which condition of a plan is the paper's Raw, Insight (Cond-Agg), Cond-Ind, Cond-Step
sides     a pair of the study beside the pair of the paper it repeats
tables    Tables 2 to 8, as CSV
figures   Figures 2 to 13
report    the page
"""

from langgraft.benchmarks.continual.paper.report import write_paper_report

__all__ = ["write_paper_report"]
