"""What agents that work step by step share: an event log, a live workspace, limits, memory.

events, steps   what happens, and a run as the list of its steps
state           what the graph's state holds
"""
