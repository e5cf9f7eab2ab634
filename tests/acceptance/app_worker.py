"""One user's conversations with an application, however they go, and a process that holds them.

A process may be ended by SIGKILL in the middle of a turn, at an event that is drawn beforehand: a batch
of the store, a call of the model, a write of the checkpointer. Another one then goes on.
"""

import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, TypeAlias

from chat_app import App, Events, FaultyStore, Seen, aheard, canary, chat_app, heard, question
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from typing_extensions import override

from langgraft._core.effects import Call, Program, do, run
from langgraft._core.errors import InfrastructureError
from langgraft.memory.banks import Banks
from langgraft.memory.model import BankContent
from langgraft.memory.stores import open_store
from langgraft.nodes.conversation import turn_of
from langgraft.nodes.middleware import TURNS

KINDS: Final = ("", "look", "send", "abandoned", "regenerated", "forked", "boom", "again")
"""What becomes of a turn."""
GENTLE: Final = ("", "look", "send")
"""What becomes of a turn where processes are killed."""

_MODEL_SAYS: Final = {"look": "look", "send": "send", "abandoned": "send", "boom": "boom"}
_YES: Final[Command[Any]] = Command(resume={"decisions": [{"type": "approve"}]})
_DIES_WITHIN: Final = 29
_FILES: Final = ("LanggraftMemory.after_agent", "remember")
"""Nodes that file a turn when it has ended."""
IN_THREAD: Final = 3
"""Turns of a thread where processes are killed."""

Talk: TypeAlias = Program[Call, Any]


@dataclass
class Conversations:
    """What one user asks, turn by turn, in several threads.

    Attributes:
        ended: By canary: how many episodes of turns that ended must be in the user's bank.
        left: By canary: how many of turns that were answered, and broke off before they were filed.
        words: By thread: the canaries that may be seen in it.
        seen: By thread: what was.
        tips: Ends of branches that nobody went on from.
    """

    app: App
    user: int
    turns: int
    in_thread: int
    ended: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    words: dict[str, set[str]] = field(default_factory=dict)
    seen: dict[str, Seen] = field(default_factory=dict)
    tips: list[Any] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The user's name."""
        return f"user-{self.user}@example.org"

    def kind(self, turn: int) -> str:
        """Say what becomes of a turn; of as many, each thing happens as often."""
        return KINDS[(self.user * 3 + turn * 5) % len(KINDS)]

    def all_turns(self) -> Talk:
        """Hold all turns, one after the other."""
        for turn in range(self.turns):
            yield from self.one_turn(turn, self.kind(turn))

    def one_turn(self, turn: int, kind: str) -> Talk:
        """Hold a turn."""
        config, word = self.config(turn), canary(self.user, turn)
        if kind == "forked":
            config = yield from self._earlier(turn)
        yield from self.ask(turn, kind, config)
        if kind in ("abandoned", "boom"):  # there is no answer, and nothing is filed
            return
        yield from self.finish(turn)
        self.ended[word] += 1
        if kind == "again":
            yield from self.ask(turn, kind, self.config(turn))
        if kind == "regenerated":
            yield from self._regenerate(turn)

    def ask(self, turn: int, kind: str, config: Any) -> Talk:
        """Ask the question of a turn."""
        word = canary(self.user, turn)
        asked = HumanMessage(question(word, _MODEL_SAYS.get(kind, "")), id=word)
        yield from self._hear(turn, {"messages": [asked]}, config)

    def finish(self, turn: int) -> Talk:
        """Approve what is to be approved, and go on where a process broke off."""
        while True:
            state = yield from self.state(turn)
            if not state.tasks:  # `next` leaves out what is done and not yet part of the state
                return
            yield from self._hear(turn, _YES if state.interrupts else None, self.config(turn))

    def state(self, turn: int) -> Talk:
        """Return the state of the thread that a turn is in."""
        agent = self.app.agent
        return (yield Call(agent.get_state, agent.aget_state, self.config(turn)))

    def flush(self) -> Talk:
        """File what is left, at the end of every branch."""
        for config in [*self.tips, *map(self._config, self.words)]:
            memory = self.app.memory
            yield Call(memory.flush, memory.aflush, self.app.agent, config)

    def history(self, thread: str) -> Talk:
        """Return all checkpoints of a thread."""
        agent, config = self.app.agent, self._config(thread)

        def read() -> list[Any]:
            return list(agent.get_state_history(config))

        async def aread() -> list[Any]:
            states: AsyncIterator[Any] = agent.aget_state_history(config)
            return [state async for state in states]

        return (yield Call(read, aread))

    def config(self, turn: int) -> Any:
        """Return the configuration of the thread that a turn is in."""
        return self._config(self.thread(turn))

    def thread(self, turn: int) -> str:
        """Name the thread that a turn is in."""
        return f"{self.user}-{turn // self.in_thread}"

    def _config(self, thread: str) -> Any:
        return {"configurable": {"thread_id": thread}}

    def _hear(self, turn: int, given: Any, config: Any) -> Talk:
        thread = self.thread(turn)
        self.words.setdefault(thread, set()).add(canary(self.user, turn))
        seen = self.seen.setdefault(thread, Seen())
        try:
            yield Call(heard, aheard, self.app, given, config, self.label, seen)
        except InfrastructureError as error:
            if "the model is down" not in str(error):
                raise

    def _earlier(self, turn: int) -> Talk:
        """Return where an earlier turn of the thread ended, if there is one, to go on from there."""
        if self.thread(turn) not in self.words:
            return self.config(turn)
        states = yield from self.history(self.thread(turn))
        over = [state for state in states[1:] if not state.tasks]
        if not over:
            return self.config(turn)
        self.tips.append(states[0].config)
        return random.Random(turn).choice(over).config

    def _regenerate(self, turn: int) -> Talk:
        """Have the model answer once more."""
        word = canary(self.user, turn)
        states = yield from self.history(self.thread(turn))
        before = next(state for state in states if "model" in state.next)
        assert before.values["messages"][-1].id == word
        self.tips.append(states[0].config)
        self.app.model.takes[word] = 1
        yield from self._hear(turn, None, before.config)
        self.ended[word] += 1


