"""`write`: ask for a plan and a program. Whatever a model says, the search goes on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft._core.arguments import checked
from langgraft._core.prompts import Prompt
from langgraft.environments.sandboxes.telling import span
from langgraft.nodes.chat_models import Model
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.replies import encodable, in_turns
from langgraft.nodes.search.briefing import TreePrompts
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.program_text import ProgramText, quotable, read_program
from langgraft.nodes.search.state import BranchState, Work, of_branch
from langgraft.nodes.search.summary import summarize
from langgraft.nodes.structured import REPLY_SHOWN
from langgraft.nodes.talking import Ask, Talk, talking_node

TRIES: Final = 3
"""How often a program is asked for (AIDE's figure)."""
NO_PROGRAM: Final = "the reply held no program"
_NO_CODE: Final = "# There is no program: the reply held none."


@dataclass(frozen=True, slots=True)
class Written:
    """What came of asking for a program."""

    plan: str
    code: str
    """Empty where no reply held a program."""
    why: str
    """`ok`, or what was wrong with the reply that counts."""
    calls: int
    """How often the model was asked."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a program is told of its bounds."""

    seconds: float
    """Wall clock of one program."""
    folds: int
    """Of a cross-validation."""
    packages: Sequence[str]
    """What can be imported."""


@checked
def write_node(
    place: Place, model: Model, assignment: Assignment, prompts: TreePrompts
) -> GraphNode[BranchState]:
    """Make the node that asks for a program.

    Args:
        place: The competition, and where contents are kept.
        model: Any chat model.
        assignment: What the program is told of its bounds.
        prompts: For each stage, for the rules and for asking again.

    Raises:
        SettingsError: A prompt cannot be filled in.
    """
    rules = prompts.rules.render(
        limit=span(assignment.seconds),
        folds=str(assignment.folds),
        packages=", ".join(assignment.packages),
    )

    def begin(state: BranchState) -> Talk[Update]:
        question = HumanMessage(encodable(_prompt(place, state, prompts, rules)))
        written = yield from writing([question], prompts.repair)
        work: Work = {**state["work"], "written": place.keep(asdict(written))}
        return {"work": work}

    return talking_node("write", model, begin, of_branch)


def writing(messages: Sequence[BaseMessage], repair: Prompt) -> Talk[Written]:
    """Ask for a plan and a program, and again with what was wrong, `TRIES` times in all.

    A program that does not compile counts where no later reply has a better one: the error that
    it ends with tells more than nothing. A model that refuses, or that has no room for the
    prompt, is not asked again: it would say the same.
    """
    best = ProgramText("", "", "")
    why = ""
    asked = list(messages)
    for call in range(1, TRIES + 1):
        said = yield Ask(asked, "write")
        if said.failure:
            return Written(best.plan, best.code, f"the model gave none: {said.failure}", call)
        found = read_program(said.text)
        if found.code and not found.problem:
            return Written(found.plan, found.code, "ok", call)
        why = f"{found.problem}, and the reply was cut off" if said.cut else found.problem
        best = found if found.code or not best.code else best
        shown = AIMessage(said.text[:REPLY_SHOWN])
        asked = in_turns([*messages, shown, HumanMessage(repair.render(problem=why))])
    return Written(best.plan, best.code, best.problem if best.code else why, TRIES)


def _prompt(place: Place, state: BranchState, prompts: TreePrompts, rules: str) -> str:
    recalled = str(place.read(state["work"].get("recalled")).get("text", ""))
    parent = place.parent(state)
    nodes = place.nodes(state["journal"])
    shown = {
        "task": place.competition.description.strip(),
        "memory": f"{recalled}\n" if recalled else "",
        "rules": rules.strip(),
        "attempts": summarize(nodes, lower_is_better=place.lower_is_better),
        "data": place.artifacts.read(state["preview"]).decode(),
        "code": (parent.code.rstrip() or _NO_CODE) if parent is not None else "",
        "output": quotable(parent.output or "; ".join(parent.reasons))
        if parent is not None
        else "",
    }
    by_stage = {"draft": prompts.draft, "debug": prompts.debug, "improve": prompts.improve}
    return by_stage[state["work"]["stage"]].render(**shown)
