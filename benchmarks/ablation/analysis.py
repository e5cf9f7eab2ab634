"""What an ablation found, from its log and nothing else."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias, cast

from langgraft._core.canonical import JSON
from langgraft._core.texts import in_a_line
from langgraft.benchmarks.ablation.credit import VARIANTS, ItemCredit, credits_of
from langgraft.benchmarks.ablation.plan import NONE, RERUN, AblationPlan, Arm, guard_differences
from langgraft.benchmarks.comparison.contrasts import (
    Comparison,
    Contrast,
    Difference,
    compare_outcomes,
    corrected,
    difference_of,
)
from langgraft.benchmarks.comparison.estimates import (
    Estimate,
    Transitions,
    mean_estimate,
    transitions,
)
from langgraft.benchmarks.comparison.outcomes import (
    Outcomes,
    Pair,
    averaged,
    differences_of,
    matrices,
    matrix_of,
)
from langgraft.benchmarks.comparison.verdicts import (
    ENOUGH,
    FEWEST_RUNS,
    LARGEST,
    Cell,
    Gate,
    GuardDecision,
    Hypothesis,
    alike,
    completeness,
    fixed_pairs,
    guard_decision,
    matches,
    sides_of,
)
from langgraft.benchmarks.harness.progress import Spent, spending
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.reporting.findings import (
    Registration,
    complete_runs,
    control_gates,
    disjoint,
    enough_orders,
    halves,
    no_difference,
    registration,
    study_gates,
)
from langgraft.benchmarks.reporting.words import several

Word: TypeAlias = Literal["helps", "harms", "no detectable difference", "cannot tell", "not tested"]
"""`not tested`: nothing was recalled in any attempt; `cannot tell`: incomplete, too few runs, too few tasks to
find even a difference of half of all tasks, or another verdict without one of the runs of the baseline."""

_COUNTED: Final = ("prompt_tokens", "completion_tokens")
_WORDS: Final[Mapping[str, Word]] = {
    "helped": "helps",
    "hurt": "harms",
    "no detectable difference": "no detectable difference",
}
ACTIVE: Final = frozenset({"random", *VARIANTS})
"""Controls that may well make a difference."""
SHOWN: Final = 6
"""Tasks that a memory gained, and tasks that it lost, that are shown in full."""
_EFFECTS: Final = (LARGEST, 0.3)
"""Differences whose number of test tasks a preview prints."""
_MOST_TASKS: Final = 100_000
_MORE: Final = 1.1
"""How many times the tasks that the power formula asks for: where an agent fails at most tasks and each gains
all or nothing, planted gains were found in 79 % of 400 repeats at its own number."""
_DISCORDANT: Final = 0.2
"""Share of pairs taken to differ, where a guard's length is planned."""

Result: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Changed:
    """A task that is solved in most runs under one condition, and not under the other."""

    task: str
    kind: str
    gained: bool
    run: int
    without: Result
    """The attempt without memory in that run."""
    with_memory: Result


@dataclass(frozen=True, slots=True)
class Split:
    """A part of the attempts: by kind of task, or by what was recalled."""

    name: str
    pairs: int
    difference: Estimate | None
    gained: float
    """Share of pairs that failed without memory and succeeded with it."""
    lost: float
    p_adjusted: float | None = None
    """By kind of task: by Holm over all memories and kinds, a family of its own."""


@dataclass(frozen=True)
class ArmFound:
    """A condition: its attempts, and what they took."""

    arm: Arm
    results: Mapping[int, Mapping[str, Result]]
    """Run → task → result."""
    planned: int

    @property
    def attempts(self) -> list[Result]:
        """All attempts."""
        return [each for run in self.results.values() for each in run.values()]

    @cached_property
    def outcomes(self) -> Outcomes:
        """Its scores, as a comparison reads them."""
        scores = {
            run: {task: float(each["score"]) for task, each in found.items()}
            for run, found in self.results.items()
        }
        done = sum(map(len, scores.values()))
        items = self.planned // max(len(self.results), 1)
        return Outcomes(scores, done, self.planned, items)

    def mean(self, value: str) -> float:
        """Return the mean of a number of attempts: `score`, `tokens`, or one of `usage`."""
        attempts = self.attempts
        if value in _COUNTED:
            used = [each["usage"] for each in attempts]
            told = any(each.get(counted) for each in used for counted in _COUNTED)
            if not told and any(each.get("replies") for each in used):
                return math.nan  # a model of the agent's own need not say what it uses
        numbers = [each["usage"].get(value, each.get(value, 0)) for each in attempts]
        return math.fsum(numbers) / len(numbers) if numbers else math.nan

    @property
    def recalled(self) -> int:
        """Attempts in which something was recalled."""
        return sum(bool(each["recalled"]) for each in self.attempts)

    @property
    def errors(self) -> Counter[str]:
        """What the agent raised, by kind."""
        return Counter(each["error"] for each in self.attempts if each["error"])


