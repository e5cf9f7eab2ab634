"""A memory for each user, behind FastAPI: `uvicorn examples.fastapi_users:app`.

    curl -H 'Authorization: Bearer ada-token' -d '{"text": "The wifi is down"}' localhost:8000/ask

Whose memory it is, the server says: never the request's body. Needs `pip install fastapi uvicorn`. The model is
scripted; put any LangChain chat model in its place.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from pydantic import BaseModel

from langgraft import Banks, MemoryMiddleware

model = GenericFakeChatModel(messages=(AIMessage(f"Answer {n}.") for n in count(1)))
USERS = {"ada-token": "ada", "bob-token": "bob"}  # put your own check of who asks in its place


@dataclass
class User:
    """Who asks."""

    id: str


class Question(BaseModel):
    """What is asked."""

    text: str


def user_of(token: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> User:
    """Return who sent a request."""
    if token.credentials not in USERS:
        raise HTTPException(401)
    return User(USERS[token.credentials])


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the banks when the server starts, and close them when it ends."""
    with Banks(os.environ.get("BANKS", "users.sqlite"), "trajectory") as app.state.banks:
        memory = MemoryMiddleware(app.state.banks, user=lambda runtime: runtime.context.id)
        app.state.agent = create_agent(model, [], middleware=[memory], context_schema=User)
        yield


app = FastAPI(lifespan=lifespan)
Known = Annotated[User, Depends(user_of)]


@app.post("/ask")
async def ask(question: Question, user: Known, request: Request) -> str:
    """Answer with what this user's bank recalls."""
    asked: Any = {"messages": [("user", question.text)]}
    ended = await request.app.state.agent.ainvoke(asked, context=user)
    return str(ended["messages"][-1].text)


@app.delete("/memory")
def forget(user: Known, request: Request) -> None:
    """Leave nothing of a user."""
    request.app.state.banks.delete(user.id)
