"""Who is measured side by side: langgraft's stores, LangGraph's, peers, and a floor for each, behind one face.

Each keeps records of a key and a text, finds the best ten for a query, and is opened in a folder.
Texts and queries are the same for all. Those that rank by words are told words; those that rank by
vectors get theirs from `DrawnEmbeddings`, which only looks them up: what an embedder costs is no
part of any figure. A peer is imported when it is opened; `lacking` says of one that is not there
what installs it.
"""

import importlib.util
import json
import os
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import uuid4

import numpy as np
from langgraph.store.base import BaseStore, PutOp
from langgraph.store.memory import InMemoryStore
from numpy.typing import NDArray

from langgraft.benchmarks.performance.dense_search import DIMENSIONS, DrawnEmbeddings
from langgraft.memory.rankers import BM25, Dense, tokenize
from langgraft.memory.stores import RankedStore
from langgraft.memory.stores.named import open_store

Record: TypeAlias = tuple[str, str]
"""Key and text."""
Ranking: TypeAlias = Literal["words", "vectors"]
Who: TypeAlias = Literal["langgraft", "peer", "floor"]

LIMIT: Final = 10
"""Records that a search returns."""
POSTGRES: Final = "LANGGRAFT_POSTGRES"
"""Variable with the URI of a server to measure on, of a user who may make schemas."""
INSTALL: Final = "pip install --group bench-peers"
"""What installs all peers, in a checkout of langgraft."""

_NAMESPACE: Final = ("bank",)
_K1, _B = 1.5, 0.75


