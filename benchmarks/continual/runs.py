"""Which runs a continual-learning plan asks for (continual-memory §2.1, §A.1.1).

For each condition and repetition:

    train A, train B                     *scratch*: from an empty bank
    train A>B, train B>A                 *cross-task*: from the bank the first phase left
    test … after A, B                    the scratch accuracies
    test … after A>B, B>A                later task: forward transfer; earlier: backward

Every evaluation reads a frozen bank; those of the earlier task are the paper's *eval-only
probes*. The baseline and its re-run have no bank, and controls read a condition's banks; those
whose transfer is asked for are tested after A and B alone, too.

Of a plan with several pairs of task families, each pair has all of these runs, under names that
begin with its own.
"""

from collections.abc import Iterator
from dataclasses import replace

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft.benchmarks.continual.conditions import Condition, ControlCondition, CrossedProbe
from langgraft.benchmarks.continual.plan import MOST_RUNS, ContinualPlan
from langgraft.benchmarks.harness.study import BankSource, RunSpec
from langgraft.environments.text import TextWorldFactory

PAIR = "pair"
"""The factor that names a run's pair, in plans of several pairs."""

RERUN_SEED_OFFSET = MOST_RUNS
"""Keeps the samples of the re-run apart from those of the baseline."""


def of_pair(run: RunSpec, pair: str) -> RunSpec:
    """Return a run under the name it has in a plan of several pairs."""
    source = run.source
    if source is not None:
        source = replace(source, run=f"{pair}/{source.run}")
    factors = {**run.factors, PAIR: pair}
    return replace(run, name=f"{pair}/{run.name}", factors=factors, source=source)


def alone(run: RunSpec) -> RunSpec:
    """Return a run of a pair under the name it has in a plan of that pair alone."""
    prefix = f"{run.factors[PAIR]}/"
    source = run.source
    if source is not None:
        source = replace(source, run=source.run.removeprefix(prefix))
    factors = {name: value for name, value in run.factors.items() if name != PAIR}
    return replace(run, name=run.name.removeprefix(prefix), factors=factors, source=source)


