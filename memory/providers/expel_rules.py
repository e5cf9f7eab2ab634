"""The items of `ExpeL`, and rules among them that live by votes: which count, and what they change.

Everything goes by ids. ExpeL's code looks for one rule's text within another's, so that a short
rule is hit by votes for a longer one; here texts are compared only to see what is there already.
"""

import itertools
import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Final, TypeAlias, cast

from pydantic import Field as SettingsField

from langgraft._core.arguments import Settings
from langgraft._core.canonical import JSON
from langgraft.memory.forgetting import VOTES
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    By,
    Change,
    Episode,
    MemoryItem,
    Question,
    Remove,
    Verdict,
)
from langgraft.memory.provenance import with_sources
from langgraft.memory.provider import with_feedback
from langgraft.memory.providers.episode_items import (
    authors,
    excerpt,
    render_lesson,
    render_note,
    render_trajectory,
)
from langgraft.memory.recall import Filter, made_of
from langgraft.memory.sources import FEEDBACK

Count = Annotated[int, SettingsField(ge=1)]

Scored: TypeAlias = tuple[MemoryItem, float]


class VoteSettings(Settings):
    """How rules live by votes; the defaults are those of ExpeL (arXiv:2308.10144) and its code."""

    max_rules: Count = 20
    """From how many rules on the list counts as full: a judge is told to remove before adding.
    ExpeL's code has 20. It is advice; the limit that `manage` enforces is `max_insights`, whose
    140 are memory-transplants' figure for a list without votes."""
    full_margin: int = SettingsField(default=5, ge=0)
    """How many rules beyond `max_rules` make removals weigh more."""
    added: Count = 2
    """Votes that a rule starts with. An imported rule starts with as many."""
    removal: Count = 1
    """Votes that a removal takes."""
    removal_when_full: Count = 3
    """Votes that it takes from `max_rules` and `full_margin` together on."""
    max_operations: Count = 4
    """Operations that count per episode, one per rule."""
    success_batch: int | None = SettingsField(default=8, ge=2)
    """Each time as many episodes have succeeded, the latest successes are shown together with the
    episode, for what they have in common. ExpeL does so offline, in chunks of 8; `None`: never."""
    shown_characters: Count = 4000
    """Characters shown of each trajectory, its middle left out. ExpeL shows all that the
    model's window holds; eight times 4,000 are about 8,000 tokens."""


INSIGHTS: Final[Filter] = {"item.type": "strategic"}
"""Filter of insights."""

TRAJECTORIES: Final[Filter] = {"item.type": {"$ne": "strategic"}}
"""Filter of trajectories."""


def is_insight(item: MemoryItem) -> bool:
    """Say whether an item is an insight; all others count as trajectories.

    The type alone says it, so that an imported item has its place without more ado.
    """
    return item.type == "strategic"


def insight_of(episode: Episode, order_index: int, *, part_characters: int) -> MemoryItem:
    """Put an episode's lessons into one insight, found by its own text.

    Where no lesson was drawn, it is what a note would say, and its author the rules.
    """
    text = "\n".join(map(render_lesson, episode.lessons))
    by: By = "rules" if authors(episode.lessons) or not text else "model"
    text = text or render_note(episode, part_characters=part_characters)
    return insight(episode, f"{episode.id}/insight", text, order_index, by=by)


def insight(episode: Episode, identity: str, text: str, order_index: int, *, by: By) -> MemoryItem:
    """Make an insight or a rule; one that no model wrote says so in its metadata."""
    return MemoryItem(
        id=identity,
        text=text,
        type="strategic",
        source_domain=episode.domain,
        episode_id=episode.id,
        success=episode.outcome.success,
        order_index=order_index,
        task_id=episode.task_id,
        metadata={"by": by} if by == "rules" else {},
    )


def with_other_outcome(episode: Episode, items: Sequence[MemoryItem]) -> MemoryItem | None:
    """Find the latest trajectory of the same task that ended the other way."""
    if episode.outcome.success is None or not episode.task_id:
        return None
    others = [
        item
        for item in items
        if (item.source_domain, item.task_id) == (episode.domain, episode.task_id)
        and not is_insight(item)
        and item.success is (not episode.succeeded)
    ]
    return max(others, key=lambda item: item.order_index, default=None)


def latest_successes(items: Sequence[MemoryItem], limit: int) -> list[MemoryItem]:
    """Find the last successful trajectories, the latest one last."""
    successes = [item for item in items if item.success and not is_insight(item)]
    return sorted(successes, key=lambda item: item.order_index)[-limit:]


def one_per_task(ranked: Sequence[Scored]) -> list[Scored]:
    """Keep the shortest trajectory of each task, best first; without a task, each counts."""
    shortest: dict[tuple[str, str], Scored] = {}
    for item, score in ranked:
        task = (item.source_domain, item.task_id) if item.task_id else ("", item.id)
        known = shortest.get(task)
        if known is None or len(item.text) < len(known[0].text):
            shortest[task] = (item, score)
    return sorted(shortest.values(), key=lambda scored: -scored[1])


logger = logging.getLogger(__name__)

HISTORY: Final = "history"
"""Note: the ids that a rule had before it was edited, oldest first."""

ORDER: Final = ("remove", "agree", "edit", "add")
"""The order in which operations take effect, as in ExpeL's code."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as the bank holds it."""

    item: MemoryItem
    votes: int
    history: tuple[str, ...] = ()


def rules_of(content: BankContent, settings: VoteSettings) -> list[Rule]:
    """List the rules of a bank: the most votes first, then the oldest.

    An insight from before votes were counted has those of a new rule.
    """
    rules = [
        _rule(item, content.notes.get(identity, {}), settings)
        for identity, item in content.items.items()
        if is_insight(item)
    ]
    return sorted(rules, key=lambda rule: (-rule.votes, rule.item.order_index, rule.item.id))


