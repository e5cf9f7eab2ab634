"""Search by meaning, offline: the embedder `wordllama`."""

import hashlib
import math
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft.memory.embedders import WordLlamaEmbeddings, make_embedder, wordllama

TEXTS = st.text(max_size=30) | st.lists(
    st.sampled_from(["open", "Opened", "door", "1", "ß", "дверь", "日本語", "</s>", "\ud800"]),
    max_size=12,
).map(" ".join)


class TestStandardUnit(EmbeddingsUnitTests):
    """LangChain's standard unit tests of embeddings."""

    @property
    def embeddings_class(self) -> type[Embeddings]:
        """What is tested."""
        return WordLlamaEmbeddings


class TestStandard(EmbeddingsIntegrationTests):
    """LangChain's standard tests of embeddings that are called."""

    @property
    def embeddings_class(self) -> type[Embeddings]:
        """What is tested."""
        return WordLlamaEmbeddings


@given(texts=st.lists(TEXTS, max_size=5), data=st.data())
def test_vectors_when_embedded_then_each_depends_on_its_text_alone(
    texts: list[str], data: st.DataObject
) -> None:
    """In any order, in a batch or alone, as a document or a query: equal texts, equal vectors."""
    embeddings = WordLlamaEmbeddings()
    alone = {text: embeddings.embed_query(text) for text in texts}
    shuffled = data.draw(st.permutations(texts * 2))
    assert embeddings.embed_documents(shuffled) == [alone[text] for text in shuffled]


@given(text=TEXTS)
def test_vector_when_a_text_is_not_blank_then_has_length_one(text: str) -> None:
    """256 numbers, of length 1 to float32's precision; zeros for a blank text."""
    vector = WordLlamaEmbeddings().embed_query(text)
    assert len(vector) == 256
    assert math.hypot(*vector) == pytest.approx(1 if text.strip() else 0, abs=1e-6)


def test_vectors_when_texts_mean_the_same_then_are_alike() -> None:
    """Another word for a thing is nearer than another thing."""
    car, automobile, banana = WordLlamaEmbeddings().vectors(["a car", "an automobile", "a banana"])
    assert car @ automobile > 0.5 > car @ banana


def test_vector_when_text_is_long_then_is_the_mean_of_all_its_tokens() -> None:
    """No text is cut: what stands at the end counts as much, however many different tokens there are."""
    embeddings = WordLlamaEmbeddings()
    model = wordllama._load(wordllama.package_folder())
    text = " ".join(sorted(model.tokenizer.get_vocab())[5000:9000]) + " banana" * 5000
    ids = model.tokenizer.encode(text, add_special_tokens=False).ids
    assert len(set(ids)) > 2 * wordllama._CHUNK
    mean = model.table[ids].astype(np.float64).mean(axis=0)
    assert embeddings.vectors([text])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-6)


_SCRIPT = """
from langgraft.memory.embedders import WordLlamaEmbeddings
import hashlib
texts = [f"open the {c} door {i} \\u00df\\u0434\\ud800" for i in range(50) for c in ("red", "blue")]
print(hashlib.sha256(WordLlamaEmbeddings().vectors(texts).tobytes()).hexdigest())
"""


def test_vectors_when_computed_elsewhere_then_are_the_same_to_the_last_bit() -> None:
    """Neither hash seed nor threads show; the digest holds weights, tokens and arithmetic."""
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
    assert digests == {"be078f73ac33c2b4616055e5d93083c60616303982be0a45076a93d608ac6948"}


def _digest(texts: list[str]) -> str:
    return hashlib.sha256(WordLlamaEmbeddings().vectors(texts).tobytes()).hexdigest()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_vectors_when_threads_and_forked_children_embed_then_are_the_same() -> None:
    """Children forked while threads embed give the vectors that the parent gives."""
    texts = [f"{i} red doors " * 50 for i in range(20)]
    expected = _digest(texts)
    with ThreadPoolExecutor(2) as threads:
        running = [threads.submit(_digest, texts) for _ in range(8)]
        with get_context("fork").Pool(2) as children:
            forked = children.map(_digest, [texts] * 2)
        found = {*forked, *(each.result() for each in running)}
    assert found == {expected}


