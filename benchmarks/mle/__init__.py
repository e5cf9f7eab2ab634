"""Machine-learning engineering: what is read from the runs of agents that write whole programs.

`journals` reads AIDE's journals, `coding_memory` files them in a `CodingMemory` and lists its
entries, `coding_hits` and `coding_likeness` measure what such a memory finds.
"""