class RunList:
    """Builds the runs of one pair of task families."""

    def __init__(self, plan: ContinualPlan, world: TextWorldFactory) -> None:
        self._plan = plan
        self._domains = {"A": plan.tasks.A, "B": plan.tasks.B}
        self._train = {
            task: world.tasks(domain, "train")[: plan.train_items]
            for task, domain in self._domains.items()
        }
        self._test = {
            task: world.tasks(domain, "test")[: plan.test_items]
            for task, domain in self._domains.items()
        }
        # Drawn when a run first asks: a plan of too many runs is refused before most of them are.
        self._orders: dict[tuple[str, int], tuple[str, ...]] = {}

    def all(self) -> Iterator[RunSpec]:
        """List all runs, sources first."""
        plan = self._plan
        yield from self._bare("none", plan.baseline_runs, seed_offset=0)
        if plan.rerun:
            yield from self._bare("rerun", plan.runs, seed_offset=RERUN_SEED_OFFSET)
        for condition in plan.conditions:
            for replicate in range(plan.runs):
                for run in self._condition(condition, replicate):
                    yield _mending(run, condition)
        for control in plan.controls:
            for replicate in range(plan.runs):
                yield from self._control(control, replicate)
        for probe in plan.probes:
            for replicate in range(plan.runs):
                yield from self._probe(probe, replicate)

    def _bare(self, condition: str, runs: int, *, seed_offset: int) -> Iterator[RunSpec]:
        for replicate in range(runs):
            for task in "AB":
                yield self._bare_test(condition, replicate, task, replicate + seed_offset)

    def _control(self, control: ControlCondition, replicate: int) -> Iterator[RunSpec]:
        for task in "AB" if control.transfer else "":
            yield self._test_run(control.name, replicate, task, task, bank_of=control.of)
        for sequence in self._plan.sequences:
            for task in "AB":
                yield self._test_run(control.name, replicate, sequence, task, bank_of=control.of)

    def _probe(self, probe: CrossedProbe, replicate: int) -> Iterator[RunSpec]:
        crossed: dict[str, JSON] = {"retrieval": probe.retrieval, "pool": probe.pool}
        for sequence in self._plan.sequences:
            for task in "AB":
                run = self._test_run(probe.name, replicate, sequence, task, bank_of=probe.pool)
                yield replace(run, factors={**run.factors, **crossed})

    def _condition(self, condition: Condition, replicate: int) -> Iterator[RunSpec]:
        name = condition.name
        for task in "AB":
            yield self._train_run(name, replicate, task)
            yield from self._tests_along(name, replicate, task, task)
        for sequence in self._plan.sequences:
            earlier, later = sequence.split(">")
            yield self._train_run(name, replicate, sequence)
            yield from self._tests_along(name, replicate, sequence, later)
            yield from self._tests_along(name, replicate, sequence, earlier)

    def _tests_along(
        self, condition: str, replicate: int, sequence: str, task: str
    ) -> Iterator[RunSpec]:
        length = len(self._train[sequence[-1]])
        steps = self._plan.milestones
        for milestone in range(1, steps):
            at = milestone * length // steps
            yield self._test_run(condition, replicate, sequence, task, at=at)
        yield self._test_run(condition, replicate, sequence, task)

    def _order(self, task: str, replicate: int) -> tuple[str, ...]:
        """Order the training instances by chance, the same way for all conditions."""
        if (task, replicate) not in self._orders:
            seed = self._plan.seed
            self._orders[task, replicate] = tuple(
                sorted(
                    (item.id for item in self._train[task]),
                    key=lambda name: seeded_fraction("order", seed, replicate, name),
                )
            )
        return self._orders[task, replicate]

    def _train_run(self, condition: str, replicate: int, sequence: str) -> RunSpec:
        task = sequence[-1]
        source = None
        if ">" in sequence:
            source = BankSource(_train_name(condition, replicate, sequence[0]))
        factors = self._factors("train", condition, replicate, sequence, task, seed=replicate)
        return RunSpec(
            study=self._plan.study,
            name=_train_name(condition, replicate, sequence),
            factors=factors,
            item_ids=self._order(task, replicate),
            source=source,
        )

    def _test_run(
        self,
        condition: str,
        replicate: int,
        sequence: str,
        task: str,
        *,
        at: int | None = None,
        bank_of: str | None = None,
    ) -> RunSpec:
        factors = self._factors("evaluate", condition, replicate, sequence, task, seed=replicate)
        when = sequence if at is None else f"{sequence} at {at}"
        return RunSpec(
            study=self._plan.study,
            name=f"{condition}/{replicate}/test {task} after {when}",
            factors={**factors, "at": at},
            item_ids=tuple(item.id for item in self._test[task]),
            source=BankSource(_train_name(bank_of or condition, replicate, sequence), at),
            frozen=True,
        )

    def _bare_test(self, condition: str, replicate: int, task: str, seed: int) -> RunSpec:
        return RunSpec(
            study=self._plan.study,
            name=f"{condition}/{replicate}/test {task}",
            factors={
                **self._factors("evaluate", condition, replicate, "", task, seed=seed),
                "at": None,
            },
            item_ids=tuple(item.id for item in self._test[task]),
            frozen=True,
        )

    def _factors(
        self, kind: str, condition: str, replicate: int, sequence: str, task: str, *, seed: int
    ) -> dict[str, JSON]:
        return {
            "kind": kind,
            "condition": condition,
            "replicate": replicate,
            "sequence": sequence,
            "task": task,
            "domain": self._domains[task],
            "model_seed": self._plan.seed + seed,
        }


def _mending(run: RunSpec, condition: Condition) -> RunSpec:
    """Say in a run which condition its own is to improve on, where it is to improve on one."""
    if condition.mends is None:
        return run
    return replace(run, factors={**run.factors, "mends": condition.mends})


def _train_name(condition: str, replicate: int, sequence: str) -> str:
    return f"{condition}/{replicate}/train {sequence}"
