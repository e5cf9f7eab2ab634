"""From the log to everything the report says, and nothing from anywhere else.

First, what RR and NL would be if memory did nothing. The split into solved and failed items rests on a few
noisy runs. Items that were lucky in them count as solved and are less lucky the next time, so that without
any memory RR is below 100 % and NL above 0 % (regression to the mean, evaluation §2.2). Two values say by
how much:

measured   RR and NL of the re-run of the baseline, on the same split
expected   from the baseline alone: what a fresh run would score, if the chances of success are
           spread over items as the beta-binomial distribution says that fits the runs best
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.lazy import require
from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast, difference_of
from langgraft.benchmarks.comparison.estimates import Matrix
from langgraft.benchmarks.comparison.outcomes import Metric, Scores, differences_of
from langgraft.benchmarks.comparison.verdicts import MARGIN, Gate, State
from langgraft.benchmarks.continual import contrasts
from langgraft.benchmarks.continual.cases import Case, choose_cases
from langgraft.benchmarks.continual.cells import (
    BASELINE,
    RERUN,
    Banks,
    Cell,
    CellKey,
    PairLog,
    RunResults,
    StudyLog,
    domains,
    read_study_log,
)
from langgraft.benchmarks.continual.contrasts import ContentContrast
from langgraft.benchmarks.continual.costs import (
    BankSize,
    Cost,
    Distillation,
    NodeCost,
    bank_sizes,
    costs,
    costs_by_node,
    distillations,
)
from langgraft.benchmarks.continual.curves import (
    Dilution,
    LearningCurve,
    Milestone,
    Online,
    Regret,
    dilution,
    learning_curves,
    milestones,
    online,
    regrets,
)
from langgraft.benchmarks.continual.mechanisms import Explanations, explain
from langgraft.benchmarks.continual.metrics import (
    IDENTITY_TOLERANCE,
    SMALLEST_SUBSET,
    Decomposition,
    Direction,
    Partition,
    Retention,
    Transfer,
    accuracy,
    decompositions,
    metric_of,
    outcomes_of,
    partition,
    retentions,
    subsets_of,
    transfers,
    unless_small,
)
from langgraft.benchmarks.continual.probes import Crossing, Remedy, crossings, remedies
from langgraft.benchmarks.continual.retrieval import (
    CellRetrieval,
    CrossRecall,
    FirstRecall,
    cross_recalls,
    first_recalls,
    retrievals,
)
from langgraft.benchmarks.continual.sequences import (
    Mixed,
    SequenceResult,
    mixtures,
    sequence_results,
)
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting import findings
from langgraft.benchmarks.reporting.words import plain, points, several


@dataclass(frozen=True, slots=True)
class Null:
    """RR and NL of one task without any memory."""

    task: str
    measured_rr: Metric | None
    """Of the re-run; `None` where the plan has none."""
    measured_nl: Metric | None
    expected_rr: float | None
    """By the beta-binomial fit: no interval."""
    expected_nl: float | None


@dataclass(frozen=True, slots=True)
class BeyondNull:
    """RR and NL of one cell, less what they are without memory."""

    retention: Retention
    null: Null
    rr: Metric | None
    """Less that of the re-run, paired by item and replicate; `None` without a re-run."""
    nl: Metric | None

    @property
    def rr_expected(self) -> float | None:
        """RR less the expected one: no interval, for the expected one has none."""
        return _less(self.retention.rr, self.null.expected_rr)

    @property
    def nl_expected(self) -> float | None:
        """NL less the expected one."""
        return _less(self.retention.nl, self.null.expected_nl)


def _less(measured: Metric, expected: float | None) -> float | None:
    if measured.estimate is None or expected is None:
        return None
    return measured.estimate.value - expected


def null_values(study: StudyLog, partitions: Mapping[str, Partition]) -> tuple[Null, ...]:
    """Return RR and NL of each task without any memory."""
    return tuple(_null(study, split) for split in partitions.values())


def _null(study: StudyLog, split: Partition) -> Null:
    rerun = study.cells.get(CellKey(RERUN, "", split.task))
    scores = study.cells[CellKey(BASELINE, "", split.task)].scores
    rr, nl = (expected(scores, subset) for subset in (split.solved, split.failed))
    return Null(
        task=split.task,
        measured_rr=None if rerun is None else unless_small(accuracy(rerun, split.solved)),
        measured_nl=None if rerun is None else unless_small(accuracy(rerun, split.failed)),
        expected_rr=rr if len(split.solved) >= SMALLEST_SUBSET else None,
        expected_nl=nl if len(split.failed) >= SMALLEST_SUBSET else None,
    )


def expected(baseline: Scores, subset: frozenset[str]) -> float | None:
    """Return what a fresh run without memory would score on a subset of the split.

    Chances of success are taken to follow a beta distribution; its two parameters are those under
    which the successes of all items are likeliest. An item with `x` successes in `r` runs then has a
    chance of `(a + x) / (a + b + r)`, whatever subset it is in. With three to five runs this is within
    three points of the truth where scoring each run on the split of the others is off by up to ten
    (docs/statistics.md).

    Returns:
        `None` without two runs, or without an item of the subset.
    """
    outcomes: dict[str, list[float]] = {}
    for run in baseline.values():
        for item, outcome in run.items():
            outcomes.setdefault(item, []).append(outcome)
    rows = {item: (sum(each), len(each)) for item, each in sorted(outcomes.items())}
    wanted = [rows[item] for item in sorted(subset & rows.keys())]
    if not wanted or max(runs for _, runs in rows.values()) < 2:  # noqa: PLR2004  (nothing to fit)
        return None
    a, b = _beta(np.array(list(rows.values())))
    return float(np.mean([(a + x) / (a + b + runs) for x, runs in wanted]))


def _beta(rows: Matrix) -> tuple[float, float]:
    """Fit the parameters of the beta distribution to successes and runs of items."""
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    betabinom: Any = require("scipy.stats", extra="bench", purpose="The analysis").betabinom

    def unlikely(logs: Matrix) -> float:
        return -float(betabinom.logpmf(rows[:, 0], rows[:, 1], *np.exp(logs)).sum())

    # From e^-5, where items always or never succeed, to e^5, where all have one chance.
    found = optimize.minimize(unlikely, (0.0, 0.0), method="L-BFGS-B", bounds=((-5, 5), (-5, 5)))
    a, b = np.exp(found.x)
    return float(a), float(b)


def beyond_null(
    study: StudyLog,
    partitions: Mapping[str, Partition],
    nulls: Sequence[Null],
    retentions: Sequence[Retention],
) -> tuple[BeyondNull, ...]:
    """Put RR and NL of every cell beside what they are without memory."""
    by_task = {null.task: null for null in nulls}
    reruns = {task: study.cells.get(CellKey(RERUN, "", task)) for task in partitions}
    less = [dict(_beyond(study, reruns, subsets, retentions)) for subsets in subsets_of(partitions)]
    return tuple(
        BeyondNull(each, by_task[each.key.task], *(found.get(each.key) for found in less))
        for each in retentions
    )


def _beyond(
    study: StudyLog,
    reruns: Mapping[str, Cell | None],
    subsets: Mapping[str, frozenset[str]],
    retentions: Sequence[Retention],
) -> Iterator[tuple[CellKey, Metric]]:
    """Compare every cell with the re-run on a subset of its task, as one family."""
    keys = [each.key for each in retentions if each.key.condition != RERUN]
    pairs = [(study.cells[key], rerun) for key in keys if (rerun := reruns[key.task]) is not None]
    items = [subsets[cell.key.task] for cell, _ in pairs]
    found = differences_of([(cell.scores, rerun.scores) for cell, rerun in pairs], items)
    for pair, subset, estimate in zip(pairs, items, found, strict=True):
        yield pair[0].key, unless_small(metric_of(estimate, pair, len(subset)))


@dataclass(frozen=True)
class Analysis:
    """What a continual study shows."""

    study: StudyLog
    manifest: Mapping[str, JSON]
    domains: Mapping[str, str]
    """Task → domain, such as `babyai/find_obj`."""
    baseline: tuple[tuple[str, Metric], ...]
    """Accuracy without memory, per task, over all runs without memory, the re-run's included."""
    partitions: Mapping[str, Partition]
    transfers: tuple[Transfer, ...]
    sequences: tuple[SequenceResult, ...]
    """The accuracy matrix of sequences of more than two tasks, and what is read off it."""
    mixtures: tuple[Mixed, ...]
    decompositions: tuple[Decomposition, ...]
    retentions: tuple[Retention, ...]
    nulls: tuple[Null, ...]
    beyond_null: tuple[BeyondNull, ...]
    """`retentions`, beside what they are without memory."""
    retrievals: tuple[CellRetrieval, ...]
    cross_recalls: tuple[CrossRecall, ...]
    """What came of retrieving first from the own task, and from the other one."""
    first_recalls: tuple[FirstRecall, ...]
    """Which keys each forward transfer hangs on."""
    dilution: Dilution
    crossings: tuple[Crossing, ...]
    remedies: tuple[Remedy, ...]
    cases: tuple[Case, ...]
    """Episodes to show in full."""
    comparison: Comparison
    """Every memory and control against no memory."""
    accuracies: Mapping[str, tuple[tuple[str, Metric], ...]]
    """Condition → its accuracy on each task, over all sequences in which that is tested."""
    content: tuple[ContentContrast, ...]
    curves: tuple[LearningCurve, ...]
    online: tuple[Online, ...]
    """Success in training beside that without memory, where a plan asks for it."""
    regrets: tuple[Regret, ...]
    milestones: tuple[Milestone, ...]
    costs: tuple[Cost, ...]
    costs_by_node: tuple[NodeCost, ...]
    banks: tuple[BankSize, ...]
    distillations: tuple[Distillation, ...]
    """What became of the lessons of training."""
    gates: tuple[Gate, ...]

    @property
    def generated(self) -> bool:
        """Whether the games were made here, and are none of ALFWorld's."""
        return any(domain.startswith(GENERATED) for domain in self.domains.values())

    @property
    def verdicts(self) -> str:
        """What came of each memory, in a paragraph."""
        return findings.verdicts(self.family)

    @property
    def control_findings(self) -> str:
        """What the controls show."""
        return findings.control_findings(self.comparison)

    @property
    def gate_findings(self) -> str:
        """Which checks of the study did not pass."""
        return findings.gate_findings(self.gates)

    @property
    def summary(self) -> str:
        """The findings in a paragraph."""
        return findings.summary(self.comparison)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The findings, one sentence per condition."""
        return tuple(findings.sentence(contrast) for contrast in self.family)

    @property
    def explanations(self) -> Explanations:
        """What retrieval, dilution, probes and remedies show, in words."""
        return explain(
            *(self.retrievals, self.dilution, self.crossings, self.remedies),
            self.cross_recalls,
            first=self.first_recalls,
        )

    def first_recall(self, row: Transfer) -> FirstRecall | None:
        """Return what a transfer's tests recall first; `None` of backward ones, and of controls."""
        return next((each for each in self.first_recalls if each.transfer == row), None)

    @property
    def family(self) -> tuple[Contrast, ...]:
        """The confirmatory contrasts."""
        return self.comparison.family

    @property
    def beside(self) -> tuple[Contrast, ...]:
        """Contrasts outside the family: the re-run, then the controls."""
        return self.comparison.beside

    def rows(self, direction: Direction, sequence: str) -> tuple[Transfer, ...]:
        """Return the rows of one transfer table."""
        return tuple(
            row for row in self.transfers if row.direction == direction and row.sequence == sequence
        )


