"""The spike behind the provider contract: parallel branches, killed at every superstep."""

import json
import signal
from pathlib import Path

import pytest
from journal_worker import ITEMS, NEVER, read_log
from warm_python import ran_script

WORKER = Path(__file__).resolve().parent.parent / "support" / "journal_worker.py"
NODE_RUNS = len(ITEMS) * 4
MOMENTS = range(1, 2 * NODE_RUNS + 1)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return folders of runs killed at each moment and resumed, and of one left alone."""
    folder = tmp_path_factory.mktemp("journal")
    moments = [str(moment) for moment in (*MOMENTS, NEVER)]
    done = ran_script(WORKER, folder, *moments)
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert ended.pop(str(NEVER)) == [0, 0]
    assert set(map(tuple, ended.values())) == {(signal.SIGKILL, 0)}
    return folder


@pytest.mark.kill
@pytest.mark.parametrize("name", ["items.jsonl", "bank.json"])
def test_log_and_bank_when_killed_at_any_superstep_are_the_same_bytes(
    name: str, folders: Path
) -> None:
    """A crash before or after any node run shows neither in the log nor in the bank."""
    expected = (folders / str(NEVER) / name).read_bytes()
    found = {moment: (folders / str(moment) / name).read_bytes() for moment in MOMENTS}
    assert [moment for moment, data in found.items() if data != expected] == []


@pytest.mark.matrix  # played in a process of its own
def test_log_when_folded_gives_the_bank(folders: Path) -> None:
    """The log alone is the memory."""
    items, bank = read_log(folders / str(NEVER) / "items.jsonl")
    assert items == list(ITEMS)
    assert bank.to_bytes() == (folders / str(NEVER) / "bank.json").read_bytes()
