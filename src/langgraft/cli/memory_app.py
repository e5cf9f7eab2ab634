"""The `langgraft memory` commands and their options. Everything heavy is imported inside a
command, so that help answers at once.
"""  # noqa: D205

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="memory",
    help="Look into banks, search and compare them, and move what they hold. A bank is a file"
    " (bare canonical JSONL, or a bundle) or lies in a store.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FileArgument = Annotated[
    Path | None,
    typer.Argument(metavar="[FILE]", help="A bank as a file; none: the one in the store."),
]
StoreOption = Annotated[
    str | None,
    typer.Option(
        help="Where the bank lies: chroma:PATH, http://HOST:PORT,"
        " sqlite:PATH or postgresql://USER@HOST/DATABASE.",
        show_default=False,
    ),
]
ProviderOption = Annotated[
    str | None,
    typer.Option(help="The bank's provider: a name, or package.module:Class.", show_default=False),
]
SettingsOption = Annotated[
    str, typer.Option(help="The provider's settings as YAML or JSON, or a file of them.")
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(
        metavar="A/B", help="Where in the store the bank is.", show_default="the provider's own"
    ),
]
BundleOption = Annotated[
    bool, typer.Option("--bundle", help="Write a bundle: content with where it comes from.")
]
ProvenanceOption = Annotated[
    str,
    typer.Option(
        help="For a bundle: study, run, model, prompts, parents and text, as YAML or JSON."
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write JSON to standard output.")]


@app.command()
def show(
    file: FileArgument = None,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    item: Annotated[str | None, typer.Option(help="Show the item of this id in full.")] = None,
    first: Annotated[int, typer.Option(min=0, help="How many items to list.")] = 10,
    json: JsonOption = False,
) -> None:
    """Show what a bank holds, or one item in full."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_showing as showing  # noqa: PLC0415

    bank = banks.read(banks.Address(file, store, provider, settings, namespace))
    if item is None:
        showing.show_bank(bank, first=first, as_json=json)
    else:
        showing.show_item(bank, item, as_json=json)


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for.")],
    file: FileArgument = None,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    ranker: Annotated[
        str, typer.Option(help="A ranker's name, or its settings as YAML or JSON.")
    ] = "bm25",
    top_k: Annotated[int, typer.Option(min=1, help="How many items to find.")] = 5,
    json: JsonOption = False,
) -> None:
    """Find the items of a bank whose keys fit a query best; changes nothing."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_showing as showing  # noqa: PLC0415

    bank = banks.read(banks.Address(file, store, provider, settings, namespace))
    showing.search(bank, query, ranker=ranker, top_k=top_k, as_json=json)


@app.command()
def diff(
    before: Annotated[Path, typer.Argument(metavar="A", help="A bank as a file.")],
    after: Annotated[
        Path | None,
        typer.Argument(metavar="[B]", help="Another one; none: the bank in the store."),
    ] = None,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> None:
    """Show which items were added, removed and changed from A to B; exit with 1 if any were."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_showing as showing  # noqa: PLC0415

    old = banks.read(banks.Address(before))
    new = banks.read(banks.Address(after, store, provider, settings, namespace))
    raise typer.Exit(int(showing.compare(old, new, as_json=json)))


@app.command()
def export(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write.")],
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    bundle: BundleOption = False,
    provenance: ProvenanceOption = "",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Write a bank in a store to a file: bare content, or a bundle."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    address = banks.Address(None, store, provider, settings, namespace)
    told = moving.provenance_of(provenance, bundle=bundle)
    moving.check_free(target, force=force)
    moving.write(banks.read(address), target, bundle=bundle, provenance=told, as_json=json)


@app.command("import")
def import_(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="Bare content or a bundle.")],
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD=VALUE",
            help="Only items with this value of type, domain, success, task_id or metadata.NAME."
            " Of several values of a field any will do; of several fields all must fit.",
        ),
    ] = None,
    remap: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD[:OLD]=NEW",
            help="Put items under another domain or task_id: all, or those of an OLD one.",
        ),
    ] = None,
    on_conflict: Annotated[
        str,
        typer.Option(help="Where an id is in the bank already: refuse, skip, replace or rename."),
    ] = "refuse",
    stamp: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="NAME",
            help="Give what comes in the source import:NAME, by which it can be revoked.",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show what would change.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Read a file into a bank in a store, and show what came in and what was pruned."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    choices = banks.import_choices(where or (), remap or (), on_conflict, stamp)
    address = banks.Address(None, store, provider, settings, namespace)
    moving.bring_in(source, address, choices, dry_run=dry_run, as_json=json)


ItemArgument = Annotated[str, typer.Argument(metavar="ID", help="The item's id, as show has it.")]


@app.command()
def forget(
    item: ItemArgument,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> None:
    """Take an item out of a bank in a store, with all that follows from it."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    address = banks.Address(None, store, provider, settings, namespace)
    moving.change(address, lambda memory: memory.forget(item), as_json=json)


@app.command()
def edit(
    item: ItemArgument,
    *,
    text: Annotated[
        str | None, typer.Option(help="What the item is to say.", show_default=False)
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="What it is to be found by.", show_default="as it is, or by its text"),
    ] = None,
    metadata: Annotated[
        str, typer.Option(help="Fields to set, as YAML or JSON, or a file; null erases one.")
    ] = "",
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> None:
    """Change what an item of a bank in a store says, or what it is found by."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    fields = banks.mapping("--metadata", metadata) or None
    address = banks.Address(None, store, provider, settings, namespace)
    moving.change(
        address,
        lambda memory: memory.edit(item, text=text, key=key, metadata=fields),
        as_json=json,
    )


@app.command()
def clear(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, forget all of it.")] = False,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> None:
    """Empty a bank in a store, bookkeeping and all; asks for --yes."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    address = banks.Address(None, store, provider, settings, namespace)
    moving.clear(address, yes=yes, as_json=json)


LedgerOption = Annotated[
    Path,
    typer.Option(help="The folder that erasures are written down in; made where it is missing."),
]
KeyOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="What receipts are signed with: a file of at least 16 bytes.",
        show_default="the ledger's own",
    ),
]


@app.command()
def erase(
    *,
    ledger: LedgerOption,
    item: Annotated[
        str | None, typer.Option(help="Erase the item of this id.", show_default=False)
    ] = None,
    episode: Annotated[
        str | None, typer.Option(help="Erase the episode of this id.", show_default=False)
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="KIND:NAME",
            help="Erase what follows from a source, such as tool:search.",
            show_default=False,
        ),
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(help="Erase a user: NAMESPACE is then that of all.", show_default=False),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="AGE",
            help="Erase what is older: 90d, 12h; or a date, 2026-01-31.",
            show_default=False,
        ),
    ] = None,
    mention: Annotated[
        list[str] | None,
        typer.Option(
            help="A phrase that gives it away in logs and caches; may be repeated.",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A run directory to erase in; may be repeated."),
    ] = None,
    responses: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A cache of model replies; may be repeated."),
    ] = None,
    vectors: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A cache of vectors; may be repeated."),
    ] = None,
    checkpoints: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A SQLite file of LangGraph checkpoints."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Only end what a crash left under way.")
    ] = False,
    key: KeyOption = None,
    json: JsonOption = False,
) -> None:
    """Erase an item, episode, source, user, or what is old, wherever it was kept, and sign a receipt;
    exit with 1 if something of it is left.
    """  # noqa: D205
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_erasing as erasing  # noqa: PLC0415

    address = banks.Address(None, store, provider, settings, namespace)
    asked = erasing.Asked(item, episode, source, user, older_than, mention or (), resume=resume)
    where = erasing.Where(run or (), responses or (), vectors or (), checkpoints or ())
    raise typer.Exit(int(not erasing.erase(address, asked, where, ledger, key, as_json=json)))