class Memory(Protocol):
    """What is measured."""

    def write(self, records: Sequence[Record]) -> None:
        """Keep new records; when it returns, they are as safe as they will be."""

    def search(self, query: str) -> list[str]:
        """Return the keys of the best ten, best first; whole records were fetched."""

    def close(self) -> None:
        """Let go of everything; what is durable is on disk."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One that is measured, and what has to be known to compare it fairly."""

    name: str
    who: Who
    open: Callable[[Path, DrawnEmbeddings], Memory]
    ranks: Ranking
    durable: bool = False
    """What was written is on disk when `write` returns."""
    saved: bool = False
    """It is on disk when the memory is closed."""
    exact: bool = True
    """A search looks at everything; else it may miss some of the best ten."""
    searches: bool = True
    """It ranks; else it takes part in writing alone."""
    adds: bool = True
    """It takes new records; else it is built anew for each."""
    server: bool = False
    """It works in another process, too, whose CPU time is not seen."""
    needs: tuple[str, ...] = ()
    """Modules."""

    @property
    def reopens(self) -> bool:
        """Whether it can be opened again."""
        return self.durable or self.saved

    def lacking(self) -> str:
        """Say what is missing to measure it; nothing, if it can be."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        if missing:
            return f"`{missing[0]}` is not installed: {INSTALL}"
        if self.server and not os.environ.get(POSTGRES):
            return f"no server: set {POSTGRES} to the URI of one"
        if self.server and self.ranks == "vectors" and not _has_pgvector():
            return "the server has not the extension pgvector"
        if "sqlite_vec" in self.needs and _extensible() is None:
            return f"this Python's sqlite3 loads no extensions, nor is pysqlite3 there: {INSTALL}"
        return ""


def contenders(ranks: Ranking) -> tuple[Contender, ...]:
    """Return who is measured, the floor first."""
    return _WORDS if ranks == "words" else _VECTORS


# Langgraft and LangGraph ----------------------------------------------------------------------


class _OverStore:
    """Any LangGraph store; what else is to be closed is in `opened`."""

    def __init__(self, store: BaseStore, opened: ExitStack) -> None:
        self._store = store
        self._opened = opened

    def write(self, records: Sequence[Record]) -> None:
        self._store.batch([PutOp(_NAMESPACE, key, {"text": text}) for key, text in records])

    def search(self, query: str) -> list[str]:
        return [item.key for item in self._store.search(_NAMESPACE, query=query, limit=LIMIT)]

    def close(self) -> None:
        self._opened.close()


def _ranked(place: str, ranks: Ranking, folder: Path, embeddings: DrawnEmbeddings) -> Memory:
    """Open a store of ours as providers do: with its index kept beside it, where it is durable."""
    ranker = BM25() if ranks == "words" else Dense(embeddings)
    opened = ExitStack()
    store = opened.enter_context(open_store(place.format(folder)))
    ranked = RankedStore(store, ranker, field="text", heed_index=False)
    opened.callback(ranked.close)
    return _OverStore(ranked, opened)


def _index(ranks: Ranking, embeddings: DrawnEmbeddings) -> Any:
    config = {"dims": DIMENSIONS, "embed": embeddings, "fields": ["text"]}
    return config if ranks == "vectors" else None


def _in_memory(ranks: Ranking, _: Path, embeddings: DrawnEmbeddings) -> Memory:
    return _OverStore(InMemoryStore(index=_index(ranks, embeddings)), ExitStack())


def _sqlite_store(ranks: Ranking, folder: Path, embeddings: DrawnEmbeddings) -> Memory:
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415  (a peer)

    driver = sqlite3 if ranks == "words" else _extensible()
    connection = driver.connect(  # as its `from_conn_string` does
        folder / "langgraph.sqlite", check_same_thread=False, isolation_level=None
    )
    opened = ExitStack()
    opened.callback(connection.close)
    index: Any = _index(ranks, embeddings)
    # It reads `text_fields` where its documentation, and the other stores, have `fields`.
    if index is not None:
        index["text_fields"] = index["fields"]
    store = SqliteStore(connection, index=index)
    store.setup()
    return _OverStore(store, opened)


def _postgres_store(ranks: Ranking, folder: Path, embeddings: DrawnEmbeddings) -> Memory:
    import psycopg  # noqa: PLC0415  (an extra)
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415
    from psycopg.conninfo import make_conninfo  # noqa: PLC0415

    name, uri = folder / "schema", os.environ[POSTGRES]
    if not name.exists():
        schema = f"langgraft_bench_{uuid4().hex[:12]}"
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        name.write_text(schema)
    place = make_conninfo(uri, options=f"-csearch_path={name.read_text()},public")
    opened = ExitStack()
    store = opened.enter_context(
        PostgresStore.from_conn_string(place, index=_index(ranks, embeddings))
    )
    store.setup()
    return _OverStore(store, opened)


def _has_pgvector() -> bool:
    import psycopg  # noqa: PLC0415  (an extra)

    with psycopg.connect(os.environ[POSTGRES]) as connection:
        asked = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
        return connection.execute(asked).fetchone() is not None


def drop_schema(folder: Path) -> None:
    """Remove what a contender left in a server, if it left anything."""
    name = folder / "schema"
    if name.exists():
        import psycopg  # noqa: PLC0415  (an extra)

        with psycopg.connect(os.environ[POSTGRES], autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {name.read_text()} CASCADE".encode())


class LangMem:
    """The two tools of langmem, over LangGraph's store in memory with its vectors."""

    def __init__(self, _: Path, embeddings: DrawnEmbeddings) -> None:
        import langmem  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415  (a peer)

        config: Any = {"dims": DIMENSIONS, "embed": embeddings, "fields": ["content"]}
        store = InMemoryStore(index=config)
        self._manage = langmem.create_manage_memory_tool(_NAMESPACE, store=store)
        self._search = langmem.create_search_memory_tool(_NAMESPACE, store=store)

    def write(self, records: Sequence[Record]) -> None:
        """Have each kept as a note; it makes the keys up."""
        for _, text in records:
            self._manage.invoke({"content": text, "action": "create"})

    def search(self, query: str) -> list[str]:
        """Return the texts, which are the keys here, as its keys are its own."""
        found = self._search.invoke({"query": query, "limit": LIMIT})
        return [each["value"]["content"] for each in json.loads(found)]

    def close(self) -> None:
        """Nothing is open."""


# Peers ----------------------------------------------------------------------------------------


class Mem0:
    """mem0 with Qdrant's local mode in a folder: no model is asked (`infer=False`), no server needed."""

    def __init__(self, folder: Path, embeddings: DrawnEmbeddings) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ["MEM0_DIR"] = str(folder)
        import mem0  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415  (a peer)
        from langchain_core.language_models.fake_chat_models import (  # noqa: PLC0415
            FakeListChatModel,
        )

        where = {
            "path": str(folder / "qdrant"),
            "on_disk": True,
            "embedding_model_dims": DIMENSIONS,
            "collection_name": "bank",
        }
        embedder = {"model": embeddings, "embedding_dims": DIMENSIONS}
        self._memory: Any = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": where},
                "embedder": {"provider": "langchain", "config": embedder},
                # Required, and never asked.
                "llm": {
                    "provider": "langchain",
                    "config": {"model": FakeListChatModel(responses=[""])},
                },
                "history_db_path": str(folder / "history.sqlite"),
            }
        )

    def write(self, records: Sequence[Record]) -> None:
        """Add each as it is; it makes the keys up."""
        for _, text in records:
            said = [{"role": "user", "content": text}]
            self._memory.add(said, user_id=_NAMESPACE[0], infer=False)

    def search(self, query: str) -> list[str]:
        """Return the texts, which are the keys here, as its keys are its own."""
        asked = {"user_id": _NAMESPACE[0]}
        found = self._memory.search(query, filters=asked, top_k=LIMIT, threshold=0.0)
        return [each["memory"] for each in found["results"]]

    def close(self) -> None:
        """Close the collection."""
        self._memory.vector_store.client.close()


