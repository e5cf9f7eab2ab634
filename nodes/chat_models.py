"""Chat models, as nodes and graphs are given them: an object, or a name."""

from typing import Annotated, TypeAlias, overload

from langchain.chat_models import init_chat_model
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from langgraft._core.errors import SettingsError

Model: TypeAlias = Runnable[LanguageModelInput, BaseMessage]
"""What is talked with: a chat model, or one that tools are bound to, retries are added to …"""

ChatModel: TypeAlias = Annotated[
    Model | str, "a chat model, or the name of one such as 'openai:gpt-4.1-mini'"
]
"""A model, or what LangChain's `init_chat_model` makes one of."""


@overload
def chat_model(model: ChatModel, what: str) -> Model: ...
@overload
def chat_model(model: ChatModel | None, what: str) -> Model | None: ...
def chat_model(model: ChatModel | None, what: str) -> Model | None:
    """Return the model that is meant.

    Args:
        model: A model, or its name.
        what: What it was given as, for the message.

    Raises:
        SettingsError: The name is nobody's, or its package or key is missing.
    """
    if not isinstance(model, str):
        return model
    try:
        # Without a name, LangChain makes a model that is named with each call.
        return init_chat_model(model or "''")
    except Exception as error:
        told = str(error).strip().partition("\n")[0]
        msg = (
            f"{what} is no chat model, nor a name that one can be made of, such as"
            f" 'openai:gpt-4.1-mini', got {model!r:.80}: {told}"
        )
        raise SettingsError(msg) from error
