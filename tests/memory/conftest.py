"""What tests of memory share: one Chroma server, started when it is first asked for."""

from collections.abc import Iterator

import pytest
from chroma_server import chroma_server


@pytest.fixture(scope="session")
def chroma_url() -> Iterator[str]:
    """Address of a running Chroma server; use a collection of your own."""
    with chroma_server() as url:
        yield url
