"""Sources: what an item or an episode follows from, such as `user:ada` or `web:example.org/faq`.

=============  ================================================================================
kind           name
=============  ================================================================================
`user`         whoever said it, by the application's own id
`tool`         the tool whose output it is
`web`          the page or host that was read
`import`       the bank it came from, as an import with choices stamps it
`episode`      the id of an episode
`item`         the id of an item
=============  ================================================================================

An application says what an episode was learned from (`Episode.sources`), and memory passes that on:
an item has the sources of its episode and of every item with sources that was recalled in it, whose
own ids are added as `item:…` and `episode:…`. Where nobody names a source nothing is recorded.

The sources of an item are an unordered set, kept sorted, so that the same are the same bytes.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field

from langgraft._core.canonical import text_digest
from langgraft._core.errors import InputError

SourceKind: TypeAlias = Literal["user", "tool", "web", "import", "episode", "item"]
"""What kind of thing a source is."""

KINDS: Final[tuple[SourceKind, ...]] = get_args(SourceKind)
ROOTS: Final[tuple[SourceKind, ...]] = ("user", "tool", "web", "import")
"""Kinds from outside of memory: what follows from one passes it on, however many steps away."""
FEEDBACK: Final = "feedback"
"""Metadata of items whose success is not the environment's word: `self` or `oracle`."""
MAX_SOURCES: Final = 10_000
"""Most sources of one item or episode."""
MAX_CHARACTERS: Final = 500
"""Longest source, kind included; `source` keeps a digest in the place of a longer name."""

_DIGEST: Final = "sha256:"
_FORM: Final = rf"^({'|'.join(KINDS)}):[^\x00]"
_CHECKED: Final = re.compile(_FORM)


def source(kind: SourceKind, name: str) -> str:
    """Return a source; a digest stands for a name too long to repeat in every item, or with NUL.

    Raises:
        InputError: The kind is not known, or the name is empty or holds a lone surrogate.
    """
    said = f"{kind}:{name}"
    if len(said) > MAX_CHARACTERS or "\x00" in name:
        said = f"{kind}:{_DIGEST}{text_digest(name)}"
    return check_source(said, "a source")


def check_source(value: object, what: str) -> str:
    """Return a source as it is.

    Args:
        value: The source.
        what: What it was given as, for the message.

    Raises:
        InputError: It is none.
    """
    if not isinstance(value, str) or not _CHECKED.match(value):
        msg = (
            f"{what} has the form kind:name, with kind one of {', '.join(KINDS)} and a name that is"
            f" not empty; got {value!r:.80}"
        )
        raise InputError(msg)
    if len(value) > MAX_CHARACTERS:
        msg = (
            f"{what} has at most {MAX_CHARACTERS} characters, got {len(value):,}, which begin"
            f" {value!r:.80}; `source(kind, name)` shortens a long name"
        )
        raise InputError(msg)
    if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        msg = f"{what} holds NUL or a lone surrogate, which no log can hold: {value!r:.80}"
        raise InputError(msg)
    return value


def check_sources(values: object, what: str) -> tuple[str, ...]:
    """Return sources sorted, each once.

    Raises:
        InputError: One is not possible, there are too many, or it is no list.
    """
    if values == ():
        return ()
    if not isinstance(values, list | tuple | set | frozenset):
        msg = f"{what} is a list of texts, kind:name; got {values!r:.80}"
        raise InputError(msg)
    found = sorted({check_source(each, f"each of {what}") for each in values})
    if len(found) > MAX_SOURCES:
        msg = f"{what} holds {len(found):,} sources; at most {MAX_SOURCES:,} are possible"
        raise InputError(msg)
    return tuple(found)


def combined(*many: Iterable[str]) -> tuple[str, ...]:
    """Return all of several lists of sources, sorted, each once."""
    return tuple(sorted({each for sources in many for each in sources}))


def kind_of(value: str) -> str:
    """Return the kind of a source."""
    return value.partition(":")[0]


def host_of(page: str) -> str:
    """Return the host of a page as sources name it, with or without scheme, port and path."""
    page = page.partition("://")[2] or page
    host = re.split(r"[/?#]", page, maxsplit=1)[0].rpartition("@")[2]
    return re.sub(r":[0-9]*$", "", host).rstrip(".").casefold()


@contextmanager
def refusals_as_values() -> Iterator[None]:
    """Refuse a source within the block as pydantic's validators do."""
    try:
        yield
    except InputError as error:
        raise ValueError(str(error)) from error


def _of_item(values: object) -> tuple[str, ...]:
    with refusals_as_values():
        return check_sources(values, "`sources`")


Sources: TypeAlias = Annotated[
    tuple[Annotated[str, Field(max_length=MAX_CHARACTERS, pattern=_FORM)], ...],
    Field(max_length=MAX_SOURCES),
    BeforeValidator(_of_item),
]
"""The field of a model."""
