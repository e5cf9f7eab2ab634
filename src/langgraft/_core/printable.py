"""Texts of others on a terminal: what a server, a plan or a bank says may be anything."""


def printable(text: str) -> str:
    r"""Return a text in which nothing steers a terminal: `\x1b`, `\u202e` … are spelled out."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def in_a_line(text: str, width: int) -> str:
    """Return the beginning of a text, printable, in at most `width` characters."""
    line = printable(" ".join(text[: 4 * width].split()))
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"
