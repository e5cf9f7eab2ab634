"""`ExpeL`: insights and trajectories side by side (memory-transplants §4.2, arXiv:2308.10144)."""

import logging
from collections.abc import Collection, Sequence
from functools import partial
from typing import ClassVar, Final, Self, cast

from pydantic import Field as SettingsField
from pydantic import SkipValidation, model_validator
from typing_extensions import override

from langgraft._core.canonical import portable_text
from langgraft.memory import bank
from langgraft.memory.forgetting import VOTES, NotedItem
from langgraft.memory.forgetting import Votes as ForgetByVotes
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    Episode,
    MemoryItem,
    Question,
    SetState,
)
from langgraft.memory.provider import FILED, MemoryProvider, Need
from langgraft.memory.providers.episode_items import (
    FifoOrder,
    places_closed,
    places_left,
    trajectory_of,
)
from langgraft.memory.providers.expel_rules import (
    INSIGHTS,
    TRAJECTORIES,
    Count,
    VoteSettings,
    changes_of,
    insight_of,
    is_insight,
    latest_successes,
    one_per_task,
    operations,
    rule_maker,
    rules_of,
    trajectories_shown,
    votes_question,
    with_other_outcome,
)
from langgraft.memory.providers.retrieval import RetrievalSettings, choose, retrieve
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import Filter, Found, Pool, RecallContext, ranked_items, searched
from langgraft.memory.stores.programs import Program

logger = logging.getLogger(__name__)

SUCCEEDED: Final = "succeeded"
"""Bookkeeping, with votes: how many of the episodes taken in succeeded."""


class ExpeLSettings(RetrievalSettings):
    """Settings of `ExpeL`; the defaults are memory-transplants' §4.2 where it has one."""

    max_insights: Count = 140
    """Insights that `manage` leaves (§4.2): the newest, or with votes those that have the most."""
    max_trajectories: Count = 140
    """Trajectories that `manage` leaves, the newest ones (§4.2)."""
    insight_share: float = SettingsField(default=0.65, gt=0, lt=1)
    """Part of the token budget for insights; the rest is for trajectories (§4.2: 65/35)."""
    part_characters: Count = 400
    """As `NoteSettings` has it, for insights that no lesson made."""
    trajectory_characters: Count | None = None
    """Most characters of a trajectory, a third of them for the task; of a longer one the middle is
    left out. `None`: all of it, which a share of a small budget may never have room for: 35 % of
    400 tokens are about 480 characters."""
    top_k: Count = 5
    """Most insights per recall: the first that fit their share; with votes all rules come, as far as their share goes. The paper names
    shares of the budget and no number of items; 5 as in `SimpleRAG`."""
    top_k_trajectories: Count = 2
    """Most trajectories per recall: the first that fit theirs. Not in the paper either; ExpeL shows 2 in ALFWorld."""
    votes: VoteSettings | None = None
    """Let a judge add, agree with, edit and remove rules, as ExpeL does; `None` keeps what
    reflection says of each episode, as memory-transplants does."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """The paper does not name ExpeL's ranking, and its other baseline is lexical. BM25 is exact
    and needs no embedding model, which ExpeL's own (all-mpnet-base-v2) would have to download;
    a query's rare words, which tell tasks apart, count most. Of equals the newest comes first."""

    @model_validator(mode="after")
    def _room_for_rules(self) -> Self:
        if self.votes is not None and self.votes.max_rules > self.max_insights:
            msg = (
                f"votes.max_rules is {self.votes.max_rules}, beyond max_insights"
                f" {self.max_insights}: rules would be forgotten before the list is full"
            )
            raise ValueError(msg)
        return self


