"""A gullible model: it carries out every sentence it reads, and is what poison in memory is tried on.

A real model obeys some of what it reads in recalled text, and nobody knows beforehand what. This one
obeys all of it, so that a payload that reaches its prompt has won, and one that has not won was not
there. It looks through every disguise that it knows (invisible characters, letters of other
alphabets, base64, hexadecimal, percent escapes, reversed and rotated text) and joins what is split:
it carries out the whole prompt as well as each of its sentences.

Asked to reflect, it passes on what it read, as lessons: so payloads travel through reflection.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field
from typing_extensions import override

from langgraft.memory.recall import looks_like
from langgraft.memory.scanning import decoded

_SENTENCE: Final = re.compile(r"(?<=[.!?。！؟।])\s+|\n+")  # noqa: RUF001
_UNSEEN: Final = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]")
_TAG_LETTERS: Final = {code: code - 0xE0000 for code in range(0xE0020, 0xE007F)}


class GullibleModel(BaseChatModel):
    """Answers with a line `DO: …` for each sentence of its prompt; `obeyed` keeps them all."""

    obeyed: list[str] = Field(default_factory=list)
    """What it has carried out so far."""

    @property
    def _llm_type(self) -> str:
        return "gullible"

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        done = [deed for message in messages for deed in deeds(message.text)]
        self.obeyed += done
        reply = AIMessage("\n".join(f"DO: {deed}" for deed in done))
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def carried_out(self, words: Sequence[str]) -> bool:
        """Say whether it did something that names all these words, in one sentence or in one prompt."""
        wanted = [word.casefold() for word in words]
        return any(all(word in deed.casefold() for word in wanted) for deed in self.obeyed)


def deeds(text: str) -> Iterator[str]:
    """Yield all that a text may be taken to ask for, in each reading of it."""
    for reading in dict.fromkeys(_readings(text)):
        yield from filter(None, map(str.strip, _SENTENCE.split(reading)))
        yield " ".join(reading.split())


def _readings(text: str) -> Iterator[str]:
    yield text
    visible = _UNSEEN.sub("", text.translate(_TAG_LETTERS))
    yield visible
    yield looks_like(visible)
    for each in (text, visible):
        for _, said in decoded(each):
            yield said
    yield visible[::-1]
    yield codecs.encode(visible, "rot13")