class CountingSaver(SqliteSaver):
    """Tells of what is written, before and after."""

    called: Events

    @override
    def put(self, *args: Any, **kwargs: Any) -> Any:
        self.called()
        put = super().put(*args, **kwargs)
        self.called()
        return put

    @override
    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        self.called()
        super().put_writes(*args, **kwargs)


def saver_path(folder: Path, user: int) -> Path:
    """Return where a user's checkpoints are."""
    return folder / f"checkpoints-{user}.sqlite"


def killed_in(user: int, turn: int) -> int:
    """Say at which event of a turn its process is killed; 0: it is not."""
    chance = random.Random(f"{user}/{turn}")
    return chance.randint(1, _DIES_WITHIN) if chance.random() < 0.14 else 0


@dataclass(frozen=True, slots=True)
class Job:
    """What a process does: hold a user's turns from one on."""

    spec: str
    """Where memory is."""
    folder: Path
    """Where checkpoints are."""
    user: int
    turns: int
    first: int = 0
    make: Callable[..., App] = chat_app
    broken: str = ""
    """What to do about the first where a process was killed in it: `resume`, or `abandon` it."""


@dataclass(frozen=True, slots=True)
class Held:
    """What came of a turn."""

    turn: int
    ended: Counter[str]
    left: Counter[str]
    streams: dict[str, list[str]]
    prompts: list[str]


def serve(job: Job, said: Connection) -> None:
    """Do a job until this process is killed; tell of each turn, and `None` in the end."""
    events = Events()
    database = sqlite3.connect(saver_path(job.folder, job.user), check_same_thread=False)
    with closing(database), open_store(job.spec) as opened:
        saver = CountingSaver(database)
        saver.called = events
        store = FaultyStore(opened, called=events)
        app = job.make(store=store, checkpointer=saver, called=events, outcome=lambda _: True)
        for turn in range(job.first, job.turns):
            talk = Conversations(app, job.user, job.turns, IN_THREAD)
            kind = GENTLE[(job.user + turn) % len(GENTLE)]
            program = talk.one_turn(turn, kind)
            if turn == job.first and job.broken:
                program = (
                    _resumed(talk, turn, kind)
                    if job.broken == "resume"
                    else _left(talk, turn, Banks(opened)[talk.label].content())
                )
            else:
                events.left = killed_in(job.user, turn)
            run(program, do)
            events.left = 0
            streams = {thread: seen.streams for thread, seen in talk.seen.items()}
            said.send(Held(turn, talk.ended, talk.left, streams, list(app.model.seen)))
            app.model.seen.clear()
        talk = Conversations(app, job.user, job.turns, IN_THREAD)
        talk.words = {talk.thread(turn): set() for turn in range(job.turns)}
        run(talk.flush(), do)
        said.send(None)


def _resumed(talk: Conversations, turn: int, kind: str) -> Talk:
    """Go on with a turn that broke off; ask again where the question was lost too."""
    word = canary(talk.user, turn)
    yield from talk.finish(turn)
    state = yield from talk.state(turn)
    if not any(message.id == word for message in state.values.get("messages", ())):
        yield from talk.ask(turn, kind, talk.config(turn))
        yield from talk.finish(turn)
    talk.ended[word] += 1


def _left(talk: Conversations, turn: int, bank: BankContent) -> Talk:
    """Leave a turn that broke off as it is; it is to be filed if a checkpoint holds its answer.

    What was written after a checkpoint is gone with the next question, and not where the thread ends and is
    flushed. The turn had ended where the bank has its outcome already, and only the checkpoint that says so
    was not written.
    """
    word, agent = canary(talk.user, turn), talk.app.agent
    state = yield from talk.state(turn)
    followed = turn + 1 < talk.turns and talk.thread(turn + 1) == talk.thread(turn)
    kept = (yield Call(agent.get_state, agent.aget_state, state.config)) if followed else state
    held = kept.values.get(TURNS, [])
    judged = any(word in item.text and item.success for item in bank.items.values())
    over = not state.tasks or (judged and state.tasks[0].name in _FILES)
    mine = next((record["asked"] for record in held if record["asked"]["id"] == word), None)
    asked = None if mine is None else turn_of(kept.values["messages"], mine)
    if judged or (asked is not None and asked.is_answered):
        (talk.ended if over else talk.left)[word] += 1
