"""The offline embedder."""

import math
import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from langgraft._core.errors import SettingsError
from langgraft.memory.embedders import HashingEmbeddings

TEXTS = st.text(max_size=30) | st.lists(
    st.sampled_from(["open", "Opened", "door", "1", "ß", "дверь", "fridge_2"]), max_size=12
).map(" ".join)


class TestStandardUnit(EmbeddingsUnitTests):
    """LangChain's standard unit tests of embeddings."""

    @property
    def embeddings_class(self) -> type[Embeddings]:
        """What is tested."""
        return HashingEmbeddings


class TestStandard(EmbeddingsIntegrationTests):
    """LangChain's standard tests of embeddings that are called."""

    @property
    def embeddings_class(self) -> type[Embeddings]:
        """What is tested."""
        return HashingEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        """Its settings."""
        return {"dimensions": 64}


@given(text=TEXTS, others=st.lists(TEXTS, max_size=4), dimensions=st.integers(1, 500))
def test_vector_when_embedded_then_depends_on_its_text_alone(
    text: str, others: list[str], dimensions: int
) -> None:
    """A text has one vector, alone or among others, as a document or as a query."""
    embeddings = HashingEmbeddings(dimensions)
    vector = embeddings.embed_query(text)
    assert embeddings.embed_documents([*others, text])[-1] == vector
    assert len(vector) == dimensions
    assert np.array(vector, dtype=np.float32).tolist() == vector


@given(text=TEXTS)
def test_vector_when_a_text_has_a_word_then_has_length_one(text: str) -> None:
    """Length 1 to float32's precision; without any word, zero."""
    length = math.hypot(*HashingEmbeddings().embed_query(text))
    assert length == pytest.approx(1 if re.search(r"\w", text) else 0, abs=1e-6)


def test_vectors_when_texts_share_words_or_pieces_then_are_alike() -> None:
    """Same words in another order and case: equal; an inflection: alike; nothing shared: not."""
    same, shuffled, inflected, other = HashingEmbeddings().vectors(
        ["open the red door", "Door, red! The open?", "opened the red doors", "17 bananas"]
    )
    assert np.array_equal(same, shuffled)
    assert 0.4 < same @ inflected < 0.95
    assert abs(same @ other) < 0.2


_SCRIPT = """
from langgraft.memory.embedders import HashingEmbeddings
import hashlib
texts = [f"open the {c} door {i} \\u00df\\u0434\\ud800" for i in range(50) for c in ("red", "blue")]
print(hashlib.sha256(HashingEmbeddings().vectors(texts).tobytes()).hexdigest())
"""


def test_vectors_when_computed_elsewhere_then_are_the_same_to_the_last_bit() -> None:
    """Neither Python's hash seed nor the number of threads shows; the digest pins the features."""
    digests = {
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed, threads in (("1", "1"), ("2", "2"))
    }
    assert digests == {"b15e7b07d697eadffb4da28aa2abefb53dd3da7365a49367b60d6ea33dcb19ca"}


def test_vectors_when_many_words_are_hashed_then_spread_evenly() -> None:
    """Buckets and signs of 5,000 similar words show no pattern: chi-squared within 5 sigma."""
    embeddings = HashingEmbeddings(64)
    codes = [embeddings._buckets(f"w{i}") for i in range(5000)]
    counts = np.bincount([int(places[0]) for places, _ in codes], minlength=64)
    chi = float(((counts - 5000 / 64) ** 2 / (5000 / 64)).sum())
    assert abs(chi - 63) < 5 * math.sqrt(2 * 63)
    assert abs(sum(int(signs[0] > 0) for _, signs in codes) - 2500) < 5 * math.sqrt(5000) / 2


@pytest.mark.parametrize("dimensions", [0, -1, 1.5, "256", True])
def test_embeddings_when_dimensions_are_impossible_are_refused(dimensions: Any) -> None:
    """Only positive integers are numbers of dimensions."""
    with pytest.raises(SettingsError, match="dimensions"):
        HashingEmbeddings(dimensions)
