"""The commands and their options. Everything heavy is imported inside a command, so that
`langgraft --help` answers at once.
"""  # noqa: D205

import io
import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from langgraft._core.errors import InputError, LanggraftError, MissingExtraError
from langgraft.cli.ending import INTERRUPTED, Printable, end_at_once, told_of
from langgraft.cli.groups import DataDirOption, FolderOption, JsonOption, cache_app, sandbox_app
from langgraft.cli.groups import app as competitions_app
from langgraft.cli.memory_app import app as memory_app

app = typer.Typer(
    name="langgraft",
    help="Memory for LangGraph agents: swap it, transplant it, measure it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich's own help costs a third of a second of imports
)

app.add_typer(memory_app)
app.add_typer(competitions_app)
app.add_typer(sandbox_app)
app.add_typer(cache_app)

EXIT_FAILED = 1
EXIT_BAD_INPUT = 2

PlanArgument = Annotated[
    str, typer.Argument(metavar="PLAN", help="A plan file, or the name of one that ships.")
]
DirectoryArgument = Annotated[Path, typer.Argument(metavar="DIR", help="A run directory.")]
ModelOption = Annotated[
    str | None,
    typer.Option(
        help="'simulated', or what init_chat_model takes: 'openai:gpt-4.1-mini'.",
        show_default="the plan's",
    ),
]
BaseUrlOption = Annotated[
    str | None, typer.Option(help="Where an OpenAI-compatible server listens.", show_default=False)
]
ModelSettingsOption = Annotated[
    str | None,
    typer.Option(
        help="Other settings of the model's client, as a JSON object:"
        """ '{"reasoning_effort": "low"}'.""",
        show_default=False,
    ),
]
MaxCallsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Most calls of a real model, failed ones included."),
]
MaxTokensOption = Annotated[
    int | None,
    typer.Option(min=1, help="Most tokens, sent and replied, of a real model."),
]
MaxCostOption = Annotated[
    float | None,
    typer.Option(min=0, help="Most dollars for a real model, by the prices of the plan or ours."),
]
MaxHoursOption = Annotated[
    float | None, typer.Option(min=0, help="Hours after which nothing is begun any more.")
]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Work through at most this many items of each run.")
]


def _version(wanted: bool) -> None:
    if wanted:
        from langgraft import __version__  # noqa: PLC0415
        from langgraft.cli.printing import say  # noqa: PLC0415

        say(f"langgraft {__version__}")
        raise typer.Exit


@app.callback()
def main(
    *,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[  # noqa: ARG001  (acts when it is read)
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options that stand before a command."""
    global _debug  # noqa: PLW0603  (one process is one command)
    _debug = debug


_debug = False


@app.command()
def plans(*, json: JsonOption = False) -> None:
    """List the plans that ship."""
    from langgraft.cli import listing  # noqa: PLC0415

    listing.show_plans(as_json=json)


@app.command()
def preview(
    plan: PlanArgument,
    *,
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    model_settings: ModelSettingsOption = None,
    limit: LimitOption = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Try out what its runs need, as far as no model is called; exit with 1 if anything"
            " is missing.",
        ),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show what a plan would run, and at most how many model calls that takes."""
    from langgraft.benchmarks import studies  # noqa: PLC0415
    from langgraft.cli import listing  # noqa: PLC0415

    prepared = studies.choose(
        plan, model=model, base_url=base_url, model_settings=model_settings, limit=limit
    )
    listing.show_preview(prepared, as_json=json)
    if check and not listing.show_checks(prepared, as_json=json):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def run(
    plan: PlanArgument,
    *,
    out: Annotated[Path, typer.Option(help="Run directory: made, or gone on with.")],
    model: ModelOption = None,
    base_url: BaseUrlOption = None,
    model_settings: ModelSettingsOption = None,
    limit: LimitOption = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Items, and so model calls, under way at the same time, over all runs.",
            show_default="the study's",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processes that share the runs, and the concurrency.",
            show_default="one a core, if there are items enough",
        ),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N",
            help="Carry out one of N parts of the runs, from 0, while others do the rest in the same"
            " directory, on other machines too.",
            show_default="all runs",
        ),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Carry out the runs on a Ray cluster, whose nodes all see the run directory: auto,"
            " HOST:PORT, or local for one begun here. --processes is then how many CPUs of it.",
            show_default="this machine",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            help="Where banks lie meanwhile: memory, chroma, chroma:PATH, http://HOST:PORT,"
            " sqlite:PATH or postgresql://USER@HOST/DATABASE. It changes no result.",
            show_default="the study's",
        ),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            metavar="CACHE",
            help="Answer from these kept replies alone (a file, or a run directory): no key, no network,"
            " nothing asked. The first request that has none stops the plan.",
            show_default="the plan's",
        ),
    ] = None,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    max_hours: MaxHoursOption = None,
    json: JsonOption = False,
) -> None:
    """Run a plan, or go on where it was stopped; then write the report."""
    from langgraft.benchmarks import studies  # noqa: PLC0415

    prepared = studies.choose(
        plan, model=model, base_url=base_url, model_settings=model_settings, limit=limit
    )
    # After the plan is found to be good: models take a second to import.
    from langgraft.cli import running  # noqa: PLC0415

    raise typer.Exit(
        running.run(
            prepared,
            out,
            concurrency=concurrency,
            processes=processes,
            shard=shard,
            ray=ray,
            store=store,
            replay=replay,
            as_json=json,
            caps=running.read_caps(max_calls, max_tokens, max_cost, max_hours),
        )
    )


