"""Memory in an agent when things go wrong, or otherwise than straight on."""

import asyncio
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from acceptance.app_worker import KINDS, Conversations
from acceptance.apps import Storm
from chat_app import (
    WORD,
    App,
    Context,
    FaultyStore,
    Seen,
    Talker,
    aheard,
    chat_app,
    chat_graph,
    dies_before_filing,
    heard,
    question,
    shown,
)
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Command
from postgres_server import Schemas
from table_embeddings import TableEmbeddings
from warm_python import Warm

from langgraft._core.effects import ado, arun, do, run
from langgraft._core.errors import InfrastructureError
from langgraft.memory.banks import Banks
from langgraft.memory.model import Outcome
from langgraft.memory.rankers import Dense
from langgraft.memory.stores import open_store
from langgraft.nodes.middleware import TURNS

pytestmark = pytest.mark.kill  # turns cut off at every point, on PostgreSQL too

Way = Literal["sync", "async"]
YES: Command[Any] = Command(resume={"decisions": [{"type": "approve"}]})


@dataclass
class Chat:
    """Talks with an app as one user, in one way of calling it."""

    app: App
    way: Way = "sync"
    user: str = "ada"
    seen: Seen = field(default_factory=Seen)

    def ask(self, text: str, thread: str = "t", *, name: str | None = None, at: Any = None) -> None:
        """Ask a question, where the thread stands or `at` a checkpoint."""
        asked = HumanMessage(question(text), id=name or text)
        self.go({"messages": [asked]}, at or self.config(thread))

    def go(self, given: Any, config: Any) -> None:
        """Run the agent."""
        if self.way == "sync":
            heard(self.app, given, config, self.user, self.seen)
        else:
            asyncio.run(aheard(self.app, given, config, self.user, self.seen))

    def flush(self, thread: str = "t", at: Any = None) -> None:
        """File what is left."""
        memory, config = self.app.memory, at or self.config(thread)
        if self.way == "sync":
            memory.flush(self.app.agent, config)
        else:
            asyncio.run(memory.aflush(self.app.agent, config))

    def state(self, thread: str = "t") -> Any:
        """Return the thread's state."""
        return self.app.agent.get_state(self.config(thread))

    def history(self, thread: str = "t") -> list[Any]:
        """Return the thread's checkpoints, the latest first."""
        return list(self.app.agent.get_state_history(self.config(thread)))

    def answers(self, thread: str = "t") -> list[str]:
        """Return what the agent said."""
        said = self.state(thread).values["messages"]
        return [message.text for message in said if isinstance(message, AIMessage) and message.text]

    @property
    def prompt(self) -> str:
        """The last prompt."""
        return self.app.model.seen[-1]

    def config(self, thread: str) -> Any:
        """Return a thread's configuration."""
        return {"configurable": {"thread_id": thread}}


def bank(store: BaseStore, user: str = "ada", provider: str = "trajectory") -> list[str]:
    """Return the texts of a user's items, in order."""
    items = Banks(store, provider)[user].content().items.values()
    return [item.text for item in sorted(items, key=lambda item: item.order_index)]


def episode(asked: str, *answers: str) -> str:
    """Return the item that an episode of unknown outcome becomes."""
    return "\n".join([f"Task: {question(asked)}", *(f"Action: {answer}" for answer in answers)])


def by_boat(word: str, take: int = 0) -> str:
    """Return the model's answer."""
    return f"By boat, says the answer to {word}, take {take}."


