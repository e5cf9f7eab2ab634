"""What somebody would earn who holds the source and looks the test's rows up in it.

Each attack is given more than an agent would have: it knows which columns, classes and scales
belong together, and its settings are those that score best on the test itself. Where one beats
gold all the same, the competition rests on its source not being importable in the sandbox.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from boards.contests import Contest, Data, Floats
from langgraft.environments.competitions.competition import DECIMALS
from langgraft.environments.competitions.shipped.denoising import prepare as denoising
from langgraft.environments.competitions.shipped.digits import prepare as digits
from langgraft.environments.competitions.shipped.making import (
    SHIPPED,
    UNIT,
    View,
    look,
    read_bytes,
    read_picture,
)
from langgraft.environments.competitions.shipped.phrases import prepare as phrases
from langgraft.environments.competitions.shipped.textures import prepare as textures
from langgraft.environments.competitions.shipped.visits import prepare as visits
from langgraft.environments.competitions.shipped.weather import prepare as weather

NEIGHBORS = (1, 2, 3, 5, 10, 20, 50)
TRUST = (0.5, 0.7, 0.9, 0.99)
"""How much of the probability goes to what neighbors say; the rest to how often classes are."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """What looking the test's rows up in the source comes to."""

    joined: float
    """Share of the test's rows that are found in the source exactly."""
    score: float
    """The best over the settings of the attack, chosen with the answers at hand."""
    how: str


def nearest(source: Floats, rows: Floats) -> NDArray[np.int64]:
    """Return the source's rows by distance, nearest first, for each row."""
    distance = (source**2).sum(axis=1) - 2 * rows @ source.T
    few = np.argpartition(distance, most := max(NEIGHBORS), axis=1)[:, :most]
    places = np.argsort(np.take_along_axis(distance, few, axis=1), axis=1, kind="stable")
    return np.take_along_axis(few, places, axis=1)


def best(contest: Contest, data: Data, predictions: Iterable[Floats]) -> float:
    """Return the best score of predictions."""
    scores = [contest.score(contest.losses(each, data)) for each in predictions]
    return round(min(scores) if contest.lower_is_better else max(scores), DECIMALS)


def votes(neighbors: NDArray[np.int64], labels: NDArray[np.int64]) -> Iterable[Floats]:
    """Return probabilities from the classes of neighbors, by their number and by trust."""
    classes = int(labels.max()) + 1
    usual = np.bincount(labels, minlength=classes) / len(labels)
    for count in NEIGHBORS:
        seen = labels[neighbors[:, :count]]
        share = (seen[:, :, None] == np.arange(classes)).mean(axis=1)
        for trust in TRUST:
            yield trust * share + (1 - trust) * usual


def joined(source: Floats, rows: Floats) -> float:
    """Return the share of rows whose values all equal those of a source's row."""
    known = {row.tobytes() for row in np.round(source, 3) + 0.0}
    return float(np.mean([row.tobytes() in known for row in np.round(rows, 3) + 0.0]))


def attack(contest: Contest, data: Data) -> LookUp:
    """Look the test of the split that ships up in its source."""
    return _ATTACKS[contest.id](contest, data)


def _visits(contest: Contest, data: Data) -> LookUp:
    lines = list(csv.DictReader(read_bytes(visits.SOURCE).decode().splitlines()))
    number: Callable[[str], Floats] = lambda name: np.array([float(each[name]) for each in lines])  # noqa: E731
    health = number("hlthg") + 2 * number("hlthf") + 3 * number("hlthp")
    level = np.unique(number("lncoins"), return_inverse=True)[1]
    limited = number("physlm") >= 0.5
    source = np.column_stack(
        [level, number("idp"), limited, health, number("lpi"), number("fmde"), number("disea")]
    )
    table = data.test
    said = table["health"].map({"excellent": 0, "good": 1, "fair": 2, "poor": 3})
    names = ["plan_level", "deductible", "limited"]
    blurred = ["incentive", "spending_cap", "illness"]
    rows = np.column_stack([table[names], said, table[blurred]]).astype(np.float64)
    scale = np.array([10, 10, 10, 10, 1 / 0.3, 1 / 0.3, 1 / 1.2])
    near = nearest(source * scale, rows * scale)
    known = np.log1p(number("mdvis"))
    means = (known[near[:, :count]].mean(axis=1) for count in NEIGHBORS)
    return LookUp(joined(source, rows), best(contest, data, means), "nearest rows by all columns")


