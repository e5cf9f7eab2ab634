"""The `langgraft sandbox` commands and their options. Everything heavy is imported inside a
command, so that help answers at once.
"""  # noqa: D205

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="sandbox",
    help="Where model-written code runs: build its image, attack it, clear up after it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]


@app.command()
def build(
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


@app.command()
def check(
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


@app.command()
def clean(
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
