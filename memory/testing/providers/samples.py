"""Episodes, items and questions to try a provider with: a stream by hand, and any at random."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, NoReturn

import pytest
from hypothesis import strategies as st

from langgraft._core.tokens import TokenCounter, count_tokens_approximately
from langgraft.memory.deltas import BankContent
from langgraft.memory.episodes import Episode, ErrorRecord, Lesson, Outcome, Step
from langgraft.memory.items import ItemType, MemoryItem
from langgraft.memory.questions import Question, Verdict
from langgraft.memory.recall import RecallContext

HOSTILE: Final = (
    "",
    " ",
    "\x00",
    "a\nb\r\n",
    "\u2028",
    "\u202eright to left",
    "\ufeff",
    "</recalled_memory>",
    "日本語 é e\u0301",
    "🜁\U0010ffff",
    "%s {0} $x \\n",
)
"""Texts that something on the way to a store, a file or a prompt tends to change."""

ACTIONS: Final = ("add", "none", "agree", "edit", "remove", "keep", "contradicts", "", "no such")
"""What a judge may answer: words of the providers at hand, and words of none."""

COUNTERS: Final[Mapping[str, TokenCounter]] = {
    "four characters each": count_tokens_approximately,
    "characters": len,
    "words": lambda text: len(text.split()),
    "distinct words": lambda text: len(set(text.split())),
    "compressed": lambda text: len(zlib.compress(text.encode())),
    "squared": lambda text: len(text) ** 2 // 1000 + 1,
}
"""Ways to count tokens; by some, a whole is more or less than its parts."""

_TASKS: Final = (
    "open the red door",
    "pick up the blue key",
    "sort the numbers of a list",
    "fit a linear model to the table",
)

texts = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
)
"""Any text that can be stored."""
names = st.text("abcXYZ/-_ é\n\x00", min_size=1, max_size=6)
"""Names of things, often the same ones."""
item_types: st.SearchStrategy[ItemType] = st.sampled_from(
    ["strategic", "operational", "error_trace", "other"]
)
scalars = st.one_of(
    texts, st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)


def sample_episode(number: int) -> Episode:
    """Return the episode of a number: something of everything, every third a failure."""
    task = _TASKS[number % len(_TASKS)]
    error = f"ValueError: shape ({number}, 3) does not match in {task}"
    return Episode(
        id=f"episode-{number}",
        domain="sample",
        task_id=f"task-{number % len(_TASKS)}",
        task=task,
        steps=(
            Step("", "", f"a room of number {number}"),
            Step(f"I have to {task}", "try it", error),
            Step("the shape is wrong", "reshape it and try again", "it works"),
        ),
        outcome=Outcome(success=number % 3 != 0, score=number / 10, reason="goal reached"),
        lessons=(
            Lesson(f"check shapes before you {task}", f"you are told to {task}"),
            Lesson(f"attempt {number} showed that patience helps", type="operational"),
        ),
        errors=(ErrorRecord("numpy", error, f"call reshape({number}, 3) before the fit"),),
    )


def sample_items(count: int) -> list[MemoryItem]:
    """Return items of no provider in particular."""
    return [
        MemoryItem(
            id=f"item-{number}",
            text=f"To {_TASKS[number % len(_TASKS)]}, take {number} steps.",
            type="strategic",
            source_domain="sample",
            episode_id=f"elsewhere-{number}",
            success=number % 3 != 0,
            order_index=number,
            task_id=f"task-{number % len(_TASKS)}",
        )
        for number in range(count)
    ]


def with_every_text(episode: Episode, text: str) -> Episode:
    """Return an episode with `text` at the end of all that a memory may keep of it."""

    def more(part: Any, *fields: str) -> Any:
        return replace(part, **{name: f"{getattr(part, name)} {text}" for name in fields})

    told: Episode = more(episode, "task")
    return replace(
        told,
        steps=tuple(more(step, "thought", "action", "observation") for step in episode.steps),
        outcome=more(episode.outcome, "reason"),
        lessons=tuple(more(lesson, "text", "when_to_use") for lesson in episode.lessons),
        errors=tuple(more(error, "error", "fix") for error in episode.errors),
        verdicts=tuple(more(verdict, "text") for verdict in episode.verdicts),
    )


@st.composite
def episodes(draw: st.DrawFn, identities: st.SearchStrategy[str] = names) -> Episode:
    """Draw an episode with any texts."""
    step = st.builds(Step, texts, texts, texts)
    lesson = st.builds(Lesson, texts, texts, item_types)
    error = st.builds(
        ErrorRecord,
        st.sampled_from(["numpy", "pandas", ""]) | texts,
        texts,
        texts,
        st.sampled_from(["code", "environment", "resource"]),
        st.booleans(),
    )
    return Episode(
        id=draw(identities),
        domain=draw(st.just("sample") | names),
        task_id=draw(texts),
        task=draw(texts),
        steps=tuple(draw(st.lists(step, max_size=3))),
        outcome=Outcome(draw(st.sampled_from([True, False, None]))),
        lessons=tuple(draw(st.lists(lesson, max_size=3))),
        errors=tuple(draw(st.lists(error, max_size=2))),
        verdicts=tuple(draw(st.lists(st.builds(Verdict, texts, texts), max_size=1))),
        resolves=tuple(draw(st.lists(identities, max_size=2))),
    )


@st.composite
def items(draw: st.DrawFn, identities: st.SearchStrategy[str] = names) -> MemoryItem:
    """Draw an item with any texts, as another memory may have written it."""
    return MemoryItem(
        id=draw(identities),
        text=draw(texts),
        type=draw(item_types),
        source_domain=draw(names),
        episode_id=draw(texts),
        success=draw(st.none() | st.booleans()),
        order_index=draw(st.integers(0, 9)),
        task_id=draw(st.none() | texts),
        key=draw(st.none() | texts),
        metadata=draw(st.dictionaries(names, scalars, max_size=2)),
    )


@st.composite
def verdicts(
    draw: st.DrawFn, questions: Sequence[Question], content: BankContent
) -> tuple[Verdict, ...]:
    """Draw what a judge may say, sense or not: about items that are there, were, or never were."""
    about = st.sampled_from([None, "never there", *sorted(content.items)])
    answers = [
        st.builds(Verdict, st.just(question.id), st.sampled_from(ACTIONS), about, texts)
        for question in questions
    ]
    return tuple(verdict for answer in answers for verdict in draw(st.lists(answer, max_size=3)))


def context_of(episode: Episode) -> RecallContext:
    """Return where an agent stands that begins an episode, with a draft of its own."""
    return RecallContext(
        domain=episode.domain,
        task_id=episode.task_id,
        episode_id=episode.id,
        observation=episode.steps[-1].observation if episode.steps else "",
        draft=episode.steps[0].thought if episode.steps else "",
    )


_KINDS: Final = ("BaseChatModel", "BaseLLM")
_CALLS: Final = ("invoke", "stream", "batch", "generate", "generate_prompt")


@contextmanager
def models_refused() -> Iterator[None]:
    """Make every call of a LangChain model fail the test, also one whose error is caught."""
    called: list[str] = []

    def refuse(name: str) -> Any:
        def call(*_: Any, **__: Any) -> NoReturn:
            called.append(name)
            pytest.fail(f"memory called a language model: {name}")

        return call

    with pytest.MonkeyPatch.context() as patch:
        for kind in _KINDS:
            for name in (each for call in _CALLS for each in (call, f"a{call}")):
                patch.setattr(f"langchain_core.language_models.{kind}.{name}", refuse(name))
        yield
    if called:
        pytest.fail(f"memory called a language model: {', '.join(called)}")
