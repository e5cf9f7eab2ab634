"""What the parts of the suite share: episodes and items to try a provider with, and how it is tried."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, TypeAlias

import hypothesis
import pytest
from hypothesis import strategies as st
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import SettingsError
from langgraft.memory.bank import bank_namespace
from langgraft.memory.bank_format import read_items
from langgraft.memory.facts import Fact
from langgraft.memory.model import (
    BankContent,
    Episode,
    ErrorRecord,
    ItemType,
    Lesson,
    MemoryDelta,
    MemoryItem,
    Outcome,
    Question,
    Step,
    Verdict,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import (
    Budget,
    Recall,
    RecallContext,
    TokenCounter,
    count_tokens_approximately,
)
from langgraft.memory.testing.base import Suite

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

ACTIONS: Final = (
    *("add", "none", "agree", "edit", "remove", "keep", "contradicts", "", "no such"),
    *("replaces", "corrects", "repeats"),
)
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
sources = st.sets(
    st.sampled_from(["user:ada", "user:eve", "web:example.org", "item:a", "episode:b"]), max_size=2
).map(lambda chosen: tuple(sorted(chosen)))
"""What an episode or an item follows from, mostly nothing that anybody named."""
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
        facts=(
            Fact("user", "task at hand", task, quote=f"I want to {task}, for the {number}th time"),
        ),
        at=f"2026-01-{number % 28 + 1:02}",
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
        facts=tuple(more(fact, "value", "quote") for fact in episode.facts),
        verdicts=tuple(more(verdict, "text") for verdict in episode.verdicts),
    )


moments = st.just("") | st.dates().map(lambda day: day.isoformat())
"""When something was, or that nobody said."""
facts = st.builds(
    Fact,
    st.sampled_from(["user", "Ann"]) | texts,
    st.sampled_from(["city", "pet"]) | texts,
    texts,
    quote=texts,
    since=moments,
    until=moments,
    category=st.sampled_from(["", "state"]),
    holds=st.booleans(),
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
        facts=tuple(draw(st.lists(facts, max_size=3))),
        at=draw(moments),
        sources=draw(sources),
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
        sources=draw(sources),
    )


@st.composite
def verdicts(
    draw: st.DrawFn, questions: Sequence[Question], content: BankContent
) -> tuple[Verdict, ...]:
    """Draw what a judge may say, sense or not: about items that are there, were, or never were."""
    about = st.sampled_from([None, "never there", *sorted(content.items)])
    answers = [
        st.builds(
            Verdict,
            st.just(question.id),
            st.sampled_from(ACTIONS),
            about,
            st.sampled_from(["fact-0", "fact-1"]) | texts,
        )
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


Make: TypeAlias = Callable[[BaseStore], MemoryProvider[Any]]
"""Makes a provider over a store."""

NewStore: TypeAlias = Callable[[], BaseStore]
"""Makes an empty store."""

Reopen: TypeAlias = Callable[[BaseStore], BaseStore]
"""Opens what a store has kept, as a process would that comes later."""


class ProviderSuite(Suite):
    """Base of the suite's parts."""

    learns: ClassVar[bool] = True
    """`file` keeps something of an episode."""
    imports: ClassVar[bool] = True
    """`import_items` brings items in; if not, it is refused."""
    recalls: ClassVar[bool] = True
    """What the bank holds is recalled."""
    examples: ClassVar[int] = 20
    """Random histories to try, and random budgets."""
    episodes: ClassVar[int] = 9
    """Episodes in the stream that most cases file."""
    at_once: ClassVar[int] = 32
    """Episodes that 16 threads file at once, each of them twice."""
    many: ClassVar[int] = 300
    """Items of equal text that one case imports: more than a bank should have room for."""

    # What a provider says of itself -----------------------------------------------------------

    @pytest.fixture
    def make(self) -> Make:
        """Return what makes the provider over a store: yours to write."""
        msg = f"{type(self).__name__} needs a fixture `make` that returns what takes a store"
        raise SettingsError(msg)

    @pytest.fixture
    def make_writer(self, make: Make) -> Make:
        """Return what makes the provider that fills the bank, where it is another one."""
        return make

    @pytest.fixture
    def new_store(self) -> NewStore:
        """Return what makes empty stores."""
        return InMemoryStore

    @pytest.fixture
    def reopen(self) -> Reopen:
        """Return what opens again what a store has kept; one in memory is its own."""
        return lambda store: store

    def episode(self, number: int) -> Episode:
        """Return an episode of which the provider keeps something; ids differ by number."""
        return sample_episode(number)

    def answers(self, question: Question) -> Sequence[Verdict]:  # noqa: ARG002 - for subclasses
        """Answer a question as a judge would, where the provider needs one to learn."""
        return ()

    def asks(self, episode: Episode) -> tuple[str, RecallContext]:
        """Return a question to which what was learned from `episode` is an answer."""
        return episode.task, RecallContext(
            domain=episode.domain,
            task_id="another task",
            episode_id="asking",
            episode_index=0,
            observation=episode.steps[-1].observation if episode.steps else "",
        )

    def with_settings(
        self, memory: MemoryProvider[Any], store: BaseStore, **changes: Any
    ) -> MemoryProvider[Any]:
        """Return the provider with some settings changed, over a store."""
        held = {name: getattr(memory.settings, name) for name in type(memory.settings).model_fields}
        settings = type(memory.settings).model_validate({**held, **changes})
        return type(memory)(store, namespace=bank_namespace(memory.namespace), settings=settings)

    # What the cases do with it ----------------------------------------------------------------

    @pytest.fixture(autouse=True)
    def _no_model(self) -> Iterator[None]:
        with models_refused():
            yield

    def stream(self) -> list[Episode]:
        """Return the episodes that most cases file."""
        return [self.episode(number) for number in range(self.episodes)]

    def judged(self, memory: MemoryProvider[Any], episode: Episode) -> Episode:
        """Return an episode with the answers to all that memory asks about it."""
        given = [answer for asked in memory.questions(episode) for answer in self.answers(asked)]
        return replace(episode, verdicts=(*episode.verdicts, *given))

    def learn(
        self, memory: MemoryProvider[Any], listed: Sequence[Episode] | None = None
    ) -> list[MemoryDelta]:
        """File episodes, or else the stream, and return the deltas."""
        chosen = self.stream() if listed is None else listed
        return [memory.file(self.judged(memory, episode)) for episode in chosen]

    def filled(self, make: Make, make_writer: Make, store: BaseStore) -> MemoryProvider[Any]:
        """Return the provider over a bank that holds what there was to learn from the stream."""
        self.learn(make_writer(store))
        return make(store)

    def ask(
        self, memory: MemoryProvider[Any], episode: Episode, budget: Budget | None = None
    ) -> Recall:
        """Ask for what was learned from an episode."""
        query, context = self.asks(episode)
        return memory.provide(query, context, budget)

    def contexts(self) -> list[tuple[str, RecallContext]]:
        """List questions of all kinds: sense and nonsense, at the start and later on."""
        asked = [self.asks(episode) for episode in self.stream()[:4]]
        query, context = asked[0]
        asked += [
            (query, replace(context, step=4, stage="debug", observation="it is open")),
            (query, replace(context, episode_index=None, type="error_trace", draft="try it")),
            (query, replace(context, domain="elsewhere", task_id=self.episode(0).task_id)),
        ]
        return asked + [(text, context) for text in (*HOSTILE, "the", "find something else")]

    def recalls_of(self, memory: MemoryProvider[Any]) -> list[Recall]:
        """Ask all questions, those that make sense also with a limit."""
        short = Budget(tokens=80)
        recalls = [memory.provide(*each) for each in self.contexts()]
        return recalls + [self.ask(memory, episode, short) for episode in self.stream()[:4]]

    def items(self, make_writer: Make, store: BaseStore, path: Path) -> list[MemoryItem]:
        """Return items of the provider's own making, by an export to `path`, or else any items."""
        writer = make_writer(store)
        self.learn(writer)
        writer.export_items(path)
        return read_items(path) or sample_items(self.episodes)

    def check(self, test: Callable[..., None], **given: Any) -> None:
        """Run a property on random examples."""
        settings = hypothesis.settings(
            max_examples=self.examples,
            deadline=None,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        settings(hypothesis.given(**given)(test))()
