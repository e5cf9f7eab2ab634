"""The transplant study: what of a memory helps in another domain, its mechanism or its content (memory-transplants).

plan      what is compared: systems, architectures, contents, modes, budgets, solvers, controls
domains   where the problems of a domain come from, and their splits
session   one run: a solver at a stream of problems
study     the study as the harness sees it
analysis  what the runs show
report    the page
"""
