"""What agents that work step by step share: an event log, a live workspace, limits, memory.

events, steps           what happens, and a run as the list of its steps
log, projection         a log by reference, as JSON Lines, and as steps
state, desk             what the graph's state holds, and what all nodes share
kernel_calls            talking with a live workspace, sync or async
performing              from an action to its observation
sessions                workspaces, kept between steps and built anew where they are gone
live_kernels, holding   the table of their kernels, and sync and async talks with them
limits, metering        steps, hours, money
start, recall           the beginning of a run, and of each attempt
failures, remember      what memory is taught of executions
submit, solution        the end: what is submitted, and the program that made it
restoring               memory, where a run goes on
"""
