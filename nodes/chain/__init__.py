"""The chain agent's own parts: one action after another, by tool calls, with all of them in view.

tools, calls             what a model is offered, and what it asked for
turns, sight, condense   the log as turns, what the agent sees of it, and what is left out for room
briefing, messages       what it is told, and the log as messages for a model
stuck                    whether it goes in circles
perform, editing         what its actions do in the workspace
room                     what its nodes share
think, act, watch        its nodes
"""
