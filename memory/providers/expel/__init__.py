"""`ExpeL`: insights and trajectories side by side, and rules that live by votes."""

from langgraft.memory.providers.expel.provider import ExpeL
from langgraft.memory.providers.expel.settings import ExpeLSettings, VoteSettings

__all__ = ["ExpeL", "ExpeLSettings", "VoteSettings"]
