"""How a run behaved, from its journal or its steps alone: pure functions, one number or list each.

`docs/behaviour-metrics.md` defines every one of them in words. Of a tree's journal: `bugs` and
`errors` count what failed, `progress` follows the best score, `diversity` and `distances` read the
programs, `retrievals` says what memory did, and `summary` puts them together for one run. Of the
steps of other agents: `step_bugs`, `step_errors`, `step_progress`, `step_diversity`,
`step_recalls`, `timelines` and `step_summary`. What both have is `run`'s.
"""
