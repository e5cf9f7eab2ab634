"""Hold a journal against a policy: could it have chosen each program's parent?"""

from langgraft.nodes.search.aide_policy import AIDEPolicy
from langgraft.nodes.search.journal import Journal, JournalNode
from langgraft.nodes.search.policy import Expansion


def unexplained(
    journal: Journal, policy: AIDEPolicy, *, lower_is_better: bool
) -> tuple[JournalNode, ...]:
    """Return the programs that a policy would never have had written when they were.

    Only for searches that wrote one program at a time: with several under way, a journal does not
    say what was known when each was chosen.

    Args:
        journal: Of any search.
        policy: With the settings that are supposed.
        lower_is_better: The metric's direction, from the competition's board.

    Raises:
        InputError: A program names a parent that does not come before it.
    """
    return tuple(
        node
        for number, node in enumerate(journal.nodes)
        if Expansion(journal.stage(node), node.parent_id)
        not in policy.admissible(journal.nodes[:number], lower_is_better=lower_is_better)
    )
