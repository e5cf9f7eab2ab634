"""From the log to everything the report says, and nothing from anywhere else."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.benchmarks.comparison import verdicts
from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.comparison.verdicts import MARGIN, Gate, State
from langgraft.benchmarks.continual import contrasts
from langgraft.benchmarks.continual.banks import Banks, domains
from langgraft.benchmarks.continual.cases import Case, choose_cases
from langgraft.benchmarks.continual.cells import BASELINE, RunResults, StudyLog, read_study_log
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
    Decomposition,
    Direction,
    Partition,
    Retention,
    Transfer,
    decompositions,
    partition,
    retentions,
    transfers,
)
from langgraft.benchmarks.continual.nulls import BeyondNull, Null, beyond_null, null_values
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
        gates=(
            completeness(study),
            identity(moved),
            findings.no_difference(comparison),
            findings.like_orders(comparison.family),
            *findings.control_gates(comparison),
            same_tests(study),
            training_orders(study),
            findings.constant_prompts(log.manifest),
        ),
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


# Checks that only this study can make, beside those of any comparison (`reporting.findings`) ----


def completeness(study: StudyLog) -> Gate:
    """Check that every planned episode has a result."""
    runs = list(study.runs)
    done, planned = sum(run.done for run in runs), sum(run.planned for run in runs)
    missing = [
        f"{run.spec.name} {run.done}/{run.planned}" for run in runs if run.done < run.planned
    ]
    detail = f"{done:,} of {planned:,} episodes in {len(runs)} runs have a result."
    return verdicts.completeness(detail, missing)


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
