"""What `ExpeL` asks about an episode: which rules it speaks for and against."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, cast

from langgraft._core.canonical import JSON
from langgraft.memory.episodes import Episode, render_trajectory
from langgraft.memory.items import MemoryItem
from langgraft.memory.providers.expel.rules import Rule
from langgraft.memory.providers.expel.settings import VoteSettings
from langgraft.memory.questions import Question

KIND: Final = "votes"
"""Kind of the question."""

_OUTCOMES: Final = {True: "success", False: "failure", None: "not known"}


def votes_question(
    episode: Episode,
    rules: Sequence[Rule],
    settings: VoteSettings,
    *,
    other: MemoryItem | None,
    successes: Sequence[MemoryItem],
) -> Question:
    """Ask what should become of the rules, now that an episode is over.

    ============  ==========================================================================
    shows         what it is
    ============  ==========================================================================
    `task`        the instruction
    `outcome`     `success`, `failure` or `not known`
    `trajectory`  the episode, its middle left out where it is long
    `rules`       id → `{"text", "votes"}`, the most votes first
    `limit`       how many operations count, one per rule
    `full`        the list is at its capacity: remove rather than add
    `other`       `{"id", "outcome", "trajectory"}` of the same task with the other outcome,
                  where there is one: what made the difference?
    `successes`   id → text of the latest successes, where a batch of them is complete: what
                  do they have in common with each other and with this one?
    ============  ==========================================================================

    The verdicts' actions are `add` (with a text), `agree`, `edit` (with a text) and `remove`.
    """
    bounded = partial(_bounded, limit=settings.shown_characters)
    shows: dict[str, JSON] = {
        "task": episode.task,
        "outcome": _OUTCOMES[episode.outcome.success],
        "trajectory": bounded(render_trajectory(episode.steps, result="")),
        "rules": {rule.item.id: {"text": rule.item.text, "votes": rule.votes} for rule in rules},
        "limit": settings.max_operations,
        "full": len(rules) >= settings.max_rules,
    }
    if other is not None:
        shows["other"] = {
            "id": other.id,
            "outcome": _OUTCOMES[other.success],
            "trajectory": bounded(other.text),
        }
    if successes:
        shows["successes"] = {item.id: bounded(item.text) for item in successes}
    return Question(KIND, episode.id, shows)


def trajectories_shown(question: Question) -> list[str]:
    """Return the ids of the trajectories of the bank that a question shows."""
    other = cast("Mapping[str, str]", question.shows.get("other", {}))
    successes = cast("Mapping[str, str]", question.shows.get("successes", {}))
    return [*([other["id"]] if other else []), *successes]


def _bounded(text: str, limit: int) -> str:
    """Leave out the middle of a long text: how it began, and how it ended, tell the most."""
    if len(text) <= limit:
        return text
    end = limit // 2
    left_out = f"\n[… {len(text) - limit} characters left out …]\n"
    return text[: limit - end] + left_out + text[len(text) - end :]