@app.command()
def bench(
    *,
    out: Annotated[Path, typer.Option(help="Where to write the page, tables and figures.")],
    sizes: Annotated[
        str, typer.Option(metavar="N,N,…", help="Records of a memory, each measured by itself.")
    ] = "1000,10000,100000",
    only: Annotated[
        str | None,
        typer.Option(
            metavar="WORD", help="Measure only what has this word in its title.", show_default="all"
        ),
    ] = None,
) -> None:
    """Measure langgraft beside its peers and its floors, and write one page."""
    from langgraft.benchmarks.performance.bench import run as run_bench  # noqa: PLC0415
    from langgraft.cli.printing import say  # noqa: PLC0415

    run_bench(out, sizes, only, say)


@app.command("serve-simulated")
def serve_simulated(
    plan: Annotated[
        str | None,
        typer.Argument(
            metavar="[PLAN]",
            help="Serve the simulated models of a plan (a file, or the name of one that ships); else"
            " all that need none.",
            show_default=False,
        ),
    ] = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
    faults: Annotated[
        Path | None,
        typer.Option(
            help="What goes wrong, as YAML: docs/simulated-models.md.", show_default=False
        ),
    ] = None,
    call_log: Annotated[
        Path | None,
        typer.Option(help="File that gets a line of JSON a call.", show_default=False),
    ] = None,
    noise: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of calls at temperature 0 that are drawn anew."),
    ] = 0.0,
    json: JsonOption = False,
) -> None:
    """Serve simulated models as OpenAI's API does: a dry run of everything, without a key."""
    from langgraft.benchmarks import studies  # noqa: PLC0415

    prepared = None
    if plan is not None:
        prepared = studies.choose(plan, model="simulated", base_url=None, limit=None)
    from langgraft.cli import serving  # noqa: PLC0415

    serving.run(
        prepared,
        host=host,
        port=port,
        faults=faults,
        call_log=call_log,
        noise=noise,
        as_json=json,
    )


