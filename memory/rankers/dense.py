"""Ranking by the cosine of embeddings, exactly."""

from dataclasses import dataclass, field

from langchain_core.embeddings import Embeddings

from langgraft._core.canonical import JSON
from langgraft.memory.embedders.cached import CachedEmbedder
from langgraft.memory.embedders.named import make_embedder, read_name
from langgraft.memory.rankers.base import RankerIndex
from langgraft.memory.rankers.dense_index import DenseIndex
from langgraft.memory.rankers.selection import Ties, check_ties


@dataclass(frozen=True, slots=True)
class Dense:
    """Rank by the cosine of the embeddings of query and text.

    Every document is compared with the query: nothing is approximated, and a score is computed
    in float64 from the vector as the embedder gave it (in float32). A cosine says how alike two
    texts are and has no threshold below which they do not match, so as many documents are
    returned as are asked for, best first, those with negative scores included. A blank text is
    not embedded, and a vector of zeros has no direction: such documents are never returned, and
    for such a query nothing is.

    ```python
    Dense()  # hashed words and pieces of words: offline, lexical
    Dense("openai:text-embedding-3-small", dimensions=512)
    Dense(HuggingFaceEmbeddings(model_name="…"))  # any LangChain embeddings
    Dense(make_embedder("openai:…", cache=SQLiteVectors("vectors.db")))
    ```

    Two rankers are equal if their embedders have one fingerprint, wherever vectors are cached.

    Raises:
        SettingsError: `embeddings` names no embedder, or `dimensions` does not go with it.
    """

    embeddings: str | Embeddings = field(default="hashing", compare=False)
    """As `make_embedder` takes it."""

    dimensions: int | None = field(default=None, compare=False)
    """Length of the vectors, for embeddings named by a string; `None` is the model's own."""

    ties: Ties = "oldest"
    """Which of equal documents comes first."""

    embedder: CachedEmbedder = field(init=False, repr=False)
    """What `embeddings` stands for; all indexes of this ranker share its cache."""

    def __post_init__(self) -> None:
        check_ties(self.ties)
        embedder = make_embedder(self.embeddings, dimensions=self.dimensions)
        if isinstance(self.embeddings, str):
            named = read_name(self.embeddings, self.dimensions)
            object.__setattr__(self, "embeddings", named.name)
            object.__setattr__(self, "dimensions", named.dimensions)
        else:
            object.__setattr__(self, "embeddings", embedder)
        object.__setattr__(self, "embedder", embedder)

    def index(self, *, frozen: bool) -> RankerIndex:  # noqa: ARG002 - one index serves both
        """Return a new empty index."""
        return DenseIndex(self.embedder, ties=self.ties)

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON, for manifests."""
        return {
            "ranker": "dense",
            **self.embedder.describe(),
            "similarity": "cosine",
            "ties": self.ties,
        }
