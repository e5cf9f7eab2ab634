"""Conformance of memory providers: one suite, in parts.

suite         what the parts share: what a provider says of itself, how it is tried
samples       episodes, items and counters to try it with; models, made to fail
filing        an episode is filed once, and the log of deltas is the memory
asking        recall changes nothing, and keeps to its budget
judging       what models answer, and what becomes of what was recalled
moving        export and import; reopening, describing
conformance   all parts in one class, with sixteen threads and tasks
"""
