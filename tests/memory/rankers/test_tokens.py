"""What a word is."""

import pytest

from langgraft.memory.rankers.lexical import tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Go to fridge 1.", ["go", "to", "fridge", "1"]),
        ("x = 2", ["x", "2"]),
        ("not the, THE a", ["not", "the", "the", "a"]),
        ("Éclair naïve 東京 ΔRR", ["éclair", "naïve", "東京", "δrr"]),
        ("cafe\u0301 \u1112\u1161\u11ab A\u030a", ["caf\u00e9", "\ud55c", "\u00e5"]),
        ("go_to left-hand can't", ["go_to", "left", "hand", "can", "t"]),
        ("", []),
        (" \n.,;! ", []),
    ],
)
def test_tokenize_when_given_text_then_keeps_every_word_in_order(
    text: str, tokens: list[str]
) -> None:
    """Words are lowercase runs in NFC; digits, single characters, `_` and repeats all stay."""
    assert tokenize(text) == tokens
