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
from langgraft.nodes.replies import encodable
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.state import SearchNode, TreeState, Update

_PROBE_SECONDS: Final = 60.0
_PROBE: Final = """\
import os, sys
print(os.path.getsize(sys.argv[1]))
"""


def start_search_node(
    place: Place, sandbox: Sandbox, *, memory: MemoryProvider[Any] | None
) -> SearchNode[TreeState]:
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
        begun = _checked(state)
        _check_data(place, sandbox.run(_probe(place)))
        bank = "" if memory is None else _bank(place, memory.content().to_json())
        return _update(place, state, begun, bank)

    async def astart(state: TreeState) -> Update:
        begun = _checked(state)
        _check_data(place, await sandbox.arun(_probe(place)))
        bank = "" if memory is None else _bank(place, (await memory.acontent()).to_json())
        return await asyncio.to_thread(_update, place, state, begun, bank)

    return SearchNode("start", start, astart)


def _bank(place: Place, content: dict[str, Any]) -> str:
    return place.keep(content)


def _update(place: Place, state: TreeState, begun: str, bank: str) -> Update:
    """Begin afresh, or keep what the thread has of this search."""
    preview = encodable(data_preview(place.competition.public_dir))
    kept: dict[str, Any] = {"journal": "", "bank": bank}
    if state.get("begun") == begun:
        kept = {"journal": state["journal"], "bank": state["bank"] or bank}
        place.search(kept["journal"])  # it must be there
    return {
        **kept,
        "episode_id": begun,
        "begun": begun,
        "seed": state.get("seed", 0),
        "preview": place.artifacts.keep(preview.encode()),
        "wave": [],
        "finished": None,
        "queue": [],
        "judged": "",
        "chosen": "",
        "metric": None,
        "submission": "",
        "candidates": [],
        "done": False,
    }


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
