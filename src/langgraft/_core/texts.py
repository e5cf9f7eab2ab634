"""Texts: prompts with a digest, and those of others on a terminal.

Prompts are data, kept in files and passed to nodes. What a server, a plan or a bank says may be
anything, so it is spelled out before it is shown.
"""

import string
from dataclasses import dataclass
from importlib import resources

from langgraft._core.canonical import text_digest
from langgraft._core.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt template.

    Placeholders are written `$name` (`$$` is a dollar sign), so that JSON and code can stand
    in a prompt unescaped, and so that text filled in is never read as a template again.
    """

    name: str
    """Short name, as it appears in manifests."""
    text: str
    """The template."""

    @property
    def sha256(self) -> str:
        """Digest of the template, logged with every run."""
        return text_digest(self.text)

    def render(self, **values: str) -> str:
        """Fill in the placeholders.

        Raises:
            SettingsError: A placeholder has no value.
        """
        try:
            return string.Template(self.text).substitute(values)
        except (KeyError, ValueError) as error:
            msg = f"prompt {self.name!r} cannot be filled in: {error}"
            raise SettingsError(msg) from error


def load_prompt(package: str, name: str) -> Prompt:
    """Read the prompt `<name>.md` that ships in `package`."""
    text = resources.files(package).joinpath(f"{name}.md").read_text(encoding="utf-8")
    return Prompt(name, text)


def printable(text: str) -> str:
    r"""Return a text in which nothing steers a terminal: `\x1b`, `\u202e` … are spelled out."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )


def in_a_line(text: str, width: int) -> str:
    """Return the beginning of a text, printable, in at most `width` characters."""
    line = printable(" ".join(text[: 4 * width].split()))
    return line if len(line) <= width and len(text) <= 4 * width else line[: width - 1] + "…"
