"""MLAB's own nodes: six-field replies, the tools that MLE-bench shows, a window of three steps.

tools  the tools: names, keys, what the model is shown of them; replies that use them; what they do
deps   what the nodes depend on, and what each prompt says: the task, the last steps, what is left
step   the nodes `think`, `act` and `summarize`; what a tool needs a model for, asked before the action is done
"""
