"""Search by meaning without a network: the token vectors in the wheel of `wordllama`.

Only the two data files of the installed package are read. Its own loader is not imported: it
configures logging, and may try to download what it does not find.
"""

import hashlib
import importlib.util
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray
from typing_extensions import override

from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft._core.lazy import require
from langgraft.memory.embedders.base import Vectors

DIMENSIONS: Final = 256

WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
WEIGHTS_SHA256: Final = "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
TOKENIZER_SHA256: Final = "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"

_PURPOSE: Final = "The embedder 'wordllama'"
_EXTRA: Final = "semantic"
_REINSTALL: Final = (
    f"Install the tested version: pip install --force-reinstall 'langgraft[{_EXTRA}]'"
)

_CHUNK: Final = 1024
"""Different tokens that are summed at a time: 2 MB."""


class WordLlamaEmbeddings(Embeddings):
    """Embed a text as the mean of its tokens' vectors, scaled to length 1: 256 numbers.

    The vectors were trained so that texts of similar meaning are alike ("car" and "automobile").
    The order of words has no influence, apart from how the text is cut into tokens. The model was
    trained on English; other languages are cut into small pieces that mean little.

    It needs no network and no key. The weights (16 MB) come with the package `wordllama` (extra
    `semantic`); they are loaded at the first text, once per process. A text has the same vector,
    to the last bit, in every process and on every machine, alone or among others. A blank text
    has the zero vector.
    """

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts; each is embedded as if it were alone.

        Raises:
            MissingExtraError: A package of the extra `semantic` is not installed.
            SettingsError: Another version of `wordllama` has other weights.
        """
        vectors: list[list[float]] = self.vectors(texts).tolist()
        return vectors

    @override
    def embed_query(self, text: str) -> list[float]:
        """Embed a text just as a document is."""
        return self.embed_documents([text])[0]

    def vectors(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text."""
        model = _load(package_folder())
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                row[:] = model.vector(text)
        return rows


class _Model(NamedTuple):
    """Never changed after it was loaded, so that threads and forked processes can share it."""

    tokenizer: Any
    table: NDArray[np.float16]
    """One row per token."""

    def vector(self, text: str) -> NDArray[np.float64]:
        # One text at a time: `encode_batch` pads, and starts threads that do not survive a fork.
        # A lone surrogate can be in a text and has no UTF-8.
        readable = text.encode("utf-8", "replace").decode("utf-8")
        ids = self.tokenizer.encode(readable, add_special_tokens=False).ids
        tokens, counts = np.unique(np.array(ids, dtype=np.intp), return_counts=True)
        sums = np.zeros(DIMENSIONS)
        # Half-precision numbers add up exactly in float64, in any order.
        for start in range(0, tokens.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            rows = self.table[tokens[part]].astype(np.float64)
            sums += (rows * counts[part, np.newaxis]).sum(axis=0)
        # The mean has the direction of the sum. `fsum` rounds once: no order of adding shows.
        length = math.sqrt(math.fsum((sums * sums).tolist()))
        return sums / length if length else sums


def package_folder() -> Path:
    """Return the folder of the installed package `wordllama`, without importing it.

    Raises:
        MissingExtraError: It is not installed.
    """
    found = importlib.util.find_spec("wordllama")
    if found is None or not found.submodule_search_locations:
        msg = (
            f"{_PURPOSE} needs `wordllama`, which is not installed:"
            f" pip install 'langgraft[{_EXTRA}]'"
        )
        raise MissingExtraError(msg)
    return Path(found.submodule_search_locations[0])


@cache
def _load(folder: Path) -> _Model:
    """Read weights and tokenizer; threads that come together may each read them, once."""
    safetensors = require("safetensors.numpy", extra=_EXTRA, purpose=_PURPOSE)
    tokenizers = require("tokenizers", extra=_EXTRA, purpose=_PURPOSE)
    weights = _verified(folder / WEIGHTS, WEIGHTS_SHA256)
    tokenizer = tokenizers.Tokenizer.from_str(
        _verified(folder / TOKENIZER, TOKENIZER_SHA256).decode("utf-8")
    )
    (table,) = safetensors.load(weights).values()
    return _Model(tokenizer, table)


def _verified(path: Path, expected: str) -> bytes:
    """Return the bytes of a file whose digest is known.

    Raises:
        SettingsError: The file cannot be read, or has another digest.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        msg = f"{_PURPOSE} cannot read {path}: {error.strerror or error}. {_REINSTALL}"
        raise SettingsError(msg) from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        msg = (
            f"{_PURPOSE} expects the SHA-256 digest {expected} of {path}, and found {found}: with"
            f" other bytes, vectors would differ. {_REINSTALL}"
        )
        raise SettingsError(msg)
    return content
