"""`langgraft competitions prepare`."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from langgraft._core.canonical import JSON
from langgraft.benchmarks.cli.printing import say, write_json
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry


def prepare(found: Registry, names: Sequence[str], *, force: bool, as_json: bool) -> None:
    """Prepare competitions, or all that ship.

    Raises:
        CompetitionError: One of them cannot be prepared; those before it are.
    """
    chosen = [found.get_competition(each) for each in names or found.get_shipped_competition_ids()]
    told: list[JSON] = []
    for competition in chosen:
        with redirect_stdout(sys.stderr):  # what a prepare.py prints is not our answer
            done = prepare_competition(competition, force=force)
        told.append(
            {
                "id": done.competition_id,
                "path": str(done.path),
                "made": done.made,
                "verified": done.verified,
            }
        )
        if not as_json:
            state = "prepared" if done.made else "was prepared already"
            proof = "" if done.verified else ", without checksums to hold it against"
            say(f"{done.competition_id} {state}{proof}: {done.path}")
    if as_json:
        write_json(told)
