"""The data and the grade: phrases of a few words in languages close to each other, in an unknown script."""

import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langgraft._core.lazy import require
from langgraft.environments.competitions.shipped.making import (
    Integers,
    Source,
    of_shipped,
    order,
    read_bytes,
    secret,
    split,
    uniforms,
    write_table,
)
from langgraft.environments.competitions.shipped.metrics import log_loss

if TYPE_CHECKING:  # pandas comes with an extra
    import pandas as pd


def _source(language: str, sha256: str) -> Source:
    path = f"data/small_{language}.msgpack.gz"
    return Source("wordfreq", "3.1.1", "wordfreq", path, sha256)


SOURCES: Final = (
    _source("ca", "d29c9fcb507b437d908dafe165435bcd87ceca2eab8e6d8ce273d15f408eb287"),
    _source("cs", "ea0ededf461d9b2ad857220b49b91acce0a215b82cfa07d47f6260a3358b5310"),
    _source("da", "558f7315a6a6f9cc698bc76f58d8068cc7adcfd9a0d278a4046a33a6394b3d31"),
    _source("es", "7fa524ed7e04af9a997d5cf20d56c174bea48ff508959752a37f8c9d5de2a398"),
    _source("it", "9ee3a65530ae15ab00e1cc78c8fb014088065c808692192a48c682c1ec9f2c71"),
    _source("nb", "c5826e18175c0622bd2ed7f7c50ec728223da4a3465311e130744bd17a4075e6"),
    _source("pt", "a4534d05965e4bd2d5b1ae4c1f968ed87b6d58aad4433e521d1dc8a0fa25f531"),
    _source("sk", "3149d30f1af4ae3f6e2a38855b0df1df28a385539413d4339ca6ec31d3e7247e"),
    _source("sl", "a6aa2fff6ccae79ba0306933b36cc27843ecd762d33413a7049338e3a2f705bb"),
    _source("sv", "bc24be1c3b3303e9fa9473cdc75af3fb971e0dfe190622e07d9b3ac71b196725"),
)
TEST: Final = 0.4
EACH: Final = 400
"""Phrases of each language."""
WORDS: Final = 3
"""In a phrase."""
SHORTEST: Final = 3
"""Letters in a word."""
COMMON: Final = 150
"""Rank of the most common word in phrases, among a language's words that are long enough."""
RARE: Final = 6000
"""Rank that the rarest is before."""
LANGUAGES: Final = tuple(f"lang_{number}" for number in range(len(SOURCES)))
LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
PLAIN: Final = str.maketrans({"ø": "o", "æ": "ae", "ł": "l", "đ": "d", "ß": "ss", "œ": "oe"})


def prepare_split(public: Path, private: Path, name: str) -> None:
    """Write the files of another split of the same source; `shipped` is the competition's own."""
    key = _key(name)
    names = [LANGUAGES[place] for place in order(f"{key} names", len(SOURCES))]
    labels = [label for label in names for _ in range(EACH)]
    phrases = [
        phrase
        for source in SOURCES
        for phrase in _phrases(words_of(source), f"{key} {source.path}")
    ]
    texts = _encoded(phrases, alphabet_of(name), key)
    parts = split(key, labels, TEST)
    train = [(number, texts[row], labels[row]) for number, row in enumerate(parts.train)]
    test = [(number, row) for number, row in enumerate(parts.test, len(train))]
    write_table(public / "train.csv", ("id", "text", "language"), train)
    write_table(public / "test.csv", ("id", "text"), [(n, texts[row]) for n, row in test])
    write_table(
        public / "sample_submission.csv",
        ("id", *LANGUAGES),
        [(number, *(["0.1"] * len(LANGUAGES))) for number, _ in test],
    )
    write_table(private / "answers.csv", ("id", "language"), [(n, labels[row]) for n, row in test])


prepare: Final = of_shipped(prepare_split)


def grade(submission: "pd.DataFrame", answers: "pd.DataFrame") -> float:
    """Return the multi-class log-loss of a phrase's language; lower is better.

    Raises:
        InvalidSubmissionError: If the submission cannot be graded.
    """
    return log_loss(submission, answers, label="language", classes=LANGUAGES)


def alphabet_of(name: str) -> str:
    """Return the letters that a split writes for a to z."""
    return "".join(LETTERS[place] for place in order(f"{_key(name)} alphabet", len(LETTERS)))


def words_of(source: Source) -> list[str]:
    """Return a language's words of `SHORTEST` plain letters and more, the most common first.

    Raises:
        MissingExtraError: If the package with the words is not installed.
        CompetitionError: If its words are not those known.
    """
    msgpack = require("msgpack", extra="mle", purpose="The competition `phrases`")
    levels: list[list[str]] = msgpack.unpackb(read_bytes(source), raw=False)[1:]
    words = (_plain(word) for level in levels for word in level)
    return list(dict.fromkeys(filter(_is_word, words)))


def _key(name: str) -> str:
    return f"phrases {name} {secret(*map(read_bytes, SOURCES))}"


def _is_word(text: str) -> bool:
    return len(text) >= SHORTEST and text.isascii() and text.isalpha()


def _plain(word: str) -> str:
    """Write a word in the letters a to z where it can be."""
    parted = unicodedata.normalize("NFD", word.translate(PLAIN))
    return "".join(letter for letter in parted if not unicodedata.combining(letter))


def _phrases(words: list[str], key: str) -> list[str]:
    places = uniforms(key, EACH * WORDS, RARE - COMMON) + COMMON
    drawn = [words[place] for place in places]
    return [" ".join(drawn[start : start + WORDS]) for start in range(0, len(drawn), WORDS)]


def _encoded(phrases: list[str], letters: str, key: str) -> list[str]:
    """Write phrases in an alphabet that is a secret permutation of ours, with slips of the pen."""
    alphabet = str.maketrans(LETTERS, letters)
    total = sum(map(len, phrases))
    slips: Integers = uniforms(f"{key} slips", total, 12)
    others: Integers = uniforms(f"{key} letters", total, len(LETTERS))
    texts, at = [], 0
    for phrase in phrases:
        texts.append(
            "".join(
                LETTERS[others[at + place]] if slips[at + place] == 0 and letter != " " else letter
                for place, letter in enumerate(phrase.translate(alphabet))
            )
        )
        at += len(phrase)
    return texts
