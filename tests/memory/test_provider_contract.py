"""The four hardest cases of the provider contract, each as a small provider."""

import itertools
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import pytest
from langgraph.store.base import Item
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory import bank
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    Episode,
    ErrorRecord,
    MemoryDelta,
    MemoryItem,
    Question,
    Remove,
    Verdict,
    fold,
)
from langgraft.memory.provider import EPISODES, MemoryProvider
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.memory.rankers import BM25
from langgraft.memory.recall import Found, RecallContext, ranked_items
from langgraft.memory.settings import ProviderSettings, RankedSettings
from langgraft.memory.stores.programs import Program


def make(identity: str, text: str, episode: Episode, order_index: int) -> MemoryItem:
    """Make an item learned in an episode."""
    return MemoryItem(
        id=identity,
        text=text,
        type="strategic",
        source_domain=episode.domain,
        episode_id=episode.id,
        success=episode.succeeded,
        order_index=order_index,
    )


# ExpeL's votes ----------------------------------------------------------------------------


class VotedRules(MemoryProvider[ProviderSettings]):
    """Rules that a judge adds, agrees with, edits and removes; at zero votes they go."""

    name: ClassVar[str] = "voted rules"

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        content = yield from bank.read_content(self.namespace)
        return Found(tuple((item, float(_votes(content, item.id))) for item in _by_votes(content)))

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        content = yield from bank.read_content(self.namespace)
        rules = {item.id: item.text for item in _by_votes(content)}
        return [Question("votes", episode.id, {"task": episode.task, "rules": rules})]

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        content = yield from bank.read_content(self.namespace)
        standing = yield from self._standing(episode.verdicts)
        changes: list[Change] = []
        orders = itertools.count(order_index)

        def do(*made: Change) -> None:
            for change in made:
                content.apply(change)
                changes.append(change)

        for number, verdict in enumerate(standing):
            old = cast("str", verdict.item_id)
            new = f"{episode.id}/rule-{number}"
            match verdict.action:
                case "add":
                    do(Add(make(new, verdict.text, episode, next(orders))))
                    do(Annotate(new, {"votes": 2}))
                case "agree":
                    do(Annotate(old, {"votes": _votes(content, old) + 1}))
                case "edit":
                    votes = _votes(content, old) + 1
                    do(Remove(old, f"edited: {new}"))
                    do(Add(make(new, verdict.text, episode, next(orders))))
                    do(Annotate(new, {"votes": votes}))
                case "remove" if _votes(content, old) > 1:
                    do(Annotate(old, {"votes": _votes(content, old) - 1}))
                case "remove":
                    do(Remove(old, "no votes left"))
        return changes


def _votes(content: BankContent, identity: str) -> int:
    return cast("int", content.notes.get(identity, {}).get("votes", 0))


def _by_votes(content: BankContent) -> list[MemoryItem]:
    return sorted(
        content.items.values(), key=lambda item: (-_votes(content, item.id), item.order_index)
    )


def judged(memory: MemoryProvider[Any], identity: str, *verdicts: tuple[str, str, str]) -> Episode:
    """Return an episode with answers to all that memory asks about it."""
    episode = make_episode(identity)
    (question,) = memory.questions(episode)
    answered = tuple(
        Verdict(question.id, action, item_id or None, text) for action, item_id, text in verdicts
    )
    return make_episode(identity, verdicts=answered)


