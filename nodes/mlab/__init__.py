"""MLAB's own nodes: six-field replies, the tools that MLE-bench shows, a window of three steps.

replies, inputs   what the model says, read; whatever it says
tools             the tools: names, keys, descriptions
"""
