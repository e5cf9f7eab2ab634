"""The chain agent's own parts: one action after another, by tool calls, with all of them in view.

tools            what a model is offered, and what its reply asks for
visible_history  the log as turns, what the agent sees of them, and what is left out for room
deps             what its nodes depend on: prompts, and the history as messages for a model
step             its nodes `think` and `act`, and what its actions do in the workspace
stuck            whether it goes in circles, and the node `watch`
"""
