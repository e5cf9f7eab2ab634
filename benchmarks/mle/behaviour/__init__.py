"""How a search behaved, from its journal alone: pure functions, one number or list each.

`docs/behaviour-metrics.md` defines every one of them in words. `bugs` and `errors` count what
failed, `progress` follows the best score, `diversity` and `distances` read the programs,
`retrievals` says what memory did, and `summary` puts them together for one run.
"""
