"""The chain agent's own parts: one action after another, by tool calls, with all of them in view.

tools, calls       what a model is offered, and what it asked for
messages, condense the log as the model sees it, and what is left out for room
stuck              whether the agent goes in circles
"""
