"""Replies that a provider holds to a schema, and one call of a tool a reply: where that is asked for."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from langgraft._core.errors import InputError
from langgraft.benchmarks.harness.models import make_model
from langgraft.graphs.chain import _with_tools
from langgraft.nodes.chain.tools import tool_schemas
from langgraft.nodes.dialogue import Model, run_dialogue
from langgraft.nodes.structured import asking, held_to, typed

FIELDS = {"is_bug": {"type": "boolean"}, "metric": {"type": ["number", "null"]}}


class Found(BaseModel):
    """What is asked for."""

    is_bug: bool
    metric: float | None


class Provider(BaseChatModel):
    """A model whose provider knows strict tools; with `refuses` it turns requests with tools down."""

    refuses: bool = False
    replies: list[AIMessage]
    sent: list[dict[str, Any]] = Field(default_factory=list)
    read: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "provider"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: Any = None, strict: bool | None = None, **_: Any
    ) -> Runnable[Any, AIMessage]:
        """Bind tools as settings of each call."""
        return self.bind(tools=list(tools), tool_choice=tool_choice, strict=strict)

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.sent.append(kwargs)
        self.read.append(messages[-1].text)
        if self.refuses and kwargs:
            raise InputError("tools are not supported with this model")
        return ChatResult(generations=[ChatGeneration(message=self.replies.pop(0))])


def filled(**arguments: Any) -> AIMessage:
    """Write a reply that fills in the schema."""
    call = {"name": "submit", "args": arguments, "id": "1", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def asked(model: Model) -> tuple[Found | None, int]:
    """Ask, and return the value and how often the model was asked."""
    held = held_to(model, "submit", FIELDS, "Says it.")
    answer = run_dialogue(asking([HumanMessage("?")], typed(Found)), held)
    return answer.value, answer.calls


def test_reply_when_the_provider_holds_to_a_schema_is_what_was_filled_in() -> None:
    """All fields are required, nothing else may be there, and the call is read as the reply."""
    model = Provider(replies=[filled(is_bug=False, metric=0.5)])
    assert asked(model) == (Found(is_bug=False, metric=0.5), 1)
    function = model.sent[0]["tools"][0]["function"]
    assert function["strict"] is True
    assert function["parameters"]["required"] == list(FIELDS)
    assert function["parameters"]["additionalProperties"] is False
    assert model.sent[0]["tool_choice"] == "submit"


def test_reply_when_the_provider_refuses_schemas_is_asked_for_in_text() -> None:
    """What does not know tools is asked once more without, and read from its prose."""
    model = Provider(refuses=True, replies=[AIMessage('So: {"is_bug": true, "metric": null}')])
    assert asked(model) == (Found(is_bug=True, metric=None), 1)
    assert model.sent[-1] == {}


@pytest.mark.parametrize(
    "model",
    [
        make_model("openai:m", base_url="http://127.0.0.1:1/v1"),
        ChatOpenAI(model="m", base_url="http://127.0.0.1:1/v1", api_key="none"),
    ],
)
def test_model_when_it_is_behind_a_server_of_ones_own_is_not_held(model: Model) -> None:
    """Such servers may know no tools, and a run must not end with that."""
    assert held_to(model, "submit", FIELDS, "Says it.") is model


def test_reply_when_it_is_cut_off_is_asked_for_again_with_that_said() -> None:
    """The model is told that it ran out of room, and not only that the JSON is incomplete."""
    cut = AIMessage('{"is_bug": fal', response_metadata={"finish_reason": "MAX_TOKENS"})
    model = Provider(replies=[cut, AIMessage('{"is_bug": false, "metric": 1}')])
    answer = run_dialogue(asking([HumanMessage("?")], typed(Found)), model)
    assert answer.value == Found(is_bug=False, metric=1)
    assert "cut off where the longest possible one ends" in model.read[1]


@pytest.mark.parametrize(
    ("name", "sent"),
    [("openai:gpt-4o", False), ("openai:o3", None), ("openai:o4-mini-2025-04-16", None)],
)
def test_tools_when_the_provider_can_are_asked_for_one_a_reply(
    name: str, sent: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenAI's models are, but for those that refuse the setting."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    plain = ChatOpenAI(model=name.removeprefix("openai:"), api_key="none")
    for model in (make_model(name), plain):
        bound: Any = _with_tools(model, tool_schemas())
        assert bound.kwargs.get("parallel_tool_calls") is sent