in_pairs = pytest.mark.parametrize(
    ("store", "way", "make"),
    [
        pytest.param("memory", "sync", chat_app, id="memory-sync-agent"),
        pytest.param("memory", "async", chat_graph, id="memory-async-graph"),
        pytest.param("sqlite", "sync", chat_graph, id="sqlite-sync-graph"),
        pytest.param("sqlite", "async", chat_app, id="sqlite-async-agent"),
    ],
    indirect=True,
)
"""Every two of a store, a way of calling and an application: all three would be twice as many."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FaultyStore]:
    """Return a store that can be made to fail."""
    with open_store("memory" if request.param == "memory" else f"sqlite:{tmp_path}/m") as opened:
        yield FaultyStore(opened)


@pytest.fixture(params=["sync", "async"])
def way(request: pytest.FixtureRequest) -> Way:
    """Return how the agent is called."""
    name: Way = request.param
    return name


@pytest.fixture(params=[chat_app, chat_graph], ids=["agent", "graph"])
def make(request: pytest.FixtureRequest) -> Callable[..., App]:
    """Return what makes the application: an agent, or a graph with the nodes of memory."""
    made: Callable[..., App] = request.param
    return made


@pytest.fixture
def chat(store: FaultyStore, way: Way, make: Callable[..., App]) -> Chat:
    """Return a chat without summaries."""
    return Chat(make(store=store, checkpointer=InMemorySaver(), keep=None), way)


# Everything at once ----------------------------------------------------------------------


@in_pairs
def test_conversations_when_everything_happens_are_kept_apart_and_filed_once(
    store: FaultyStore, way: Way, make: Callable[..., App]
) -> None:
    """Four users at once, a batch in five fails: what acceptance measures holds, in small."""
    store.share = 0.2
    app = make(store=store, checkpointer=InMemorySaver(), outcome=lambda _: True)
    talks = [Conversations(app, user, 3, 3) for user in (1, 2, 4, 6)]
    if way == "sync":
        for talk in talks:
            run(talk.all_turns(), do)
    else:

        async def together() -> None:
            await asyncio.gather(*(arun(talk.all_turns(), ado) for talk in talks))

        asyncio.run(together())
    store.share = 0
    storm = Storm()
    for prompt in app.model.seen:
        storm.prompt(prompt)
    for talk in talks:
        run(talk.flush(), do)
        storm.bank(store, talk)
        for thread, words in talk.words.items():
            for part in talk.seen[thread].streams:
                storm.of_thread(WORD.findall(part), words, thread)
            for state in run(talk.history(thread), do):
                storm.of_thread(WORD.findall(shown(state)), words, thread)
    assert [storm.crossed, storm.recalls_seen, storm.miscounted] == [[], [], []]
    assert {talk.kind(turn) for talk in talks for turn in range(3)} <= set(KINDS)
    assert storm.left == 0


def test_checkpoints_in_postgresql_hold_nothing_recalled_as_bytes(
    postgres: Schemas, store: FaultyStore, make: Callable[..., App]
) -> None:
    """In no column of its tables, whatever it is encoded as; what was asked is found there."""
    uri = postgres.new()
    with PostgresSaver.from_conn_string(uri) as saver:
        saver.setup()
        chat = Chat(make(store=store, checkpointer=saver))
        for turn in range(2):
            chat.ask(f"zq0t{turn} send", f"t{turn}")
            chat.go(YES, chat.config(f"t{turn}"))
    assert "zq0t0" in chat.prompt
    storm = Storm()
    storm.raw(uri, {"t0": {"zq0t0"}, "t1": {"zq0t1"}})
    assert storm.recalls_seen == []
    storm.raw(uri, {"t0": {"zq0t0"}, "t1": {"zq0t0"}})
    assert "zq0t1 in a checkpoint of t1" in storm.recalls_seen


# Faults -----------------------------------------------------------------------------------


@in_pairs
def test_answer_when_the_store_is_down_arrives_and_memory_catches_up(
    chat: Chat, store: FaultyStore
) -> None:
    """Turns of an outage are filed by the first turn after it."""
    store.down = True
    chat.ask("zq0t0")
    chat.ask("zq0t1")
    assert chat.answers() == [by_boat("zq0t0"), by_boat("zq0t1")]
    store.down = False
    assert bank(store) == []
    chat.ask("zq0t2")
    words = ("zq0t0", "zq0t1", "zq0t2")
    assert bank(store) == [episode(word, by_boat(word)) for word in words]
    chat.ask("zq0t3", "u")
    assert "zq0t1, take 0" in chat.prompt.partition("<recalled_memory>")[2]
    assert "episode" not in shown(chat.state().values[TURNS][-1].keys())


@in_pairs
def test_turn_when_its_filing_was_done_but_not_acknowledged_is_filed_once(
    chat: Chat, store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next turn tries again under the same name."""
    fails = iter([""] * 2 + ["after"] * 99)
    chat.ask("zq0t0")
    monkeypatch.setattr(store, "_fails", lambda: next(fails))
    chat.ask("zq0t1")
    monkeypatch.undo()
    chat.ask("zq0t2")
    assert len(bank(store)) == 3