def _rule(item: MemoryItem, notes: Mapping[str, JSON], settings: VoteSettings) -> Rule:
    votes = cast("int", notes.get(VOTES, settings.added))
    return Rule(item, votes, tuple(cast("Sequence[str]", notes.get(HISTORY, ()))))


def operations(
    verdicts: Sequence[Verdict], rules: Sequence[Rule], settings: VoteSettings
) -> list[Verdict]:
    """Choose the verdicts that count, in the order in which they take effect.

    Of those that can be carried out, the first `max_operations` count, one per rule.

    =============================================  ==================================
    verdict                                        counts
    =============================================  ==================================
    of another action, or on an id not shown       not; logged
    `add` or `edit` without a text                 not; logged
    `add` of a rule that is there                  not; logged
    `edit` to the text of a rule that is there     as `agree` with that rule
    second one on a rule, or with the same text    not; logged
    =============================================  ==================================
    """
    shown = {rule.item.id for rule in rules}
    held = {_normal(rule.item.text): rule.item.id for rule in reversed(rules)}
    targets: set[str | None] = set()
    texts: set[str] = set()
    counted: list[Verdict] = []
    for verdict in verdicts:
        read = _read(verdict, shown, held)
        if read is None or read.item_id in targets or _normal(read.text) in texts:
            logger.info("verdict ignored: %r on %r", verdict.action, verdict.item_id)
            continue
        targets |= {read.item_id} - {None}
        texts |= {_normal(read.text)} - {""}
        counted.append(read)
    chosen = counted[: settings.max_operations]
    return sorted(chosen, key=lambda each: ORDER.index(each.action))


def _read(verdict: Verdict, shown: Container[str], held: Mapping[str, str]) -> Verdict | None:
    """Return a verdict as an operation that can be carried out, with no more than that needs."""
    text = verdict.text.strip()
    same = held.get(_normal(text))
    on_rule = verdict.item_id is not None and verdict.item_id in shown
    match verdict.action:
        case "add" if text and same is None:
            return replace(verdict, item_id=None, text=text)
        case "edit" if text and on_rule and same is None:
            return replace(verdict, text=text)
        case "edit" if text and on_rule:
            return replace(verdict, action="agree", item_id=same, text="")
        case "agree" | "remove" if on_rule:
            return replace(verdict, text="")
        case _:
            return None


def _normal(text: str) -> str:
    """Return what equal rules share: case and white space make no difference."""
    return " ".join(text.split()).casefold()


def changes_of(
    chosen: Sequence[Verdict],
    rules: Sequence[Rule],
    settings: VoteSettings,
    make: Callable[[Verdict], MemoryItem],
) -> list[Change]:
    """Say what operations change, in their order; `make` makes a new rule of a verdict's text."""
    standing = {rule.item.id: rule for rule in rules}
    full = len(rules) >= settings.max_rules + settings.full_margin
    penalty = settings.removal_when_full if full else settings.removal
    changes: list[Change] = []
    for each in chosen:
        match each.action:
            case "remove":
                changes.append(_voted(standing[cast("str", each.item_id)], -penalty))
            case "agree":
                changes.append(_voted(standing[cast("str", each.item_id)], 1))
            case "edit":
                changes += _edited(standing[cast("str", each.item_id)], make(each))
            case _:
                item = make(each)
                changes += [Add(item), Annotate(item.id, {VOTES: settings.added})]
    return changes


def rule_maker(
    episode: Episode,
    taken: Container[str],
    order_index: int,
    *,
    shown: Sequence[MemoryItem] = (),
    rules: Sequence[Rule] = (),
) -> Callable[[Verdict], MemoryItem]:
    """Return what makes an episode's new rules, one after the other, under names that are free.

    An imported bank may hold rules of an episode of the same name, and verdicts name them. A rule
    that was worded with trajectories (`shown`) and other `rules` at hand follows from these, and owes
    gold answers as much as the trajectories do.
    """
    by_oracle = any(item.metadata.get(FEEDBACK) == "oracle" for item in shown)
    sources = made_of([*shown, *(rule.item for rule in rules)])
    names = (f"{episode.id}/rule-{number}" for number in itertools.count())
    free = (name for name in names if name not in taken)
    places = zip(free, itertools.count(order_index), strict=False)

    def make(verdict: Verdict) -> MemoryItem:
        name, order = next(places)
        rule = with_sources(insight(episode, name, verdict.text, order, by=verdict.by), sources)
        return with_feedback(rule, "oracle") if by_oracle else rule

    return make


def _voted(rule: Rule, votes: int) -> Change:
    if rule.votes + votes <= 0:
        return Remove(rule.item.id, "no votes left")
    return Annotate(rule.item.id, {VOTES: rule.votes + votes})


def _edited(rule: Rule, item: MemoryItem) -> list[Change]:
    """Put a rule in the place of another: votes and history move over, counted uses do not.

    Those were earned by another text. A rule that owes something to gold answers, or to the
    agent's own judgment, does so in other words too.
    """
    if FEEDBACK in rule.item.metadata:
        item = with_feedback(item, rule.item.metadata[FEEDBACK])
    item = with_sources(item, made_of([rule.item]))
    history = [*rule.history, rule.item.id]
    notes: dict[str, JSON] = {VOTES: rule.votes + 1, HISTORY: history}
    return [Remove(rule.item.id, "edited"), Add(item), Annotate(item.id, notes)]


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
    bounded = partial(excerpt, characters=settings.shown_characters)
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
