"""What a comparison shows in plain words, and the checks it must pass before it is worth reading.

What the plan registered comes first; then one sentence per condition and a paragraph for the top; then the
gates that any comparison has (evaluation §2.5). A study adds those that only it can make.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final, cast

import numpy as np

from langgraft._core.canonical import JSON
from langgraft._core.errors import MissingExtraError
from langgraft.benchmarks.comparison.contrasts import (
    Comparison,
    Contrast,
    Difference,
    Judged,
    judge_hypotheses,
)
from langgraft.benchmarks.comparison.estimates import mean_estimate
from langgraft.benchmarks.comparison.outcomes import Scores, in_common
from langgraft.benchmarks.comparison.power import planned_difference
from langgraft.benchmarks.comparison.verdicts import (
    EQUIVALENCE,
    FEWEST_RUNS,
    POWER,
    SIGNIFICANCE,
    Gate,
    Hypothesis,
    State,
    completeness,
    matches,
    sides_of,
)
from langgraft.benchmarks.harness.log import REDO, PlanLog, read_json, run_folder
from langgraft.benchmarks.harness.progress import condition_names
from langgraft.benchmarks.harness.study import BankSource, Plan, PlanLogReader, RunSpec, Study
from langgraft.benchmarks.harness.verify import verify_plan
from langgraft.benchmarks.reporting.words import (
    detectable,
    flat,
    for_these_orders,
    listing,
    number,
    p_value,
    points,
    sample,
    several,
    short,
    signed,
)

_NAMED: Final = 5
"""Entries of a fingerprint that are told one by one."""


# What a plan registers --------------------------------------------------------------------------

EXPLORATORY: Final = (
    "Exploratory: all that follows was not registered. Verdicts there are of contrasts that the study itself"
    " declares; read them as descriptions to be tested anew."
)
UNREGISTERED: Final = "No hypothesis was registered: all results are exploratory."
ELSEWHERE: Final = (
    "Exploratory: what the plan registers, and what came of it, is on the first page."
)


@dataclass(frozen=True)
class Registration:
    """What came of the hypotheses of a plan, for the top of its report."""

    tested: tuple[Judged, ...] = ()
    sha256: str = ""
    """Of the hypotheses, as they stood in the run directory before anything was run."""
    time: str = ""
    label: str = UNREGISTERED
    """What is said of all else."""

    @property
    def note(self) -> str:
        """Say when they were registered, and how they are judged."""
        when = f" at {self.time} (SHA-256 {self.sha256[:12]})" if self.sha256 else ""
        return (
            f"Registered{when}, before anything was run. A hypothesis is supported where the interval that its"
            " family's correction (Holm) leaves lies where it says, refuted where it lies where it says not,"
            " and else undecided."
        )

    @property
    def lines(self) -> tuple[str, ...]:
        """A sentence a hypothesis, and how all else is to be read; nothing where none is registered."""
        if not self.tested:
            return () if self.label is UNREGISTERED else (self.label,)
        return (*map(tested_sentence, self.tested), self.label)


def registration(
    hypotheses: Sequence[Hypothesis],
    manifest: Mapping[str, JSON],
    difference: Callable[[Hypothesis], Difference],
    *,
    doubt: str = "",
) -> Registration:
    """Judge what a plan registers.

    Args:
        hypotheses: The plan's.
        manifest: That of the run directory.
        difference: What a study judges a hypothesis by.
        doubt: Why nothing is claimed, whatever the numbers; empty: nothing stands against it.
    """
    if not hypotheses:
        return Registration()
    tested = judge_hypotheses([(each, difference(each)) for each in hypotheses])
    if doubt:
        tested = tuple(replace(each, verdict="undecided", why=each.why or doubt) for each in tested)
    entry = cast("Mapping[str, JSON]", manifest.get("registered") or {})
    sha256, time = (str(entry.get(name, "")) for name in ("sha256", "time"))
    return Registration(tested, sha256, time, EXPLORATORY)


def tested_sentence(found: Judged) -> str:
    """Say in one sentence what came of a hypothesis."""
    told = f"{found.hypothesis.name}: {found.verdict}"
    if found.why:
        told += f" ({found.why})"
    parts = tested_parts(found)
    numbers = "" if parts is None else f"; found: {parts[0]} {parts[1]} ({parts[2]})"
    return f"{told}. Registered: {found.hypothesis}{numbers}."


def tested_parts(found: Judged) -> tuple[str, str, str] | None:
    """Write the difference, the interval that a hypothesis is judged by, and its level; `None` where there is none."""
    if found.estimate is None or found.interval is None:
        return None
    scale, digits = found.difference.scale, found.difference.digits
    value, low, high = (
        number(each, digits, scale=scale, sign=True)
        for each in (found.estimate.value, *found.interval)
    )
    p = "" if found.p_adjusted is None else f", corrected {p_value(found.p_adjusted)}"
    unit = " pp" if scale == _PERCENT else ""
    return f"{value}{unit}", f"[{low}, {high}]", f"{100 * (1 - found.alpha):.4g} % interval{p}"


_PERCENT: Final = 100.0


def registered_lines(study: Study[Any], plan: Plan, runs: Sequence[RunSpec]) -> Iterator[str]:
    """Say what a plan registers, and what of it could be seen, where its study can say so."""
    hypotheses = plan.hypotheses
    if not hypotheses:
        return
    sizes = Counter(each.family for each in hypotheses)
    cells = [(run, study.cell(run)) for run in runs]
    for each in hypotheses:
        told = f"registered: {each.name}: {each}; family {each.family!r} of {sizes[each.family]},"
        told += f" Holm at {each.alpha:g}, {each.estimator.replace('_', ' ')}"
        treated, bare = (
            [spec for spec, cell in cells if cell and any(matches(p, cell) for p in sides_of(side))]
            for side in (each.treated, each.baseline)
        )
        yield f"{told}; {_planned_reach(study, each, sizes[each.family], treated, bare)}"


def _planned_reach(
    study: Study[Any],
    hypothesis: Hypothesis,
    contrasts: int,
    treated: Sequence[RunSpec],
    baseline: Sequence[RunSpec],
) -> str:
    """Say which true difference would be found four times in five, or which margin held."""
    if study.varying is None or hypothesis.estimator != "general":
        return "what it could see, the study cannot say before it is run"
    assumed: Any = study.varying
    both = hypothesis.direction == "equivalent"  # must be shown on either side
    try:
        found = planned_difference(
            len({item for run in treated for item in run.item_ids}),
            _repetitions(study, treated),
            baseline_runs=_repetitions(study, baseline),
            contrasts=contrasts,
            alpha=hypothesis.alpha,
            power=(1 + POWER) / 2 if both else POWER,
            **assumed,
        )
    except MissingExtraError as error:
        return str(error)
    if math.isinf(found):
        return "with so few items or runs nothing can be seen, however large"
    if hypothesis.direction in {"equivalent", "non_inferior"}:
        told = f"where there is no difference, shown four times in five within {detectable(found)}"
        return told if found <= hypothesis.margin else f"{told}: more than its margin"
    return f"seen four times in five where it is {detectable(hypothesis.margin + found)}"


def _repetitions(study: Study[Any], runs: Sequence[RunSpec]) -> int:
    """Return how often the cell is repeated that is repeated least."""
    counts = Counter(tuple((study.cell(run) or {}).items()) for run in runs)
    return min(counts.values(), default=0)


def sentence(contrast: Contrast) -> str:
    """Say in one sentence what a condition did."""
    name, estimate = contrast.condition, contrast.estimate
    if estimate is None:
        return f"{name} is incomplete: it has no results that can be compared yet."
    these = for_these_orders(estimate)
    numbers = (
        f"{points(estimate)} against no memory ({these}{'; ' if these else ''}{sample(estimate)}"
    )
    corrected = "" if contrast.p_adjusted is None else f", Holm-corrected {_p(contrast)}"
    if contrast.verdict == "incomplete":
        metric = contrast.difference
        return (
            f"{name} is incomplete: {metric.done:,} of {metric.planned:,} episodes have a result."
            f" So far {numbers}); this takes part in no test."
        )
    if contrast.verdict == "unclear":
        doubt = "without one of the runs without memory the verdict would be another"
        return f"What {name} does is unclear, for {doubt}: {numbers}{corrected})."
    if contrast.verdict == "too small":
        return f"What {name} does cannot be told: {numbers}{corrected}).{_power(contrast)}"
    if contrast.verdict != "no detectable difference":
        return f"{_clause([name], contrast.verdict)}: {numbers}{corrected})."
    alone = ""
    if not estimate.low <= 0 <= estimate.high:
        alone = " Taken alone its interval excludes 0; corrected for the others it does not count."
    return f"{name} made no detectable difference: {numbers}{corrected}).{alone}{_power(contrast)}"


def _p(contrast: Contrast) -> str:
    assert contrast.p_adjusted is not None
    return p_value(contrast.p_adjusted)


def _power(contrast: Contrast) -> str:
    if contrast.detectable is None:
        return ""
    if not math.isfinite(contrast.detectable):
        return (
            " With so few items or runs this study cannot detect any difference"
            f" {contrast.condition} may make, however large."
        )
    if contrast.verdict == "too small":
        return (
            f" With so few items or runs only a true difference of {detectable(contrast.detectable)} or"
            " more would have been detected four times in five."
        )
    return (
        f" A true difference of {detectable(contrast.detectable)} would have been detected"
        " four times in five."
    )


def summary(found: Comparison) -> str:
    """Say in a paragraph what the study found."""
    return f"{verdicts(found.family)} {control_findings(found)}".strip()


def verdicts(family: Sequence[Contrast]) -> str:
    """Say what came of each memory, and of which the most."""
    return " ".join(part for part in (_verdicts(family), _extremes(family)) if part)


def control_findings(found: Comparison) -> str:
    """Say what the controls show, and whether chance alone does as much."""
    return " ".join(part for part in (_controls(found), _doubt(found)) if part)


def standing(found: Comparison, control: Contrast) -> str:
    """Say whether a control, or the re-run, is equivalent to no memory; empty where nobody asks."""
    if not control.inert or control.verdict == "incomplete":
        return ""
    words = {True: "equivalent", False: "differs", None: "cannot be told"}
    return words[found.holds(control)]


def gate_findings(gates: Sequence[Gate]) -> str:
    """Name the checks of the study that a reader has to know of: those that did not pass."""
    made = [gate for gate in gates if gate.state != "not applicable"]
    others = [f"“{gate.name}” is {gate.state}" for gate in made if gate.state != "passed"]
    return (
        f"Of {several(len(made), 'check')} {listing(others)}." if others else "All checks passed."
    )


_VERBS: Mapping[str, str] = {
    "helped": "helped",
    "hurt": "hurt",
    "no detectable difference": "made no detectable difference",
    "unclear": "came out unclear",
    "too few runs": "had too few runs for a verdict",
    "too small": "had too few items or runs for a verdict",
}


def _verdicts(family: Sequence[Contrast]) -> str:
    if not family:
        return "The plan has no memory to compare."
    clauses = []
    for verdict in dict.fromkeys((*_VERBS, *(c.verdict for c in family))):
        names = [c.condition for c in family if c.verdict == verdict]
        if names:
            clauses.append(_clause(names, verdict))
    memories = several(len(family), "memory", "memories")
    return f"Of {memories} compared with no memory, {listing(clauses)}."


def _clause(names: Sequence[str], verdict: str) -> str:
    if verdict in _VERBS:
        return f"{listing(names)} {_VERBS[verdict]}"
    if verdict == "incomplete":
        return f"{listing(names)} {'is' if len(names) == 1 else 'are'} incomplete"
    return f"{listing(names)} gave no verdict ({verdict})"


def _extremes(family: Sequence[Contrast]) -> str:
    tested = [c for c in family if c.estimate is not None and c.verdict != "incomplete"]
    found = [c for c in tested if c.verdict in {"helped", "hurt"}]
    if not found:
        return _reach(tested)
    ranked = sorted(found, key=lambda c: c.estimate.value if c.estimate else 0.0)
    clauses = []
    best, worst = ranked[-1], ranked[0]
    if best.verdict == "helped" and best.estimate:
        clauses.append(f"the largest gain is {best.condition}'s, {points(best.estimate)}")
    if worst.verdict == "hurt" and worst.estimate:
        clauses.append(f"the largest loss is {worst.condition}'s, {points(worst.estimate)}")
    text = " and ".join(clauses)
    return f"{text[0].upper()}{text[1:]} of success rate on held-out tasks."


def _reach(tested: Sequence[Contrast]) -> str:
    """Say how large a difference would have had to be, where none was found."""
    known = {c.condition: c.detectable for c in tested if c.detectable is not None}
    blind = [name for name, effect in known.items() if not math.isfinite(effect)]
    able = [effect for effect in known.values() if math.isfinite(effect)]
    if blind and not able:
        return "With so few items or runs this study cannot detect any difference, however large."
    parts = []
    if able:
        others = " for the others" if blind else ""
        parts.append(
            f"True differences of {detectable(max(able))} or more would have been detected"
            f" four times in five{others}."
        )
    if blind:
        verb = "has" if len(blind) == 1 else "have"
        parts.insert(
            0, f"{listing(blind)} {verb} too few items or runs for any difference to be detected."
        )
    return " ".join(parts)


def _controls(found: Comparison) -> str:
    inert = [c for c in found.controls if c.inert and c.verdict != "incomplete"]
    known = [(c, found.holds(c)) for c in inert]
    inside = [_value(c) for c, within in known if within]
    outside = [_value(c) for c, within in known if within is False]
    unclear = [_value(c) for c, within in known if within is None and c.estimate is not None]
    if not (inside or outside or unclear):
        return ""
    clauses = [
        (inside, f"equivalent to no memory within ±{100 * found.margin:.0f} pp"),
        (outside, "different from no memory"),
        (unclear, "neither shown to be equivalent nor to differ"),
    ]
    parts = [
        f"{listing(names)} {'is' if len(names) == 1 else 'are'} {words}"
        for names, words in clauses
        if names
    ]
    return f"Of the controls, {', while '.join(parts)}."


def _doubt(found: Comparison) -> str:
    if found.quiet or found.rerun is None or found.rerun.estimate is None:
        return ""
    differs = "differs from it" if found.quiet is False else "is not shown to be equivalent to it"
    return (
        f"Mind that a mere re-run of the baseline {differs}: {points(found.rerun.estimate)};"
        " differences of that size can be chance."
    )


def _value(contrast: Contrast) -> str:
    assert contrast.estimate is not None
    return f"{contrast.condition} ({signed(contrast.estimate.value)} pp)"


# Gates ------------------------------------------------------------------------------------------

_GATES: Final[Mapping[str, str]] = {
    "splits": "G1: splits",
    "prompts": "G2: prompts",
    "grader": "G3: grader",
    "orders": "G4: orders",
    "budgets": "G5: budgets",
    "utility": "G6: frozen-store utility",
    "replicates": "A/A",
    "controls": "Controls",
}


def study_gates(
    log: PlanLogReader,
    complete: Gate,
    *,
    splits: Gate | str,
    prompts: Gate | str,
    grader: Gate | str,
    orders: Gate | str,
    budgets: Gate | str,
    utility: Gate | str,
    replicates: Sequence[Gate] | str,
    reading: Gate,
    controls: Sequence[Gate] | str,
    own: Sequence[Gate] = (),
) -> tuple[Gate, ...]:
    """List the checks of a study, the same for all (memory-transplants §5, evaluation §2.5).

    Args:
        log: What was committed.
        complete: That every planned item is there exactly once.
        splits: That nothing is tested which a memory learned from.
        prompts: That conditions differ in their memory alone.
        grader: That outcomes are judged rightly.
        orders: That there are several orders.
        budgets: That there are several sizes of recalled blocks.
        utility: That recall on and off are compared on the same bank.
        replicates: That one condition twice is the same.
        reading: That results do not depend on the order in which they are read.
        controls: That what should make no difference makes none.
        own: What only this study checks.

    Of what a study has nothing for, a text in the place of the gate says why.
    """
    given = {
        "splits": splits,
        "prompts": prompts,
        "grader": grader,
        "orders": orders,
        "budgets": budgets,
        "utility": utility,
        "replicates": replicates,
        "reading": reading,
        "controls": controls,
    }
    found = [complete, provenance(log)]
    for name, each in given.items():
        if isinstance(each, str):
            found.append(Gate(_GATES[name], "not applicable", each))
        else:
            found += [each] if isinstance(each, Gate) else each
    return (*found, *own)


def complete_runs(
    read: Iterable[tuple[RunSpec, Sequence[Mapping[str, JSON]]]],
    item_of: Callable[[RunSpec, Mapping[str, JSON]], object],
    what: str = "items",
) -> Gate:
    """Check that every planned item has its result exactly once; losses are named by condition.

    Args:
        read: The runs, each with its results.
        item_of: Which item a result of a run says that it is of; `None`: it does not say.
        what: What items are called.
    """
    counts: list[tuple[RunSpec, int]] = []
    odd: list[str] = []
    for run, found in read:
        told = (item_of(run, each) for each in found)
        items = {str(one or known) for one, known in zip(told, run.item_ids, strict=False)}
        there = len(items & {*run.item_ids})
        counts.append((run, there))
        if there < len(found):
            odd.append(run.name)
    named = condition_names([run for run, _ in counts])
    planned: Counter[str] = Counter()
    losses: Counter[str] = Counter()
    first: dict[str, str] = {}
    for run, there in counts:
        condition = named[run.name]
        planned[condition] += run.length
        if there < run.length:
            losses[condition] += run.length - there
            first.setdefault(condition, f"{run.name} {there}/{run.length}")
    done = sum(there for _, there in counts)
    detail = f"{done:,} of {planned.total():,} {what} in {len(counts):,} runs have a result."
    if odd:
        named_runs = listing(odd[:_NAMED])
        return Gate("Completeness", "failed", f"{detail} Twice, or of another run: {named_runs}.")
    return completeness(
        detail,
        [f"{name} {lost} of {planned[name]}, as in {first[name]}" for name, lost in losses.items()],
    )


def provenance(log: PlanLogReader) -> Gate:
    """Check that plan, hypotheses, runs, banks and code of a run directory are those of its digests."""
    name = "Provenance"
    if not isinstance(log, PlanLog):
        return Gate(name, "not applicable", "The log is no run directory whose files have digests.")
    wrong = [str(finding) for finding in verify_plan(log)]
    starts: dict[BankSource, set[str]] = {}
    for run in log.graph:
        path = run_folder(log.path, run) / "spec.json"
        if run.spec.source is not None and path.exists():
            starts.setdefault(run.spec.source, set()).add(str(read_json(path, REDO).get("bank")))
    wrong += [
        f"runs start from {len(d)} states of {s.run}" for s, d in starts.items() if len(d) > 1
    ]
    held = sorted(cast("Mapping[str, JSON]", log.manifest.get("fingerprints") or {}))
    if wrong:
        return Gate(name, "failed", f"{listing(wrong[:_NAMED])}.")
    entry = log.manifest.get("registered")
    at = f"; hypotheses registered at {entry.get('time')}" if isinstance(entry, Mapping) else ""
    return Gate(
        name,
        "passed",
        f"Plan and runs have the digests of the manifest{at}; {several(len(starts), 'bank')}, each in"
        f" one state wherever a run starts from it; one digest for the whole plan: {listing(held)}.",
    )


def disjoint(built: Collection[str], tested: Collection[str], what: str = "tasks") -> Gate:
    """Check that nothing is tested which a memory learned from."""
    name, shared = _GATES["splits"], sorted({*built} & {*tested})
    told = f"{len({*tested}):,} tested {what}, {len({*built}):,} that banks were built from"
    if not built or not tested:
        return Gate(name, "not applicable", f"{told}: there is nothing to keep apart.")
    if shared:
        return Gate(name, "failed", f"{told}; {len(shared)} in both, such as {shared[0]}.")
    return Gate(name, "passed", f"{told}; none in both.")


def enough_orders(runs: int, what: str) -> Gate:
    """Check that there are as many orders as a verdict takes."""
    state: State = "passed" if runs >= FEWEST_RUNS else "open"
    return Gate(_GATES["orders"], state, f"{several(runs, what)}; a verdict takes {FEWEST_RUNS}.")


def halves(condition: str, scores: Scores, margin: float) -> Gate:
    """Check that two halves of the runs of a condition without memory differ no more than by chance.

    It fails once in a hundred studies by chance alone, and is passed where the halves are equivalent.
    """
    name = f"A/A: halves of {condition}"
    filled = [run for _, run in sorted(scores.items()) if run]
    if len(filled) < 2:  # noqa: PLR2004  (a half has one)
        return Gate(
            name, "not applicable", f"{several(len(filled), 'run')} of {condition}: no halves."
        )
    half = len(filled) // 2
    parts = in_common([dict(enumerate(filled))])[0]
    rows = [[parts[run][item] for run in parts] for item in next(iter(parts.values()), {})]
    if not rows:
        return Gate(name, "open", "The halves have no item in common yet.")
    values = np.array([[fmean(row[:half]) - fmean(row[half:])] for row in rows])
    found = mean_estimate(values, bounds=(-1.0, 1.0), shared_effects=False)
    told = f"{half} of {len(filled)} runs less the others: {points(found)}"
    if found.p < _ALARM:
        return Gate(name, "failed", f"{told}: more than chance does.")
    if found.p_beyond(margin) < SIGNIFICANCE:
        return Gate(name, "passed", f"{told}: equivalent within ±{100 * margin:.0f} pp.")
    return Gate(
        name, "open", f"{told}: neither equivalent within ±{100 * margin:.0f} pp nor different."
    )


_ALARM: Final = 0.01
"""p value below which halves of one condition count as different."""


def no_difference(found: Comparison) -> Gate:
    """Check that the re-run of the baseline is equivalent to the baseline."""
    name = "A/A: re-run"
    if found.rerun is None or found.rerun.estimate is None:
        return Gate(name, "open", "The plan has no re-run of the baseline, or it has no results.")
    told = points(found.rerun.estimate)
    return _equivalence(
        name, found, found.rerun, f"The baseline against itself with other samples: {told}."
    )


def control_gates(found: Comparison) -> tuple[Gate, ...]:
    """Check that each inert control is equivalent to no memory; see `Comparison.holds`."""
    return tuple(_control_gate(found, control) for control in found.controls if control.inert)


def _control_gate(found: Comparison, control: Contrast) -> Gate:
    name = f"A/A: {control.condition}"
    if control.estimate is None:
        return Gate(name, "open", "There are no results.")
    return _equivalence(name, found, control, f"{points(control.estimate)} against no memory.")


def _equivalence(name: str, found: Comparison, contrast: Contrast, detail: str) -> Gate:
    if contrast.verdict == "incomplete" or contrast.estimate is None:
        return Gate(name, "open", f"{detail} Incomplete.")
    margin, held = f"±{100 * found.margin:.0f} pp", found.holds(contrast)
    low, high = contrast.estimate.interval(EQUIVALENCE)
    tests = (
        f"two one-sided tests, p = {contrast.estimate.p_beyond(found.margin):.3f};"
        f" 90 % interval [{signed(low)}, {signed(high)}]"
    )
    if held:
        return Gate(name, "passed", f"{detail} Equivalent within {margin} ({tests}).")
    if held is False:
        return Gate(
            name, "failed", f"{detail} It differs, and may by more than {margin} ({tests})."
        )
    return Gate(
        name, "open", f"{detail} Neither equivalent within {margin} ({tests}) nor different."
    )


def like_orders(family: Sequence[Contrast]) -> Gate:
    """Check the assumption that training orders act alike on all memories.

    Each memory is judged once more with the order effects of the others alone.
    """
    name = "Order effects alike"
    known = [each for each in family if each.verdict_of_others is not None]
    if not known or any(each.verdict in {"too few runs", "incomplete"} for each in known):
        return Gate(name, "open", "It takes three memories, complete, with three runs each.")
    spreads = ", ".join(f"{each.condition} {100 * (each.order_sd or 0):.1f}" for each in known)
    detail = f"Standard deviations of whole runs: {spreads} pp."
    wrong = [
        f"{each.condition} ({each.verdict_of_others})"
        for each in known
        if each.verdict not in {each.verdict_of_others, "unclear"}
    ]
    if wrong:
        return Gate(name, "failed", f"{detail} With those of the others alone: {'; '.join(wrong)}.")
    return Gate(name, "passed", f"{detail} With those of the others alone all verdicts stay.")


def constant_prompts(manifest: Mapping[str, JSON]) -> Gate:
    """Name the one digest that each prompt has for the whole plan, and what else is held.

    A run directory refuses to go on when a fingerprint changes, so one digest per prompt in
    the manifest means one text in every run. Fingerprints are the study's own: they may be
    nested as it likes, and the provenance shows them in full.
    """
    name = _GATES["prompts"]
    fingerprints = cast("Mapping[str, JSON]", manifest.get("fingerprints") or {})
    prompts = fingerprints.get("prompts")
    if not prompts:
        return Gate(name, "open", "The manifest names no prompts.")
    detail = f"One text per prompt in all runs: {_held(prompts)}."
    others = sorted(key for key in fingerprints if key != "prompts")
    if others:
        held = "; ".join(f"{key} {_held(fingerprints[key])}" for key in others)
        detail += f" As constant: {held}."
    return Gate(name, "passed", detail)


def _held(value: JSON) -> str:
    """Write a fingerprint in short, whatever its shape; of many entries only the number."""
    rows = sorted(flat(value))
    if len(rows) > _NAMED:
        return f"({len(rows)} entries)"
    return ", ".join(f"{name} {short(text)}".strip() for name, text in rows)
