"""Machine-learning engineering: agents that write whole programs for competitions.

plan, conditions                    the plan: agents, memories, competitions, seeds, runs
study, session                      the study of it as the harness sees it, and its data
agents/                             the agents: settings, graphs, what came of a run
execute_agent, checkpoints,         one run: resumed, isolated, kept and graded
sandboxes
solution                            one competition solved, outside of any study
behaviour/, outcomes                what is measured of a run
searches, relations, interactions,  what a study's log says
analysis
report, tables, figures             its report, on `langgraft.benchmarks.reporting`
tree_page, tree_picture             a search as one page
journals, coding_memory             runs of AIDE and of ours, and memory made of them
"""
