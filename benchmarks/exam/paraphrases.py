"""How often rankers find a text that a question asks for in other words.

`python -m langgraft.benchmarks.exam.paraphrases` prints the table of docs/stores-and-rankers.md.

`paraphrases.jsonl` has 200 short texts in ten domains, a question to each that avoids its words
(`paraphrased`), and a second question to 100 of them that repeats some (`overlapping`). Each question
is asked of all 200 texts. The questions were written before any ranker had been run on them: do not
change them to suit a ranker.
"""

import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final, Literal, TypeAlias, get_args

from langgraft.benchmarks.comparison.estimates import proportion
from langgraft.benchmarks.reporting.words import number
from langgraft.memory.rankers import Ranker, tokenize
from langgraft.memory.settings import make_ranker

Kind: TypeAlias = Literal["paraphrased", "overlapping"]

RANKERS: Final[Mapping[str, Mapping[str, Any]]] = {
    "bm25": {"ranker": "bm25"},
    "dense, hashing": {"ranker": "dense", "embeddings": "hashing"},
    "dense, wordllama": {"ranker": "dense", "embeddings": "wordllama"},
    "hybrid, reciprocal ranks": {
        "ranker": "semantic",
        "fusion": "reciprocal ranks",
        "weights": (1, 1),
    },
    "semantic": {"ranker": "semantic"},
}
"""Settings of the rankers in the table, by name."""

DEPTHS: Final = (1, 3)
"""Ranks up to which a text counts as found."""


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """A question, and the text that it asks for."""

    id: str
    domain: str
    kind: Kind
    text: str
    question: str

    @property
    def overlap(self) -> float:
        """Share of the question's different words that are in the text."""
        words = set(tokenize(self.question))
        return len(words & set(tokenize(self.text))) / len(words)


def paraphrases() -> tuple[Paraphrase, ...]:
    """Read the questions that ship with the package."""
    file = resources.files("langgraft.benchmarks.exam").joinpath("paraphrases.jsonl")
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(Paraphrase(**json.loads(line)) for line in lines)


def ranks(ranker: Ranker, questions: Sequence[Paraphrase]) -> list[int]:
    """Return the rank of each question's text among the texts of all questions, from 1.

    A text that is not among the first few has the rank after these.
    """
    texts = list(dict.fromkeys(each.text for each in questions))
    index = ranker.index()
    for place, text in enumerate(texts):
        index.put(text, text, (place,))
    found = []
    for each in questions:
        first = [hit.id for hit in index.search(each.question, limit=DEPTHS[-1])]
        found.append(first.index(each.text) + 1 if each.text in first else DEPTHS[-1] + 1)
    return found


def rows(questions: Sequence[Paraphrase]) -> Iterator[tuple[str, ...]]:
    """Return the table, row by row: hits in percent with Wilson's interval of 95 %."""
    yield ("ranker", *(f"{kind}, first {depth}" for kind in get_args(Kind) for depth in DEPTHS))
    for name, settings in RANKERS.items():
        found = ranks(make_ranker(settings), questions)
        cells = []
        for kind in get_args(Kind):
            own = [rank for rank, each in zip(found, questions, strict=True) if each.kind == kind]
            for depth in DEPTHS:
                share = proportion(sum(rank <= depth for rank in own), len(own))
                value, low, high = (
                    number(each, 1, scale=100) for each in (share.value, share.low, share.high)
                )
                cells.append(f"{value} [{low}, {high}]")
        yield (f"`{name}`" if name in ("bm25", "semantic") else name, *cells)
    medians = [
        statistics.median(each.overlap for each in questions if each.kind == kind)
        for kind in get_args(Kind)
    ]
    shown = (number(median, 0, scale=100) for median in medians)
    yield ("*shared words, median*", *(cell for median in shown for cell in (median, "")))


def markdown(questions: Sequence[Paraphrase]) -> str:
    """Return the table as Markdown."""
    head, *body = rows(questions)
    rule = ("---", *["---:"] * (len(head) - 1))
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, rule, *body))


if __name__ == "__main__":
    sys.stdout.write(markdown(paraphrases()))
