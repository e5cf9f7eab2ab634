"""Prompts are data: a named text with a digest, kept in a file and passed to nodes."""

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