class RawChroma:
    """A persistent collection of Chroma's, searched by its approximate index (HNSW)."""

    def __init__(self, folder: Path, embeddings: DrawnEmbeddings) -> None:
        import chromadb  # noqa: PLC0415  (takes a second)
        from chromadb.config import Settings  # noqa: PLC0415

        self._embeddings = embeddings
        self._client: Any = chromadb.PersistentClient(
            str(folder), Settings(anonymized_telemetry=False)
        )
        settings: Any = {"hnsw:space": "cosine"}
        self._collection: Any = self._client.get_or_create_collection(
            "bank", embedding_function=None, metadata=settings
        )

    def write(self, records: Sequence[Record]) -> None:
        """Add rows."""
        texts = [text for _, text in records]
        self._collection.upsert(
            ids=[key for key, _ in records],
            embeddings=np.asarray(self._embeddings.embed_documents(texts), dtype=np.float32),
            metadatas=[{"text": text} for text in texts],
        )

    def search(self, query: str) -> list[str]:
        """Ask for the nearest rows."""
        vector = np.asarray([self._embeddings.embed_query(query)], dtype=np.float32)
        found: list[str] = self._collection.query(vector, n_results=LIMIT)["ids"][0]
        return found

    def close(self) -> None:
        """Close the client."""
        self._client.close()


class RawChromaRows(RawChroma):
    """The same with a vector of one number: rows, as `ChromaStore` keeps them."""

    def write(self, records: Sequence[Record]) -> None:
        """Add rows."""
        self._collection.upsert(
            ids=[key for key, _ in records],
            embeddings=[[1.0]] * len(records),
            metadatas=[{"value": json.dumps({"text": text})} for _, text in records],
        )


class Bm25s:
    """bm25s, which takes in no document: whatever is added, all is built anew. Saved when closed."""

    def __init__(self, folder: Path, _: DrawnEmbeddings) -> None:
        import bm25s  # noqa: PLC0415  (a peer)

        self._folder, self._made = folder, partial(bm25s.BM25, k1=_K1, b=_B, method="lucene")
        self._keys: list[str] = []
        self._tokens: list[list[str]] = []
        self._index: Any = None
        if (folder / "keys.json").exists():
            self._keys = json.loads((folder / "keys.json").read_text())
            self._index = bm25s.BM25.load(folder / "index")

    def write(self, records: Sequence[Record]) -> None:
        """Note documents for the next index."""
        self._keys += [key for key, _ in records]
        self._tokens += [tokenize(text) for _, text in records]
        self._index = None

    def search(self, query: str) -> list[str]:
        """Return keys: it holds no records."""
        if self._index is None:
            self._index = self._made(backend="numpy")
            self._index.index(self._tokens, show_progress=False)
        asked = [tokenize(query)]
        found = self._index.retrieve(asked, k=LIMIT, show_progress=False, n_threads=1)
        return [self._keys[number] for number in found.documents[0]]

    def close(self) -> None:
        """Save the index."""
        if self._index is not None:
            self._index.save(self._folder / "index")
            (self._folder / "keys.json").write_text(json.dumps(self._keys))


class Fts5:
    """SQLite's full-text index and its `bm25()`, with other constants than ours: k1 1.2."""

    def __init__(self, folder: Path, _: DrawnEmbeddings) -> None:
        self._connection = _safe(sqlite3.connect(folder / "fts5.sqlite"))
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS bank USING fts5(key UNINDEXED, text)"
        )

    def write(self, records: Sequence[Record]) -> None:
        """Insert rows in one transaction."""
        with self._connection:
            self._connection.executemany("INSERT INTO bank VALUES (?, ?)", records)

    def search(self, query: str) -> list[str]:
        """Ask for rows that hold a word of the query."""
        asked = " OR ".join(f'"{word}"' for word in tokenize(query))
        rows = self._connection.execute(
            "SELECT key, text FROM bank WHERE bank MATCH ? ORDER BY rank LIMIT ?", (asked, LIMIT)
        )
        return [key for key, _ in rows]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


