"""Studies: plans, the harness that executes any of them, and what reads their logs.

harness/      runs, commits, resumes, verifies; models, cache
comparison/   outcomes of conditions to verdicts: intervals, corrections, controls, power
reporting/    tables of documented columns, figures, words, pages by templates
continual/    continual learning: forward and backward transfer between two task families
mle/          machine-learning engineering: journals of AIDE, and memory made of them
statebench/   agents with memory at STATE-Bench's tasks, and what memory retrieves for them
published/    what two papers print, as data
simulated/    rule-based learners that stand in for a language model
plans/        the plans that ship
performance/  speed as ratios against a named floor
"""
