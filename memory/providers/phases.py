"""When to ask memory again within an episode, seen from its texts alone."""

from typing import Final

from langgraft.memory.rankers.tokens import tokenize

_FUNCTION_WORDS: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "do",
        "for",
        "from",
        "in",
        "into",
        "is",
        "it",
        "its",
        "no",
        "not",
        "of",
        "on",
        "onto",
        "or",
        "out",
        "some",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "this",
        "to",
        "under",
        "up",
        "using",
        "was",
        "were",
        "with",
        "you",
        "your",
    ]
)
"""Words of an instruction that come and go without a change of phase."""


def in_sight(instruction: str, observation: str) -> frozenset[str]:
    """Return what the instruction names that the agent now sees.

    Worlds that repeat the instruction in what they show do not show its things by that.
    """
    words = {word for word in tokenize(instruction) if not word.isdigit()} - _FUNCTION_WORDS
    rest = observation.replace(instruction, " ") if instruction else observation
    return frozenset(words.intersection(tokenize(rest)))


def phase_changed(instruction: str, observation: str, before: str) -> bool:
    """Say whether something that the instruction names has come into sight since `before`.

    Searching turns into approaching, carrying into placing, when a thing or a deed of the goal
    first appears in what the world says. While an episode goes on as it did, room after room
    of the same search, nothing of the goal appears, and asking again would bring only the same
    (continual-memory §4.2).
    """
    return bool(in_sight(instruction, observation) - in_sight(instruction, before))