def test_embedder_when_named_in_any_way_then_is_one_embedder() -> None:
    """The name, the object and the description give one fingerprint, which has both digests."""
    embedder = make_embedder("wordllama")
    assert embedder == make_embedder(WordLlamaEmbeddings())
    assert embedder == make_embedder("wordllama", dimensions=256)
    assert embedder.describe() == {
        "embeddings": "wordllama",
        "dimensions": 256,
        "weights": wordllama.WEIGHTS_SHA256,
        "tokenizer": wordllama.TOKENIZER_SHA256,
    }
    assert len(embedder.embed_query("red")) == 256


@pytest.mark.parametrize(
    ("name", "dimensions", "message"),
    [
        ("wordllama", 128, "embeddings 'wordllama' have 256 dimensions, not 128"),
        ("wordllama:256", None, "unknown embeddings 'wordllama:256'"),
        ("wordlama", None, "unknown embeddings 'wordlama'; give .* 'wordllama'"),
    ],
)
def test_embedder_when_named_wrongly_then_is_refused(
    name: str, dimensions: int | None, message: str
) -> None:
    """What is wrong is said before anything is loaded."""
    with pytest.raises(SettingsError, match=message):
        make_embedder(name, dimensions=dimensions)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the installed package's data, which is read in its place."""
    for file in (wordllama.WEIGHTS, wordllama.TOKENIZER):
        copy = tmp_path / file
        copy.parent.mkdir()
        shutil.copy(wordllama.package_folder() / file, copy)
    monkeypatch.setattr(wordllama, "package_folder", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (wordllama.WEIGHTS, wordllama.WEIGHTS_SHA256),
        (wordllama.TOKENIZER, wordllama.TOKENIZER_SHA256),
    ],
)
def test_weights_when_bytes_differ_then_are_refused_with_both_digests(
    package: Path, file: str, expected: str
) -> None:
    """One changed byte is one error, which names the file, what was expected and what was found."""
    content = bytearray((package / file).read_bytes())
    content[-1] ^= 1
    (package / file).write_bytes(content)
    found = hashlib.sha256(content).hexdigest()
    with pytest.raises(
        SettingsError, match=rf"expects the SHA-256 digest {expected} .*found {found}"
    ) as caught:
        make_embedder("wordllama").embed_query("red")
    assert str(package / file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_when_missing_then_error_names_the_file(package: Path) -> None:
    """A package without weights, as some builds are, is an error of the settings."""
    (package / wordllama.WEIGHTS).unlink()
    with pytest.raises(SettingsError, match=r"cannot read .*No such file"):
        WordLlamaEmbeddings().embed_query("red")


@pytest.mark.parametrize("missing", ["wordllama", "safetensors.numpy", "tokenizers"])
def test_embedder_when_a_package_is_missing_then_error_names_the_extra(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the three is not installed, the error says how to install it."""
    wordllama._load.cache_clear()
    if missing == "wordllama":
        monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    else:
        monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'langgraft\[semantic\]'"):
        WordLlamaEmbeddings().embed_query("red")


def test_embedder_when_used_then_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading and embedding work without a network, and do not import wordllama's own loader."""

    def refuse(*_: Any) -> None:
        msg = "no network"
        raise AssertionError(msg)

    wordllama._load.cache_clear()
    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert any(WordLlamaEmbeddings().embed_query("red"))
    assert "wordllama" not in sys.modules


def test_langgraft_when_imported_then_loads_nothing_of_it() -> None:
    """Neither `import langgraft` nor making the ranker loads tokenizers or weights."""
    script = (
        "import sys, langgraft\n"
        "from langgraft.memory.settings import make_ranker\n"
        "make_ranker({'ranker': 'semantic'}).describe()\n"
        "print(sorted({'tokenizers', 'safetensors', 'wordllama'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
