"""Groups of commands and their options: `competitions`, `sandbox`, and `cache` (what models were asked and answered,
moved and bounded). Everything heavy is imported inside a command, so that help answers at once.
"""  # noqa: D205

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from langgraft._core.confidential import secrets_of
from langgraft._core.errors import InputError

if TYPE_CHECKING:
    from langgraft.benchmarks.harness.cache import ResponseCache

app = typer.Typer(
    name="competitions",
    help="List, prepare, check and grade machine-learning competitions: those that ship,"
    " MLE-bench's, and folders of your own.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="A competition's id.")]
DataDirOption = Annotated[
    Path | None,
    typer.Option(
        help="Where data lies and is prepared: DIR/<id>/prepared.",
        show_default="a folder of the user's cache",
    ),
]
FolderOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="A folder of competitions of your own, FOLDER/<id>/config.yaml; may be repeated.",
        show_default=False,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]


@app.command("list")
def list_all(
    *, data_dir: DataDirOption = None, folder: FolderOption = None, json: JsonOption = False
) -> None:
    """List the competitions: what they are, and whether their data is prepared."""
    from langgraft.cli import competitions as work  # noqa: PLC0415

    work.show_all(work.registry(data_dir, folder), as_json=json)


@app.command()
def show(
    competition: IdArgument,
    *,
    data_dir: DataDirOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Show a competition: its metric, its medals' thresholds, and where its data lies."""
    from langgraft.cli import competitions as work  # noqa: PLC0415

    work.show_one(work.registry(data_dir, folder), competition, as_json=json)


@app.command()
def prepare(
    competitions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Competitions; none: all that ship."),
    ] = None,
    *,
    data_dir: DataDirOption = None,
    folder: FolderOption = None,
    force: Annotated[
        bool, typer.Option("--force", help="Make again what is there already.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Make competitions' data, all of it or nothing, and hold it against its checksums."""
    from langgraft.cli import competitions as work  # noqa: PLC0415

    found = work.registry(data_dir, folder)
    work.prepare(found, competitions or [], force=force, as_json=json)


@app.command()
def check(
    submission: Annotated[Path, typer.Argument(metavar="FILE", help="A submission, CSV.")],
    competition: IdArgument,
    *,
    data_dir: DataDirOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Hold a submission against the sample submission, never the answers; exit with 1 if it is
    not valid.
    """  # noqa: D205
    from langgraft.cli import competitions as work  # noqa: PLC0415

    found = work.registry(data_dir, folder).get_competition(competition)
    raise typer.Exit(int(not work.check(submission, found, as_json=json)))


@app.command()
def grade(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="A submission, CSV; or a list of them, JSON lines of competition_id and"
            " submission_path.",
        ),
    ],
    competition: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The competition; none: FILE is a list."),
    ] = None,
    *,
    output_dir: Annotated[
        Path | None,
        typer.Option(
            help="Write <UTC>_grading_report.json there, as `mlebench grade` does.",
            show_default=False,
        ),
    ] = None,
    data_dir: DataDirOption = None,
    folder: FolderOption = None,
    json: JsonOption = False,
) -> None:
    """Grade submissions by the answers and the board: scores and medals."""
    from langgraft.cli import competitions as work  # noqa: PLC0415

    found = work.registry(data_dir, folder)
    work.grade(file, competition, found, output_dir=output_dir, as_json=json)


# The sandbox -------------------------------------------------------------------------------

sandbox_app = typer.Typer(
    name="sandbox",
    help="Where model-written code runs: build its image, attack it, clear up after it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@sandbox_app.command("build")
def build_sandbox(
    *,
    base: Annotated[
        str,
        typer.Option(metavar="IMAGE", help="What it is built on."),
    ] = "python:3.11-slim",
    tag: Annotated[
        str, typer.Option(help="How to name it.", show_default="langgraft-sandbox:latest")
    ] = "",
    requirements: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What to install, in place of our list; or 'mle', MLE-bench's libraries, or"
            " 'mle-newer', the same as they are today.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Build the image that programs run in, unless it is there."""
    from langgraft.cli import sandbox  # noqa: PLC0415

    sandbox.build(base, tag, requirements)


@sandbox_app.command("check")
def check_sandbox(
    *,
    image: Annotated[
        str, typer.Option(help="What to check.", show_default="langgraft-sandbox:latest")
    ] = "",
    json: JsonOption = False,
) -> None:
    """Attack the sandbox on this engine; exit with 1 if anything was not contained."""
    from langgraft.cli import sandbox  # noqa: PLC0415

    if not sandbox.check(image, as_json=json):
        raise typer.Exit(1)


@sandbox_app.command("clean")
def clean_sandbox(
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Remove containers in use, too.")
    ] = False,
    images: Annotated[
        bool, typer.Option("--images", help="Remove the images that were built here, too.")
    ] = False,
) -> None:
    """Remove containers that a killed process left behind."""
    from langgraft.cli import sandbox  # noqa: PLC0415

    sandbox.clean(everything=everything, images=images)


# Kept replies ------------------------------------------------------------------------------

cache_app = typer.Typer(
    name="cache",
    help="Replies of models that a run directory keeps: count, export, import and trim them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

PlaceArgument = Annotated[
    Path, typer.Argument(metavar="CACHE", help="A file of kept replies, or a run directory.")
]


@cache_app.command()
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


@cache_app.command("export")
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


@cache_app.command("import")
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


@cache_app.command()
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
