"""Teams of the competition `phrases`."""

from pathlib import Path
from typing import Any, Final

from sklearn.decomposition import TruncatedSVD
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from boards.contests import Blend, Contest, Data, Team, both, places, read_table

LANGUAGES: Final = tuple(f"lang_{number}" for number in range(10))


def load(folder: Path) -> Data:
    """Read texts."""
    train = read_table(folder / "public" / "train.csv")
    answers = read_table(folder / "private" / "answers.csv")
    test = read_table(folder / "public" / "test.csv")
    return Data(
        train["text"],
        test["text"],
        places(train["language"], LANGUAGES),
        places(answers["language"], LANGUAGES),
    )


def _counted(longest: int, *, shortest: int = 1, analyzer: str = "char_wb") -> Any:
    return _view(CountVectorizer(analyzer=analyzer, ngram_range=(shortest, longest)))


def _weighted(longest: int, *, shortest: int = 1, analyzer: str = "char_wb") -> Any:
    return _view(
        TfidfVectorizer(
            analyzer=analyzer, ngram_range=(shortest, longest), sublinear_tf=True, min_df=2
        )
    )


def _view(vectors: Any) -> Any:
    """Learn which pieces there are from the training rows alone."""
    return lambda data: (vectors.fit_transform(data.train), vectors.transform(data.test))


def _logistic(penalty: float) -> Any:
    return LogisticRegression(C=penalty, max_iter=200, tol=1e-3)


def _descent(alpha: float) -> Any:
    return SGDClassifier(loss="log_loss", alpha=alpha, random_state=0)


def _few(count: int, model: Any) -> Any:
    return make_pipeline(TruncatedSVD(count, random_state=0), model)


CONTEST: Final = Contest(
    id="phrases",
    metric="log-loss",
    load=load,
    views={
        "letters": _counted(1),
        "pairs": _counted(2),
        "triples": _counted(3),
        "words": _counted(1, analyzer="word"),
        "weighted pairs": _weighted(2),
        "weighted triples": _weighted(3),
        "weighted to four": _weighted(4),
        "weighted to five": _weighted(5),
        "weighted words": _weighted(1, analyzer="word"),
    },
    teams=(
        Team("how often each was", "letters", DummyClassifier),
        Team("words, naive Bayes", "words", lambda: MultinomialNB(alpha=1.0)),
        Team("words, logistic", "weighted words", lambda: _logistic(10.0)),
        *both("letters, logistic", "letters", lambda: _logistic(1.0)),
        Team("letters, naive Bayes", "letters", MultinomialNB),
        Team(
            "letters, forest",
            "letters",
            lambda: RandomForestClassifier(60, min_samples_leaf=2, random_state=0),
        ),
        *both("pairs, naive Bayes", "pairs", MultinomialNB),
        Team("pairs there or not, naive Bayes", "pairs", BernoulliNB),
        Team("pairs, logistic", "pairs", lambda: _logistic(0.1)),
        *both("weighted pairs, logistic", "weighted pairs", lambda: _logistic(10.0)),
        Team("weighted pairs, logistic, shy", "weighted pairs", lambda: _logistic(0.3)),
        Team("triples, naive Bayes", "triples", lambda: MultinomialNB(alpha=0.3)),
        *both(
            "weighted triples, naive Bayes", "weighted triples", lambda: MultinomialNB(alpha=0.1)
        ),
        *both("weighted triples, logistic", "weighted triples", lambda: _logistic(10.0)),
        Team("weighted triples, logistic, shy", "weighted triples", lambda: _logistic(1.0)),
        *both(
            "weighted to four, naive Bayes", "weighted to four", lambda: MultinomialNB(alpha=0.1)
        ),
        *both("weighted to four, logistic", "weighted to four", lambda: _logistic(20.0)),
        Team("weighted to five, naive Bayes", "weighted to five", lambda: MultinomialNB(alpha=0.1)),
        Team("weighted to five, shy Bayes", "weighted to five", lambda: MultinomialNB(alpha=0.5)),
        *both("descent", "weighted triples", lambda: _descent(1e-4)),
        Team("descent, restless", "weighted triples", lambda: _descent(1e-5)),
        *both("30 neighbors", "weighted triples", lambda: KNeighborsClassifier(30)),
        Team("50 directions, logistic", "weighted triples", lambda: _few(50, _logistic(10.0))),
        Team(
            "50 directions, forest",
            "weighted triples",
            lambda: _few(50, RandomForestClassifier(60, min_samples_leaf=3, random_state=0)),
        ),
    ),
    blends=(
        Blend(
            "Bayes of three lengths",
            (
                "weighted triples, naive Bayes",
                "weighted to four, naive Bayes",
                "weighted to five, naive Bayes",
            ),
        ),
        Blend(
            "Bayes and logistic", ("weighted to four, naive Bayes", "weighted to four, logistic")
        ),
        Blend(
            "five together",
            (
                "weighted to four, naive Bayes",
                "weighted to five, naive Bayes",
                "weighted to four, logistic",
                "weighted triples, logistic",
                "pairs, naive Bayes",
            ),
        ),
    ),
    held_out=Team(
        "pieces of two and three, logistic",
        "weighted triples",
        lambda: _logistic(4.0),
    ),
)