@app.command()
def receipts(
    *,
    ledger: LedgerOption,
    covers: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only those that cover this id or text.", show_default=False
        ),
    ] = None,
    receipt: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A receipt that was kept elsewhere, to verify."),
    ] = None,
    key: KeyOption = None,
    json: JsonOption = False,
) -> None:
    """Verify the receipts of erasures and show them; exit with 1 if one is not as it was signed."""
    from langgraft.cli import memory_erasing as erasing  # noqa: PLC0415

    raise typer.Exit(int(not erasing.show_receipts(ledger, key, covers, receipt, as_json=json)))


@app.command()
def why(
    item: ItemArgument,
    file: FileArgument = None,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    log: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="A run directory, or JSON lines with receipts: when it was recalled.",
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Show what an item was learned from, when it was recalled, and what followed from it."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_showing as showing  # noqa: PLC0415

    bank = banks.read(banks.Address(file, store, provider, settings, namespace))
    showing.show_why(bank, item, log, as_json=json)


@app.command()
def scan(
    file: FileArgument = None,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    json: JsonOption = False,
) -> None:
    """Look for instructions, hidden text, markers and payloads in a bank; exit with 1 if there are any."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_showing as showing  # noqa: PLC0415

    bank = banks.read(banks.Address(file, store, provider, settings, namespace))
    raise typer.Exit(int(showing.show_findings(bank, as_json=json)))


@app.command()
def revoke(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="user:NAME, web:PAGE, import:NAME, episode:ID …")
    ],
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing; show what would go.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Take all that follows from a source out of a bank in a store, and show what remains of it."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_showing as showing  # noqa: PLC0415

    address = banks.Address(None, store, provider, settings, namespace)
    showing.revoke(address, source, dry_run=dry_run, as_json=json)


@app.command()
def release(
    item: ItemArgument,
    *,
    store: StoreOption = None,
    provider: ProviderOption = None,
    settings: SettingsOption = "",
    namespace: NamespaceOption = None,
) -> None:
    """Let an item of a bank in a store be recalled that trust settings keep in quarantine."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli.printing import say  # noqa: PLC0415

    with banks.kept_provider(banks.Address(None, store, provider, settings, namespace)) as memory:
        memory.release(item)
    say(f"released: {item!r}")


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="What to read.")],
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write.")],
    *,
    kind: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="Whose format it is: langmem, mem0, letta, reasoning_bank, agents_md (AGENTS.md,"
            " MEMORY.md), reme, or journal: AIDE's or ours.",
            show_default="ours, or told by what only one of them has",
        ),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(
            help="Write it as another system does: any of these but journal.",
            show_default="bare content",
        ),
    ] = None,
    field_map: Annotated[
        Path | None,
        typer.Option("--map", metavar="MAP.yaml", help="A field map for a JSONL file of any kind."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            help="For a journal: the competition's id.", show_default="from the file's name"
        ),
    ] = None,
    bundle: BundleOption = False,
    provenance: ProvenanceOption = "",
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Make bare content of a bundle or of what others wrote, a bundle of either, or another's
    file of any; names every field that is lost.
    """  # noqa: D205
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    told = moving.provenance_of(provenance, bundle=bundle)
    moving.check_form(to, bundle=bundle)
    moving.check_free(target, force=force)
    bank, losses = moving.read_source(
        source,
        kind=kind,
        field_map=field_map,
        task=task,
        becomes="foreign" if to else "bundle" if bundle else "bare",
    )
    moving.write(bank, target, bundle=bundle, provenance=told, as_json=json, to=to, losses=losses)


@app.command()
def transplant(
    donor: Annotated[
        Path | None,
        typer.Argument(metavar="[DONOR]", help="The donor's bank as a file of bare content."),
    ] = None,
    *,
    store: StoreOption = None,
    donor_provider: Annotated[
        str | None,
        typer.Option(
            "--donor",
            help="The donor's provider, where its bank is in a store.",
            show_default=False,
        ),
    ] = None,
    namespace: NamespaceOption = None,
    provider: Annotated[
        str | None, typer.Option(help="The recipient: a name, or package.module:Class.")
    ] = None,
    settings: Annotated[
        str, typer.Option(help="The recipient's settings as YAML or JSON, or a file of them.")
    ] = "",
    to: Annotated[
        str | None,
        typer.Option(
            help="Where the recipient's bank is to be: a store, as of --store, or a file.",
            show_default="nothing is written",
        ),
    ] = None,
    to_namespace: Annotated[
        str | None,
        typer.Option(metavar="A/B", help="Where in that store.", show_default="the provider's own"),
    ] = None,
    measure: Annotated[
        Path | None,
        typer.Option(
            metavar="PROBLEMS.jsonl",
            help="Measure whether it helps to solve these problems of MATH.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="The model that solves them: 'openai:gpt-4.1-mini'.", show_default=False),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="Where an OpenAI-compatible server listens.", show_default=False),
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Attempts at each problem in each arm.")] = 3,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Measure on at most this many problems.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=0, help="Room for recalled text.")] = 8000,
    seed: Annotated[int, typer.Option(help="Of the controls.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Attempts under way at once.")] = 4,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write nothing; show what would be kept.")
    ] = False,
    force: ForceOption = False,
    json: JsonOption = False,
) -> None:
    """Move a bank's items into an empty bank of another architecture, and measure if that helps."""
    from langgraft.cli import memory_banks as banks  # noqa: PLC0415
    from langgraft.cli import memory_moving as moving  # noqa: PLC0415

    asked = moving.Transplanting(
        banks.Address(donor, store, donor_provider, "", namespace),
        moving.recipient_of(to, provider, settings, to_namespace),
        moving.measuring_of(
            measure,
            model,
            base_url=base_url,
            runs=runs,
            limit=limit,
            tokens=tokens,
            seed=seed,
            workers=workers,
        ),
        dry_run=dry_run,
        force=force,
    )
    moving.move(asked, as_json=json)
