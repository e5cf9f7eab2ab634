"""What the analyses of retrieval say, in words: collapse, dilution, crossed probe, remedies."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from langgraft.benchmarks.comparison.outcomes import Metric, Spread
from langgraft.benchmarks.continual.curves import Dilution, Tested
from langgraft.benchmarks.continual.plan import phases
from langgraft.benchmarks.continual.probes import Crossing, Effect, Remedy
from langgraft.benchmarks.continual.retrieval import (
    CellRetrieval,
    CrossRecall,
    FirstRecall,
    Origin,
    Recalled,
)
from langgraft.benchmarks.reporting.words import (
    TIMES,
    interval,
    listing,
    percent,
    plain,
    points,
    sample,
    several,
    signed,
    spread,
    visible,
)

CONCENTRATED = 0.80
"""Top-1 concentration from which retrieval counts as collapsed; the paper's case has .885."""
COVERED = 0.06
"""Coverage of the items retrieved up to which it does; the paper's case has 13 of 240, .054."""
DILUTED = 0.50
"""Own-task share below which the earlier task counts as diluted."""


def collapsed(cell: CellRetrieval) -> bool | None:
    """Return whether few items serve nearly all queries; `None` where nothing was retrieved."""
    top1, coverage = cell.spread("top1_share"), cell.spread("coverage_slots")
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
    transfer: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


def explain(
    retrievals: Sequence[CellRetrieval],
    dilution: Dilution,
    crossings: Sequence[Crossing],
    remedies: Sequence[Remedy],
    origins: Sequence[CrossRecall] = (),
    *,
    first: Sequence[FirstRecall] = (),
) -> Explanations:
    """Say what the analyses of retrieval found."""
    return Explanations(
        tuple(_collapse(retrievals)),
        tuple(_dilution(dilution)),
        tuple(_probes(crossings, {(row.condition, row.mends) for row in remedies})),
        tuple(_remedies(remedies)),
        tuple(explain_transfer(origins)),
        tuple(explain_keys(first)),
    )


_SHOWN_OF_A_KEY = 48
"""Characters of a key that are shown: an instruction whole, an observation's beginning."""


def key_words(recalled: Recalled) -> str:
    """Write a key as words: its beginning in quotes."""
    key = " ".join(recalled.key.split())
    cut = f"{key[:_SHOWN_OF_A_KEY].rstrip()}…" if len(key) > _SHOWN_OF_A_KEY else key
    return f"“{visible(cut)}”"


def hanging(row: FirstRecall) -> str:
    """Say what a forward transfer that hangs on one key hangs on; nothing of others."""
    if not row.hangs or row.without.estimate is None:
        return ""
    key, tests = row.largest, round(row.largest.episodes / row.largest.share.mean)
    of = "one item" if key.items == 1 else f"{key.items} items of one key"
    return (
        f"hangs on {of}, {key_words(key)} of {key.domain}, recalled first in {key.episodes} of"
        f" {tests:,} tests: without them {points(row.without.estimate)}"
    )


def first_words(row: FirstRecall | None) -> str:
    """Say beside a forward transfer what its tests recall first, and whether it hangs on one key."""
    if row is None:
        return ""
    told = f"first {key_words(row.top)}, {plain(row.top.share.mean)} %"
    if not row.hangs or row.without.estimate is None:
        return told
    return (
        f"{told}; hangs on {key_words(row.largest)}: without {signed(row.without.estimate.value)}"
    )


def explain_keys(first: Sequence[FirstRecall]) -> Iterator[str]:
    """Say which forward transfers hang on one key."""
    known = [(row, value) for row in first if (value := row.transfer.transfer.estimate)]
    told = [(row, estimate) for row, estimate in known if estimate.excludes_zero]
    if not known:
        return
    found = [(row, estimate) for row, estimate in told if row.hangs]
    yield (
        f"Of {several(len(known), 'forward transfer')}, {len(told) or 'none'} can be told from 0;"
        f" {len(found) or 'none'} of them {'hangs' if len(found) == 1 else 'hang'} on one key."
    )
    for row, estimate in found:
        place = f"{row.transfer.condition}, {row.transfer.sequence.replace('>', '→')}"
        yield f"{place}: {points(estimate)} {hanging(row)}."


def explain_transfer(origins: Sequence[CrossRecall]) -> Iterator[str]:
    """Say what came of retrieving from the other task, for each memory and sequence."""
    hard = {(row.condition, row.sequence): row for row in origins if row.subset == "hard"}
    known = [row for row in origins if row.subset == "all" and row.other_first is not None]
    apart = [f"{r.condition} {r.sequence.replace('>', '→')}" for r in known if not r.other.episodes]
    if apart:
        yield f"No test begins with an experience of the other task in {listing(apart)}."
    for row in known:
        if not row.other.episodes:
            continue
        yield (
            f"{row.condition}, {row.sequence.replace('>', '→')}: {percent(row.other_first)} of the"
            f" tests of {row.task} retrieve an experience of {_earlier(row)} first:"
            f" {_origins(row)}."
        )
        on_hard = hard.get((row.condition, row.sequence))
        if on_hard is not None and on_hard.other.change is not None:
            yield (
                f"{row.condition}, {row.sequence.replace('>', '→')}, on items failed without"
                f" memory: {_origins(on_hard)}."
            )


