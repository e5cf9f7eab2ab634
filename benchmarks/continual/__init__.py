"""Memory as a continual learner: the study of continual-memory, on BabyAI.

`plan` holds the paper's settings as defaults, `runs` says which streams a plan asks for,
`session` plays them, and the rest reads the log: metrics and what is found by them, then the
report, on the floor that all reports share (`langgraft.benchmarks.reporting`): `columns` and
`tables`, the figures on `frames`, `page_one`, `case_pages`, `paper/` over all pairs.
"""
