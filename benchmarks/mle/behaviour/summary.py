"""All numbers of one run, from its journal."""

from collections import Counter
from dataclasses import dataclass

from langgraft.benchmarks.mle.behaviour.bugs import bug_rate, cumulative_bugs, late_errors
from langgraft.benchmarks.mle.behaviour.distances import valid_code_distance
from langgraft.benchmarks.mle.behaviour.diversity import (
    number_per_program,
    operators,
    package_imports,
    package_steps,
    pooled_number,
)
from langgraft.benchmarks.mle.behaviour.errors import EARLY, error_types, errors_recur
from langgraft.benchmarks.mle.behaviour.progress import (
    best_so_far,
    first_valid,
    is_valid,
)
from langgraft.benchmarks.mle.behaviour.reading import names_among, tokens
from langgraft.benchmarks.mle.behaviour.retrievals import (
    Share,
    repaired_with_memory,
    resource_retrievals,
    resource_retrievals_for_buggy,
    resource_retrievals_of_buggy,
    retrieved,
    written_with_memory,
)
from langgraft.benchmarks.mle.behaviour.run import RunBehavior
from langgraft.nodes.search.journal import Journal


@dataclass(frozen=True)
class Behavior(RunBehavior):
    """How one search behaved; each field is defined by the function of its name."""

    package_imports_per_program: float
    packages_pooled: float
    packages_per_program: float
    operators_per_program: float
    token_distance: float | None
    name_distance: float | None
    retrievals: int
    """Programs written with recalled memory."""
    written_with_memory: Share
    repaired_with_memory: Share
    resource_retrievals: Share
    resource_of_buggy: Share
    resource_for_buggy: Share


def measure(journal: Journal, *, lower_is_better: bool, split: int = EARLY) -> Behavior:
    """Measure one run.

    Args:
        journal: The run.
        lower_is_better: The metric's direction, from the competition's board.
        split: The first late step.
    """
    # Each program is read once: searches repeat programs, and each number looks at all of them.
    valid = {node.code for node in journal.nodes if is_valid(node)}
    imports = {code: package_imports(code) for code in valid}
    once = {code: Counter(dict.fromkeys(found, 1)) for code, found in imports.items()}
    used = {code: operators(code) for code in valid}
    read = {code: tokens(code) for code in valid}
    named = {code: names_among(found) for code, found in read.items()}
    return Behavior(
        steps=len(journal.nodes),
        valid=len(journal.nodes) - len(journal.buggy),
        buggy=len(journal.buggy),
        bug_rate=bug_rate(journal),
        cumulative_bugs=cumulative_bugs(journal),
        best_so_far=best_so_far(journal, lower_is_better=lower_is_better),
        first_valid=first_valid(journal),
        package_imports_pooled=pooled_number(journal, imports.__getitem__),
        package_imports_per_program=number_per_program(journal, imports.__getitem__),
        packages_pooled=pooled_number(journal, once.__getitem__),
        packages_per_program=number_per_program(journal, once.__getitem__),
        operators_pooled=pooled_number(journal, used.__getitem__),
        operators_per_program=number_per_program(journal, used.__getitem__),
        token_distance=valid_code_distance(journal, read=read.__getitem__),
        name_distance=valid_code_distance(journal, read=named.__getitem__),
        late_errors=late_errors(journal, split=split) if len(journal.nodes) > split else None,
        errors_recur=errors_recur(journal, split=split),
        error_types=error_types(journal),
        package_steps=package_steps(journal, once.__getitem__),
        retrievals=sum(map(retrieved, journal.nodes)),
        written_with_memory=written_with_memory(journal),
        repaired_with_memory=repaired_with_memory(journal),
        resource_retrievals=resource_retrievals(journal),
        resource_of_buggy=resource_retrievals_of_buggy(journal),
        resource_for_buggy=resource_retrievals_for_buggy(journal),
    )
