"""What the analyses of retrieval say, in words: collapse, dilution, crossed probe, remedies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langgraft.benchmarks.continual.dilution import Dilution, Tested
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.continual.probes import Crossing, Effect
from langgraft.benchmarks.continual.remedies import Remedy
from langgraft.benchmarks.continual.retrieval import CellRetrieval
from langgraft.benchmarks.continual.spreads import Spread
from langgraft.benchmarks.continual.wording import (
    TIMES,
    listing,
    percent,
    points,
    sample,
    several,
    spread,
)

CONCENTRATED = 0.80
"""Top-1 concentration from which retrieval counts as collapsed; the paper's case has .885."""
COVERED = 0.06
"""Coverage of the bank up to which it does; the paper's case has .054."""
DILUTED = 0.50
"""Own-task share below which the earlier task counts as diluted."""


def collapsed(cell: CellRetrieval) -> bool | None:
    """Return whether few items serve nearly all queries; `None` where nothing was retrieved."""
    top1, coverage = cell.spread("top1_share"), cell.spread("coverage_bank")
    if top1 is None or coverage is None:
        return None
    return top1.mean >= CONCENTRATED and coverage.mean <= COVERED


@dataclass(frozen=True, slots=True)
class Explanations:
    """What was found, a sentence each; empty where there is nothing to say."""

    collapse: tuple[str, ...]
    dilution: tuple[str, ...]
    probes: tuple[str, ...]
    remedies: tuple[str, ...]


def explain(
    retrievals: Sequence[CellRetrieval],
    dilution: Dilution,
    crossings: Sequence[Crossing],
    remedies: Sequence[Remedy],
) -> Explanations:
    """Say what the analyses of retrieval found."""
    return Explanations(
        tuple(_collapse(retrievals)),
        tuple(_dilution(dilution)),
        tuple(_probes(crossings)),
        tuple(_remedies(remedies)),
    )


def _collapse(retrievals: Sequence[CellRetrieval]) -> Iterator[str]:
    known = [cell for cell in retrievals if cell.key.at is None and collapsed(cell) is not None]
    if not known:
        return
    rule = (
        f"top-1 concentration of at least {100 * CONCENTRATED:.0f} % with a coverage of at most"
        f" {100 * COVERED:.0f} % of the bank"
    )
    found = [cell for cell in known if collapsed(cell)]
    if found:
        named = listing([_place(cell) for cell in found])
        yield f"Retrieval collapsed ({rule}) in {len(found)} of {len(known)} evaluations: {named}."
    else:
        yield f"Retrieval collapsed in none of {several(len(known), 'evaluation')} ({rule})."
    top = max(known, key=lambda cell: _mean(cell.spread("top1_share")))
    queries, shares = top.spread("queries"), top.spread("top1_share")
    coverage = top.spread("coverage_bank")
    assert queries is not None
    yield (
        f"The most concentrated is {_place(top)}: one item is the best for {percent(shares)} of"
        f" the queries, and {percent(coverage)} of the bank are ever retrieved"
        f" (n = {queries.mean:.0f} queries {TIMES} {several(queries.runs, 'run')})."
    )


def _mean(spread: Spread | None) -> float:
    return 0.0 if spread is None else spread.mean


def _place(cell: CellRetrieval) -> str:
    key = cell.key
    return f"{key.condition} tested on {key.task} after {key.sequence.replace('>', '→')}"


def _dilution(dilution: Dilution) -> Iterator[str]:
    tracks: dict[tuple[str, str], list[Tested]] = {}
    for row in dilution.tested:
        tracks.setdefault((row.condition, row.sequence), []).append(row)
    for (condition, sequence), rows in tracks.items():
        last = rows[-1]
        estimate = last.own_share.estimate
        if last.at == 0 or estimate is None or last.bank_share is None:
            continue
        diluted = estimate.value < DILUTED
        yield (
            f"{condition}, {sequence.replace('>', '→')}: after {several(last.at, 'episode')} of"
            f" {sequence[-1]}, {percent(last.bank_share)} of the bank and"
            f" {100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"
            f" of what is retrieved for {last.task} are of {last.task}"
            f" ({sample(estimate)}): {'diluted' if diluted else 'not diluted'}."
        )


def _probes(crossings: Sequence[Crossing]) -> Iterator[str]:
    for crossing in crossings:
        if crossing.task:
            continue
        for effect in crossing.effects:
            yield from _effect(effect)


def _effect(effect: Effect) -> Iterator[str]:
    estimate = effect.difference.estimate
    if estimate is None:
        return
    held = "bank" if effect.factor == "retrieval" else "retrieval"
    changed = "Retrieval" if effect.factor == "retrieval" else "The bank"
    yield (
        f"{changed} of {effect.treated} instead of {effect.baseline}, with the {held} of"
        f" {effect.fixed}: {points(estimate)} ({sample(estimate)}){_open(effect.difference)}."
    )


def _remedies(remedies: Sequence[Remedy]) -> Iterator[str]:
    for row in remedies:
        success, share = row.success.estimate, row.own_share.estimate
        if row.sequence or success is None:
            continue
        banks = "on the same banks" if "@" in row.condition else "on banks of its own"
        diversity, (before, after) = row.context_diversity, row.own_levels
        text = (
            f"{row.condition.partition('@')[0]} against {row.mends}, {banks}:"
            f" {points(success)} of success ({sample(success)}){_open(row.success)}; context"
            f" diversity {spread(diversity.before, 2)} before, {spread(diversity.after, 2)} after"
            f" (n = {_runs(diversity.after)})"
        )
        if share is not None:
            text += (
                f"; own-task share {percent(before)} before, {percent(after)} after,"
                f" {points(share)} ({sample(share)})"
            )
        yield f"{text}."


def _runs(found: Spread | None) -> str:
    return several(0 if found is None else found.runs, "run")


def _open(metric: Metric) -> str:
    """Say that results are missing, where they are."""
    return "" if metric.complete else f", {metric.done:,} of {metric.planned:,} episodes so far"
