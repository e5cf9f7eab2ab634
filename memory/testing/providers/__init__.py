"""Conformance of memory providers: one suite, in parts.

suite                       what the parts share: what a provider says of itself, how it is tried
samples, no_model           episodes, items and counters to try it with; models, made to fail
filing, folding             an episode is filed once, and the log of deltas is the memory
asking, budgets             recall changes nothing, and keeps to its limit
judging, receipts           what models answer, and what becomes of what was recalled
concurrency                 sixteen threads, sixteen tasks
moving, sameness            export and import; reopening, describing
conformance                 all parts in one class
"""
