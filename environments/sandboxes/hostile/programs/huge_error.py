"""End with an exception whose message is larger than anybody wants, from far down."""


class Forged(Exception):
    def __str__(self):
        return "\x1b[2J" + "e" * 60_000_000


def descend(depth):
    if depth == 0:
        raise Forged
    descend(depth - 1)


descend(900)
