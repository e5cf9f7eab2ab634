"""The `langgraft cache` commands: what models were asked and answered, moved and bounded."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from langgraft._core.errors import InputError
from langgraft.cli.competitions_app import JsonOption

if TYPE_CHECKING:  # help answers at once
    from langgraft.benchmarks.harness.cache import ResponseCache

app = typer.Typer(
    name="cache",
    help="Replies of models that a run directory keeps: count, export, import and trim them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PlaceArgument = Annotated[
    Path, typer.Argument(metavar="CACHE", help="A file of kept replies, or a run directory.")
]


@app.command()
def stats(place: PlaceArgument, *, json: JsonOption = False) -> None:
    """Show how many replies are kept, of which models, and how many bytes they take."""
    from langgraft.cli.printing import say, write_json  # noqa: PLC0415

    with _opened(place, "read_only") as cache:
        told = cache.stats()
    if json:
        write_json(told)
        return
    models = told.pop("models")
    assert isinstance(models, dict)
    for name, value in {**told, **models}.items():
        say(f"{name}: {value:,}")


@app.command("export")
def write(
    place: PlaceArgument,
    *,
    out: Annotated[Path, typer.Option(help="File to write, as JSON lines.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write replies and their requests as JSON lines, without any that hold a secret of this shell."""
    from langgraft.cli.memory_moving import check_free  # noqa: PLC0415
    from langgraft.cli.printing import complain, say  # noqa: PLC0415

    check_free(out, force=force)
    draft = out.with_name(f".{out.name}.tmp")
    try:
        with _opened(place, "read_only") as cache, draft.open("wb") as file:
            written, left = cache.export(file, secrets_of(os.environ))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(out)
    except OSError as error:
        raise InputError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    say(f"{out}: {written:,} replies")
    if left:
        complain(
            f"{left:,} left out: their requests are not kept (older replies), or they hold the"
            " value of a variable of this shell that is named …_KEY, …_TOKEN, …_SECRET or …_PASSWORD"
        )


@app.command("import")
def bring_in(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` wrote.")],
    place: PlaceArgument,
    *,
    most_bytes: Annotated[
        int | None,
        typer.Option(min=1, help="Most bytes of the cache.", show_default="8589934592"),
    ] = None,
) -> None:
    """Add exported replies to a cache, or make one: all of them or none."""
    from langgraft.cli.printing import say  # noqa: PLC0415

    try:
        file = source.open("rb")
    except OSError as error:
        raise InputError(f"{source}: cannot be read: {error.strerror or error}") from error
    with file, _opened(place, "read_write", most_bytes) as cache:
        new, known = cache.bring_in(file, str(source))
    say(f"{cache.path}: {new:,} replies are new, {known:,} requests were answered already")


@app.command()
def trim(
    place: PlaceArgument,
    *,
    most_bytes: Annotated[int, typer.Option(min=1, help="Most bytes that it keeps.")],
) -> None:
    """Forget what was kept longest ago; refused while a run has the cache open."""
    from langgraft.cli.printing import say  # noqa: PLC0415

    _opened(place, "read_only").close()  # a mistyped path makes no file
    with _opened(place, "read_write", most_bytes) as cache:
        gone = cache.trim()
    say(f"{cache.path}: {gone:,} replies are forgotten")


def _opened(place: Path, mode: str, most_bytes: int | None = None) -> "ResponseCache":
    from langgraft.benchmarks.harness.budget import MOST_KEPT  # noqa: PLC0415
    from langgraft.benchmarks.harness.cache import ResponseCache  # noqa: PLC0415
    from langgraft.benchmarks.harness.models import kept_replies  # noqa: PLC0415

    return ResponseCache(kept_replies(place), mode, most_bytes=most_bytes or MOST_KEPT)


def secrets_of(environment: Mapping[str, str]) -> list[str]:
    """Return the values of variables whose names say that they are secrets."""
    ends = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
    return [
        value
        for name, value in environment.items()
        if name.upper().endswith(ends) and len(value) >= _SECRET_CHARACTERS
    ]


_SECRET_CHARACTERS: Final = 8
"""Shorter ones are `none`, `test` and the like."""
