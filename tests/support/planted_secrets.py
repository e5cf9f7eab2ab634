"""Secrets wherever a user may have some, errors that repeat them, and a scan for them."""

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

KEY: Final = "planted-0key-9f8e7d6c5b4a"  # of no shape that anybody knows
TOKEN: Final = "ghp_planted0token0123456789abcdef"
PASSWORD: Final = "planted-0password-42"
HEADER: Final = "planted-0header-77aa55"
SECRETS: Final = (KEY, TOKEN, PASSWORD, HEADER)
ENVIRONMENT: Final = {
    "OPENAI_API_KEY": KEY,
    "GITHUB_TOKEN": TOKEN,
    "DATABASE_URL": f"postgresql://ada:{PASSWORD}@localhost/app",
    "GATEWAY_SECRET": HEADER,
}
TELLING: Final = (
    f"Incorrect API key provided: {KEY}. Authorization: Bearer {TOKEN}, x-gateway: {HEADER}"
)
"""What an error says that repeats the request's headers."""


def texts_of(place: Path) -> Iterator[tuple[str, bytes]]:
    """Yield all that stands in a folder: names and bytes of files, and what databases hold compressed."""
    for path in sorted(place.rglob("*")):
        yield str(path), str(path).encode()
        if path.is_file():
            yield from ((str(path), each) for each in _contents(path))


def leaks(place: Path, *said: str) -> list[str]:
    """List the files of a folder, and the texts, that hold a secret."""
    found = [text for text in said if any(secret in text for secret in SECRETS)]
    return found + [
        name for name, held in texts_of(place) if any(each.encode() in held for each in SECRETS)
    ]


def _contents(path: Path) -> Iterator[bytes]:
    yield (data := path.read_bytes())
    if data.startswith(b"SQLite format 3"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                for row in database.execute(f'SELECT * FROM "{table}"'):
                    for value in row:
                        if isinstance(value, bytes):
                            with contextlib.suppress(zlib.error):
                                yield zlib.decompress(value)
