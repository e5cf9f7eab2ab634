"""Names for samples: what makes the same prompt at another step another draw.

Two drafts of a search may have the very same prompt, and a cache of replies would hand out the
first one's again. Every model call of a search therefore carries a name in its metadata that says
whose it is. Caches add it to their keys, simulated models to their random numbers, and traces
show it.
"""

from typing import Final

from langchain_core.runnables import RunnableConfig

SAMPLE: Final = "langgraft_sample"
"""Metadata of a model call: `<episode_id>/<node id>/<what>`."""


def sample_config(episode_id: str, node_id: str, what: str) -> RunnableConfig:
    """Return the settings of a model call that name its sample.

    Args:
        episode_id: The search.
        node_id: The program that the call is about.
        what: What the call is for: `write`, `review`, `diagnose`, `judge` …
    """
    return RunnableConfig(metadata={SAMPLE: f"{episode_id}/{node_id}/{what}"})
