"""Who asks: nothing that a client of a server can write decides whose memory is opened.

On a LangGraph server with authentication, the server says who a run is for (`runtime.server_info.user`). A
run's context, its `configurable` settings and the state of its thread come from the client. Functions of the
application that name a user or pick a memory are called without them there.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from langgraft._core.errors import InputError

T = TypeVar("T")

_KEPT: Final = (
    "langgraph_auth_user",
    "langgraph_auth_user_id",
    "langgraph_auth_permissions",
    "thread_id",
)
"""Settings of a run that the server writes, and refuses from a client; and the thread, which it authorizes."""


def user_of_runtime(user: Callable[[Any], T], runtime: Any) -> T:
    """Return what an application's function says about whose turn it is.

    Raises:
        InputError: The server has authenticated a user, and the function needs the run's context.
    """
    server = getattr(getattr(runtime, "server_info", None), "user", None)
    if server is None:
        return user(runtime)
    said = _without_claims("`user`", server, lambda: user(replace(runtime, context=None)))
    # A function with a default for runs without a context would give all users one bank.
    if runtime.context is not None and user(runtime) != said:
        raise InputError(_refusal("`user`", server, "the result depends on the context"))
    return said


def memory_of_call(memory: Callable[[Any], T], call: Any) -> T:
    """Return the memory that an application's function picks for a tool's runtime or a chain's configuration.

    Raises:
        InputError: The server has authenticated a user, and the function needs the run's context, its state
            or settings that the client wrote.
    """
    config: RunnableConfig = cast("Any", call if isinstance(call, dict) else call.config)
    server = _authenticated(config)
    if server is None:
        return memory(call)
    settings = config["configurable"]
    safe: Any = {"configurable": {name: settings[name] for name in _KEPT if name in settings}}
    if not isinstance(call, dict):
        safe = replace(call, state={}, context=None, config=safe)
    return _without_claims("`memory`", server, lambda: memory(safe))


def claimed_user(claimed: str) -> str:
    """Return whose run it is: the authenticated user, otherwise the name in the graph's input.

    Raises:
        InputError: The input names somebody else than the authenticated user.
    """
    server = _authenticated(var_child_runnable_config.get() or {})
    if server is None:
        return claimed
    identity = str(server.identity)
    if claimed not in ("", identity):
        msg = (
            f"the input names the user {claimed!r:.80}, and the server has authenticated"
            f" {identity!r:.80}: leave `user` out of the input"
        )
        raise InputError(msg)
    return identity


def _authenticated(config: RunnableConfig) -> Any:
    return config.get("configurable", {}).get("langgraph_auth_user")


def _without_claims(what: str, server: Any, call: Callable[[], T]) -> T:
    try:
        return call()
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(_refusal(what, server, repr(error)[:200])) from error


def _refusal(what: str, server: Any, why: str) -> str:
    return (
        f"{what} takes the user from what a client can write (context, state, `configurable`): {why}. A server with"
        f" authentication hides that from it. Take the authenticated user, here {server.identity!r:.80}:"
        " `runtime.server_info.user.identity`, or `langgraph_auth_user_id` of a configuration"
    )