@dataclass(frozen=True)
class MemoryFound:
    """What came of one memory."""

    found: ArmFound
    contrast: Contrast
    """All tasks: the effect of giving the agent this memory (intention to treat)."""
    treated: Estimate | None
    """The same over the attempts in which something was recalled (as treated)."""
    treated_pairs: int
    transitions: Transitions | None
    by_kind: tuple[Split, ...]
    by_recall: tuple[Split, ...]
    against: Mapping[str, Estimate | None]
    """Its difference from each of its controls: what relevance and content are worth."""
    changed: tuple[Changed, ...]
    gained: int
    """Tasks solved in most runs with it, and not without."""
    lost: int
    credits: tuple[ItemCredit, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.found.arm.name

    @property
    def word(self) -> Word:
        """The verdict."""
        if self.found.attempts and not self.found.recalled:
            return "not tested"
        return _WORDS.get(self.contrast.verdict, "cannot tell")


@dataclass(frozen=True, slots=True)
class HarmRow:
    """How the agent fares where the item recalled first is in a variant."""

    memory: str
    variant: str
    pairs: int
    """Attempts in which something was recalled as it is."""
    as_is: float
    success: float
    difference: Estimate | None


@dataclass(frozen=True)
class Analysis:
    """All that the verdict page says."""

    plan: AblationPlan
    manifest: Mapping[str, JSON]
    arms: tuple[ArmFound, ...]
    comparison: Comparison | None
    """`None` of a guard."""
    memories: tuple[MemoryFound, ...]
    harm: tuple[HarmRow, ...]
    harm_items: Mapping[tuple[str, str], Mapping[str, float]]
    """Memory and item → variant → success where it was recalled first."""
    guard: GuardDecision | None
    gates: tuple[Gate, ...]
    registration: Registration = field(default_factory=Registration)
    """What came of the hypotheses that the plan registers."""
    spent: tuple[Spent, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether no check failed."""
        return all(gate.state != "failed" for gate in self.gates)


def analyze(plan: AblationPlan, log: PlanLogReader) -> Analysis:
    """Analyze a log, finished or under way."""
    if plan.guard is not None:
        return _guarded(plan, log)
    arms = tuple(_arm(plan, log, arm) for arm in plan.arms())
    by_name = {each.arm.name: each for each in arms}
    family = [each for each in arms if each.arm.has_memory and not each.arm.control]
    controls = [each.arm.name for each in arms if each.arm.control]
    comparison = compare_outcomes(
        {each.arm.name: each.outcomes for each in arms},
        baseline=NONE,
        controls=controls,
        rerun=RERUN if RERUN in by_name else None,
        margin=plan.margin,
        active=[each.arm.name for each in arms if each.arm.control in ACTIVE],
    )
    memories = _with_cells(
        [_memory(each, by_name, comparison[each.arm.name], plan, log) for each in family]
    )
    return Analysis(
        plan=plan,
        manifest=log.manifest,
        arms=arms,
        comparison=comparison,
        memories=memories,
        harm=tuple(_harm(by_name)),
        harm_items=_harm_items(plan, by_name),
        guard=None,
        gates=_gates(plan, log, arms, comparison, memories),
        registration=registration(
            plan.hypotheses, log.manifest, lambda each: hypothesis_difference(each, arms)
        ),
        spent=spending(log),
    )


def _arm(plan: AblationPlan, log: PlanLogReader, arm: Arm) -> ArmFound:
    results = {
        number: {
            str(each["task"]): each
            for each in cast("list[Result]", log.results(f"test {arm.name}/{number}"))
        }
        for number in range(plan.replicates)
    }
    return ArmFound(arm, results, plan.replicates * len(plan.tests))


def _paired(treated: ArmFound, baseline: ArmFound) -> Iterator[tuple[Pair, Result, Result]]:
    """Yield the attempts at the same task in the same run."""
    for run, found in treated.results.items():
        for task, result in found.items():
            other = baseline.results.get(run, {}).get(task)
            if other is not None:
                yield (task, run), result, other


def _mean(values: Mapping[Pair, float]) -> Estimate | None:
    matrix = matrix_of(values)
    return None if matrix is None else mean_estimate(matrix, bounds=(-1.0, 1.0))


def _memory(
    found: ArmFound,
    arms: Mapping[str, ArmFound],
    contrast: Contrast,
    plan: AblationPlan,
    log: PlanLogReader,
) -> MemoryFound:
    none, kinds = arms[NONE], {each.id: each.kind for each in plan.tests}
    pairs = list(_paired(found, none))
    treated = {at: a["score"] - b["score"] for at, a, b in pairs if a["recalled"]}
    both = matrices([found.outcomes.scores, none.outcomes.scores])
    controls = {
        name: arms[f"{found.arm.name}~{name}"]
        for name in plan.controls
        if name not in VARIANTS and f"{found.arm.name}~{name}" in arms
    }
    against = differences_of(
        (found.outcomes.scores, each.outcomes.scores) for each in controls.values()
    )
    changed = _changed(found, none, kinds)
    return MemoryFound(
        found=found,
        contrast=contrast,
        treated=_mean(treated),
        treated_pairs=len(treated),
        transitions=None if both is None else transitions(*both),
        by_kind=_splits((kinds.get(at[0], "") or "(no kind)", at, a, b) for at, a, b in pairs),
        by_recall=_splits((_recall(a), at, a, b) for at, a, b in pairs),
        against=dict(zip(controls, against, strict=True)),
        changed=(
            *[each for each in changed if each.gained][:SHOWN],
            *[each for each in changed if not each.gained][:SHOWN],
        ),
        gained=sum(each.gained for each in changed),
        lost=sum(not each.gained for each in changed),
        credits=_credits(found.arm, log),
    )


def _with_cells(memories: Sequence[MemoryFound]) -> tuple[MemoryFound, ...]:
    """Correct what memories do by kind of task as one family: every memory with every kind."""
    cells = [(each.difference, each.difference is not None) for m in memories for each in m.by_kind]
    adjusted = iter(corrected(cells))
    return tuple(
        replace(m, by_kind=tuple(replace(each, p_adjusted=next(adjusted)) for each in m.by_kind))
        for m in memories
    )


def _recall(result: Result) -> str:
    """Say what was recalled in an attempt, by the kinds of task it was learned on."""
    kinds = {each["of"] for each in result["recalled"]}
    if not kinds:
        return "nothing"
    own = result["kind"] or "tasks"
    if kinds == {own}:
        return "items of its own kind"
    return "items of several kinds" if own in kinds else "items of other kinds"


def _splits(rows: Iterator[tuple[str, Pair, Result, Result]]) -> tuple[Split, ...]:
    groups: defaultdict[str, dict[Pair, float]] = defaultdict(dict)
    for name, at, with_memory, without in rows:
        groups[name][at] = with_memory["score"] - without["score"]
    return tuple(
        Split(
            name,
            len(values),
            _mean(values),
            math.fsum(max(each, 0.0) for each in values.values()) / len(values),
            math.fsum(max(-each, 0.0) for each in values.values()) / len(values),
        )
        for name, values in sorted(groups.items())
    )


def _changed(found: ArmFound, none: ArmFound, kinds: Mapping[str, str]) -> list[Changed]:
    by_task: defaultdict[str, list[tuple[int, Result, Result]]] = defaultdict(list)
    for (task, run), with_memory, without in _paired(found, none):
        by_task[task].append((run, with_memory, without))
    changed: list[tuple[float, Changed]] = []
    for task, rows in by_task.items():
        with_ = sum(bool(one["solved"]) for _, one, _ in rows) / len(rows)
        without_ = sum(bool(other["solved"]) for _, _, other in rows) / len(rows)
        gained = with_ > 0.5 >= without_  # noqa: PLR2004  (most of the runs)
        if gained or without_ > 0.5 >= with_:  # noqa: PLR2004
            differing = [row for row in rows if row[1]["solved"] != row[2]["solved"]]
            run, one, other = (differing or rows)[0]
            shown = Changed(task, kinds.get(task, ""), gained, run, other, one)
            changed.append((-abs(with_ - without_), shown))
    return [each for _, each in sorted(changed, key=lambda row: (row[0], row[1].task))]


def _credits(arm: Arm, log: PlanLogReader) -> tuple[ItemCredit, ...]:
    replays = [
        log.results(run.name)
        for run in log.runs
        if run.factors["kind"] == "credit" and run.factors["condition"] == arm.name
    ]
    if not replays:
        return ()
    tests = [
        log.results(run.name)
        for run in log.runs
        if run.factors["kind"] == "test" and run.factors["condition"] == arm.name
    ]
    known = credits_of(cast("Any", tests), cast("Any", replays)).values()
    return tuple(
        sorted(known, key=lambda each: (each.credit is None, -(each.credit or 0.0), each.id))
    )


def _harm(arms: Mapping[str, ArmFound]) -> Iterator[HarmRow]:
    for found in arms.values():
        if found.arm.control not in VARIANTS:
            continue
        pairs = [
            (at, after, before)
            for at, after, before in _paired(found, arms[found.arm.bank])
            if before["recalled"]
        ]
        if pairs:
            yield HarmRow(
                found.arm.bank,
                found.arm.control,
                len(pairs),
                math.fsum(before["score"] for _, _, before in pairs) / len(pairs),
                math.fsum(after["score"] for _, after, _ in pairs) / len(pairs),
                _mean({at: after["score"] - before["score"] for at, after, before in pairs}),
            )


def _harm_items(
    plan: AblationPlan, arms: Mapping[str, ArmFound]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return how each item fares in each variant, over the attempts in which it came first."""
    scores: defaultdict[tuple[str, str], defaultdict[str, list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    if not plan.harm:
        return {}
    for found in arms.values():
        if found.arm.control not in VARIANTS:
            continue
        for _, after, before in _paired(found, arms[found.arm.bank]):
            if before["recalled"]:
                item = scores[found.arm.bank, before["recalled"][0]["id"]]
                item[found.arm.control].append(after["score"])
                if found.arm.control == next(iter(VARIANTS)):
                    item["as is"].append(before["score"])
    return {
        at: {variant: math.fsum(each) / len(each) for variant, each in item.items()}
        for at, item in sorted(scores.items())
    }


def hypothesis_difference(hypothesis: Hypothesis, arms: Sequence[ArmFound]) -> Difference:
    """Return what a registered hypothesis is judged by: the outcomes that the comparison has.

    No memory is the mean of all runs without, those of the re-run included; another baseline is paired
    run by run.
    """
    ours, theirs = (
        [[each for each in arms if matches(part, _levels(each.arm))] for part in sides_of(side)]
        for side in (hypothesis.treated, hypothesis.baseline)
    )
    treated = averaged([averaged([each.outcomes for each in part]) for part in ours])
    if any(each.arm.has_memory for part in theirs for each in part):
        base = averaged([averaged([each.outcomes for each in part]) for part in theirs])
        return difference_of(treated, [base], paired=True)
    bare = {each.arm.name: each for part in theirs for each in part}
    again = not any(each.arm.name == RERUN for part in ours for each in part)
    bare |= {each.arm.name: each for each in arms if again and each.arm.name == RERUN}
    learned = any(each.arm.has_memory for part in ours for each in part)
    untrained = [each.outcomes for each in bare.values()]
    return difference_of(treated, untrained, paired=False, shared_effects=learned)


def _levels(arm: Arm) -> Cell:
    return {
        "condition": arm.name,
        "memory": arm.memory,
        "source": arm.source,
        "control": arm.control,
    }


# Checks -----------------------------------------------------------------------------------


def _gates(
    plan: AblationPlan,
    log: PlanLogReader,
    arms: Sequence[ArmFound],
    comparison: Comparison,
    memories: Sequence[MemoryFound],
) -> tuple[Gate, ...]:
    by_name = {each.arm.name: each for each in arms}
    played = plan.made == "played"
    splits = disjoint(
        {item for each in plan.sources for item in each.items} if played else (),
        [each.id for each in plan.tests],
    )
    if splits.state == "failed":  # whether that is what is asked, the experiment decides
        splits = replace(splits, state="open")
    return study_gates(
        log,
        complete_runs(((run, log.results(run.name)) for run in log.runs), _item_of, "attempts"),
        splits=splits,
        prompts=_same_prompts(arms),
        grader="The experiment's own score decides.",
        orders=enough_orders(plan.replicates, "replicate"),
        budgets=f"There is one room for recalled text, {plan.budget} tokens.",
        utility=Gate(
            "G6: frozen-store utility",
            "passed" if memories else "open",
            "Tests read banks that do not change meanwhile, but for `write_only`; no memory is recall off.",
        ),
        replicates=(
            no_difference(comparison)
            if comparison.rerun is not None
            else halves(NONE, by_name[NONE].outcomes.scores, plan.margin),
        ),
        reading=_read_backwards(arms, comparison),
        controls=control_gates(comparison)
        or "The experiment has no control that should make no difference.",
        own=(_recalls(memories), _failures(arms)),
    )


def _item_of(run: RunSpec, result: Result) -> object:
    """Return the task of an attempt at the run's own; replays are of others."""
    return result.get("task") if run.factors["kind"] in {"build", "test"} else None


def _read_backwards(arms: Sequence[ArmFound], comparison: Comparison) -> Gate:
    """Check that no difference depends on the order in which attempts are read."""
    found = {
        each.arm.name: replace(
            each,
            results={run: dict([*row.items()][::-1]) for run, row in [*each.results.items()][::-1]},
        ).outcomes
        for each in reversed(arms)
    }
    bare = [found[name] for name in (NONE, RERUN) if name in found]
    again: dict[str, float | None] = {}
    for each in comparison.family:
        values = difference_of(found[each.condition], bare, paired=False).values
        again[each.condition] = None if values is None else float(values.mean())
    forward = {
        each.condition: None if each.estimate is None else each.estimate.value
        for each in comparison.family
    }
    return alike("Order of reading", forward, again)


def _same_prompts(arms: Sequence[ArmFound]) -> Gate:
    """Check that first prompts differ between conditions in the memory section alone."""
    name = "G2: same prompts but for memory"
    rests: defaultdict[Pair, set[str]] = defaultdict(set)
    for each in arms:
        for run, found in each.results.items():
            for task, result in found.items():
                if result["rest_sha256"]:
                    rests[task, run].add(result["rest_sha256"])
    if not rests:
        return Gate(
            name, "open", "No model call was seen: the agent asks none that LangChain knows of."
        )
    different = sorted(task for (task, _), found in rests.items() if len(found) > 1)
    detail = (
        f"The first prompts of {len(rests):,} pairs of task and run, compared by digest over all"
        " conditions, recalled blocks taken out."
    )
    if different:
        return Gate(
            name,
            "failed",
            f"{detail} {len(different):,} differ in something else, such as task {different[0]!r:.80}:"
            " what is measured is not memory alone.",
        )
    return Gate(name, "passed", detail)


def _recalls(memories: Sequence[MemoryFound]) -> Gate:
    name = "Something was recalled"
    shares = [
        f"{each.name} {each.found.recalled:,} of {len(each.found.attempts):,}" for each in memories
    ]
    silent = [each.name for each in memories if each.found.attempts and not each.found.recalled]
    unasked = [each.name for each in memories if not any(a["asked"] for a in each.found.attempts)]
    detail = f"Attempts in which something was recalled: {'; '.join(shares) or 'none'}."
    if unasked and silent:
        return Gate(
            name,
            "failed",
            f"{detail} The agent never asked {unasked[0]!r}: `build` must use the memory it is given.",
        )
    return Gate(name, "failed" if silent else "passed", detail)


def _failures(arms: Sequence[ArmFound]) -> Gate:
    name = "Agent's own errors"
    errors: Counter[str] = sum((each.errors for each in arms), Counter())
    attempts = sum(len(each.attempts) for each in arms)
    if not errors:
        return Gate(name, "passed", f"None in {attempts:,} attempts.")
    kinds: Counter[str] = Counter()
    for text, count in errors.items():
        kinds[text.partition(":")[0]] += count
    told = ", ".join(f"{kind} {count:,}" for kind, count in kinds.most_common(3))
    detail = (
        f"{errors.total():,} of {attempts:,} attempts ended in an error and count as 0: {told}."
    )
    if errors.total() > attempts / 2:
        (first, _), *_ = errors.most_common(1)
        return Gate(name, "failed", f"{detail} Most often: {in_a_line(first, 300)}")
    return Gate(name, "passed", detail)


# A guard ----------------------------------------------------------------------------------


def _guarded(plan: AblationPlan, log: PlanLogReader) -> Analysis:
    rounds = [run for run in log.runs if run.factors["kind"] == "guard"]
    results = [cast("list[Result]", log.results(run.name)) for run in rounds]
    differences = guard_differences(results)
    done, planned = sum(map(len, results)), sum(run.length for run in rounds)
    decision = guard_decision(differences, plan.margin, ended=done == planned)
    missing = [] if done == planned or decision.verdict != "open" else ["rounds"]
    gate = completeness(f"{done:,} of {planned:,} places of the guard are done.", missing)
    return Analysis(plan, log.manifest, (), None, (), (), {}, decision, (gate,))


# Before anything is paid ------------------------------------------------------------------


def reach_of(plan: AblationPlan) -> tuple[str, ...]:
    """Say what could be found; nothing where it cannot be computed."""
    if find_spec("scipy") is None:
        return ()
    if plan.guard is not None:
        most, needed = len(plan.tests) * plan.replicates, fixed_pairs(_DISCORDANT, plan.margin)
        told = (
            f"a loss of {100 * plan.margin:.0f} points takes {needed} pairs in a test of a fixed size, if"
            f" {100 * _DISCORDANT:.0f} % of pairs differ; the guard stops as soon as it is sure"
        )
        if most < ENOUGH * needed:
            told += (
                f", and has only {most}: losses may be missed; give it {math.ceil(ENOUGH * needed)}"
            )
        return (told,)
    if plan.replicates < FEWEST_RUNS:
        return (f"a verdict takes {FEWEST_RUNS} replicates or more: this will be 'cannot tell'",)
    found, tasks = planned_effect(plan), len(plan.tests)
    told = (
        f"with {several(tasks, 'test task')} no difference can be found, however large"
        if math.isinf(found)
        else f"with {several(tasks, 'test task')} a true difference of {100 * found:.1f} points would be"
        " found four times in five, if outcomes vary as in the papers' tables"
    )
    enough = [(effect, tests_for(plan, effect)) for effect in _EFFECTS]
    takes = [f"{100 * effect:.0f} points take {n:,} test tasks" for effect, n in enough if n]
    fewest = enough[0][1]
    if fewest is None or tasks < fewest:
        takes.append(
            f"with {tasks:,} the verdict will be 'cannot tell'"
            if math.isinf(found)
            else f"with {tasks:,} expect 'cannot tell' unless the difference is larger"
        )
    return (told, "; ".join(takes))


def tests_for(plan: AblationPlan, effect: float) -> int | None:
    """Return how many test tasks find a difference four times in five; `None`: no number does."""
    low, high = 2, _MOST_TASKS
    if planned_effect(plan, high) > effect:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if planned_effect(plan, middle) <= effect else (middle + 1, high)
    return math.ceil(_MORE * low)


def planned_effect(plan: AblationPlan, tests: int | None = None) -> float:
    """Return the difference that a plan finds four times in five; infinite where none.

    Args:
        plan: The plan.
        tests: Instead of its own number of test tasks.
    """
    from langgraft.benchmarks.comparison.power import planned_difference  # noqa: PLC0415

    family = [each for each in plan.arms() if each.has_memory and not each.control]
    return planned_difference(
        len(plan.tests) if tests is None else tests,
        plan.replicates,
        baseline_runs=plan.replicates,
        contrasts=len(family),
        effect_variance=None,  # a memory may hold the answer to some tasks, and nothing for the rest
    )
