"""`write`: ask for a plan and a program. Whatever a model says, the search goes on.

Also AIDE's summary of a search: what a prompt says of the attempts that worked.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft._core.arguments import checked
from langgraft._core.prompts import Prompt
from langgraft.environments.sandboxes.result_text import span
from langgraft.nodes.chat_models import Model
from langgraft.nodes.model_dialogue import Ask, Talk, dialogue_node
from langgraft.nodes.node import Node, Update
from langgraft.nodes.program_text import ProgramText, quotable, read_program
from langgraft.nodes.replies import encodable, in_turns
from langgraft.nodes.search.deps import SearchDeps
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.policy import best_node
from langgraft.nodes.search.state import BranchState, sample_name, with_work
from langgraft.nodes.structured import REPLY_SHOWN

TRIES: Final = 3
"""How often a program is asked for (AIDE's figure)."""
NO_PROGRAM: Final = "the reply held no program"
_NO_CODE: Final = "# There is no program: the reply held none."
LONGEST_SUMMARY: Final = 12_000
"""Characters of a summary, about 3,000 tokens: some 15 to 25 attempts of usual length."""
_LONGEST_PART: Final = 1_200
"""Characters of one plan or result: three to five sentences have a third of that."""
_NONE_WORKED: Final = "No attempt has worked so far."


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


@checked
def write_node(deps: SearchDeps, model: Model) -> Node[BranchState]:
    """Make the node that asks for a program."""
    rules = deps.prompts.rules.render(
        limit=span(deps.seconds),
        folds=str(deps.folds),
        packages=", ".join(deps.packages),
    )

    def begin(state: BranchState) -> Talk[Update]:
        question = HumanMessage(encodable(_prompt(deps, state, rules)))
        written = yield from writing([question], deps.prompts.repair)
        return with_work(state, written=deps.keep(asdict(written)))

    return dialogue_node("write", model, begin, sample_name)


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


def _prompt(deps: SearchDeps, state: BranchState, rules: str) -> str:
    recalled = str(deps.read(state["work"].get("recalled")).get("text", ""))
    parent = deps.parent(state)
    nodes = deps.nodes(state["journal"])
    shown = {
        "task": deps.competition.description.strip(),
        "memory": f"{recalled}\n" if recalled else "",
        "rules": rules.strip(),
        "attempts": summarize(nodes, lower_is_better=deps.lower_is_better),
        "data": deps.artifacts.read(state["preview"]).decode(),
        "code": (parent.code.rstrip() or _NO_CODE) if parent is not None else "",
        "output": quotable(parent.output or "; ".join(parent.reasons))
        if parent is not None
        else "",
    }
    prompts = deps.prompts
    by_stage = {"draft": prompts.draft, "debug": prompts.debug, "improve": prompts.improve}
    return by_stage[state["work"]["stage"]].render(**shown)


def summarize(
    nodes: Sequence[JournalNode], *, lower_is_better: bool, most: int = LONGEST_SUMMARY
) -> str:
    """Sum up the attempts that worked, for drafts and improvements.

    As AIDE has it: of every working program its plan, its result and its metric, in the order of
    the steps, and nothing of failures. AIDE's grows without limit. Here, where not all fit, the
    best attempt stays, then the newest do, and a first line says how many are left out; a plan or
    result of unusual length is cut.

    Args:
        nodes: All programs of the search, in the order of their steps.
        lower_is_better: The metric's direction, from the competition's board.
        most: Characters at most. The best attempt is told even where it alone is longer.
    """
    working = [node for node in nodes if not node.is_buggy]
    best = best_node(working, lower_is_better=lower_is_better)
    if best is None:
        return _NONE_WORKED
    told = {node.id: _told(node) for node in working}
    kept = {best.id}
    room = most - len(told[best.id]) - len(_left_out(len(working)))
    for node in reversed(working):
        if node.id in kept:
            continue
        room -= len(told[node.id]) + 2
        if room < 0:
            break
        kept.add(node.id)
    missing = [_left_out(len(working) - len(kept))] if len(kept) < len(working) else []
    return "\n\n".join([*missing, *(told[node.id] for node in working if node.id in kept)])


def _left_out(count: int) -> str:
    return f"({count} older attempts that worked are left out.)"


def _told(node: JournalNode) -> str:
    metric = "none" if node.metric is None else f"{node.metric:.6g}"
    return f"Plan: {_cut(node.plan)}\nResult: {_cut(node.analysis)}\nValidation metric: {metric}"


def _cut(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_PART else f"{text[:_LONGEST_PART].rstrip()} …"