def _weather(contest: Contest, data: Data) -> LookUp:
    days = list(csv.DictReader(read_bytes(weather.SOURCE).decode().splitlines()))
    month = np.array([int(day["date"][5:7]) + int(day["date"][8:]) / 31 for day in days])
    rain = np.array([float(day["precipitation"]) for day in days])
    wet = np.searchsorted([most for _, most in weather.WETNESS], rain)
    columns = [[float(day[name]) for day in days] for name in ("temp_max", "temp_min", "wind")]
    source = np.column_stack([month // 1, *columns, wet])
    table = data.test
    said = table["wetness"].map({word: place for place, (word, _) in enumerate(weather.WETNESS)})
    rows = np.column_stack([table[["month", "warmest", "coldest", "wind"]], said]).astype(float)

    def spread(values: Floats, months: Floats) -> Floats:
        turn = 2 * np.pi * (months - 1) / 12
        place = np.column_stack([np.sin(turn), np.cos(turn)]) / 0.48  # 28 days of noise
        return np.column_stack([place, values[:, 1:] * [1 / 6, 1 / 4.8, 1 / 1.5, 10]])

    near = nearest(spread(source, month), spread(rows, rows[:, 0] + 0.5))
    labels = np.array([weather.KINDS.index(day["weather"]) for day in days])
    score = best(contest, data, votes(near, labels))
    return LookUp(joined(source, rows), score, "nearest days by all columns")


def _digits(contest: Contest, data: Data) -> LookUp:
    lines = [line.split(",") for line in read_bytes(digits.SOURCE).decode().split()]
    values = np.array([[round(float(value)) for value in line] for line in lines])
    sources, labels = values[:, :-1].reshape(-1, 8, 8), values[:, -1]
    middle = 2 * UNIT + 7 * UNIT // 2
    drawn = np.stack(
        [
            look(np.pad(source, 2), View(middle, middle, angle, 600), digits.SIZE)
            for angle in range(-4, 5, 2)
            for source in sources
        ]
    )
    near = nearest(_evened(drawn), _evened(data.test))
    score = best(contest, data, votes(near, np.tile(labels, 5)))
    pooled = data.test.reshape(-1, 8, 2, 8, 2).mean(axis=(2, 4)).reshape(-1, 64)
    found = joined(sources.reshape(-1, 64).astype(float), np.rint(pooled / 255 * 16))
    return LookUp(found, score, "nearest of all source digits, turned by five angles")


def _textures(contest: Contest, data: Data) -> LookUp:
    surfaces = [read_picture(source) for source in textures.SOURCES]
    test = _evened(data.test)
    likeness = np.column_stack(
        [
            np.max([(test @ part.T).max(axis=1) for part in _windows(surface, range(0, 72, 6))], 0)
            for surface in surfaces
        ]
    )
    predictions = (np.exp(sharp * likeness) for sharp in (1, 3, 5, 10, 20, 40, 80))
    score = best(contest, data, predictions)
    found = _verbatim(data.test, surfaces)
    return LookUp(found, score, "likest window of each surface, steps of 10 pixels and 30 degrees")


def _denoising(contest: Contest, data: Data) -> LookUp:
    pictures = [read_picture(source) for source in denoising.SOURCES]
    test = _evened(data.test)
    likeness = np.full(len(test), -1.0)
    windows = np.zeros_like(test)
    for picture in pictures:
        for part in _windows(picture, range(0, 72, 18), denoising.SIZE):
            found = test @ part.T
            place = found.argmax(axis=1)
            value = found[np.arange(len(test)), place]
            better = value > likeness
            likeness[better], windows[better] = value[better], part[place[better]]
    flat = data.test.reshape(len(test), -1)
    spread = (flat - flat.mean(axis=1, keepdims=True)) * windows
    predicted = flat.mean(axis=1, keepdims=True) + windows * spread.sum(axis=1, keepdims=True)
    score = best(contest, data, [predicted.ravel()])
    how = "likest upright window of all pictures, steps of 10 pixels and 90 degrees"
    return LookUp(_verbatim(data.test, pictures), score, how)


def _phrases(contest: Contest, data: Data) -> LookUp:
    lists = [set(phrases.words_of(source)[: phrases.RARE]) for source in phrases.SOURCES]
    found = np.mean([any(set(text.split()) <= known for known in lists) for text in data.test])
    predictions = _by_words(data, lists, lambda text: text)
    return LookUp(float(found), best(contest, data, predictions), "words in each language's list")


def solved_alphabet(contest: Contest, data: Data) -> float:
    """Return what words' lists would earn to somebody who has found out the secret alphabet."""
    lists = [set(phrases.words_of(source)[: phrases.RARE]) for source in phrases.SOURCES]
    back = str.maketrans(phrases.alphabet_of(SHIPPED), phrases.LETTERS)
    return best(contest, data, _by_words(data, lists, lambda text: text.translate(back)))


def _by_words(data: Data, lists: list[set[str]], read: Callable[[str], str]) -> Iterator[Floats]:
    """Count words that are in each language's list; which language is which is learned."""

    def counts(texts: Any) -> Floats:
        return np.array(
            [
                [sum(word in known for word in read(text).split()) for known in lists]
                for text in texts
            ],
            dtype=np.float64,
        )

    seen, test = counts(data.train), counts(data.test)
    labels = data.labels
    matched = np.array([seen[labels == label].sum(axis=0) for label in range(10)]).argmax(axis=1)
    for sharp in (0.0, 0.1, 0.3, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0):
        yield np.exp(sharp * test[:, matched])


def _evened(pictures: Any) -> Floats:
    """Return pictures as rows of mean 0 and length 1."""
    flat = np.asarray(pictures, dtype=np.float64).reshape(len(pictures), -1)
    centered = flat - flat.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centered, axis=1, keepdims=True)
    scaled: Floats = centered / np.maximum(length, 1e-9)
    return scaled


def _windows(picture: Any, angles: range, size: int = textures.SIZE) -> Iterator[Floats]:
    """Return windows of a picture in steps of 10 pixels, angle by angle."""
    reach = size * 3 // 4
    height, width = picture.shape
    for angle in angles:
        yield _evened(
            [
                look(picture, View(row * UNIT, column * UNIT, angle), size)
                for row in range(reach, height - reach, 10)
                for column in range(reach, width - reach, 10)
            ]
        )


def _verbatim(test: Floats, pictures: list[Any]) -> float:
    """Return the share of the test's pictures of which a row of pixels is in the source as it is.

    Rows of one shade are left out: they are in every picture.
    """
    sources = [picture.tobytes() for picture in pictures]

    def is_there(window: Floats) -> bool:
        rows = window.astype(np.uint8)
        varied = [row.tobytes() for row in rows if row.min() < row.max()]
        return any(row in source for row in varied for source in sources)

    return float(np.mean([is_there(window) for window in test]))


_ATTACKS: Final[Mapping[str, Callable[[Contest, Data], LookUp]]] = {
    "visits": _visits,
    "weather": _weather,
    "digits": _digits,
    "textures": _textures,
    "denoising": _denoising,
    "phrases": _phrases,
}
