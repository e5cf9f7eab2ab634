"""The image that programs run in: its recipe, and what builds it.

Dockerfile         any base image with a Python ≥ 3.11, plus the ML stack
requirements.txt   the ML stack, pinned
build              builds it once for each recipe
packages           which packages an image has, as an agent is told
"""
