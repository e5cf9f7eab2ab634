"""How a tree search behaved, from its journal alone (mle-agent-memory §4.3, §4.4, §4.6)."""

import math
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from langgraft.benchmarks.mle.behaviour.runs import (
    EARLY,
    EXHAUSTED,
    RESOURCE,
    TIMEOUT,
    CountUses,
    RunBehavior,
    Share,
    Trial,
    effective_number,
    first_where,
    jaccard_distance,
    measure_trials,
    names_among,
    once,
    operators,
    package_imports,
    plain_class,
    tokens,
)
from langgraft.nodes.search.journal import Journal, JournalNode


@dataclass(frozen=True)
class TreeBehavior(RunBehavior):
    """How one search behaved; `per_program` is the mean of its valid programs, 0 without any."""

    package_imports_per_program: float
    packages_pooled: float
    """Each package once a program, however many statements import from it."""
    packages_per_program: float
    operators_per_program: float
    token_distance: float | None
    """Mean distance of consecutive valid programs; `None` for fewer than two. The paper names no
    tokenizer; splitting at blanks would give distances a fifth larger."""
    name_distance: float | None
    """The same of the names alone."""
    retrievals: int
    """Programs written with recalled memory."""
    written_with_memory: Share
    """Buggy programs that were written with recalled memory. One reading of "retrieved frequently
    (74% of buggy nodes)": the retrieval did not keep its program from failing."""
    repaired_with_memory: Share
    """Buggy programs that a repair was written for with recalled memory, the other reading. All
    buggy programs are counted, those that the search never came back to included."""
    resource_retrievals: Share
    """Retrievals with at least one resource entry among what they found."""
    resource_of_buggy: Share
    """The same of those that buggy programs were written with ("55/95 retrievals")."""
    resource_for_buggy: Share
    """The same of those made to repair a buggy program."""


def measure(journal: Journal, *, lower_is_better: bool, split: int = EARLY) -> TreeBehavior:
    """Measure one search.

    A program is valid (the paper: runnable) where the search's own review does not call it buggy.
    AIDE's covers what failed and what reported no metric; ours also what left no valid submission.

    Args:
        journal: The run.
        lower_is_better: The metric's direction, from the competition's board.
        split: The first late step.
    """
    nodes, buggy = journal.nodes, journal.buggy
    trials = [_trial(node) for node in nodes]
    valid = [node.code for node in nodes if not node.is_buggy]
    # Each program is read once: searches repeat programs, and each number looks at all of them.
    imports, used, read = cache(package_imports), cache(operators), cache(tokens)
    named = cache(lambda code: names_among(read(code)))
    first = first_where((trial.worked for trial in trials), censored_at=len(nodes))
    common = measure_trials(
        trials, first, imports, used, lower_is_better=lower_is_better, split=split
    )
    late = common.late_errors if len(nodes) > split else None
    helped = {node.parent_id for node in nodes if node.recalled}
    return TreeBehavior(
        **{**vars(common), "late_errors": late},
        package_imports_per_program=_per_program(valid, imports),
        packages_pooled=effective_number(common.package_steps),
        packages_per_program=_per_program(valid, lambda code: once(imports(code))),
        operators_per_program=_per_program(valid, used),
        token_distance=_distance(valid, read),
        name_distance=_distance(valid, named),
        retrievals=sum(bool(node.recalled) for node in nodes),
        written_with_memory=Share(sum(bool(node.recalled) for node in buggy), len(buggy)),
        repaired_with_memory=Share(sum(node.id in helped for node in buggy), len(buggy)),
        resource_retrievals=_resource(nodes),
        resource_of_buggy=_resource(buggy),
        resource_for_buggy=_resource(n for n in nodes if journal.stage(n) == "debug"),
    )


def _trial(node: JournalNode) -> Trial:
    return Trial(node.is_buggy, not node.is_buggy, node.code, node.metric, error_type(node))


def error_type(node: JournalNode) -> str | None:
    """Return the class of the exception that ended a program; `None` where none did.

    The paper's "error type" could be the class or class and message; its traces print both. It is
    the class here: messages name columns and line numbers, and hardly ever recur. A program that
    was ended from outside left no exception; it gets the class of what it ran out of. A buggy
    program that ended by itself, without a metric or a valid submission, has no class.
    """
    if not node.is_buggy:
        return None
    if node.exc_type:
        return plain_class(node.exc_type)
    return TIMEOUT if node.timed_out else EXHAUSTED if node.oom else None


def _per_program(valid: list[str], count: CountUses) -> float:
    found = [effective_number(count(code)) for code in valid]
    return math.fsum(found) / len(found) if found else 0.0


def _distance(valid: list[str], read: Callable[[str], AbstractSet[str]]) -> float | None:
    """Return the mean distance of "consecutive valid codes".

    They are taken in time, over branches and past buggy programs in between, not from parent to
    child.
    """
    found = [jaccard_distance(read(one), read(other)) for one, other in pairwise(valid)]
    return math.fsum(found) / len(found) if found else None


def _resource(nodes: Iterable[JournalNode]) -> Share:
    found = [node for node in nodes if node.recalled]
    return Share(sum(RESOURCE in node.recalled_kinds for node in found), len(found))
