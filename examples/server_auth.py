"""Authentication and authorization of `langgraph dev` for this folder's graphs.

`langgraph.json` names it. Callers send `Authorization: Bearer TOKEN`. Tokens and their users come from the
variable `ASSISTANT_TOKENS`, JSON such as `{"a-long-random-token": "ada"}`; without it every call is refused,
except those of Studio on this machine. Put the check of your identity provider in the place of `authenticate`.

Users see their own threads, runs and crons only. Clients may not use the store at all: it holds everybody's
memory. Graphs on the server still use it.
"""

import hmac
import json
import os
from typing import Any

from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """Return the user that a token belongs to."""
    token = (authorization or "").removeprefix("Bearer ").encode()
    known: dict[str, str] = json.loads(os.environ.get("ASSISTANT_TOKENS", "{}"))
    for each, user in known.items():
        if hmac.compare_digest(each.encode(), token):
            return {"identity": user}
    raise Auth.exceptions.HTTPException(status_code=401, detail="unknown token")


@auth.on
async def only_their_own(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, str]:
    """Mark what a user creates, and let nobody else read or change it."""
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}


@auth.on.assistants(actions=["read", "search"])
async def assistants_are_for_all(ctx: Auth.types.AuthContext, value: Any) -> None:
    """Let everybody run the graphs of `langgraph.json`."""


@auth.on.store
async def no_store_for_clients(ctx: Auth.types.AuthContext, value: Any) -> bool:  # noqa: ARG001
    """Keep clients out of the store, which holds the memory of all users."""
    return False
