"""Parts for a column of text and a target."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.data_parts import data_part
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_DATA: Final = """
ID, TARGET = "{id}", "{target}"
train = pd.read_csv("input/{train}")
test = pd.read_csv("input/{test}")
sample = pd.read_csv("input/{sample}")
texts, new_texts = train["{text}"].fillna("").astype(str), test["{text}"].fillna("").astype(str)
{answers}
print("texts:", len(texts), "longest:", texts.str.len().max())
"""
_PIECES: Final = """
vectorizer = TfidfVectorizer(
    analyzer="char_wb", ngram_range=(1, $longest), sublinear_tf=True, min_df=2, max_features=40000
)
X = vectorizer.fit_transform(texts)
X_test = vectorizer.transform(new_texts)
print("pieces:", len(vectorizer.get_feature_names_out()))
"""
_COUNTS: Final = """
vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, $longest), max_features=40000)
X = vectorizer.fit_transform(texts)
X_test = vectorizer.transform(new_texts)
print("pieces:", len(vectorizer.get_feature_names_out()))
"""
_WORDS: Final = r"""
vectorizer = TfidfVectorizer(
    ngram_range=(1, 2), sublinear_tf=True, max_features=40000, token_pattern=r"(?u)\b\w+\b"
)
X = vectorizer.fit_transform(texts)
X_test = vectorizer.transform(new_texts)
print("words:", len(vectorizer.get_feature_names_out()))
"""
_BOTH: Final = """
vectorizer = FeatureUnion([
    ("pieces", TfidfVectorizer(analyzer="char_wb", ngram_range=(1, $longest), sublinear_tf=True,
                               min_df=2, max_features=40000)),
    ("words", TfidfVectorizer(max_features=20000)),
])
X = vectorizer.fit_transform(texts).tocsr()
X_test = vectorizer.transform(new_texts).tocsr()
print("columns:", len(vectorizer.get_feature_names_out()))
"""
_DIRECTIONS: Final = """
vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 3), sublinear_tf=True, min_df=2)
pieces, new_pieces = vectorizer.fit_transform(texts), vectorizer.transform(new_texts)
print("pieces:", len(vectorizer.get_feature_names_out()))
reducer = TruncatedSVD(n_components=min($count, pieces.shape[1] - 1), random_state=0)
X = reducer.fit_transform(pieces)
X_test = reducer.transform(new_pieces)
"""
_FREQUENT: Final = """
vectorizer = CountVectorizer(analyzer="char", ngram_range=(1, 2), max_features=$count)
X = np.log1p(vectorizer.fit_transform(texts).toarray().astype(float))
X_test = np.log1p(vectorizer.transform(new_texts).toarray().astype(float))
"""


def parts_of_texts(task: Task) -> Iterator[Part]:
    """Yield the ways to read texts and to make features of them."""
    longest = {"longest": ("2", "3", "4", "5")}
    yield data_part("texts", _DATA, task)
    yield Part(
        "Features", "weighted pieces of letters", _PIECES, 3, options=longest, makes="sparse"
    )
    yield Part("Features", "counted pieces of letters", _COUNTS, 2, options=longest, makes="sparse")
    yield Part("Features", "weighted words and pairs of words", _WORDS, 1.5, makes="sparse")
    yield Part(
        "Features", "pieces of letters with words", _BOTH, 1, options=longest, makes="sparse"
    )
    yield Part(
        "Features",
        "directions of pieces of letters",
        _DIRECTIONS,
        1,
        options={"count": ("30", "50")},
    )
    yield Part(
        "Features", "the most frequent pieces", _FREQUENT, 1, options={"count": ("120", "250")}
    )
