"""`start`: check what a search needs before a model is paid, and look at the data."""

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any, Final

from langgraft._core.errors import InputError
from langgraft.environments.competitions.attempts import INPUT
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes.programs import Job, PythonProgram
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import Begun, TreeState

_LARGEST_SEED: Final = 2**63 - 1
_PROBE_SECONDS: Final = 60.0
_PROBE: Final = """\
import os, sys
print(os.path.getsize(sys.argv[1]))
"""


def start_search_node(
    place: Place, sandbox: Sandbox, *, memory: MemoryProvider[Any] | None
) -> GraphNode[TreeState]:
    """Make the node that begins a search, or goes on with one.

    An input with the `episode_id` of the search that the thread has goes on with it: what is in
    the journal stays, and the search is continued up to the steps that the agent was built with.

    Args:
        place: The competition, and where contents are kept.
        sandbox: Where programs will run; a small one looks for the data there.
        memory: The provider that the search teaches, if it does: what it holds is noted, so that
            it can be restored.
    """

    def start(state: TreeState) -> Update:
        name = _checked(state)
        _check_data(place, sandbox.run(_probe(place)))
        bank = "" if memory is None else place.keep(memory.content().to_json())
        return _update(place, state, name, bank)

    async def astart(state: TreeState) -> Update:
        name = _checked(state)
        _check_data(place, await sandbox.arun(_probe(place)))
        bank = "" if memory is None else place.keep((await memory.acontent()).to_json())
        return await asyncio.to_thread(_update, place, state, name, bank)

    return GraphNode("start", start, astart)


def _update(place: Place, state: TreeState, name: str, bank: str) -> Update:
    """Begin afresh, or keep what the thread has of this search."""
    preview = encodable(data_preview(place.competition.public_dir))
    before = state.get("begun")
    journal = state.get("journal", "") if before and before["episode_id"] == name else ""
    place.search(journal)  # what goes on must be there
    kept = before["bank"] if before and journal else ""
    begun = Begun(
        episode_id=name, preview=place.artifacts.keep(preview.encode()), bank=kept or bank
    )
    left_over = {key: value for key, value in _NOTHING.items() if state.get(key)}
    seed = state.get("seed", 0)
    return {**left_over, "episode_id": name, "seed": seed, "begun": begun, "journal": journal}


_NOTHING: Final[Update] = {
    "finished": None,
    "judged": "",
    "chosen": "",
    "metric": None,
    "submission": "",
    "candidates": [],
    "done": False,
}
"""What the end of a search, or a crash in it, leaves in a thread."""


def _checked(state: Mapping[str, Any]) -> str:
    """Return the name of the search.

    Raises:
        InputError: It, or the seed, is not possible.
    """
    name, seed = state.get("episode_id"), state.get("seed", 0)
    if name is not None and not (isinstance(name, str) and name and encodable(name) == name):
        msg = f"the search's `episode_id` is a text that is not empty, got {name!r:.80}"
        raise InputError(msg)
    if not isinstance(seed, int) or isinstance(seed, bool):
        msg = f"the search's `seed` is a whole number, got {seed!r:.80}"
        raise InputError(msg)
    if abs(seed) > _LARGEST_SEED:
        msg = f"the search's `seed` has to fit into 64 bits, got {seed!r:.80}"
        raise InputError(msg)
    return name or uuid.uuid4().hex


def _probe(place: Place) -> Job:
    competition = place.competition
    sample = competition.sample_submission.relative_to(competition.public_dir).as_posix()
    program = PythonProgram(_PROBE, name="probe.py", arguments=(f"{INPUT}/{sample}",))
    return Job(program, seconds=_PROBE_SECONDS)


def _check_data(place: Place, result: ExecutionResult) -> None:
    """Check that programs will find the data in the sandbox.

    Raises:
        InputError: They will not, or they find other data.
    """
    competition = place.competition
    there = result.stdout.strip()
    wanted = competition.sample_submission.stat().st_size
    if result.ok and there == str(wanted):
        return
    name = competition.sample_submission.name
    found = f"{there} bytes" if result.ok else "not there"
    if not result.ok and result.error is None:
        found = f"not known: a program that looks for it ended with {result.exit_code}"
    msg = (
        f"programs must find the data of {competition.id} in ./{INPUT} of the sandbox, but {name}"
        f" is {found} ({wanted} bytes in {competition.public_dir}): make the sandbox with"
        f" inputs={{{INPUT!r}: competition.public_dir}}"
    )
    raise InputError(msg)