@pytest.mark.parametrize("kept", [True, False])
def test_turn_when_its_thread_is_not_gone_on_with_is_filed_with_the_users_next(
    store: FaultyStore, way: Way, kept: bool
) -> None:
    """In another thread, or without a checkpointer, memory catches up all the same."""
    saver = InMemorySaver() if kept else None
    chat = Chat(chat_app(store=store, checkpointer=saver, keep=None), way)
    store.down = True
    for turn in range(3):
        chat.ask(f"zq0t{turn}", f"t{turn}")
    store.down = False
    Chat(chat.app, way, "bob").ask("zq1t0", "b")
    assert bank(store) == []
    chat.ask("zq0t3", "u")
    assert sorted(bank(store)) == [episode(f"zq0t{n}", by_boat(f"zq0t{n}")) for n in range(4)]
    store.down = True
    chat.ask("zq0t4", "v")
    store.down = False
    chat.app.memory.flush()
    assert len(bank(store)) == 5


def test_outage_when_it_lasts_asks_for_the_lessons_of_one_old_turn_at_a_time(
    store: FaultyStore,
) -> None:
    """What reflection costs grows with the turns, not with their square."""
    reflector = Reflector()
    options: dict[str, Any] = {"model": reflector, "settings": {}, "keep": None}
    chat = Chat(chat_app("insight", store=store, checkpointer=InMemorySaver(), **options))
    store.down = True
    for turn in range(5):
        chat.ask(f"zq0t{turn}")
    assert len(reflector.seen) <= 2 * 5
    store.down = False
    chat.ask("zq0t5")
    assert len(bank(store, provider="insight")) == 6
    assert len(reflector.seen) <= 2 * 5 + 6


class Reflector(Talker):
    """Draws a lesson, unless it is out of order."""

    error: Exception | None = None

    def _reply(self, messages: Any) -> AIMessage:
        if self.error is not None:
            raise self.error
        return AIMessage('[{"when_to_use": "a parcel is sent", "lesson": "Take the boat."}]')


def test_answer_when_reflection_fails_arrives_and_its_lessons_are_drawn_later(
    store: FaultyStore, way: Way
) -> None:
    """The lessons of a turn are drawn with the next turn's."""
    reflector = Reflector(error=TimeoutError("too late"))
    app = chat_app(
        "insight",
        store=store,
        checkpointer=InMemorySaver(),
        keep=None,
        model=reflector,
        settings={},
    )
    chat = Chat(app, way)
    chat.ask("zq0t0")
    assert chat.answers() == [by_boat("zq0t0")]
    assert bank(store, provider="insight") == []
    reflector.error = None
    chat.ask("zq0t1")
    assert len(bank(store, provider="insight")) == 2
    assert "Take the boat." not in "".join(chat.seen.streams)


def test_answer_when_the_embedder_fails_arrives_without_memory(
    store: FaultyStore, way: Way
) -> None:
    """What could not be embedded is recalled when it can be."""
    embeddings = TableEmbeddings(lambda _: [1.0, 0.0])
    embeddings.error = InfrastructureError("no network")
    settings = {"ranker": Dense(embeddings)}
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=None, settings=settings)
    chat = Chat(app, way)
    chat.ask("zq0t0")
    chat.ask("zq0t1", "u")
    assert chat.answers("u") == [by_boat("zq0t1")]
    embeddings.error = None
    chat.ask("zq0t2", "v")
    assert "recalled_memory" in chat.prompt
    assert len(bank(store)) == 3


def test_bank_when_another_process_filed_meanwhile_is_filed_in_all_the_same() -> None:
    """Of two processes over a store without a lock, each serves the user in turn."""

    class Other(BaseStore):
        """A process's client of a database that this library knows nothing of."""

        def __init__(self, store: BaseStore) -> None:
            self.kept = store

        def batch(self, ops: Any) -> Any:
            return self.kept.batch(ops)

        async def abatch(self, ops: Any) -> Any:
            return await self.kept.abatch(ops)

    with open_store("memory") as shared:
        saver = InMemorySaver()
        one, two = (Chat(chat_app(store=Other(shared), checkpointer=saver)) for _ in range(2))
        for turn in range(6):
            (one, two)[turn % 2].ask(f"zq0t{turn}")
            assert len(bank(shared)) == turn + 1


# Summaries --------------------------------------------------------------------------------


