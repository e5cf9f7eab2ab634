"""MLAB's own nodes: six-field replies, the tools that MLE-bench shows, a window of three steps.

tools             the tools: names, keys, what the model is told of them
replies, inputs   what the model says, read; whatever it says
prompting         the prompts
briefing, window  what each prompt says: the task, the last steps, what is left
think             asking for the next step, and again where a reply has not the form
consult, answers  what a tool needs a model for, asked before the action is done
perform           the tools, done in a live workspace
act               doing it, noting it, and shortening what is too long to be shown
"""
