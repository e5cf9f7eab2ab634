"""Calls of language models, made to fail."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NoReturn

import pytest

_KINDS: Final = ("BaseChatModel", "BaseLLM")
_CALLS: Final = ("invoke", "stream", "batch", "generate", "generate_prompt")


@contextmanager
def models_refused() -> Iterator[None]:
    """Make every call of a LangChain model fail the test, also one whose error is caught."""
    called: list[str] = []

    def refuse(name: str) -> Any:
        def call(*_: Any, **__: Any) -> NoReturn:
            called.append(name)
            pytest.fail(f"memory called a language model: {name}")

        return call

    with pytest.MonkeyPatch.context() as patch:
        for kind in _KINDS:
            for name in (each for call in _CALLS for each in (call, f"a{call}")):
                patch.setattr(f"langchain_core.language_models.{kind}.{name}", refuse(name))
        yield
    if called:
        pytest.fail(f"memory called a language model: {', '.join(called)}")