def test_turn_when_a_summary_took_its_question_is_filed_with_what_came_after(
    store: FaultyStore, way: Way
) -> None:
    """The block stands behind the summary, and the turn is filed once, under its question."""
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=2)
    chat = Chat(app, way)
    chat.ask("zq0t9", "earlier")
    chat.ask("zq0t0")
    chat.ask("zq0t1 look")
    assert "zq0t1 look" not in shown(chat.state().values["messages"])
    assert "zq0t9, take 0" in chat.prompt
    chat.ask("zq0t2", "u")
    texts = bank(store)
    assert len(texts) == 4
    assert texts[2].startswith(f"Task: {question('zq0t1 look')}")
    assert texts[2].endswith("Action: That is so.")


def test_turn_when_unfiled_and_summarized_is_filed_with_its_own_answer(
    store: FaultyStore, way: Way
) -> None:
    """What a turn was is kept until it is filed, whatever becomes of its messages."""
    chat = Chat(chat_app(store=store, checkpointer=InMemorySaver(), keep=2), way)
    store.down = True
    chat.ask("zq0t0")
    chat.ask("zq0t1 look")
    chat.ask("zq0t2")
    assert "zq0t0" not in shown(chat.state().values["messages"])
    store.down = False
    chat.flush()
    texts = sorted(bank(store))
    assert texts[0] == episode("zq0t0", by_boat("zq0t0"))
    assert texts[1].startswith(episode("zq0t1 look"))
    assert texts[2] == episode("zq0t2", by_boat("zq0t2"))


