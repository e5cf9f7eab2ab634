"""What rows' places, ids, files' names, sizes and times tell of the answers, and where answers lie."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from boards.contests import Floats
from langgraft.environments.competitions.competition import Competition

LEAST: Final = 0.001
"""Probability below which an association is none of chance."""


def find_traces(competition: Competition, *, draws: int = 999, seed: int = 2605) -> list[str]:
    """Return what gives answers away in a prepared competition, in a line each.

    Args:
        competition: Prepared.
        draws: Permutations that the association of places and answers is held against.
        seed: Of the permutations.
    """
    header, answers = _read(competition.answers)
    ids, truth = [row[0] for row in answers], [row[1] for row in answers]
    _, sample = _read(competition.sample_submission)
    found = []
    if [row[0] for row in sample] != ids:
        found.append("ids of the sample submission are not those of the answers, in their order")
    chance = probability(_by_name(ids, truth), draws=draws, seed=seed)
    if chance < LEAST:
        found.append(f"a row's place tells of its answer: p = {chance:.4f}")
    target = header[1]
    for file in sorted(competition.public_dir.rglob("*.csv")):
        columns, rows = _read(file)
        shared = [name for name in columns[1:] if name == target and rows[0][0] in set(ids)]
        if shared and file != competition.sample_submission:
            found.append(f"{file.name} holds the answers' column `{target}`")
    if len({tuple(row[1:]) for row in sample}) != 1:
        found.append("rows of the sample submission differ")
    pictures = list(competition.public_dir.rglob("*.png"))
    if len({file.stat().st_size for file in pictures}) > 1:
        found.append("pictures' files differ in size")
    if len({file.stat().st_mtime_ns for file in pictures}) > 1:
        found.append("pictures' files differ in time")
    return found


def probability(answers: Sequence[str], *, draws: int, seed: int) -> float:
    """Return how likely neighboring rows agree as much, or places and answers go together as much.

    Two statistics are held against the same permutations of the answers: the squared correlation
    of place and answer, and the mean squared difference of neighbors. The smaller p counts,
    doubled.
    """
    values = _numbers(answers)
    chance = np.random.default_rng(seed)
    seen = np.array([_statistics(values)])
    drawn = np.array([_statistics(chance.permutation(values)) for _ in range(draws)])
    shares = (1 + (drawn >= seen).sum(axis=0)) / (1 + draws)
    return float(min(1.0, 2 * shares.min()))


def _statistics(values: Floats) -> tuple[float, float]:
    places = np.arange(len(values))
    correlation = float(np.corrcoef(places, values)[0, 1])
    return correlation**2, -float(np.mean(np.diff(values) ** 2))


def _numbers(answers: Sequence[str]) -> Floats:
    """Return answers as numbers: their own, by rank, or classes by their order."""
    try:
        numbers = np.array([float(answer) for answer in answers])
    except ValueError:
        return np.unique(answers, return_inverse=True)[1].astype(np.float64)
    return np.unique(numbers, return_inverse=True)[1].astype(np.float64)


def _by_name(ids: Sequence[str], answers: Sequence[str]) -> Sequence[str]:
    """Return one answer for each `<number>` of ids; the mean where there are several."""
    numbers = [name.split("_")[0] for name in ids]
    if len(set(numbers)) == len(numbers):
        return answers
    grouped: dict[str, list[float]] = {}
    for number, answer in zip(numbers, answers, strict=True):
        grouped.setdefault(number, []).append(float(answer))
    return [str(np.mean(values)) for values in grouped.values()]


def _read(file: Path) -> tuple[list[str], list[list[str]]]:
    with file.open(newline="") as lines:
        header, *rows = csv.reader(lines)
    return header, rows
