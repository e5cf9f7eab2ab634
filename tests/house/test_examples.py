"""What the examples show is so; that each of them runs, `test_documents.py` holds."""

from pathlib import Path

import pytest
import yaml
from warm_python import TESTING, run_code

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return what examples print, by name."""
    names = ("support_agent", "transplant_memory", "own_environment")
    printed = {}
    for name in names:
        path = EXAMPLES / f"{name}.py"
        printed[name] = run_code(path.read_text(), tmp_path_factory.mktemp(name), path)
    return printed


def test_examples_when_listed_are_all_there_are() -> None:
    """A newcomer finds each in the table."""
    page = (REPOSITORY / "docs" / "examples.md").read_text()
    for path in EXAMPLES.iterdir():
        if path.suffix == ".py":
            assert f"(../examples/{path.name})" in page


def test_support_agent_when_asked_answers_by_tickets_that_were_solved(
    said: dict[str, str],
) -> None:
    """What did not help is not said again, though it was the answer to the same words."""
    assert "→ Photos above 20 MB crash it: shrink it." in said["support_agent"]
    assert "Try again later" not in said["support_agent"]
    assert (
        "4 tickets in memory" in said["support_agent"]
    )  # two old ones that helped, two of its own


def test_transplant_when_done_spares_the_other_agent_what_the_first_has_looked_up(
    said: dict[str, str],
) -> None:
    """The donor looks everything up, and the recipient nothing."""
    paris, oslo = said["transplant_memory"].split("Of 2 items of the donor 2 were kept")
    assert paris.count("(1 looks") == 2
    assert oslo.count("(0 looks") == 2


def test_environment_of_ones_own_when_played_again_takes_fewer_steps(
    said: dict[str, str],
) -> None:
    """What opened the first safe of a color opens the second at once."""
    steps = [int(line.split()[-2]) for line in said["own_environment"].splitlines()]
    assert steps == [6, 2, 7, 2]


ASKING = """
import os, sys
sys.path.insert(0, {folder!r})
os.environ["BANKS"] = "users.sqlite"
from fastapi.testclient import TestClient
from fastapi_users import app
from langgraft import Banks

def of(name):
    return {{"Authorization": f"Bearer {{name}}-token"}}

with TestClient(app) as client:
    for name in ("ada", "bob"):
        said = client.post("/ask", json={{"text": "The wifi is down"}}, headers=of(name))
        assert said.status_code == 200, said.text
    for headers in ({{}}, of("eve")):
        refused = client.post("/ask", json={{"text": "hi"}}, headers=headers)
        assert refused.status_code in (401, 403), refused.text
    kept = {{user: len(app.state.banks[user].content().items) for user in app.state.banks.users()}}
    assert kept == {{"ada": 1, "bob": 1}}, kept
    assert client.delete("/memory", headers=of("bob")).status_code == 200
with Banks("users.sqlite", "trajectory") as banks:
    assert banks.users() == ["ada"]
"""


def test_server_when_asked_by_two_keeps_their_memories_apart_and_forgets_one(
    tmp_path: Path,
) -> None:
    """Whose bank it is goes by the token, and an unknown token gets none."""
    run_code(ASKING.format(folder=str(EXAMPLES)), tmp_path)


@pytest.mark.matrix
def test_ablation_in_ci_when_memory_helps_passes_and_writes_the_verdict(tmp_path: Path) -> None:
    """The test of the example, as its workflow runs it."""
    run_code(TESTING.format(arguments=["-q", str(EXAMPLES / "ablation_in_ci.py")]), tmp_path)
    assert "trajectory" in (tmp_path / "verdict.md").read_text()


def test_workflow_of_the_example_when_read_runs_that_test() -> None:
    """What is to be copied is a workflow, and names the file."""
    job = yaml.safe_load((EXAMPLES / "ablation_in_ci.yml").read_text())["jobs"]["ablation"]
    assert "pytest examples/ablation_in_ci.py" in [step.get("run") for step in job["steps"]]
