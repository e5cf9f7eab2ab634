"""Machine-learning engineering: agents that write whole programs for competitions.

plan, conditions, competition_ids           the plan: agents, memories, competitions, seeds
runs, study, session                        the study of it as the harness sees it
agents/                                     the agents: settings, graphs, what came of a run
data, models, sizing, submissions           its data and models, its size, what it leaves to grade
searching, checkpoints, sandboxes, results  one run, resumed, kept and graded
solution                                    one competition solved, outside of any study
behaviour/, outcomes, measures              what is measured of a search
searches, contrasts, curves, relations,     what a study's log says (`estimates`, `spreads`)
memory_use, gates, analysis
report, tables, figures                     its report
tree_page                                   a search as one page
journals, coding_memory                     runs of AIDE and of ours, and memory made of them
coding_hits, coding_likeness                what such a memory finds
"""
