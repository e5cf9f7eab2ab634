"""`judge`: answer what memory asks, by a model or, where there is none, by rules.

    graph.add_node("draft", draft_node(model))
    graph.add_node("gate", judge_node(memory, model, about="draft"))  # before recall
    graph.add_node("judge", judge_node(memory, model))  # before remember

Outside of graphs, `answer(question, model)` and `aanswer` do the same for one question. A verdict
on anything that the question did not show is sent back once for correction, and then dropped.
Where no reply can be used the rules of the question's kind answer, their verdicts say
`by="rules"`, and `why` says what happened.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked, validation_as
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError, SettingsError
from langgraft._core.texts import Prompt
from langgraft.memory.model import By, MemoryDelta, Question, Verdict, strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.facts import FactMemory
from langgraft.nodes.dialogue import (
    ChatModel,
    Dialogue,
    Model,
    Node,
    Request,
    Update,
    arun_dialogue,
    chat_model,
    dialogue_node,
    responding,
    run_dialogue,
)
from langgraft.nodes.judging import (
    Contradiction,
    Merging,
    Novelty,
    Relations,
    Ruling,
    Shown,
    Votes,
)
from langgraft.nodes.memory import (
    draft_questions,
    episode_of,
    questions_about,
    recall_context,
)
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.state import AgentState
from langgraft.nodes.structured import asking

KINDS: Mapping[str, type[Shown]] = {
    "votes": Votes,
    "novelty": Novelty,
    "contradiction": Contradiction,
    "facts": Relations,
    "merging": Merging,
}
"""What can be judged, by `Question.kind`."""

Prompts: TypeAlias = Mapping[str, Prompt]
"""Prompts by kind, in place of those that ship."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """How one question was answered."""

    question_id: str
    kind: str
    verdicts: tuple[Verdict, ...]
    by: By
    """Who answered; of a model's verdicts some may still be by rules, and say so."""
    why: str
    """`ok`, or what was wrong with a model's reply, or why no model was asked."""
    calls: int
    """How often a model was asked."""


def answer(
    question: Question,
    model: Model | None,
    *,
    lessons: Sequence[str] = (),
    prompts: Prompts | None = None,
) -> Judgment:
    """Answer one question.

    Args:
        question: What a provider asks.
        model: Any chat model; `None` answers by rules.
        lessons: What was drawn from the episode, for a question about its rules.
        prompts: Prompts by kind, in place of those that ship.

    Raises:
        InputError: Nobody knows how to answer a question of that kind, or it does not show what
            its kind shows.
        SettingsError: A prompt cannot be filled in.
    """
    return run_dialogue(answering(question, lessons, prompts), model)


async def aanswer(
    question: Question,
    model: Model | None,
    *,
    lessons: Sequence[str] = (),
    prompts: Prompts | None = None,
) -> Judgment:
    """Do what `answer` does, without blocking."""
    return await arun_dialogue(answering(question, lessons, prompts), model)


def answering(
    question: Question, lessons: Sequence[str] = (), prompts: Prompts | None = None
) -> Dialogue[Judgment]:
    """Put one question to a model, and rule on it where that does not help."""
    shown = _shown(question)
    if shown.needless:
        return _judgment(question, shown.by_rules(lessons), "rules", shown.needless, 0)
    template = (prompts or {}).get(question.kind) or shipped(shown.asked_by)
    asked = HumanMessage(template.render(**shown.values(lessons)))
    reply = yield from asking([asked], shown.reader(), what="judge")
    if reply.value is None:
        return _judgment(question, shown.by_rules(lessons), "rules", reply.why, reply.calls)
    return _judgment(question, reply.value, "model", reply.why, reply.calls)


def answering_all(
    questions: Sequence[Question], lessons: Sequence[str] = (), prompts: Prompts | None = None
) -> Dialogue[list[Judgment]]:
    """Answer questions one after the other; see `answer`."""
    judgments: list[Judgment] = []
    for question in questions:
        judgment = yield from answering(question, lessons, prompts)
        judgments.append(judgment)
    return judgments


def judgments_json(judgments: Sequence[Judgment]) -> dict[str, list[Any]]:
    """Return judgments as states keep them: all `verdicts`, and in `judging` how each was made."""
    written = [asdict(judgment) for judgment in judgments]
    verdicts = [verdict for each in written for verdict in each.pop("verdicts")]
    return {"verdicts": verdicts, "judging": written}


