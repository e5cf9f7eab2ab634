"""A scripted run of the chain agent whose cells build on each other; a killed one is gone on with.

python -m acceptance.chain_worker DATA OUT
"""

import sys
from pathlib import Path
from typing import Any, Final

from langgraph.checkpoint.sqlite import SqliteSaver

from acceptance.chain_script import COMPETITION, Scripted, bash, does, in_turn
from langgraft.benchmarks.simulated.chat import Reply
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.graphs.chain import build_chain_agent
from langgraft.nodes.workbench.limits import RunLimits

_MODULE: Final = (
    "def fit(values, seen=[]):\n    seen.append(len(values))\n    return sum(values), seen\n"
)


def _cell(code: str) -> Reply:
    return does("run_python", code=code)


STEPS: Final = (
    _cell("import random\nrandom.seed(7)\nrows = [random.random() for _ in range(9)]\nrows[-1]"),
    bash("echo first > notes.txt; ls"),
    _cell("def best(values):\n    return max(values)\nbest(rows)"),
    does("edit_file", command="create", path="model.py", file_text=_MODULE),
    _cell("import sys\nsys.path.insert(0, '.')\nimport model\nmodel.fit(rows)"),
    _cell("rows.append(random.random())\nrows = rows / 2"),
    _cell("model.fit(rows), random.random(), open('notes.txt', 'a').write(f'{best(rows)}\\n')"),
    does("edit_file", command="str_replace", path="notes.txt", old_str="first", new_str="second"),
    bash("cat notes.txt; cp input/sample_submission.csv submission.csv; python3 model.py"),
    _cell("print(open('notes.txt').read(), model.fit(rows), random.random(), best(rows))"),
    does("validate_submission"),
)
"""What is done; each cell shows what only all before it can have made."""
_CONFIG: Final[Any] = {"configurable": {"thread_id": "search"}}


def main(data: Path, out: Path) -> None:
    """Run the script, or go on with it."""
    competition = Registry(data).get_competition(COMPETITION)
    work = out / "work"
    work.mkdir(parents=True, exist_ok=True)
    place = str(work / "checkpoints.sqlite")
    with (
        DockerSandbox(inputs={"input": competition.public_dir}) as sandbox,
        SqliteSaver.from_conn_string(place) as saver,
    ):
        agent = build_chain_agent(
            Scripted(script=in_turn(STEPS)),
            competition=competition,
            sandbox=sandbox,
            folder=out,
            limits=RunLimits(steps=len(STEPS) + 1),
            seconds=60,
            checkpointer=saver,
        )
        begun = bool(agent.get_state(_CONFIG).values)
        begin: Any = None if begun else {"episode_id": "scripted", "seed": 0}
        agent.invoke(begin, _CONFIG, durability="sync")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