class SqliteVec:
    """The table of vectors that sqlite-vec brings to SQLite: exact, by one scan."""

    def __init__(self, folder: Path, embeddings: DrawnEmbeddings) -> None:
        import sqlite_vec  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415  (a peer)

        self._embeddings = embeddings
        self._connection: Any = _safe(_extensible().connect(str(folder / "vectors.sqlite")))
        self._connection.enable_load_extension(True)
        sqlite_vec.load(self._connection)
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS bank USING vec0(key TEXT PRIMARY KEY,"
            f" vector FLOAT[{DIMENSIONS}] distance_metric=cosine, +text TEXT)"
        )

    def _vectors(self, texts: list[str]) -> NDArray[np.float32]:
        return np.asarray(self._embeddings.embed_documents(texts), dtype=np.float32)

    def write(self, records: Sequence[Record]) -> None:
        """Insert rows in one transaction."""
        vectors = self._vectors([text for _, text in records])
        with self._connection:
            self._connection.executemany(
                "INSERT INTO bank VALUES (?, ?, ?)",
                [
                    (key, row.tobytes(), text)
                    for (key, text), row in zip(records, vectors, strict=True)
                ],
            )

    def search(self, query: str) -> list[str]:
        """Ask for the nearest rows."""
        rows = self._connection.execute(
            "SELECT key, text FROM bank WHERE vector MATCH ? AND k = ? ORDER BY distance",
            (self._vectors([query]).tobytes(), LIMIT),
        )
        return [key for key, _ in rows]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def _extensible() -> Any:
    """Return a driver of SQLite that loads extensions: Python's own, pysqlite3, or none."""
    if hasattr(sqlite3.Connection, "enable_load_extension"):
        return sqlite3
    if importlib.util.find_spec("pysqlite3") is None:
        return None
    return importlib.import_module("pysqlite3.dbapi2")


def _safe(connection: Any) -> Any:
    """Have what is committed survive a power loss, as it does in our file."""
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


# Floors ---------------------------------------------------------------------------------------


class _Appended(ABC):
    """Records appended to a file and synced: the least that keeps them. What is searched is made once.

    A search after further writes costs what it cost before them, and does not find them: no index
    can be brought up to date for less.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records: list[Record] = []
        self._file = (folder / "records.jsonl").open("ab")
        self._loaded = (folder / "keys.npy").exists()
        self._keys: NDArray[np.str_] = np.array([], dtype=str)
        if self._loaded:
            self._keys = _mapped(folder / "keys.npy")

    def write(self, records: Sequence[Record]) -> None:
        """Append and sync."""
        lines = "".join(json.dumps([key, {"text": text}]) + "\n" for key, text in records)
        self._file.write(lines.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        if not self._loaded:
            self._records += records

    def search(self, query: str) -> list[str]:
        """Rank what was there at the first search."""
        if not self._loaded:
            self._loaded = True
            self._keys = np.array([key for key, _ in self._records])
            self._build([text for _, text in self._records])
        scores = self._scores(query)
        found = np.argpartition(scores, -min(LIMIT, scores.size))[-LIMIT:]
        best: list[str] = self._keys[found[np.argsort(-scores[found])]].tolist()
        return best

    def close(self) -> None:
        """Save what is searched."""
        self._file.close()
        if self._loaded and not (self._folder / "keys.npy").exists():
            np.save(self._folder / "keys.npy", self._keys)
            self._save()

    @abstractmethod
    def _build(self, texts: list[str]) -> None: ...

    @abstractmethod
    def _scores(self, query: str) -> NDArray[np.float64]: ...

    @abstractmethod
    def _save(self) -> None: ...


def _mapped(path: Path) -> Any:
    """Open an array that is read from the file where it is looked at."""
    return np.load(path, mmap_mode="r")


class AddedPostings(_Appended):
    """What each word adds to each document's score is known: a search adds it up, and takes the best ten."""

    def __init__(self, folder: Path, _: DrawnEmbeddings) -> None:
        super().__init__(folder)
        if self._loaded:
            self._spans = json.loads((folder / "words.json").read_text())
            self._slots = _mapped(folder / "slots.npy")
            self._worth = _mapped(folder / "worth.npy")

    def _build(self, texts: list[str]) -> None:
        counted = [Counter(tokenize(text)) for text in texts]
        lengths = np.array([each.total() for each in counted], dtype=np.float64)
        norms = _K1 * (1 - _B + _B * lengths / lengths.mean())
        held: dict[str, list[tuple[int, int]]] = {}
        for slot, words in enumerate(counted):
            for word, count in words.items():
                held.setdefault(word, []).append((slot, count))
        slots, worth, start = [], [], 0
        self._spans = {}
        for word, postings in held.items():
            at, counts = np.array(postings).T
            rarity = np.log(1 + (len(texts) - at.size + 0.5) / (at.size + 0.5))
            slots.append(at.astype(np.int64))
            worth.append(rarity * counts / (norms[at] + counts))
            self._spans[word] = (start, start + at.size)
            start += at.size
        self._slots, self._worth = np.concatenate(slots), np.concatenate(worth)

    def _scores(self, query: str) -> NDArray[np.float64]:
        scores = np.zeros(len(self._keys))
        for word in tokenize(query):
            start, end = self._spans.get(word, (0, 0))
            np.add.at(scores, self._slots[start:end], self._worth[start:end])
        return scores

    def _save(self) -> None:
        (self._folder / "words.json").write_text(json.dumps(self._spans))
        np.save(self._folder / "slots.npy", self._slots)
        np.save(self._folder / "worth.npy", self._worth)