def analyze(log: PlanLogReader, margin: float = MARGIN) -> Analysis:
    """Analyze the log of a continual study, finished or under way.

    Args:
        log: The log.
        margin: Difference up to which a control counts as equivalent to no memory; the plan's.

    Raises:
        InputError: The log holds no baseline.
    """
    study = read_study_log(log)
    if BASELINE not in study.conditions:
        msg = "the plan has no baseline without memory: there is nothing to compare with"
        raise InputError(msg)
    tasks = sorted({key.task for key in study.cells})
    partitions = {task: partition(study, task) for task in tasks}
    moved = transfers(study, partitions)
    comparison = contrasts.compare_with_no_memory(study, margin)
    kept = retentions(study, partitions)
    nulls = null_values(study, partitions)
    banks, sizes = Banks(study, log), bank_sizes(study, log)
    retrieved = retrievals(study, banks)
    return Analysis(
        study=study,
        manifest=log.manifest,
        domains=domains(study),
        baseline=contrasts.baseline_accuracies(study),
        partitions=partitions,
        transfers=moved,
        sequences=sequence_results(study, moved),
        mixtures=mixtures(study),
        decompositions=decompositions(study, partitions, moved),
        retentions=kept,
        nulls=nulls,
        beyond_null=beyond_null(study, partitions, nulls, kept),
        retrievals=retrieved,
        cross_recalls=cross_recalls(study, partitions, retrieved),
        first_recalls=first_recalls(study, moved, retrieved),
        dilution=dilution(study, banks, retrieved),
        crossings=crossings(study),
        remedies=remedies(study, retrieved),
        cases=choose_cases(study, retrieved, moved, partitions),
        comparison=comparison,
        accuracies={name: contrasts.accuracies(study, name) for name in study.conditions},
        content=contrasts.content_contrasts(study),
        curves=learning_curves(study),
        online=online(study),
        regrets=regrets(study),
        milestones=milestones(study, partitions),
        costs=costs(study),
        costs_by_node=costs_by_node(study),
        banks=sizes,
        distillations=distillations(study, log, sizes),
        gates=gates(study, log, comparison, moved),
    )


