"""Judging: what is asked of a model, and what becomes of the answers."""

from dataclasses import replace

from langgraft.memory.deltas import Annotate, Remove, fold
from langgraft.memory.questions import Verdict
from langgraft.memory.testing.providers.samples import ACTIONS, context_of
from langgraft.memory.testing.providers.suite import Make, NewStore, ProviderSuite
from langgraft.memory.testing.suite import needs

GONE = "an item that is not there"


class JudgingCases(ProviderSuite):
    """A provider asks, a node answers, and the answers come back as verdicts."""

    def test_questions_when_asked_twice_are_the_same_and_answered_are_gone(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """A question is named by what it shows; one that was answered is not put again."""
        memory = self.filled(make, make_writer, new_store())
        episode = self.episode(self.episodes)
        asked = memory.questions(episode)
        assert asked == memory.questions(episode)
        assert len({question.id for question in asked}) == len(asked)
        for question in asked:
            verdict = Verdict(question.id, "none")
            left = memory.questions(replace(episode, verdicts=(verdict,)))
            assert left == [each for each in asked if each.id != question.id]

    def test_draft_questions_when_asked_twice_are_the_same_and_answered_are_gone(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """So it is with what is asked about a draft."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            context = context_of(episode)
            asked = memory.draft_questions(episode.task, context)
            assert asked == memory.draft_questions(episode.task, context)
            for question in asked:
                judged = replace(context, verdicts=(Verdict(question.id, "none"),))
                left = memory.draft_questions(episode.task, judged)
                assert left == [each for each in asked if each.id != question.id]

    @needs("learns")
    def test_verdicts_when_their_item_has_gone_are_ignored(
        self, make: Make, new_store: NewStore
    ) -> None:
        """Nothing is done to an item that is not there, whatever a judge says of it."""
        memory = make(new_store())
        log = self.learn(memory)
        number = self.episodes
        for action in ACTIONS:
            episode = self.episode(number)
            number += 1
            said = tuple(
                Verdict(question.id, action, GONE, "other words")
                for question in memory.questions(episode)
            )
            stray = Verdict("a question nobody asked", action, GONE, "other words")
            delta = memory.file(replace(episode, verdicts=(*said, stray)))
            changed = [change for change in delta if isinstance(change, Remove | Annotate)]
            assert GONE not in {change.id for change in changed}
            log.append(delta)
        assert fold(log).to_bytes() == memory.content().to_bytes()

    def test_verdicts_on_a_draft_when_their_item_has_gone_are_ignored(
        self, make: Make, make_writer: Make, new_store: NewStore
    ) -> None:
        """A recall is what it would be without them."""
        memory = self.filled(make, make_writer, new_store())
        for episode in self.stream():
            context = context_of(episode)
            stray = tuple(Verdict("a question nobody asked", action, GONE) for action in ACTIONS)
            expected = memory.provide(episode.task, context)
            recall = memory.provide(episode.task, replace(context, verdicts=stray))
            assert recall.items == expected.items
