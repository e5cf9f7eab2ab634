"""Memory on STATE-Bench: agents with memory at its tasks, and what memory retrieves for them.

agents     episodes of its trajectories; an agent of a provider, a model and a task; the hook
           `retrieve_learnings`
retrieval  what providers recall for its tasks, without any model; leaks of answers into memory
"""
