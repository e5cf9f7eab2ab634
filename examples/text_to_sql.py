"""Does memory help an agent that writes SQL? `langgraft ablate examples.text_to_sql:experiment`.

What a company takes for granted stands in no schema: memory can learn it, and what it learned at another
company misleads. The model is simulated; with `model="openai:gpt-4.1-mini"` a language model writes.
"""

import re
from typing import Any

from langgraph.graph import START, MessagesState, StateGraph

from langgraft import Episode, ErrorRecord, MemoryProvider, Outcome, RecallContext, Step
from langgraft.benchmarks.ablation import Experiment, Task
from langgraft.benchmarks.simulated.sql_writer import SimulatedSQLWriter
from langgraft.environments.text_to_sql import OUTLET, SHOP, TextToSQL

SETTINGS = {"tasks": "all", "top_k": 20}  # errors of all tasks, and not of the one at hand
WORLDS = {company.name: TextToSQL(company) for company in (SHOP, OUTLET)}


class _State(MessagesState, total=False):
    id: str
    sql: str
    rows: list[Any]


def build(memory: MemoryProvider[Any], model: Any) -> Any:
    """Write a query with what memory recalls; execute it, and file what database and reviewer say."""

    def write(state: _State) -> Any:
        name, asked = state["id"], state["messages"][-1].text
        recalled = memory.provide(asked, RecallContext(domain="sql", task_id=name, episode_id=name))
        told = f"Answer in a ```sql block with one SQLite query.\n{_world(name).schema}"
        said = model.invoke([("system", told), ("user", f"{asked}\n\n{recalled.text}")]).text
        found = re.search(r"```sql\n(.*?)```", said, re.DOTALL)
        return {"sql": " ".join((found[1] if found else said).split())}

    def execute(state: _State) -> Any:
        name, sql = state["id"], state["sql"]
        answer, remarks = _world(name).query(sql), _world(name).review(name, sql)
        errors = [ErrorRecord(each.table, each.wrong, each.right, by="rules") for each in remarks]
        errors += [ErrorRecord("sqlite", answer.error, "", by="rules")] if answer.error else []
        seen = [answer.error or f"{len(answer.rows)} rows", *(each.right for each in remarks)]
        step, asked = Step("", sql, "\n".join(seen)), state["messages"][-1].text
        # `ablate` files it with the score as its outcome.
        memory.file(Episode(name, "sql", name, asked, (step,), Outcome(None), errors=tuple(errors)))
        return {"rows": list(answer.rows)}

    return StateGraph(_State).add_sequence([write, execute]).add_edge(START, "write").compile()


def _world(task_id: str) -> TextToSQL:
    return WORLDS[task_id.partition("/")[0]]


def _tasks(company: str, split: Any) -> list[Task]:
    some = WORLDS[company].tasks(split)[::3]
    return [Task(t.id, {"id": t.id, "messages": [("user", t.question)]}, t.kind, t) for t in some]


experiment = Experiment(
    build=build,
    train={company: _tasks(company, "train") for company in WORLDS},
    test=_tasks("outlet", "test"),
    score=lambda task, output: _world(task.id).score(task.reference, output["sql"]),
    memory={"trajectory": "trajectory", "coding": {"provider": "coding", "settings": SETTINGS}},
    model=lambda seed: SimulatedSQLWriter(seed=seed),
)