@app.command()
def ablate(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="EXPERIMENT",
            help="Your `Experiment`, as package.module:object; it is imported.",
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Run directory: made, or gone on with.", show_default="runs/ablate-EXPERIMENT"
        ),
    ] = None,
    harm: Annotated[
        bool,
        typer.Option(
            "--harm",
            help="Also try items that are absent, superseded, contradicted, of a neighbor, poisoned.",
        ),
    ] = False,
    credit: Annotated[
        int, typer.Option(min=0, help="Attempts to spend on which item changed which answer.")
    ] = 0,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="BANK@VERSION",
            help="Hold the memory against an earlier bank (a file; VERSION begins its SHA-256), or"
            " against an earlier run directory, and stop when it is sure. A loss exits with 1.",
        ),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only say what it takes, and what it could find.")
    ] = False,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    max_hours: MaxHoursOption = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, help="Attempts under way at the same time.", show_default="16"),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A model instead of the experiment's, as init_chat_model takes it:"
            " 'openai:gpt-4.1-mini'.",
            show_default="the experiment's",
        ),
    ] = None,
    base_url: BaseUrlOption = None,
    summary: Annotated[
        Path | None, typer.Option(help="Also write the verdict as Markdown, for a pull request.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say whether memory helps an agent of yours: your graph, your tasks, your score."""
    from langgraft.cli import running  # noqa: PLC0415

    if preview:
        running.preview_experiment(
            experiment,
            model=model,
            base_url=base_url,
            harm=harm,
            credit=credit,
            against=against,
            as_json=json,
        )
        return
    name = experiment.replace(":", "-").rpartition(".")[2]
    raise typer.Exit(
        running.run_experiment(
            experiment,
            model=model,
            base_url=base_url,
            out=out or Path("runs") / f"ablate-{name}",
            summary=summary,
            as_json=json,
            harm=harm,
            credit=credit,
            against=against,
            concurrency=concurrency,
            max_calls=max_calls,
            max_tokens=max_tokens,
            max_dollars=max_cost,
            max_hours=max_hours,
        )
    )


@app.command()
def exam(
    *,
    memory: Annotated[
        list[str] | None,
        typer.Option(
            help="A memory system by name, or yours as package.module:Class; may be repeated.",
            show_default="all there are",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Also write a page and tables as CSV to this folder.")
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Also write the table as Markdown, for a pull request.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Mark memory systems by generated histories and questions whose answers follow by rule; no
    model takes part.
    """  # noqa: D205
    from langgraft.cli import running  # noqa: PLC0415

    running.sit_exam(memory or [], out=out, summary=summary, as_json=json)


@app.command()
def solve(
    competition: Annotated[
        str,
        typer.Argument(
            metavar="COMPETITION", help="A competition's id, or a competition's own folder."
        ),
    ],
    *,
    folder: FolderOption = None,
    data_dir: DataDirOption = None,
    model: Annotated[
        str, typer.Option(help="'simulated', or what init_chat_model takes: 'openai:o3'.")
    ] = "simulated",
    feedback_model: Annotated[
        str | None,
        typer.Option(help="The model that reviews and diagnoses.", show_default="--model"),
    ] = None,
    base_url: BaseUrlOption = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Sampling temperature.", show_default="0.5")
    ] = None,
    agent: Annotated[
        str,
        typer.Option(
            help="tree searches over programs (AIDE); chain acts step by step (OpenHands); mlab"
            " does in six fields (MLAgentBench)."
        ),
    ] = "tree",
    policy: Annotated[
        str | None,
        typer.Option(
            help="What a tree writes next: greedy (AIDE), uct or evolution (AIRA); with settings as"
            " YAML: '{name: uct, c: 0.5}'.",
            show_default="greedy",
        ),
    ] = None,
    operators: Annotated[
        str | None,
        typer.Option(
            help="What a tree asks for programs with: published (as AIDE), or current, which tells"
            " and asks more (after AIRA).",
            show_default="published",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Programs to write and run, or actions to take.",
            show_default="tree 30, chain 500, mlab 2000",
        ),
    ] = None,
    hours: Annotated[
        float | None,
        typer.Option(help="Wall clock of a run.", show_default="tree none, chain and mlab 24"),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Wall clock that one program may take.",
            show_default="tree 7200, chain and mlab a whole run",
        ),
    ] = None,
    width: Annotated[
        int | None,
        typer.Option(min=1, help="Programs of a tree written and run at once.", show_default="1"),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Best programs of a tree that are scored again before one is chosen.",
            show_default="1",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the run.")] = 0,
    memory: Annotated[
        str,
        typer.Option(
            help="Memory of errors and fixes, used and filled: off, a folder, memory (of this"
            " run alone), chroma:PATH, http://HOST:PORT, sqlite:PATH or postgresql://USER@HOST/DATABASE.",
        ),
    ] = "off",
    sandbox: Annotated[
        str,
        typer.Option(help="docker; or subprocess, which isolates nothing from this machine."),
    ] = "docker",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the results: made, or gone on with.",
            show_default="runs/solve-COMPETITION, of others than the tree with -AGENT",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Solve a competition: prepare its data, let an agent take part, and grade what it submits; or
    go on where that was stopped.
    """  # noqa: D205
    from langgraft.cli import solving  # noqa: PLC0415

    fields = {
        "folders": folder,
        "data_dir": data_dir,
        "model": model,
        "feedback_model": feedback_model,
        "base_url": base_url,
        "temperature": temperature,
        "seconds": seconds,
        "sandbox": sandbox,
    }
    settings = {
        "policy": policy,
        "operators": operators,
        "steps": steps,
        "hours": hours,
        "width": width,
        "candidates": candidates,
    }
    asked = solving.Asked(
        competition, fields, agent=agent, settings=settings, seed=seed, memory=memory, out=out
    )
    raise typer.Exit(solving.run(asked, as_json=json))


@app.command()
def status(directory: DirectoryArgument, *, json: JsonOption = False) -> None:
    """Show how far a run directory is."""
    from langgraft.cli import listing  # noqa: PLC0415

    listing.show_status(directory, as_json=json)


@app.command()
def watch(
    directory: DirectoryArgument,
    *,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The page to write; a browser that shows it loads it anew by itself.",
            show_default="watch.html in DIR",
        ),
    ] = None,
    no_page: Annotated[
        bool, typer.Option("--no-page", help="Write no page; only lines in the terminal.")
    ] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 5.0,
) -> None:
    """Follow a plan that runs, here or on other machines, until it ends: a page, and lines here."""
    from langgraft.cli import listing  # noqa: PLC0415

    if not listing.watch(directory, page=page, with_page=not no_page, every=every):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def report(directory: DirectoryArgument, *, json: JsonOption = False) -> None:
    """Verify a run directory, finished or not, and write its report."""
    from langgraft.cli import running  # noqa: PLC0415

    running.report(directory, as_json=json)


@app.command()
def export(
    directory: DirectoryArgument,
    *,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="sft: prompt and completion, as TRL reads them; openai: chat messages;"
            " trajectories: an object an episode, with its steps and what was recalled; inspect: a"
            " folder with an .eval file a run, for Inspect's viewer.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, of inspect the folder.", show_default="standard output"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    success: Annotated[bool, typer.Option("--success", help="Successes alone.")] = False,
    split: Annotated[
        str | None,
        typer.Option(
            help="train: episodes that memory learned from; evaluate: those it was tried out on.",
            show_default="both",
        ),
    ] = None,
    condition: Annotated[
        list[str] | None, typer.Option(help="Of this condition; may be repeated.")
    ] = None,
    domain: Annotated[
        list[str] | None, typer.Option(help="Of this domain; may be repeated.")
    ] = None,
    task: Annotated[list[str] | None, typer.Option(help="At this task; may be repeated.")] = None,
    with_memory: Annotated[
        bool,
        typer.Option(
            "--with-memory/--without-memory",
            help="Whether the recalled block stands where the agent saw it.",
        ),
    ] = True,
    trust_modules: Annotated[
        bool,
        typer.Option(
            "--trust-modules",
            help="Import memory systems and worlds that DIR's plan names and that are not langgraft's"
            " own: they show again what agents saw. Only for directories that you trust.",
        ),
    ] = False,
) -> None:
    """Verify a run directory, and write its episodes: JSON lines to fine-tune on, or logs for Inspect."""
    from langgraft.cli import running  # noqa: PLC0415

    form_of_lines = None if form == running.INSPECT else running.form_named(form)
    shown = {"with_memory": with_memory, "trust_modules": trust_modules}
    chosen = running.chosen_episodes(
        success=success, split=split, conditions=condition, domains=domain, tasks=task
    )
    if form_of_lines is None:
        running.write_inspect_logs(directory, chosen, out=out, force=force, **shown)
        return
    running.write_episodes(directory, form_of_lines, chosen, out=out, force=force, **shown)


@app.command()
def verify(directory: DirectoryArgument, *, json: JsonOption = False) -> None:
    """Check a run directory, log and report, against itself: integrity, not authenticity."""
    from langgraft.cli import listing  # noqa: PLC0415

    if listing.show_findings(directory, as_json=json):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def tree(
    journal: Annotated[
        Path,
        typer.Argument(
            metavar="JOURNAL", help="A search's journal, AIDE's or ours, .json or .json.gz."
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write.", show_default="beside the journal, .html"),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="Id of the competition.", show_default="from the journal's name"),
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.", show_default="the task")] = "",
    lower_is_better: Annotated[
        bool | None,
        typer.Option(
            "--lower/--higher",
            help="Which metrics are better.",
            show_default="as the competition's board, or the journal, tells",
        ),
    ] = None,
    chosen: Annotated[
        str, typer.Option(help="Id of the program that was submitted.", show_default=False)
    ] = "",
    report: Annotated[
        Path | None,
        typer.Option(help="The grader's report on it, as JSON.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Draw a tree search as one HTML page: every program, its score, and all there is of it."""
    from langgraft.cli.competitions import write_tree  # noqa: PLC0415

    write_tree(
        journal,
        out=out,
        task=task,
        title=title,
        lower=lower_is_better,
        chosen=chosen,
        report=report,
        as_json=json,
    )


def run_command_line() -> None:
    """Run the command line: one line for an error, and the exit code that says which kind.

    Exit codes: 0 done, 1 incomplete or failed, 2 bad input, 130 interrupted.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that is not UTF-8 gets `\u2026` for what it cannot show, not a traceback.
        sys.stdout.reconfigure(errors="backslashreplace")
    if logging.lastResort is not None:  # what nobody configured is written to standard error
        logging.lastResort.setFormatter(Printable())
    try:
        app()
    except SystemExit as ended:
        if ended.code == INTERRUPTED:
            end_at_once()
        raise
    except (LanggraftError, RecursionError) as error:
        sys.stderr.write(f"{told_of(error, debug=_debug)}\n")
        bad_input = isinstance(error, InputError | MissingExtraError | RecursionError)
        sys.exit(EXIT_BAD_INPUT if bad_input else EXIT_FAILED)
