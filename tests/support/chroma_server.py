"""A Chroma server for tests, as the figures use it."""

from langgraft.benchmarks.acceptance.chroma_server import chroma_server

__all__ = ["chroma_server"]
