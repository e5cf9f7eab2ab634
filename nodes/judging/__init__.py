"""Kinds of questions that memory asks: what each shows, how it is put, read and ruled on.

==================  ========================================================================
`votes`             What should become of the rules after an episode (ExpeL).
`novelty`           Does an error with its fix add anything to the nearest ones kept.
`contradiction`     Which notes contradict a draft (Agent KB's disagreement gate).
==================  ========================================================================

Each kind has a form (`Shown`) that reads what a question shows, and rules of its own that stand in
for a model. `langgraft.nodes.judge` puts the questions.
"""