class ExpeL(MemoryProvider[ExpeLSettings]):
    """Keeps what was learned of each episode and the episode itself, and recalls both.

    As memory-transplants simplifies it (§4.2, App. B), an episode leaves an insight, made of its
    lessons, and a trajectory; where no lesson was drawn, the insight is what a note says, for memory
    calls no model that could draw one. Each kind has its own capacity, first in first out,
    and its own share of the token budget: what insights leave of theirs, trajectories do not get.
    Both are ranked against the query, insights by their text and trajectories by their task.

    With `votes`, insights are ExpeL's rules. A judge answers one question per episode
    (`votes_question`), and its verdicts add a rule (2 votes), agree with one (+1), edit one (+1),
    or remove one (-1; -3 from 25 rules on); without votes left, a rule goes. Only verdicts that
    answer the question as the bank stands when the episode is filed count: one on a rule that has
    moved meanwhile does not, and the question is open again. All rules are recalled, the most
    votes first, with the successful trajectories of the most similar other tasks.

    =================  =====================================  ===================================
    what               ExpeL                                  here
    =================  =====================================  ===================================
    gathering          offline, with up to 3 Reflexion        none: episodes come as they are,
                       retries per training task              one after the other
    extraction         offline, over all pairs of a success   one question per episode when it
                       and a failure of a task, then over     ends, with the latest episode of
                       shuffled chunks of 8 successes         the task that ended the other way
                                                              and, at every 8th success, the 7
                                                              before it
    operations         4 per prompt; `AGREE` and `REMOVE`     4 per episode, one per rule; all by
                       hit rules whose text contains the      id; of texts that are equal (case
                       one quoted; an `ADD` or `EDIT` with    and spaces aside) one stays
                       an operation's name is lost
    an edited rule     another text in the same place         another item, with the votes and
                                                              the ids it had before; counted uses
                                                              start afresh
    a full list        20 rules: a sentence in the prompt     `full` in the question; 20 and 25
                       asks to remove; 25: -3 for each        alike; `manage` keeps 140
    trajectories       all-mpnet-base-v2 and FAISS, of the    any ranker (BM25), of all domains,
    recalled           same type of environment; no longer    within their share of the budget;
                       than the longest example written by    without votes failures too, as in
                       hand; successes of other tasks, the    memory-transplants
                       shortest of each
    when               an index is built anew at every step,  at the start of an episode
                       and also asked by thoughts, actions
                       and reflections
    place              trajectories stand for the few-shot    rules and trajectories in one block
                       examples, rules in the instruction
    =================  =====================================  ===================================

    What an item is follows from its type: `strategic` is an insight or a rule, everything else a
    trajectory. Import keeps items as they are; each imported rule starts with the votes of a new
    one, whatever it had where it comes from.
    """

    name: ClassVar[str] = "expel"
    settings_model = ExpeLSettings

    @property
    @override
    def revokes_exactly(self) -> bool:
        return self.settings.votes is None

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """Lessons; with votes answers instead."""
        return frozenset({"lessons"} if self.settings.votes is None else {"verdicts"})

    # Recall -------------------------------------------------------------------------------

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        if self.settings.votes is None:
            return (yield from searched(partial(self._both, query, context)))
        insights = yield from self._rules(query, self.settings.votes)
        trajectories = yield from self._successes(query, context)
        return self._side_by_side(insights, trajectories)

    @override
    def _pool(self, item: MemoryItem) -> Pool:
        settings = self.settings
        if is_insight(item):
            most = settings.top_k if settings.votes is None else None
            return Pool("insights", settings.insight_share, most)
        return Pool("trajectories", 1 - settings.insight_share, settings.top_k_trajectories)

    def _side_by_side(self, insights: Found, trajectories: Found) -> Found:
        items = (*insights.items, *trajectories.items)
        ranked = [found for found in (insights, trajectories) if found.tied]
        best = max((found.items[0][1] for found in ranked), default=0.0)
        return Found(
            items,
            trajectories.query,
            sum(found.tied for found in ranked if found.items[0][1] == best),
            tuple(self._pool(item) for item, _ in items),
        )

    def _both(self, query: str, context: RecallContext, times: int) -> Program[Found]:
        settings, found = self.settings, list[Found]()
        kinds = ((settings.top_k, INSIGHTS), (settings.top_k_trajectories, TRAJECTORIES))
        for limit, kind in kinds:
            where = {**self._task_filter(context), **kind}
            found.append(
                (
                    yield from retrieve(
                        self.namespace,
                        query,
                        settings,
                        domain=context.domain,
                        limit=times * limit,
                        where=where,
                    )
                )
            )
        return self._side_by_side(*found)

    def _rules(self, query: str, votes: VoteSettings) -> Program[Found]:
        content = yield from bank.read_content(self.namespace)
        rules = rules_of(content, votes)
        return Found(tuple((rule.item, float(rule.votes)) for rule in rules), query)

    def _successes(self, query: str, context: RecallContext) -> Program[Found]:
        """Find the successful trajectories of the most similar other tasks."""
        settings = self.settings
        where: Filter = {
            **TRAJECTORIES,
            "item.success": True,
            bank.TASK_FIELD: {"$ne": portable_text(context.task_id)},
        }
        # All that upkeep leaves: the shortest of a task may be the last of those that tie.
        found = yield from ranked_items(
            self.namespace, query, settings.max_trajectories, where=where
        )
        listed = one_per_task(found.items)
        limit = settings.top_k_trajectories
        chosen = choose(listed, settings, domain=context.domain, limit=limit)
        return Found(tuple(listed[place] for place in chosen), found.query, found.tied)

    # Learning -----------------------------------------------------------------------------

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        votes = self.settings.votes
        if votes is None:
            return ()
        content = yield from bank.read_content(self.namespace)
        if FILED + episode.id in content.state:
            return ()
        return (self._question(episode, content, votes),)

    def _question(self, episode: Episode, content: BankContent, votes: VoteSettings) -> Question:
        items = list(content.items.values())
        batch = votes.success_batch
        complete = (
            batch is not None and episode.succeeded and (_succeeded(content) + 1) % batch == 0
        )
        return votes_question(
            episode,
            rules_of(content, votes),
            votes,
            other=with_other_outcome(episode, items),
            successes=latest_successes(items, batch - 1) if batch and complete else (),
        )

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        changes: list[Change] = []
        settings = self.settings
        if settings.votes is None:
            made = insight_of(episode, order_index, part_characters=settings.part_characters)
            changes += yield from self._insights.add(made)
        else:
            changes += yield from self._judged(episode, order_index, settings.votes)
        new = sum(isinstance(change, Add) for change in changes)
        trajectory = trajectory_of(
            episode, order_index + new, characters=settings.trajectory_characters
        )
        return [*changes, *(yield from self._trajectories.add(trajectory))]

    def _judged(
        self, episode: Episode, order_index: int, votes: VoteSettings
    ) -> Program[list[Change]]:
        """Say what the verdicts on an episode change."""
        content = yield from bank.read_content(self.namespace)
        question = self._question(episode, content, votes)
        asked = question.id
        answers = [verdict for verdict in episode.verdicts if verdict.question_id == asked]
        if stale := len(episode.verdicts) - len(answers):
            logger.info("%d verdicts on episode %r answer no open question", stale, episode.id)
        rules = rules_of(content, votes)
        shown = [content.items[name] for name in trajectories_shown(question)]
        make = rule_maker(episode, content.items, order_index, shown=shown, rules=rules)
        changes = changes_of(operations(answers, rules, votes), rules, votes, make)
        if episode.succeeded:
            changes.append(SetState(SUCCEEDED, _succeeded(content) + 1))
        return changes

    # Upkeep -------------------------------------------------------------------------------

    @override
    def _maintain(self) -> Program[Sequence[Change]]:
        settings = self.settings
        trajectories = yield from self._trajectories.overflow(settings.max_trajectories)
        if settings.votes is None:
            insights = yield from self._insights.overflow(settings.max_insights)
            return [*insights, *trajectories]
        content = yield from bank.read_content(self.namespace)
        voted = [
            NotedItem(rule.item, {VOTES: rule.votes}) for rule in rules_of(content, settings.votes)
        ]
        voted.sort(key=lambda entry: entry.age)
        return [*ForgetByVotes(limit=settings.max_insights).forget(voted), *trajectories]

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        insights = [item for item in items if is_insight(item)]
        others = [item for item in items if not is_insight(item)]
        joined = yield from self._trajectories.join(others)
        if self.settings.votes is None:
            return [*(yield from self._insights.join(insights)), *joined]
        votes = self.settings.votes.added
        return [*(Annotate(item.id, {VOTES: votes}) for item in insights), *joined]

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        return () if new else places_left(content, old)

    @override
    def _withdraw(self, left: BankContent, episodes: Collection[str]) -> Sequence[Change]:
        return places_closed(left)

    @property
    def _insights(self) -> FifoOrder:
        return FifoOrder(self.namespace, "insights")

    @property
    def _trajectories(self) -> FifoOrder:
        return FifoOrder(self.namespace, "trajectories")


def _succeeded(content: BankContent) -> int:
    return cast("int", content.state.get(SUCCEEDED, 0))
