"""Embedders by name, and what manifests say of them."""

import json
from dataclasses import dataclass
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_openai import OpenAIEmbeddings
from pydantic import SecretStr
from table_embeddings import TableEmbeddings

from langgraft._core.errors import SettingsError
from langgraft.memory.embedders import (
    CachedEmbedder,
    HashingEmbeddings,
    MemoryVectors,
    make_embedder,
)


@pytest.mark.parametrize(
    ("embeddings", "settings", "dimensions"),
    [
        ("hashing", {}, 384),
        ("hashing:256", {}, 256),
        ("hashing", {"dimensions": 256}, 256),
        ("hashing:256", {"dimensions": 256}, 256),
        (HashingEmbeddings(256), {}, 256),
    ],
)
def test_hashing_when_named_in_any_way_then_is_one_embedder(
    embeddings: Any, settings: dict[str, Any], dimensions: int
) -> None:
    """Equal settings give equal fingerprints, however they are written."""
    embedder = make_embedder(embeddings, **settings)
    assert len(embedder.embed_query("red")) == dimensions
    assert embedder == make_embedder(f"hashing:{dimensions}")
    assert embedder.describe()["dimensions"] == dimensions


@pytest.mark.parametrize(
    ("embeddings", "settings", "message"),
    [
        ("hashin", {}, "unknown embeddings 'hashin'"),
        ("", {}, "unknown embeddings ''"),
        (":x", {}, "unknown embeddings ':x'"),
        ("openai:", {}, "unknown embeddings 'openai:'"),
        ("hashing:many", {}, "'many' is no number of dimensions"),
        ("hashing:-1", {}, "'-1' is no number of dimensions"),
        ("hashing:0", {}, "at least 1"),
        ("hashing:256", {"dimensions": 128}, "do not agree"),
        ("hashing", {"dimensions": "256"}, "dimensions must be an integer"),
        ("openai:x", {"dimensions": 0}, "at least 1"),
        ("hashing", {"fingerprint": "x"}, "cannot be given together"),
        (5, {}, "embeddings must be 'hashing', 'wordllama', a name"),
        (None, {}, "embeddings must be 'hashing', 'wordllama', a name"),
        (TableEmbeddings({}), {"dimensions": 3}, "cannot be given together with TableEmbeddings"),
        (make_embedder(), {"cache": MemoryVectors()}, "cannot be given together with a cached"),
    ],
)
def test_embedder_when_settings_make_none_then_is_refused(
    embeddings: Any, settings: dict[str, Any], message: str
) -> None:
    """Whatever is wrong is said before anything is loaded."""
    with pytest.raises(SettingsError, match=message):
        make_embedder(embeddings, **settings)


def test_name_when_langchain_does_not_know_it_then_error_says_so_at_first_use() -> None:
    """An unknown provider, or one whose package is missing, is an error of the settings."""
    for name in ("nobody:model", "cohere:embed-english-v3.0"):
        embedder = make_embedder(name)
        with pytest.raises(SettingsError, match=f"embeddings '{name}' cannot be made"):
            embedder.embed_query("red")


def test_name_when_its_client_has_no_key_then_error_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever class the client's complaint is of, it is an error of the settings."""
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(
        SettingsError, match=r"embeddings 'openai:x' cannot be made: .*key"
    ) as caught:
        make_embedder("openai:x").embed_query("red")
    assert "\n" not in str(caught.value)


def test_name_when_langchain_knows_it_then_makes_its_embeddings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A string of `init_embeddings` with dimensions makes that model; nothing is called yet."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    embedder = make_embedder("openai:text-embedding-3-small", dimensions=512)
    assert embedder.describe() == {"embeddings": "openai:text-embedding-3-small", "dimensions": 512}
    inner = embedder._inner()
    assert isinstance(inner, OpenAIEmbeddings)
    assert (inner.model, inner.dimensions) == ("text-embedding-3-small", 512)


def test_description_when_object_holds_secrets_then_tells_none() -> None:
    """Keys, headers, addresses and clients stay out of manifests; the model and its size do not."""
    inner = OpenAIEmbeddings(
        model="text-embedding-3-large",
        dimensions=64,
        openai_api_key=SecretStr("sk-hidden"),
        openai_api_base="https://user:hidden@host.hidden/v1",
        openai_organization="org-hidden",
        default_headers={"x-api-key": "hidden"},
        default_query={"code": "seen", "api_key": "hidden", "at": "https://hidden"},
        max_retries=7,
    )
    embedder = make_embedder(inner)
    told = json.dumps(embedder.describe())
    assert "hidden" not in told + repr(embedder)
    assert "text-embedding-3-large" in told
    again = make_embedder(inner.model_copy(update={"max_retries": 2, "openai_api_key": None}))
    assert again == embedder
    assert make_embedder(inner.model_copy(update={"dimensions": 32})) != embedder


@dataclass
class _Pooled(Embeddings):
    pooling: str
    api_token: str = "hidden"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0]] * len(texts)

    def embed_query(self, text: str) -> list[float]:
        return [1.0]


def test_fingerprint_when_objects_differ_in_public_settings_then_differs() -> None:
    """Class and settings of any object count; the name of a secret does not."""
    assert make_embedder(_Pooled("mean")) == make_embedder(_Pooled("mean", api_token="other"))
    assert make_embedder(_Pooled("mean")) != make_embedder(_Pooled("max"))
    assert make_embedder(_Pooled("mean")) != make_embedder(TableEmbeddings({}))


def test_fingerprint_when_given_then_stands_for_the_object() -> None:
    """An explicit fingerprint is all that counts, and can name the model a string would make."""
    one = make_embedder(_Pooled("mean"), fingerprint="openai:x")
    assert one == make_embedder(TableEmbeddings({}), fingerprint="openai:x")
    assert one == make_embedder("openai:x")
    assert one.describe() == {"embeddings": "openai:x"}


def test_embedder_when_given_an_embedder_then_is_that() -> None:
    """A cached embedder, with its cache, is taken as it is."""
    embedder = make_embedder("hashing:8")
    assert make_embedder(embedder) is embedder
    assert isinstance(embedder, CachedEmbedder)
