"""An application whose memory is opened before its workers are forked, as gunicorn and Celery fork them.

`python forked_app.py STORE KIND TURNS` has a pool of two workers file turns, while the parent files some
as well. Imported by gunicorn, `app` answers a question with each request.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterable
from multiprocessing import get_context
from typing import Any, Final

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from typing_extensions import override

from langgraft import Banks, MemoryMiddleware, memory_tools, open_memory, with_memory

USERS: Final = 5


class Echo(BaseChatModel):
    """Says `ok`."""

    @property
    @override
    def _llm_type(self) -> str:
        return "echo"

    @override
    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    @override
    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, *_: Any, **__: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("ok"))])


Turn = Callable[[str], None]


def with_middleware(store: str, *, background: bool = False) -> Turn:
    """Return what plays a turn of an agent over one bank."""
    memory = open_memory(store, settings={"trust": {}})
    middleware = MemoryMiddleware(memory, remember="background" if background else "inline")
    agent: Any = create_agent(Echo(), [], middleware=[middleware])

    def turn(name: str) -> None:
        agent.invoke(
            {"messages": [("user", f"wifi {name}")]}, {"configurable": {"thread_id": name}}
        )
        middleware.flush()

    return turn


def in_background(store: str) -> Turn:
    """Return the same, filed in the background."""
    return with_middleware(store, background=True)


def with_banks(store: str) -> Turn:
    """Return what plays a turn of an agent over a bank for each user; fewer are open than there are."""
    banks = Banks(store, max_open=2)
    middleware = MemoryMiddleware(banks, user=lambda runtime: runtime.context)
    agent: Any = create_agent(Echo(), [], middleware=[middleware], context_schema=str)

    def turn(name: str) -> None:
        config = {"configurable": {"thread_id": name}}
        asked = {"messages": [("user", f"wifi {name}")]}
        agent.invoke(asked, config, context=f"user-{sum(name.encode()) % USERS}")

    return turn


def in_chain(store: str) -> Turn:
    """Return what runs a chain with memory."""
    chain = with_memory(RunnableLambda(lambda _: "ok"), open_memory(store))
    return lambda name: chain.invoke(f"wifi {name}") and None


def by_tools(store: str) -> Turn:
    """Return what searches and files by the tools of memory."""
    search, remember = memory_tools(open_memory(store))

    def turn(name: str) -> None:
        search.invoke({"query": f"wifi {name}"})
        remember.invoke({"text": f"wifi {name}"})

    return turn


KINDS: Final = {
    each.__name__: each for each in (with_middleware, in_background, with_banks, in_chain, by_tools)
}


def texts(store: str, kind: str) -> list[str]:
    """Return the texts of all items."""
    if kind != "with_banks":
        with open_memory(store) as memory:
            return [item.text for item in memory.content().items.values()]
    with Banks(store) as banks:
        return [item.text for user in banks for item in banks[user].content().items.values()]


def main(store: str, kind: str, turns: int) -> None:
    """Play turns in two workers and in the parent, and print what went wrong and how many there were."""
    global play  # noqa: PLW0603 - workers find it there
    play = KINDS[kind](store)
    play("first")
    ended, own = threading.Event(), 1
    failed = ""

    def meanwhile() -> None:
        nonlocal own
        while not ended.is_set():
            play(f"p{own}")
            own += 1

    thread = threading.Thread(target=meanwhile)
    thread.start()
    with get_context("fork").Pool(2, maxtasksperchild=10) as pool:
        try:
            pool.map(play_one, range(turns), chunksize=4)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            failed = f"{type(error).__name__}: {error}"
    ended.set()
    thread.join()
    sys.stdout.write(json.dumps([failed, own]))


def play_one(number: int) -> None:
    """Play a turn in a worker."""
    play(f"w{number}")


play: Turn
if "FORKED_APP_STORE" in os.environ:  # imported by gunicorn, before it forks
    play = with_middleware(os.environ["FORKED_APP_STORE"])
    play("first")


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Play the turn that the path names, and answer with the worker, or what went wrong."""
    try:
        play(environ["PATH_INFO"].strip("/"))
        said = str(os.getpid())
    except Exception as error:  # noqa: BLE001 - the test looks at it
        said = f"{type(error).__name__}: {error}"
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [said.encode()]


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