@checked
def judge_node(
    memory: MemoryProvider[Any],
    model: ChatModel | None,
    *,
    about: Literal["episode", "draft"] = "episode",
    prompts: Prompts | None = None,
) -> Runnable[AgentState, Update]:
    """Make the node that answers memory's questions.

    Its update holds `verdicts`, or `draft_verdicts`, and in `judging` one entry a question: who
    answered it, why, and after how many calls.

    Args:
        memory: The provider that asks.
        model: Any chat model; `None` answers by rules.
        about: `episode` answers questions about a finished episode, before `remember`; `draft`
            those about the state's `draft`, before `recall`.
        prompts: Prompts by kind, in place of those that ship.

    Raises:
        SettingsError: A prompt is for a kind that does not exist, or `about` is something else.
    """
    if unknown := sorted(set(prompts or ()) - set(KINDS)):
        msg = f"no question is of the kind {', '.join(unknown)}; prompts may be for {list(KINDS)}"
        raise SettingsError(msg)
    model = chat_model(model, "`model` of judge_node")

    def judge(state: AgentState) -> Program[Call, Update]:
        if about == "draft":
            context = recall_context(state)
            questions = yield from draft_questions(memory, state["instruction"], context)
        else:
            questions = yield from questions_about(memory, episode_of(state))
        return (yield from responding(_update(state, questions, about, prompts), model))

    return Node.running("judge", judge)


def _update(
    state: AgentState, questions: Sequence[Question], about: str, prompts: Prompts | None
) -> Dialogue[Update]:
    key: Literal["draft_verdicts", "verdicts"]
    key = "draft_verdicts" if about == "draft" else "verdicts"
    lessons = [str(lesson["text"]) for lesson in state.get("lessons", ())]
    made = judgments_json((yield from answering_all(questions, lessons, prompts)))
    return {
        key: [*state.get(key, ()), *made["verdicts"]],
        "judging": [*state.get("judging", ()), *made["judging"]],
    }


def _shown(question: Question) -> Shown:
    kind = KINDS.get(question.kind)
    if kind is None:
        msg = (
            f"nobody knows how to judge a question of the kind {question.kind!r}; known are "
            f"{', '.join(KINDS)}: answer it in a node of your own"
        )
        raise InputError(msg)
    where = f"a question of the kind {question.kind!r} does not show what it should: "
    with validation_as(InputError, where):
        return kind.model_validate(dict(question.shows))


def _judgment(
    question: Question, rulings: Sequence[Ruling], by: By, why: str, calls: int
) -> Judgment:
    name = question.id
    verdicts = tuple(Verdict(name, r.action, r.item_id, r.text, r.by) for r in rulings)
    return Judgment(name, question.kind, verdicts, by, why, calls)


# Which facts could be one -------------------------------------------------------------------


@checked
def consolidate(
    memory: FactMemory,
    model: ChatModel | None,
    *,
    limit: int = 10,
    prompts: Prompts | None = None,
) -> MemoryDelta:
    """Ask a model which facts could be one, put those in the place of the others, and return what that changed.

    It is for whenever nobody waits: a job of the night, not a turn. What it changes can be undone, by
    forgetting the fact that was made. A model that fails, or proposes nothing, changes nothing.

    Args:
        memory: Whose facts.
        model: Any chat model, or the name of one; without one nothing is changed.
        limit: Most questions.
        prompts: Prompts by kind, in place of those that ship.
    """
    return run(_consolidating(memory, model, limit, prompts), do)


@checked
async def aconsolidate(
    memory: FactMemory,
    model: ChatModel | None,
    *,
    limit: int = 10,
    prompts: Prompts | None = None,
) -> MemoryDelta:
    """Do as `consolidate` does, without blocking."""
    return await arun(_consolidating(memory, model, limit, prompts), ado)


def _consolidating(
    memory: FactMemory, model: ChatModel | None, limit: int, prompts: Prompts | None
) -> Program[Call, MemoryDelta]:
    asked = chat_model(model, "`model` of consolidate")
    questions = yield Call(memory.proposals, memory.aproposals, limit=limit)
    judged = yield from responding(answering_all(questions, (), prompts), asked)
    verdicts = [verdict for judgment in judged for verdict in judgment.verdicts]
    if not verdicts:
        return MemoryDelta()
    delta: MemoryDelta = yield Call(memory.consolidate, memory.aconsolidate, verdicts)
    return delta


NOTHING_KNOWN = "(nothing)"


@checked
def draft_node(
    model: ChatModel | None, *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that asks for a short answer or plan to the instruction.

    The reply is kept whole as the state's `draft`. Without a model the draft is empty, and then
    memory has nothing to ask about it.

    Args:
        model: Any chat model, or the name of one (`openai:gpt-4.1-mini`).
        prompt: Prompt with the placeholders `$task` and `$situation`.
    """
    template = prompt or shipped("draft")

    def begin(state: AgentState) -> Dialogue[Update]:
        draft = yield from drafting(state["instruction"], _situation(state), template)
        return {"draft": draft}

    return dialogue_node("draft", model, begin)


def drafting(task: str, situation: str = "", template: Prompt | None = None) -> Dialogue[str]:
    """Ask for a draft; see `draft_node`."""
    prompt = template or shipped("draft")
    text = prompt.render(task=task, situation=situation or NOTHING_KNOWN)
    reply = yield Request([HumanMessage(text)], "draft")
    return strip_block(reply.text).strip()


def _situation(state: AgentState) -> str:
    """Say how the world is played and what it showed last, where there is a world."""
    steps = state.get("steps", ())
    seen = strip_block(steps[-1]["observation"]) if steps else ""
    return "\n\n".join(filter(None, (state.get("world_instructions", ""), seen)))
