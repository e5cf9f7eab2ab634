"""What a model said, as text that can be kept."""

from langchain_core.messages import BaseMessage


def reply_text(message: BaseMessage) -> str:
    """Return the text of a model's reply."""
    return encodable(str(message.text))


def encodable(text: str) -> str:
    """Replace lone surrogates by question marks.

    They reach a reply through a JSON escape cut in two, and no file, log or store holds them.
    """
    return text.encode("utf-8", "replace").decode("utf-8")