class MatrixProduct(_Appended):
    """One product of the matrix of all vectors with that of the query, and the best ten."""

    def __init__(self, folder: Path, embeddings: DrawnEmbeddings) -> None:
        super().__init__(folder)
        self._embeddings = embeddings
        if self._loaded:
            self._matrix = _mapped(folder / "matrix.npy")

    def _build(self, texts: list[str]) -> None:
        self._matrix = np.array(self._embeddings.embed_documents(texts), dtype=np.float32)

    def _scores(self, query: str) -> Any:
        return self._matrix @ np.asarray(self._embeddings.embed_query(query), dtype=np.float32)

    def _save(self) -> None:
        np.save(self._folder / "matrix.npy", self._matrix)


def _ours(ranks: Ranking) -> Iterator[Contender]:
    how = "BM25" if ranks == "words" else "Dense"
    places: Mapping[str, tuple[str, bool]] = {
        "InMemoryStore": ("memory", False),
        "a SQLite file": ("sqlite:{}/memory.sqlite", True),
        "Chroma": ("chroma:{}", True),
    }
    for name, (place, durable) in places.items():
        opens = partial(_ranked, place, ranks)
        yield Contender(f"langgraft {how} over {name}", "langgraft", opens, ranks, durable)


_SQLITE_STORE: Final = ("langgraph.store.sqlite", "sqlite_vec")
_POSTGRES_STORE: Final = ("langgraph.store.postgres", "psycopg")

_WORDS: Final = (
    Contender(
        "floor: a file, and postings added up", "floor", AddedPostings, "words", durable=True
    ),
    *_ours("words"),
    Contender("bm25s", "peer", Bm25s, "words", saved=True, adds=False, needs=("bm25s",)),
    Contender("SQLite FTS5", "peer", Fts5, "words", durable=True),
    Contender(
        "LangGraph InMemoryStore", "peer", partial(_in_memory, "words"), "words", searches=False
    ),
    Contender(
        "LangGraph SqliteStore",
        "peer",
        partial(_sqlite_store, "words"),
        "words",
        durable=True,
        searches=False,
        needs=_SQLITE_STORE[:1],
    ),
    Contender(
        "LangGraph PostgresStore",
        "peer",
        partial(_postgres_store, "words"),
        "words",
        durable=True,
        searches=False,
        server=True,
        needs=_POSTGRES_STORE,
    ),
    Contender(
        "raw Chroma, rows",
        "peer",
        RawChromaRows,
        "words",
        durable=True,
        searches=False,
        needs=("chromadb",),
    ),
)

_VECTORS: Final = (
    Contender(
        "floor: a file, and one matrix product", "floor", MatrixProduct, "vectors", durable=True
    ),
    *_ours("vectors"),
    Contender("LangGraph InMemoryStore", "peer", partial(_in_memory, "vectors"), "vectors"),
    Contender(
        "LangGraph SqliteStore",
        "peer",
        partial(_sqlite_store, "vectors"),
        "vectors",
        durable=True,
        needs=_SQLITE_STORE,
    ),
    Contender(
        "LangGraph PostgresStore",
        "peer",
        partial(_postgres_store, "vectors"),
        "vectors",
        durable=True,
        exact=False,
        server=True,
        needs=_POSTGRES_STORE,
    ),
    Contender("langmem tools over InMemoryStore", "peer", LangMem, "vectors", needs=("langmem",)),
    Contender(
        "raw Chroma (HNSW)",
        "peer",
        RawChroma,
        "vectors",
        durable=True,
        exact=False,
        needs=("chromadb",),
    ),
    Contender("sqlite-vec", "peer", SqliteVec, "vectors", durable=True, needs=("sqlite_vec",)),
    Contender(
        "mem0 over Qdrant's local mode",
        "peer",
        Mem0,
        "vectors",
        durable=True,
        needs=("mem0", "qdrant_client"),
    ),
)
