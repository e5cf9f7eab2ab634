"""Memory as a continual learner: the study of continual-memory, on BabyAI.

`plan` holds the paper's settings as defaults, `runs` says which streams a plan asks for,
`session` plays them, and the rest reads the log: metrics, tables, figures, report.
"""