def test_votes_when_rules_are_added_agreed_edited_and_removed_follow_the_verdicts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Votes are notes, an edited rule is a new item with its votes, and zero votes remove it."""
    memory = VotedRules(InMemoryStore())
    log = [memory.file(judged(memory, "e1", ("add", "", "look"), ("add", "", "wait")))]
    look, wait = "e1/rule-0", "e1/rule-1"
    shown = memory.questions(make_episode("e2"))[0].shows["rules"]
    assert shown == {look: "look", wait: "wait"}

    log.append(
        memory.file(
            judged(memory, "e2", ("agree", look, ""), ("remove", wait, ""), ("remove", wait, ""))
        )
    )
    log.append(memory.file(judged(memory, "e3", ("edit", look, "look twice"))))
    content = memory.content()
    assert [item.text for item in content.items.values()] == ["look twice"]
    assert content.notes == {"e3/rule-0": {"votes": 4}}

    with caplog.at_level(logging.INFO, logger="langgraft.memory"):
        late = judged(memory, "e4", ("agree", wait, ""), ("agree", "e3/rule-0", ""))
        log.append(memory.file(late))
    assert caplog.messages == [f"verdict ignored: item {wait!r} is no longer in the bank"]
    assert memory.content().notes == {"e3/rule-0": {"votes": 5}}
    assert fold(log).to_bytes() == memory.content().to_bytes()


def test_question_when_answered_is_not_asked_again_until_the_bank_moves() -> None:
    """Questions change nothing, and name what they show."""
    memory = VotedRules(InMemoryStore())
    episode = judged(memory, "e1", ("add", "", "look"))
    before = memory.content().digest
    assert memory.questions(episode) == []
    assert memory.content().digest == before
    memory.file(judged(memory, "e0", ("add", "", "wait")))
    assert len(memory.questions(episode)) == 1


# CodingMemory's ADD/NONE with parallel branches ----------------------------------------------


class NovelFixes(MemoryProvider[RankedSettings]):
    """Keeps a fix if a judge finds it new against the five nearest."""

    name: ClassVar[str] = "novel fixes"
    settings_model = RankedSettings

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return (yield from ranked_items(self.namespace, query, 5))

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        questions: list[Question] = []
        for error in episode.errors:
            nearest = yield from ranked_items(self.namespace, error.error, 5)
            texts: dict[str, JSON] = {item.id: item.text for item, _ in nearest.items}
            shows: dict[str, JSON] = {"error": error.error, "nearest": texts}
            questions += [Question("novelty", episode.id, shows)]
        return questions

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        asked = yield from self._ask(episode)
        answers = {each.question_id: each.action for each in episode.verdicts}
        novel = [
            error
            for error, question in zip(episode.errors, asked, strict=True)
            if answers.get(question.id) == "add"
        ]
        return [
            Add(make(f"{episode.id}/{number}", error.error, episode, order_index + number))
            for number, error in enumerate(novel)
        ]


def novelty(question: Question) -> Verdict:
    """Judge: an error is new unless the same text is shown."""
    nearest = cast("dict[str, str]", question.shows["nearest"])
    known = question.shows["error"] in nearest.values()
    return Verdict(question.id, "none" if known else "add")


def with_errors(identity: str, *errors: str) -> Episode:
    """Make an episode that met errors."""
    return make_episode(
        identity, errors=tuple(ErrorRecord("numpy", error, "a fix") for error in errors)
    )


def answered(memory: MemoryProvider[Any], episode: Episode, calls: list[str]) -> Episode:
    """Answer what is open, as a node would."""
    asked = memory.questions(episode)
    calls += [episode.id] * len(asked)
    verdicts = (*episode.verdicts, *map(novelty, asked))
    return make_episode(episode.id, errors=episode.errors, verdicts=verdicts)


@pytest.mark.parametrize("first", ["left", "right"])
def test_novelty_when_branches_ran_side_by_side_does_not_depend_on_who_was_first(
    first: str,
) -> None:
    """The fan-in files in task order and asks again what an earlier filing made stale."""
    settings = RankedSettings(ranker=BM25())
    memory = NovelFixes(InMemoryStore(), settings=settings)
    branches = {
        "left": with_errors("left", "shape mismatch in dot"),
        "right": with_errors("right", "shape mismatch in dot", "file not found"),
    }
    calls: list[str] = []
    second = ({"left", "right"} - {first}).pop()
    for name in (first, second):  # both judged against the empty bank
        branches[name] = answered(memory, branches[name], calls)
    assert len(calls) == 3

    log = [memory.file(answered(memory, branches[name], calls)) for name in sorted(branches)]
    # "shape mismatch" was asked again; "file not found" shows the same nothing as before.
    assert calls[3:] == ["right"]
    texts = {item.id: item.text for item in memory.content().items.values()}
    assert texts == {"left/0": "shape mismatch in dot", "right/0": "file not found"}
    assert fold(log).to_bytes() == memory.content().to_bytes()


def test_novelty_when_the_verdict_is_stale_counts_as_none() -> None:
    """A provider that is handed an old answer does not act on it."""
    memory = NovelFixes(InMemoryStore(), settings=RankedSettings(ranker=BM25()))
    stale = answered(memory, with_errors("right", "shape mismatch"), [])
    memory.file(answered(memory, with_errors("left", "shape mismatch"), []))
    memory.file(stale)
    assert list(memory.content().items) == ["left/0"]


# LightweightMemory's cadence ------------------------------------------------------------------


class EveryThird(InsightMemory):
    """Recalls in every third episode only."""

    name: ClassVar[str] = "every third"

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        index = context.episode_index
        if index is None:
            (count,) = yield from bank.read_state(self.namespace, [EPISODES])
            index = cast("int", count or 0)
        if index % 3:
            return Found()
        return (yield from super()._recall(query, context))


def asked_in(memory: MemoryProvider[Any], index: int | None) -> bool:
    """Say whether memory answers in an episode."""
    return bool(memory.provide("open the red door", asking(episode_index=index)))


def test_cadence_when_the_stream_says_the_position_follows_it() -> None:
    """Asking out of order, twice, or after a crash changes nothing."""
    memory = EveryThird(InMemoryStore())
    memory.file(make_episode("e0"))
    for index in (0, 1, 2, 3, 3, 2, 0, 6, 7):
        assert asked_in(memory, index) is (index % 3 == 0)


def test_cadence_when_there_is_no_stream_counts_the_episodes_in_the_bank() -> None:
    """The count is in the log: a restored bank goes on where the old one was."""
    memory = EveryThird(InMemoryStore())
    log: list[MemoryDelta] = []
    for number in range(7):
        restored = EveryThird(InMemoryStore())
        restored.restore(fold(log))
        expected = number > 0 and number % 3 == 0
        assert asked_in(memory, None) is asked_in(restored, None) is expected
        assert asked_in(memory, None) is expected
        log.append(memory.file(make_episode(f"e{number}")))


# Cond-Step's re-query --------------------------------------------------------------------------


def _step() -> MemoryProvider[Any]:
    settings = InsightSettings(granularity="individual", top_k=3, requery_interval=4)
    return InsightMemory(InMemoryStore(), settings=settings)


@pytest.mark.parametrize("build", [_step, lambda: EveryThird(InMemoryStore())])
def test_requery_when_repeated_in_any_order_gives_the_same_and_changes_nothing(
    build: Callable[[], MemoryProvider[Any]],
) -> None:
    """Each question stands for itself; receipts name the step they were given at."""
    memory = build()
    for number in range(3):
        memory.file(make_episode(f"e{number}"))
    before = memory.content().to_bytes()
    contexts = [
        asking(step=step, stage="step" if step else "start", observation=seen, episode_index=0)
        for step, seen in ((0, "a room"), (4, "a door"), (8, "look around"))
    ]
    forward = [memory.provide("open the red door", context) for context in contexts]
    backward = [memory.provide("open the red door", context) for context in reversed(contexts)]
    assert forward == backward[::-1]
    assert [recall.receipt.step for recall in forward] == [0, 4, 8]
    assert len({recall.receipt.id for recall in forward}) == 3
    receipts = tuple(recall.receipt for recall in forward)
    assert memory.content().to_bytes() == before
    delta = memory.file(make_episode("next", recalls=receipts))
    assert delta
    assert not memory.file(make_episode("next", recalls=receipts))


def test_item_when_a_user_looks_into_the_store_is_a_plain_record() -> None:
    """Nothing in the store needs langgraft to be read."""
    store = InMemoryStore()
    memory = InsightMemory(store, namespace=("users", "ada"))
    memory.file(make_episode("e1"))
    found = store.get(memory.namespace, "item/e1/lessons")
    assert isinstance(found, Item)
    assert found.value["key"] == "open the red door"
    assert found.value["item"]["text"].startswith("- When")


# A beginner's slips -----------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, 400, "400", 1.5])
async def test_budget_when_it_is_a_bare_number_is_refused(budget: Any) -> None:
    """Zero would otherwise be no limit, and the others fail only once something is found."""
    memory = VotedRules(InMemoryStore())
    with pytest.raises(SettingsError, match=r"must be a Budget or None, got .*Budget\(tokens=…\)"):
        memory.provide("a task", asking(), budget)
    with pytest.raises(SettingsError, match=r"must be a Budget or None, got .*Budget\(tokens=…\)"):
        await memory.aprovide("a task", asking(), budget)


async def _async(*_: object) -> Any:
    return []


_HOOKS = pytest.mark.parametrize(
    ("hook", "call"),
    [
        ("_recall", lambda memory: memory.provide("a task", asking())),
        ("_learn", lambda memory: memory.file(make_episode())),
        ("_ask", lambda memory: memory.questions(make_episode())),
        ("_ask_draft", lambda memory: memory.draft_questions("a task", asking())),
        ("_maintain", lambda memory: memory.manage()),
    ],
)


@_HOOKS
def test_hook_when_it_is_async_is_told_in_one_line(
    hook: str, call: Callable[[MemoryProvider[Any]], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coroutine is no value of a hook, and nothing is changed."""
    memory = VotedRules(InMemoryStore())
    monkeypatch.setattr(VotedRules, hook, _async)
    with pytest.raises(SettingsError, match="`_async` is async: make it a plain function"):
        call(memory)
    assert memory.content() == BankContent()


@_HOOKS
def test_hook_when_it_is_a_plain_function_does_what_a_generator_does(
    hook: str, call: Callable[[MemoryProvider[Any]], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook that reads nothing may return its value."""
    returned: Any = Found(()) if hook == "_recall" else []

    def yielding(*_: object) -> Any:
        return returned
        yield

    answers = []
    for made in (lambda *_: returned, yielding):
        memory = VotedRules(InMemoryStore())
        monkeypatch.setattr(VotedRules, hook, made)
        answers.append((call(memory), memory.content()))
    assert answers[0] == answers[1]
