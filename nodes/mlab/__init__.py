"""MLAB's own nodes: six-field replies, the tools that MLE-bench shows, a window of three steps.

tools    the tools: names, keys, what the model is shown of them; replies that use them
replies  what the model says, read; whatever it says
deps     what the nodes depend on
prompt   what each prompt says: the task, the last steps, what is left
step     the nodes `think`, `act` and `summarize`
consult  what a tool needs a model for, asked before the action is done
perform  the tools, done in a live workspace
"""
