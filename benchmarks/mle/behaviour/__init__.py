"""How a run behaved, from its journal or its steps alone: pure functions.

`docs/behaviour-metrics.md` defines every number in words. `runs` has what is measured
of every run and of its programs, `trees` what the journal of a search shows beside that, and `steps` what
the steps of other agents show.
"""
