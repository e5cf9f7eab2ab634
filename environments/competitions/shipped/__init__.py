"""Competitions made from data inside well-known packages, in MLE-bench's layout.

A folder is one competition: `config.yaml`, `description.md`, `prepare.py`, `grade.py`,
`checksums.yaml`, `leaderboard.csv`, and `board.json`, which says how the leaderboard was made.
`making` is what their `prepare.py` share.
"""
