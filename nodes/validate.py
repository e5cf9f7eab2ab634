"""`validate`: keep of the lessons drawn those that hold (ReMe, arXiv:2512.10696 §3).

A lesson is kept if it is valid and its score is at least one half. ReMe's code has the same rule,
while its prompt calls a lesson invalid below 0.3: here the model is not given the limit. All lessons
of an episode are judged in one call, where ReMe makes one for each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field

from langgraft._core.arguments import checked
from langgraft._core.texts import Prompt
from langgraft.memory.model import By, Outcome, Step
from langgraft.memory.providers.episode_items import render_trajectory
from langgraft.nodes.dialogue import ChatModel, Dialogue, Update, dialogue_node
from langgraft.nodes.judging import by_line, same_words
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.reflect import describe_outcome, episode_steps
from langgraft.nodes.state import AgentState, DroppedLesson
from langgraft.nodes.structured import Read, Reader, asking, listed

MIN_SCORE = 0.5
"""Least score of a lesson that is kept (ReMe 0.1.10.8)."""
NOT_VALID = "not valid"
TOO_LOW = f"scored below {MIN_SCORE:g}"
SHORTEST = 20
"""Characters below which a lesson says too little, by rules (MemEvolve's lightweight memory)."""
LONGEST = 1000
"""Characters above which it is no lesson any more but a report, by rules; a choice of ours."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What is thought of one lesson."""

    text: str
    kept: bool
    score: float
    """From 0 to 1."""
    reason: str
    """Why it was kept or dropped, as far as anybody said."""
    by: By
    why: str
    """`ok`, or what was wrong with a model's reply, or why rules decided."""

    def to_json(self) -> dict[str, Any]:
        """Return what a graph's state holds of it."""
        return {
            "text": self.text,
            "kept": self.kept,
            "score": self.score,
            "reason": self.reason,
            "by": self.by,
            "why": self.why,
        }

    def dropped(self) -> DroppedLesson:
        """Return what a graph's state holds of a lesson that is not kept."""
        reason = self.reason
        if self.by == "model":
            fault = TOO_LOW if self.score < MIN_SCORE else NOT_VALID
            reason = f"{fault}: {reason}"
        return DroppedLesson(text=self.text, node="validate", reason=reason, score=self.score)


@checked
def validate_node(
    model: ChatModel | None, *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that drops lessons which do not hold.

    Its update holds the `lessons` that are kept, in `validation` an entry for each that was drawn,
    and what was dropped is added to `dropped`. Lessons that no reply can be used for are judged by
    rules, and say so.

    Args:
        model: Any chat model, or the name of one; `None` leaves it to the rules.
        prompt: Prompt with `$task`, `$outcome`, `$lessons` and `$trajectory`.
    """

    def begin(state: AgentState) -> Dialogue[Update]:
        lessons = state["lessons"]
        judged = yield from validating(
            lessons,
            state["instruction"],
            episode_steps(state["steps"]),
            Outcome(state["success"], state["score"], state["reason"]),
            prompt=prompt,
        )
        kept = [each for each, found in zip(lessons, judged, strict=True) if found.kept]
        dropped = [found.dropped() for found in judged if not found.kept]
        return {
            "lessons": kept,
            "validation": [each.to_json() for each in judged],
            "dropped": [*state.get("dropped", ()), *dropped],
        }

    return dialogue_node("validate", model, begin)


def validating(
    lessons: Sequence[Mapping[str, Any]],
    task: str,
    steps: Sequence[Step],
    outcome: Outcome,
    *,
    prompt: Prompt | None = None,
) -> Dialogue[list[Validation]]:
    """Ask what lessons are worth; returns one validation for each, in their order.

    Args:
        lessons: As a graph's state holds them: `text` and `when_to_use`.
        task: The task of the attempt.
        steps: What was done.
        outcome: How it ended.
        prompt: In place of the one that ships.
    """
    if not lessons:
        return []
    by_rules = validate_by_rules([str(lesson["text"]) for lesson in lessons], task)
    text = (prompt or shipped("validate")).render(
        task=task,
        outcome=describe_outcome(outcome),
        lessons=by_line(_numbered(lessons)),
        trajectory=render_trajectory(steps, result=""),
    )
    answer = yield from asking([HumanMessage(text)], _reader(len(lessons)), what="validate")
    scores = {score.lesson: score for score in answer.value or ()}
    return [
        _validation(rules, scores.get(number), answer.why)
        for number, rules in enumerate(by_rules, start=1)
    ]


def validate_by_rules(lessons: Sequence[str], task: str) -> list[Validation]:
    """Judge lessons by length, repetition, and whether they only say the task again."""
    seen: set[str] = set()
    judged = []
    for text in lessons:
        reason = _fault(text, task, seen)
        seen.add(same_words(text))
        score = 0.0 if reason else 1.0
        judged.append(Validation(text, not reason, score, reason, "rules", "ok"))
    return judged


def _fault(text: str, task: str, seen: set[str]) -> str:
    words = same_words(text)
    if len(words) < SHORTEST:
        return f"shorter than {SHORTEST} characters"
    if len(words) > LONGEST:
        return f"longer than {LONGEST} characters"
    if words in seen:
        return "says what another lesson says"
    return "repeats the task" if words in same_words(task) else ""


class _Score(BaseModel):
    lesson: int
    valid: bool
    score: float = Field(ge=0, le=1)
    reason: str = ""


def _reader(count: int) -> Reader[list[_Score]]:
    def objection(score: _Score, kept: Sequence[_Score]) -> str:
        if not 1 <= score.lesson <= count:
            return f"there is no lesson {score.lesson}"
        if any(score.lesson == other.lesson for other in kept):
            return f"there is another entry for lesson {score.lesson}"
        return ""

    read_scores = listed(_Score, objection)

    def read(value: Any) -> Read[list[_Score]]:
        found = read_scores(value)
        given = {score.lesson for score in found.value}
        missing = [str(number) for number in range(1, count + 1) if number not in given]
        lacking = (f"there is no entry for lesson {', '.join(missing)}",) if missing else ()
        return Read(found.value, (*found.problems, *lacking))

    return read


def _validation(rules: Validation, score: _Score | None, why: str) -> Validation:
    if score is None:
        return Validation(rules.text, rules.kept, rules.score, rules.reason, "rules", why)
    kept = score.valid and score.score >= MIN_SCORE
    reason = score.reason or ("not valid" if not score.valid else f"score {score.score:g}")
    return Validation(rules.text, kept, score.score, reason, "model", why)


def _numbered(lessons: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"lesson": number, "when_to_use": lesson.get("when_to_use", ""), "text": lesson["text"]}
        for number, lesson in enumerate(lessons, start=1)
    ]