def test_turn_when_it_broke_off_after_a_summary_is_not_filed(
    store: FaultyStore, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no answer. Nothing of it is taken for a part of the turns around it."""

    def down() -> None:
        raise InfrastructureError("no answer")

    chat = Chat(chat_app(store=store, checkpointer=InMemorySaver(), keep=2), way)
    chat.ask("zq0t0")
    chat.ask("zq0t1 send")
    monkeypatch.setattr(chat.app.model, "called", down)
    with pytest.raises(InfrastructureError):
        chat.go(YES, chat.config("t"))
    monkeypatch.undo()
    assert question("zq0t1 send") not in shown(chat.state().values["messages"])
    chat.ask("zq0t2")
    assert bank(store) == [episode(word, by_boat(word)) for word in ("zq0t0", "zq0t2")]


def test_turns_when_left_in_an_outage_and_summarized_are_filed_as_they_were(
    store: FaultyStore, way: Way
) -> None:
    """Also one that is not tried, since memory fails, is kept; one that was abandoned is not filed."""
    chat = Chat(chat_app(store=store, checkpointer=InMemorySaver(), keep=2), way)
    store.down = True
    chat.ask("zq0t0")
    chat.ask("zq0t1 send")
    chat.ask("zq0t2 look")
    store.down = False
    chat = Chat(chat_app(store=store, checkpointer=chat.app.agent.checkpointer), way)
    chat.flush()
    first, last = sorted(bank(store))
    assert first == episode("zq0t0", by_boat("zq0t0"))
    assert last.startswith(episode("zq0t2 look"))


# Pauses -----------------------------------------------------------------------------------


@in_pairs
def test_pause_when_approval_is_asked_holds_nothing_recalled_and_another_process_goes_on(
    chat: Chat, store: FaultyStore, make: Callable[..., App]
) -> None:
    """Neither state nor interrupt show the block; resumed elsewhere, the model is shown it again."""
    chat.ask("zq0t0", "earlier")
    chat.ask("zq0t1 send")
    assert "zq0t0" in chat.prompt
    paused = chat.state()
    assert paused.interrupts
    assert "zq0t0" not in shown(paused)
    other = Chat(make(store=store, checkpointer=chat.app.agent.checkpointer), chat.way)
    other.go(YES, other.config("t"))
    assert "zq0t0" in other.prompt
    assert "zq0t0" not in shown(other.history()) + shown(other.seen.streams)
    assert len(bank(store)) == 2
    assert bank(store)[1].endswith(by_boat("zq0t1"))


def test_pause_when_nobody_approves_is_not_filed_and_can_still_be_approved(
    store: FaultyStore, way: Way
) -> None:
    """The next question ends the turn; `flush` leaves one that waits as it is."""
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=None, outcome=lambda _: True)
    chat = Chat(app, way)
    chat.ask("zq0t0 send")
    chat.ask("zq0t1")
    chat.ask("zq0t2 send", "u")
    chat.flush("u")
    assert bank(store) == [f"{episode('zq0t1', by_boat('zq0t1'))}\nResult: success"]
    chat.go(YES, chat.config("u"))
    assert bank(store)[1].endswith(f"Action: {by_boat('zq0t2')}\nResult: success")


# Other answers, other ways ----------------------------------------------------------------


@in_pairs
def test_regeneration_when_answered_anew_is_another_episode_and_not_shown_the_first(
    chat: Chat, store: FaultyStore
) -> None:
    """The same question again: what was learned from it stays out of the prompt."""
    chat.ask("zq0t0", "earlier")
    chat.ask("zq0t1")
    before = next(state for state in chat.history() if state.next == ("model",))
    chat.app.model.takes["zq0t1"] = 1
    chat.go(None, before.config)
    assert "zq0t0, take 0" in chat.prompt
    assert "zq0t1, take 0" not in chat.prompt
    chat.go(None, before.config)  # the same answer again
    first, second = by_boat("zq0t1"), by_boat("zq0t1", 1)
    assert bank(store)[1:] == [episode("zq0t1", first), episode("zq0t1", second)]


@in_pairs
def test_fork_when_both_branches_have_turns_files_all_and_flush_leaves_the_head(
    chat: Chat, store: FaultyStore
) -> None:
    """What a branch could not file another process files from its end, and the fork stays."""
    chat.ask("zq0t0")
    start = chat.state().config
    store.down = True
    chat.ask("zq0t1")
    tip = chat.state().config
    store.down = False
    chat = Chat(chat_app(store=store, checkpointer=chat.app.agent.checkpointer), chat.way)
    chat.ask("zq0t2", at=start)
    head = chat.state().config
    assert len(bank(store)) == 2
    chat.flush(at=tip)
    assert sorted(bank(store)) == [episode(f"zq0t{n}", by_boat(f"zq0t{n}")) for n in range(3)]
    assert chat.state().config == head
    assert chat.answers() == [by_boat("zq0t0"), by_boat("zq0t2")]


@in_pairs
def test_threads_when_message_ids_are_equal_are_two_turns(chat: Chat, store: FaultyStore) -> None:
    """Clients that number messages in each thread lose none."""
    for thread in ("t", "u"):
        chat.ask("zq0t0", thread, name="1")
    assert bank(store) == [episode("zq0t0", by_boat("zq0t0"))] * 2


def test_agent_when_it_is_a_node_of_another_graph_shows_nothing_recalled(
    store: FaultyStore, way: Way
) -> None:
    """Neither the graph around it nor its pause hold the block; every turn is filed."""
    app = chat_app(store=None, checkpointer=None, keep=None)
    graph = StateGraph(MessagesState, context_schema=Context)
    graph.add_node("agent", app.agent)
    graph.add_edge(START, "agent")
    app.agent = graph.compile(checkpointer=InMemorySaver(), store=store)
    chat = Chat(app, way)
    chat.ask("zq0t0", "earlier")
    chat.seen = Seen()
    chat.ask("zq0t1 look")
    chat.ask("zq0t2 send")
    paused = app.agent.get_state(chat.config("t"), subgraphs=True)
    assert paused.interrupts
    chat.go(YES, chat.config("t"))
    assert "zq0t0" in chat.prompt
    assert "zq0t0" not in shown([paused, chat.history(), chat.seen.streams])
    assert len(bank(store)) == 3


# Sent again -------------------------------------------------------------------------------


@pytest.mark.parametrize("remember", ["inline", "background"])
def test_message_when_sent_again_keeps_the_first_episode(store: FaultyStore, remember: str) -> None:
    """A client that tries again makes no second episode, whether or not the first was filed."""
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=None, remember=remember)
    chat = Chat(app)
    chat.ask("zq0t0")
    app.model.takes["zq0t0"] = 1
    chat.ask("zq0t0")
    store.down = True
    chat.ask("zq0t1")
    app.model.takes["zq0t1"] = 1
    chat.ask("zq0t1")
    app.memory.flush()
    store.down = False
    chat.flush()
    assert bank(store) == [episode(f"zq0t{n}", by_boat(f"zq0t{n}")) for n in range(2)]


@pytest.mark.parametrize("remember", ["inline", "background"])
def test_message_when_sent_again_is_replaced_by_the_latest_on_demand(
    store: FaultyStore, remember: str
) -> None:
    """With `replace` the latest episode is the only one, also after a failure."""
    app = chat_app(
        store=store,
        checkpointer=InMemorySaver(),
        keep=None,
        remember=remember,
        on_refile="replace",
    )
    chat = Chat(app)
    chat.ask("zq0t0")
    for take, down in enumerate([False, True, False], 1):
        store.down = down
        app.model.takes["zq0t0"] = take
        chat.ask("zq0t0")
    chat.flush()
    assert bank(store) == [episode("zq0t0", *(by_boat("zq0t0", take) for take in range(4)))]


def test_message_when_sent_again_is_not_followed_by_what_it_replaced(store: FaultyStore) -> None:
    """An episode that could not be filed is not tried any more once another took its place."""

    def ended(_: Any) -> Outcome:
        store.down = app.model.takes["zq0t0"] == 0
        return Outcome(success=None)

    app = chat_app(
        store=store,
        checkpointer=InMemorySaver(),
        keep=None,
        on_refile="replace",
        outcome=ended,
    )
    app.model.takes["zq0t0"] = 0
    chat = Chat(app)
    chat.ask("zq0t0")
    app.model.takes["zq0t0"] = 1
    chat.ask("zq0t0")
    app.memory.flush()
    assert bank(store) == [episode("zq0t0", by_boat("zq0t0"), by_boat("zq0t0", 1))]


# In the background ------------------------------------------------------------------------


def test_background_when_flushed_has_filed_everything(store: FaultyStore) -> None:
    """Threads wait for one another, and flushing twice files nothing twice."""
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=None, remember="background")
    chat = Chat(app)
    for turn in range(3):
        chat.ask(f"zq0t{turn}")
        chat.flush()
    app.memory.flush()
    assert bank(store) == [episode(f"zq0t{n}", by_boat(f"zq0t{n}")) for n in range(3)]


async def test_background_when_awaited_has_filed_everything(store: FaultyStore) -> None:
    """As tasks of the loop, too."""
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=None, remember="background")
    chat = Chat(app)
    for turn in range(3):
        asked = {"messages": [HumanMessage(f"zq0t{turn}", id=str(turn))]}
        await aheard(app, asked, chat.config("t"), "ada", chat.seen)
    await app.memory.aflush()
    assert len(bank(store)) == 3


def test_background_when_another_answer_is_not_filed_is_filed_later(store: FaultyStore) -> None:
    """That the first answer was filed says nothing of the second."""
    app = chat_app(store=store, checkpointer=InMemorySaver(), keep=None, remember="background")
    chat = Chat(app)
    chat.ask("zq0t0")
    app.memory.flush()
    store.down = True
    app.model.takes["zq0t0"] = 1
    before = next(state for state in chat.history() if state.next == ("model",))
    chat.go(None, before.config)
    app.memory.flush()
    store.down = False
    chat.ask("zq0t1")
    app.memory.flush()
    assert episode("zq0t0", by_boat("zq0t0", 1)) in bank(store)
    assert len(bank(store)) == 3


# Other processes --------------------------------------------------------------------------


@pytest.mark.parametrize("then", ["the same", "another", "nothing"])
def test_turn_when_its_process_died_before_filing_is_filed_once(tmp_path: Path, then: str) -> None:
    """Resumed, it is the turn it was; left, its answer is filed as of unknown outcome."""
    memory, checkpoints = f"sqlite:{tmp_path}/m", str(tmp_path / "checkpoints")
    with Warm(dies_before_filing, memory, checkpoints, "zq0t0") as process:
        assert process.wait() == -signal.SIGKILL
    with open_store(memory) as store, SqliteSaver.from_conn_string(checkpoints) as saver:
        chat = Chat(chat_app(store=store, checkpointer=saver, outcome=lambda _: True))
        assert bank(store) == []
        actions: dict[str, Callable[[], None]] = {
            "the same": lambda: chat.go(None, chat.config("t")),
            "another": lambda: chat.ask("zq0t1", name="2"),
            "nothing": chat.flush,
        }
        actions[then]()
        items = Banks(store)["ada"].content().items.values()
        first = min(items, key=lambda item: item.order_index)
        assert len(items) == (2 if then == "another" else 1)
        assert by_boat("zq0t0") in first.text
        assert first.success is (True if then == "the same" else None)


@in_pairs
def test_user_when_another_one_sends_the_same_message_is_asked_about_alone(
    chat: Chat, store: FaultyStore
) -> None:
    """In a thread that two share, nobody's memory answers the other's question."""
    chat.ask("zq0t0", "earlier")
    chat.ask("zq0t1")
    assert "zq0t0" in chat.prompt
    Chat(chat.app, chat.way, "bob").ask("zq0t1")
    assert "zq0t0" not in chat.prompt
    assert len(bank(store, "bob")) == 1
