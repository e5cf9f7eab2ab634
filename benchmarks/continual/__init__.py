"""Memory as a continual learner: the study of continual-memory, on BabyAI.

`plan` holds the paper's settings as defaults, `study` lists the streams a plan asks for, `session`
plays them, and the rest reads the log: `cells`, `metrics`, `sequences` and what is found by
them, then the report, on the floor that all reports share (`langgraft.benchmarks.reporting`):
`columns` and `tables`, `bars` and `figures`, `page_one`, `cases`, `paper/` over all pairs.
"""
