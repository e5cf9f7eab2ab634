"""Graft memory onto LangGraph agents: swap it, transplant it, measure it."""

__version__ = "0.1.0"
