"""Machine-learning engineering: agents that write whole programs for competitions.

plan, conditions, competition_ids           the plan: agents, memories, competitions, seeds
runs, study, session                        the study of it as the harness sees it
agents/                                     the agents: settings, graphs, what came of a run
data, models, sizing, submissions           its data and models, its size, what it leaves to grade
execute_agent, checkpoints, results,        one run, resumed, kept and graded
sandboxes
solution                                    one competition solved, outside of any study
behaviour/, outcomes, measures              what is measured of a search
run_set, contrasts, curves, relations,      what a study's log says
memory_use, gates, analysis
report, columns, tables, figures,           its report, on `langgraft.benchmarks.reporting`
sentences, wording
tree_page, tree_view, tree_drawing,         a search as one page
tree_layout
journals, coding_memory                     runs of AIDE and of ours, and memory made of them
coding_hits, coding_likeness                what such a memory finds
"""
