"""The prompts of a short run of each agent: what it did is made up, what it is told is not.

Each agent is asked by its own node, with a model that keeps what it was sent.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes.sandbox import Limits
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.nodes.artifacts import Artifacts, MemoryArtifacts
from langgraft.nodes.chain.deps import ChainDeps, ChainPrompts, Instructions
from langgraft.nodes.chain.step import CHANGING, performer, think_node
from langgraft.nodes.chain.tools import tool_schemas
from langgraft.nodes.mlab.deps import MLABDeps, MLABPrompts
from langgraft.nodes.mlab.step import think_node as mlab_think_node
from langgraft.nodes.search.deps import SearchDeps, TreePrompts
from langgraft.nodes.search.journal import JournalNode, append_record
from langgraft.nodes.search.programs import review_node, write_node
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import RunLimits
from langgraft.nodes.workbench.log import RECALL, Action, Event, Observation, append_events
from langgraft.nodes.workbench.sessions import Workspaces

GIB: Final = 1 << 30
STEPS: Final = 12
HOURS: Final = 24.0
PACKAGES: Final = ("numpy 2.3", "pandas 2.3", "scikit-learn 1.7", "lightgbm 4.6", "torch 2.9")
LIMITS: Final = Limits(cpus=8, memory=64 * GIB, workspace=32 * GIB)
MEMORY: Final = (
    "<recalled_memory>\n(What memory recalls stands here, where the run has one.)\n"
    "</recalled_memory>\n"
)
MOMENTS: Final = ("start", "middle", "near the end")
DONE: Final = (0, 6, 11)
"""Steps so far at each moment."""
SPENT: Final = (0.0, 41_000.0, 83_500.0)


class Kept(BaseChatModel):
    """Keeps what it is sent, and says nothing."""

    asked: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "kept"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.asked.append(messages)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("no"))])


def told_tree(competition: Competition, prompts: TreePrompts) -> Mapping[str, str]:
    """Return the prompts of a tree search: a draft, a repair, an improvement, and a review."""
    artifacts = MemoryArtifacts()
    deps = SearchDeps(
        competition, artifacts, SubprocessSandbox(LIMITS), prompts, packages=PACKAGES, gpus=1,
        steps=STEPS, hours=HOURS,
    )  # fmt: skip
    reference = ""
    for node in _JOURNAL:
        reference = append_record(artifacts, reference, node)
    preview = _preview(artifacts, competition)
    recalled = deps.keep({"text": MEMORY})
    stages: list[tuple[str, str | None, str]] = [
        ("draft", None, ""),
        ("debug", "c", reference),
        ("improve", "a", reference),
    ]
    told = {}
    for moment, step, seconds, (stage, parent, journal) in zip(
        MOMENTS, DONE, SPENT, stages, strict=True
    ):
        model = Kept()
        work = {"step": step, "id": "x", "stage": stage, "parent_id": parent, "seconds": seconds}
        state: Any = {"episode_id": "e", "preview": preview, "journal": journal}
        state["work"] = {**work, "recalled": recalled}
        write_node(deps, model).invoke(state)
        told[f"{moment}: {stage}"] = str(model.asked[0][0].text)
    model = Kept()
    kept = {
        "written": deps.keep({"plan": "p", "code": _GOOD, "why": "ok"}),
        "executed": deps.keep(_EXECUTED),
    }
    reviewed: Any = {"episode_id": "e", "work": {"id": "x", **kept}}
    review_node(deps, model).invoke(reviewed)
    told["after each program: review"] = model.asked[0][0].text
    return told


_GOOD: Final = (
    "import pandas as pd\n# … fits a gradient boosting, prints the metric, writes the file\n"
)
_EXECUTED: Final[Mapping[str, Any]] = {
    "output": "Validation metric: 0.71\n\nIt ran for less than 10 minutes of the 120 minutes allowed."
    "\n\nSubmission: present and valid.\n\nValidation metric, as the program reports it: 0.71.",
    "ended": "", "metric": 0.71, "submission": "valid", "reasons": [], "exc_type": None,
    "exc_value": None,
}  # fmt: skip
_JOURNAL: Final = (
    JournalNode(
        step=0, id="a", plan="Gradient boosting on all columns, five folds.", code=_GOOD,
        metric=0.71, is_buggy=False, analysis="It reached 0.71 in validation.",
        output=str(_EXECUTED["output"]),
    ),
    JournalNode(
        step=1, id="b", plan="A network on standardized columns.", code="import torch\n# …\n",
        is_buggy=True, analysis="It failed: mat1 and mat2 cannot be multiplied.",
        reasons=("RuntimeError",), output="RuntimeError: mat1 and mat2 shapes cannot be multiplied",
    ),
    JournalNode(
        step=2, id="c", parent_id="b", plan="Make the first layer as wide as there are columns.",
        code="import torch\n# … another width\n", is_buggy=True,
        analysis="It failed: there are texts among the columns.", reasons=("TypeError",),
        output="TypeError: can't convert np.ndarray of type numpy.object_.",
    ),
)  # fmt: skip


def _preview(artifacts: Artifacts, competition: Competition) -> str:
    return artifacts.keep(data_preview(competition.public_dir).encode())


@dataclass
class _Log:
    events: list[Event] = field(default_factory=list)

    def did(self, name: str, text: str, said: str, arguments: dict[str, Any]) -> "_Log":
        """Note a step of the agent, and what was observed of it."""
        action = Action(
            id=len(self.events), source="agent", name=name, arguments=arguments, thought=said
        )
        seen = Observation(id=action.id + 1, cause=action.id, text=text)
        self.events += [action, seen]
        return self


def _asked(
    competition: Competition, log: _Log, think: Callable[[RunDeps, Kept], Any], moment: int
) -> list[BaseMessage]:
    """Ask for the next step at a moment of a run, and return what was sent."""
    artifacts = MemoryArtifacts()
    spaces = Workspaces(
        SubprocessSandbox(LIMITS), performer(competition), changing=CHANGING, seconds=7200
    )
    run = RunDeps(competition, artifacts, spaces, RunLimits(steps=STEPS, hours=HOURS), gpus=1)
    began = Action(id=0, source="environment", name=RECALL, arguments={"text": MEMORY, "kinds": []})
    moved = [
        each.model_copy(
            update={"id": each.id + 1, "cause": None if each.cause is None else each.cause + 1}
        )
        for each in log.events
    ]
    model = Kept()
    begun = {"episode_id": "e", "preview": _preview(artifacts, competition), "bank": ""}
    spent = {"seconds": SPENT[moment], "prompt_tokens": 0, "completion_tokens": 0, "dollars": 0.0}
    state = {
        "episode_id": "e", "begun": begun, "steps": DONE[moment], "spent": spent,
        "log": append_events(artifacts, "", [began, *moved]),
    }  # fmt: skip
    think(run, model).invoke(state)
    return model.asked[0]


_LOOK: Final = "The data first."
_CHAIN: Final[tuple[tuple[str, str, str, dict[str, Any]], ...]] = (
    ("run_bash", "sample_submission.csv\ntest.csv\ntrain.csv", _LOOK, {"command": "ls input"}),
    ("edit_file", "train.py was written: 40 lines.", "A first solution.",
     {"command": "create", "path": "train.py", "file_text": _GOOD}),
    ("run_bash", "Validation metric: 0.71\n\nIt ran for less than 10 minutes of the 120 minutes allowed.",
     "I run it.", {"command": "python3 train.py"}),
    ("validate_submission", "The submission is valid.", "Is it in form?", {}),
    ("think", "Noted.", "", {"thought": "Next: features of dates, then a second model."}),
)  # fmt: skip


def told_chain(competition: Competition, *, jobs: bool = False) -> Mapping[str, list[BaseMessage]]:
    """Return the prompts of the chain agent."""
    soft = 120.0 if jobs else None
    prompts = ChainPrompts()

    def think(run: RunDeps, model: Kept) -> Any:
        instructions = Instructions(prompts, competition.description, PACKAGES, soft_seconds=soft)
        return think_node(ChainDeps(run, instructions, tool_schemas(jobs=jobs)), model)

    told = {}
    for moment, name in enumerate(MOMENTS):
        log = _Log()
        for at in range(DONE[moment]):
            tool, seen, thought, arguments = _CHAIN[at % len(_CHAIN)]
            log.did(tool, seen, thought, arguments)
        told[name] = _asked(competition, log, think, moment)
    return told


def told_mlab(competition: Competition) -> Mapping[str, str]:
    """Return the prompts of MLAB."""

    def think(run: RunDeps, model: Kept) -> Any:
        return mlab_think_node(MLABDeps(run, MLABPrompts(), PACKAGES, 3), model, retries=0)

    told = {}
    for moment, name in enumerate(MOMENTS):
        log = _Log()
        for at in range(DONE[moment]):
            tool, given, seen = _MLAB[at % len(_MLAB)]
            fields = {
                "Reflection": "The last step did what it should.",
                "Research Plan and Status": "1. Baseline: 0.71. 2. Features of dates: next.",
                "Fact Check": "0.71 was seen; that dates matter is a guess.",
                "Action": tool,
                "Action Input": json.dumps(given),
            }
            log.did(tool, seen, "I go on with the plan.", {"fields": fields, "input": given})
        told[name] = _asked(competition, log, think, moment)[0].text
    return told


_MLAB: Final[tuple[tuple[str, dict[str, Any], str], ...]] = (
    ("List Files", {"dir_path": "."}, "input/\ntrain.py (1,204 bytes)"),
    ("Execute Script", {"script_name": "train.py"},
     "Validation metric: 0.71\n\nIt ran for less than 10 minutes of the 120 minutes allowed."),
    ("Validate Submission", {}, "The submission is valid."),
)  # fmt: skip


def as_text(messages: list[BaseMessage]) -> str:
    """Write messages one after the other, each with its role."""
    parts = []
    for message in messages:
        role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
        said = str(message.text)
        for each in getattr(message, "tool_calls", None) or ():
            said += f"\n→ {each['name']} {json.dumps(each['args'], ensure_ascii=False)}"
        if isinstance(message, ToolMessage):
            role = "tool"
        parts.append(f"[{role}]\n{said.strip()}")
    return "\n\n".join(parts)