def _origins(row: CrossRecall) -> str:
    """Tell how success differs from that after the task alone, by where experience is from."""
    names = ((row.other, _earlier(row)), (row.own, row.task))
    told = [text for origin, name in names for text in _origin(origin, name, row.task)]
    return "; ".join(told)


def _earlier(row: CrossRecall) -> str:
    return " or ".join(phases(row.sequence)[:-1])


def _origin(origin: Origin, name: str, task: str) -> Iterator[str]:
    if origin.success is not None and origin.before is not None and origin.change is not None:
        yield (
            f"with one of {name}, {plain(origin.success.mean)} % succeed, after {task} alone"
            f" {plain(origin.before.mean)} %: {signed(origin.change.mean)} pp"
            f" (n = {several(origin.episodes, 'episode')})"
        )


def _collapse(retrievals: Sequence[CellRetrieval]) -> Iterator[str]:
    known = [cell for cell in retrievals if cell.key.at is None and collapsed(cell) is not None]
    if not known:
        return
    rule = (
        f"top-1 concentration of at least {100 * CONCENTRATED:.0f} %, and distinct items at most"
        f" {100 * COVERED:.0f} % of the items retrieved"
    )
    found = [cell for cell in known if collapsed(cell)]
    if found:
        named = listing([_place(cell) for cell in found])
        yield f"Retrieval collapsed ({rule}) in {len(found)} of {len(known)} evaluations: {named}."
    else:
        yield f"Retrieval collapsed in none of {several(len(known), 'evaluation')} ({rule})."
    top = max(known, key=lambda cell: _mean(cell.spread("top1_share")))
    queries, shares = top.spread("queries"), top.spread("top1_share")
    slots, bank = top.spread("coverage_slots"), top.spread("coverage_bank")
    assert queries is not None
    yield (
        f"The most concentrated is {_place(top)}: one item is the best for {percent(shares)} of"
        f" the queries; distinct items are {percent(slots)} of the items retrieved and"
        f" {percent(bank)} of the bank"
        f" (n = {queries.mean:.0f} queries {TIMES} {several(queries.n, 'run')})."
    )


def _mean(spread: Spread | None) -> float:
    return 0.0 if spread is None else spread.mean


def _place(cell: CellRetrieval) -> str:
    key = cell.key
    return f"{key.condition} tested on {key.task} after {key.sequence.replace('>', '→')}"


def _dilution(dilution: Dilution) -> Iterator[str]:
    last: dict[tuple[str, str], dict[str, Tested]] = {}
    for row in dilution.tested:
        if row.at and row.own_share.estimate is not None:
            last.setdefault((row.sequence, row.task), {})[row.condition] = row
    for (sequence, _), rows in last.items():
        yield _diluted(sequence, list(rows.values()))


def _diluted(sequence: str, rows: Sequence[Tested]) -> str:
    """Name the memories in which a sequence diluted its first task; else the nearest to it."""
    shares = sorted(_own_share(row) for row in rows)
    found = [text for share, text in shares if share < DILUTED]
    told = (
        f"{sequence.replace('>', '→')}: of what is retrieved for {rows[0].task} after"
        f" {several(rows[0].at, 'episode')} of {phases(sequence)[-1]}, less than half is of"
        f" {rows[0].task} in {len(found)} of {several(len(rows), 'memory', 'memories')}"
    )
    return f"{told}: {listing(found)}." if found else f"{told}; the least in {shares[0][1]}."


def _own_share(row: Tested) -> tuple[float, str]:
    """Return a share, to order by, and how it is told."""
    estimate = row.own_share.estimate
    assert estimate is not None
    text = (
        f"{row.condition} with {plain(estimate.value)} % {interval(estimate, difference=False)}"
        f" ({sample(estimate)}; bank {percent(row.bank_share)})"
    )
    return estimate.value, text


def _probes(crossings: Sequence[Crossing], told: Collection[tuple[str, str]]) -> Iterator[str]:
    """Say what each crossing over all tasks shows; what a remedy's own sentence says is left."""
    for crossing in crossings:
        for effect in () if crossing.task else crossing.effects:
            probe = f"{effect.treated}@{effect.fixed}"
            if effect.factor == "pool" or (probe, effect.baseline) not in told:
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
    return several(0 if found is None else found.n, "run")


def _open(metric: Metric) -> str:
    """Say that results are missing, where they are."""
    return "" if metric.complete else f", {metric.done:,} of {metric.planned:,} episodes so far"