GENERATED = "alfworld-generated/"
"""Beginning of the domains of games that were made here."""


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One line of the table a terminal shows, as text."""

    condition: str
    accuracies: tuple[str, ...]
    """One per task."""
    difference: str
    verdict: str


def summary_table(analysis: Analysis) -> tuple[SummaryRow, ...]:
    """Return the table for a terminal: accuracies, difference against none, verdict."""
    rows = [SummaryRow(BASELINE, _accuracies(analysis.baseline), "", "baseline")]
    rows += [_summary_row(analysis, each, each.verdict) for each in analysis.family]
    rows += [
        _summary_row(analysis, each, _control_verdict(analysis.comparison, each))
        for each in analysis.beside
    ]
    return tuple(rows)


def _summary_row(analysis: Analysis, contrast: Contrast, verdict: str) -> SummaryRow:
    return SummaryRow(
        contrast.condition,
        _accuracies(analysis.accuracies[contrast.condition]),
        "" if contrast.estimate is None else points(contrast.estimate),
        verdict,
    )


def _accuracies(found: tuple[tuple[str, Metric], ...]) -> tuple[str, ...]:
    return tuple("" if m.estimate is None else plain(m.estimate.value) for _, m in found)


def _control_verdict(comparison: Comparison, contrast: Contrast) -> str:
    if contrast.verdict == "incomplete":
        return "incomplete"
    if not contrast.inert:
        return f"control: {contrast.verdict}"
    name = "re-run" if contrast is comparison.rerun else "control"
    return f"{name}: {findings.standing(comparison, contrast)}"


# Checks, those that only this study can make beside those of any (`reporting.findings`) ----------


def gates(
    study: StudyLog, log: PlanLogReader, comparison: Comparison, moved: Sequence[Transfer]
) -> tuple[Gate, ...]:
    """Make all checks of a study, or of one of its pairs."""
    learned = {
        run.replicate for name in study.memories for c in study.final_cells(name) for run in c.runs
    }
    tested = [run for cell in study.cells.values() for run in cell.runs]
    bare = outcomes_of(study.final_cells(BASELINE)).scores
    again = comparison.rerun is not None
    return findings.study_gates(
        log.whole if isinstance(log, PairLog) else log,
        findings.complete_runs(
            ((run.spec, run.results) for run in study.runs),
            lambda _, result: result["task_id"],
            "episodes",
        ),
        splits=findings.disjoint(
            {item for run in study.training for item in run.spec.item_ids},
            {item for run in tested for item in run.spec.item_ids},
        ),
        prompts=findings.constant_prompts(log.manifest),
        grader="A world's own rules end an episode: no answer is read.",
        orders=findings.enough_orders(len(learned), "training order"),
        budgets="There is one room for recalled text, the same in all conditions.",
        utility=_recall_off(tested),
        replicates=(
            findings.no_difference(comparison)
            if again
            else findings.halves(BASELINE, bare, comparison.margin),
        ),
        reading=_read_backwards(study, comparison),
        controls=findings.control_gates(comparison)
        or "The plan has no control that should make no difference.",
        own=(
            identity(moved),
            findings.like_orders(comparison.family),
            same_tests(study),
            training_orders(study),
        ),
    )


def _recall_off(tested: Sequence[RunResults]) -> Gate:
    """Check that memory is tested on frozen banks, of which no memory is the arm with recall off."""
    name = "G6: frozen-store utility"
    moving = [
        run.spec.name for run in tested if run.spec.source is not None and not run.spec.frozen
    ]
    if moving:
        return Gate(name, "failed", f"Memory changes while it is tested, as in {moving[0]}.")
    banks = {run.spec.source for run in tested} - {None}
    told = f"{several(len(banks), 'bank')}, frozen while they are tested; no memory is recall off."
    return Gate(name, "passed" if banks else "open", told)


def _read_backwards(study: StudyLog, comparison: Comparison) -> Gate:
    """Check that no difference depends on the order in which runs and items are read."""
    cells = {
        key: Cell(key, tuple(replace(run, results=run.results[::-1]) for run in cell.runs[::-1]))
        for key, cell in [*study.cells.items()][::-1]
    }
    backwards = StudyLog(cells, study.training[::-1])
    untreated = [
        outcomes_of(backwards.final_cells(name))
        for name in (BASELINE, RERUN)
        if name in study.conditions
    ]
    again: dict[str, float | None] = {}
    for each in comparison.family:
        treated = outcomes_of(backwards.final_cells(each.condition))
        values = difference_of(treated, untreated, paired=False).values
        again[each.condition] = None if values is None else float(values.mean())
    forward = {
        each.condition: None if each.estimate is None else each.estimate.value
        for each in comparison.family
    }
    return verdicts.alike("Order of reading", forward, again)


def identity(transfers: Iterable[Transfer]) -> Gate:
    """Check that FWT and BWT are the weighted sums of ΔRR and ΔNL."""
    rows = list(transfers)
    gaps = [row.identity_gap for row in rows if row.identity_gap is not None]
    name = "Identity"
    if not gaps:
        return Gate(name, "open", "No transfer could be computed yet.")
    wrong = [row for row in rows if row.identity_gap is not None and not row.identity_holds]
    detail = (
        f"transfer = (n_s·ΔRR + n_f·ΔNL) / N holds in {len(gaps) - len(wrong)} of {len(rows)} rows"
        f" to {IDENTITY_TOLERANCE:g}; largest gap {max(gaps):.1e}."
    )
    state: State = "failed" if wrong else "passed" if len(gaps) == len(rows) else "open"
    return Gate(name, state, detail)


def same_tests(study: StudyLog) -> Gate:
    """Check that every evaluation of a task tests the same items."""
    name = "Same test items"
    by_task: dict[str, set[frozenset[str]]] = {}
    for cell in study.cells.values():
        for run in cell.runs:
            by_task.setdefault(cell.key.task, set()).add(frozenset(run.spec.item_ids))
    wrong = [task for task, found in by_task.items() if len(found) > 1]
    if wrong:
        return Gate(
            name, "failed", f"Evaluations of task {', '.join(wrong)} differ in their items."
        )
    sizes = ", ".join(f"{len(next(iter(found)))} of {task}" for task, found in by_task.items())
    return Gate(name, "passed", f"Every evaluation tests the same held-out items: {sizes}.")


def training_orders(study: StudyLog) -> Gate:
    """Check that replicates train on the same items in other orders, alike for all conditions."""
    name = "Training orders"
    streams: dict[tuple[str, int], list[RunResults]] = {}
    for run in study.training:
        streams.setdefault((str(run.spec.factors["task"]), run.replicate), []).append(run)
    if not streams:
        return Gate(name, "open", "Nothing is trained in this plan.")
    if any(len({run.spec.item_ids for run in runs}) > 1 for runs in streams.values()):
        return Gate(name, "failed", "Conditions of one repetition train in different orders.")
    for task in sorted({task for task, _ in streams}):
        orders = [runs[0].spec.item_ids for (each, _), runs in streams.items() if each == task]
        if len({frozenset(order) for order in orders}) > 1:
            return Gate(name, "failed", f"Repetitions train on different items of task {task}.")
        if len(set(orders)) < len(orders):
            return Gate(name, "failed", f"Repetitions share an order of the items of task {task}.")
    replicates = len({replicate for _, replicate in streams})
    return Gate(
        name,
        "passed",
        f"{several(replicates, 'repetition')}, each with an order of its own, shared by all"
        " conditions.",
    )
