"""What a word is."""

import pytest

from langgraft.memory.rankers.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Go to fridge 1.", ["go", "to", "fridge", "1"]),
        ("x = 2", ["x", "2"]),
        ("not the, THE a", ["not", "the", "the", "a"]),
        ("Éclair naïve 東京 ΔRR", ["éclair", "naïve", "東京", "δrr"]),
        ("go_to left-hand can't", ["go_to", "left", "hand", "can", "t"]),
        ("", []),
        (" \n.,;! ", []),
    ],
)
def test_tokenize_when_given_text_then_keeps_every_word_in_order(
    text: str, tokens: list[str]
) -> None:
    """Words are lowercase Unicode runs; digits, single characters and repeats all stay."""
    assert tokenize(text) == tokens
