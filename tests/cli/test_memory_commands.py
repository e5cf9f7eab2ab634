"""`langgraft memory` as a user meets it, hostile banks included."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from memory_cases import make_episode, make_item
from memory_command import contents, memory, refusal, told
from table_embeddings import TableEmbeddings

from langgraft import Banks
from langgraft._core.errors import LanggraftError
from langgraft._core.texts import printable
from langgraft.cli.memory_banks import read_file
from langgraft.cli.memory_showing import _found
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.bundle import read_bundle, write_bundle
from langgraft.memory.embedders import make_embedder
from langgraft.memory.model import BankContent, MemoryItem
from langgraft.memory.rankers import Dense

REPOSITORY = Path(__file__).resolve().parents[2]
HOSTILE = "red\x1b[2J\x9b31m[bold]\u202e[/x]\r\x07 door\nnext \ud83c".encode(
    "utf-8", "ignore"
).decode()
ITEMS = [
    make_item("plain", text="open the red door with the red key", type="operational"),
    make_item("math/1", text="check the units", source_domain="math", success=False, order_index=1),
    make_item("hos\x1b]0;tile", text=HOSTILE, key="a red door", order_index=2, metadata={"n": 1}),
]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Return a bank as bare content."""
    write_items(tmp_path / "bank.jsonl", ITEMS)
    return tmp_path / "bank.jsonl"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return the same bank as a bundle, with notes."""
    content = BankContent({item.id: item for item in ITEMS}, {"plain": {"votes": 3, "\x1b": 1}})
    write_bundle(tmp_path / "bank.bundle", content)
    return tmp_path / "bank.bundle"


@pytest.fixture(params=["chroma", "sqlite"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the options that name a bank in a store."""
    return ("--store", f"{request.param}:{tmp_path / 'store'}", "--provider", "insight")


# Looking ----------------------------------------------------------------------------------


def test_bank_when_shown_is_counted_by_type_domain_success_and_note(
    bare: Path, bundle: Path
) -> None:
    """The same of both kinds of file, and notes where there are any."""
    for path, notes in ((bare, {}), (bundle, {"votes": 1, "\x1b": 1})):
        shown = told("show", path, "--first", 1)
        assert shown["items"] == 3
        assert shown["counts"]["type"] == {"operational": 1, "strategic": 2}
        assert shown["counts"]["domain"] == {"math": 1, "toy": 2}
        assert shown["counts"]["success"] == {"false": 1, "true": 2}
        assert shown["counts"]["note"] == notes
        assert shown["first"] == [ITEMS[0].to_json()]
        assert (shown["manifest"] is None) == (path == bare)
        lines = memory("show", path).stdout
        assert "3 items" in lines
        assert r"hos\x1b]0;tile" in lines
        assert "[bold]" in lines


def test_item_when_shown_is_all_there_and_steers_no_terminal(bundle: Path) -> None:
    """Every line of the text, its control characters spelled out, and the notes."""
    done = memory("show", bundle, "--item", ITEMS[2].id)
    assert r"red\x1b[2J\x9b31m[bold]\u202e[/x]\r\x07 door" + "\nnext" in done.stdout
    assert "key: a red door" in done.stdout
    assert told("show", bundle, "--item", ITEMS[2].id)["item"] == ITEMS[2].to_json()
    assert told("show", bundle, "--item", "plain")["notes"] == {"votes": 3, "\x1b": 1}


@given(st.text())
def test_text_when_made_printable_is_and_loses_nothing_plain(text: str) -> None:
    """What is printable stays; everything else is spelled in ASCII."""
    made = printable(text)
    assert made.isprintable()
    assert made == text or not text.isprintable()


def test_bank_when_searched_lists_best_first_with_scores(bare: Path, bundle: Path) -> None:
    """By any ranker of a name or of settings; where nothing fits, nothing is found."""
    for ranker in ("bm25", "term_overlap", "{ranker: hybrid, rankers: [bm25, dense]}"):
        for path in (bare, bundle):
            found = told("search", "red door", path, "--ranker", ranker, "--top-k", 2)["found"]
            assert {hit["item"]["id"] for hit in found} == {ITEMS[0].id, ITEMS[2].id}
            assert found[0]["score"] >= found[1]["score"] > 0
    assert len(told("search", "red door", bare, "--top-k", 1)["found"]) == 1
    assert told("search", "submarine", bare)["found"] == []
    assert "nothing found among 3 items" in memory("search", "submarine", bare).stdout
    assert r"hos\x1b]0;tile" in memory("search", "red door", bare).stdout


def test_search_when_its_embedder_fails_says_so_in_a_line(bare: Path) -> None:
    """A service may be down, or refuse a key, with errors of any class."""
    with pytest.raises(LanggraftError, match="the ranker cannot search: KeyError: "):
        _found(
            read_file(bare),
            "red door",
            Dense(make_embedder(TableEmbeddings({}), fingerprint="table")),
            1,
        )


def test_banks_when_compared_are_told_apart_by_exit_code(bare: Path, tmp_path: Path) -> None:
    """0 and 1 as `diff` has them; what differs is named, fields included."""
    other = tmp_path / "other.jsonl"
    changed = ITEMS[0].model_copy(update={"text": "new", "metadata": {"x": True}})
    write_items(other, [changed, make_item("\x1b[2J", order_index=1), ITEMS[2]])
    assert memory("diff", bare, bare).returncode == 0
    done = memory("diff", bare, other)
    assert done.returncode == 1
    assert done.stdout.split("\n") == [
        "- math/1",
        r"+ \x1b[2J",
        "~ plain (metadata, text)",
        "1 added, 1 removed, 1 changed, 1 the same",
        "",
    ]
    assert json.loads(memory("diff", bare, other, "--json").stdout) == {
        "added": ["\x1b[2J"],
        "removed": ["math/1"],
        "changed": {"plain": ["metadata", "text"]},
    }


def test_number_when_it_is_of_another_type_is_a_change(tmp_path: Path) -> None:
    """1, 1.0 and true are three values."""
    for name, value in (("a", 1), ("b", True), ("c", 1.0)):
        write_items(tmp_path / name, [make_item(metadata={"n": value})])
    for name in "bc":
        assert memory("diff", tmp_path / "a", tmp_path / name).returncode == 1


# Moving -----------------------------------------------------------------------------------


def test_bank_when_imported_and_exported_is_the_same_bytes(
    bare: Path, bundle: Path, place: tuple[str, ...], tmp_path: Path
) -> None:
    """Into a store and out of it, as bare content and as a bundle that names the architecture."""
    assert told("import", bundle, *place)["added"] == [item.id for item in ITEMS]
    assert told("export", tmp_path / "out", *place) == {
        "file": str(tmp_path / "out"),
        "items": 3,
        "bundle": False,
    }
    assert (tmp_path / "out").read_bytes() == bare.read_bytes()
    assert memory("diff", bare, *place).returncode == 0
    assert told("show", *place)["items"] == 3
    assert told("search", "units", *place)["found"][0]["item"]["id"] == "math/1"
    origin = "{study: mine, prompts: {think: abc}, parents: [def]}"
    memory("export", tmp_path / "full", *place, "--bundle", "--provenance", origin)
    manifest = read_bundle(tmp_path / "full").manifest
    assert manifest.architecture["provider"] == "insight"
    assert manifest.provenance.study == "mine"
    assert manifest.provenance.parents == ("def",)
    assert "study: mine" in memory("show", tmp_path / "full").stdout


def test_import_when_dry_changes_nothing_and_tells_what_would(
    bare: Path, tmp_path: Path, place: tuple[str, ...]
) -> None:
    """Pruning included; a folder that is not there is not made."""
    forgetting = "{forgetting: [{policy: capacity, limit: 2}]}"
    before = contents(tmp_path)
    dry = told("import", bare, *place, "--settings", forgetting, "--dry-run")
    assert contents(tmp_path) == before
    done = told("import", bare, *place, "--settings", forgetting)
    assert {**dry, "dry_run": False} == done
    assert [each["id"] for each in done["pruned"]] == ["plain"]
    lines = memory("import", bare, *place, "--settings", forgetting, "--on-conflict", "replace")
    assert "1 added, 2 replaced, 1 pruned" in lines.stdout
    assert "- plain (" in lines.stdout


def test_import_when_choices_are_made_follows_them(
    bare: Path, place: tuple[str, ...], tmp_path: Path
) -> None:
    """Filters, domains and conflicts as they are typed."""
    only = ("--where", "domain=toy", "--where", "metadata.n=1")
    assert told("import", bare, *place, *only)["added"] == [ITEMS[2].id]
    remap = ("--remap", "domain:math=algebra", "--remap", "task_id=t9", "--on-conflict", "skip")
    told("import", bare, *place, *remap)
    told("export", tmp_path / "out", *place)
    taken = {item.id: item for item in read_items(tmp_path / "out")}
    assert taken["math/1"].source_domain == "algebra"
    assert taken["plain"].source_domain == "toy"
    assert taken["plain"].task_id == "t9"
    assert taken[ITEMS[2].id].task_id is None
    renamed = told("import", bare, *place, "--on-conflict", "rename", "--where", "success=false")
    assert renamed["added"] == ["math/1~2"]


def test_bank_when_it_lies_elsewhere_is_found_by_its_namespace(
    bare: Path, place: tuple[str, ...]
) -> None:
    """A namespace beside the provider's own, and one without its provider."""
    told("import", bare, *place, "--namespace", "users/ada")
    assert told("show", *place)["items"] == 0
    assert told("show", *place, "--namespace", "users/ada")["items"] == 3
    assert told("show", *place[:2], "--namespace", "users/ada")["items"] == 3


def test_file_when_converted_is_the_other_kind_and_back_again(bare: Path, tmp_path: Path) -> None:
    """Bare to bundle to bare, byte for byte."""
    full, again = tmp_path / "full", tmp_path / "again"
    assert told("convert", bare, full, "--bundle")["bundle"] is True
    assert told("convert", full, again)["bundle"] is False
    assert again.read_bytes() == bare.read_bytes()
    assert "is already bare content" in refusal("convert", bare, tmp_path / "x")
    assert "is already a bundle" in refusal("convert", full, tmp_path / "x", "--bundle")
    assert not (tmp_path / "x").exists()


REME_ROW = {"workspace_id": "w", "memory_id": "m", "when_to_use": "when", "content": "do"}


def test_library_of_others_when_converted_is_a_bank(tmp_path: Path) -> None:
    """ReMe's by name, any other by a field map; a torn one leaves nothing."""
    library, target = tmp_path / "library", tmp_path / "target"
    library.write_text(json.dumps(REME_ROW) + "\n")
    told("convert", library, target, "--from", "reme")
    assert read_items(target) == [
        MemoryItem(
            id="m",
            text="do",
            key="when",
            type="strategic",
            source_domain="w",
            episode_id="",
            success=None,
            order_index=0,
        )
    ]
    fields = {name: {"constant": "c"} for name in ("source_domain", "episode_id")}
    field_map = {"id": "memory_id", "text": "content", "success": {"constant": True}}
    (tmp_path / "map.yaml").write_text(
        yaml.safe_dump({**fields, **field_map, "type": {"constant": "other"}})
    )
    told("convert", library, tmp_path / "own", "--map", tmp_path / "map.yaml", "--bundle")
    assert read_bundle(tmp_path / "own").items[0].success
    library.write_text(json.dumps(REME_ROW) + "\n" + json.dumps(REME_ROW)[:-2])
    assert "row 2: " in refusal("convert", library, target, "--from", "reme", "--force")
    assert read_items(target)[0].id == "m"


def test_file_when_it_is_there_is_replaced_only_by_force(
    bare: Path, bundle: Path, place: tuple[str, ...]
) -> None:
    """Neither an export nor a conversion overwrites anything unasked."""
    told("import", bare, *place)
    for command in (("convert", bundle, bare), ("export", bundle, *place)):
        before = (bare.read_bytes(), bundle.read_bytes())
        assert "is there already; --force replaces it" in refusal(*command)
        assert (bare.read_bytes(), bundle.read_bytes()) == before
        told(*command, "--force")


def test_document_when_its_commands_are_typed_shows_what_they_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session in `docs/bank-format.md` is one that was held, from its first file on."""
    monkeypatch.chdir(tmp_path)
    page = (REPOSITORY / "docs" / "bank-format.md").read_text()
    for kind, name in (("json", "library.jsonl"), ("yaml", "map.yaml")):
        (tmp_path / name).write_text(re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL)[0])
    sessions = re.findall(r"```console\n(.*?)```", page, re.DOTALL)
    commands = re.findall(r"\$ langgraft memory (.*)\n((?:(?!\$ ).*\n)*)", "".join(sessions))
    assert len(commands) > 9
    for command, shown in commands:
        done = memory(*shlex.split(command))
        assert done.stdout + done.stderr == shown, command


# Refusing ---------------------------------------------------------------------------------

STORE = ("--store", "chroma:STORE", "--provider", "insight")
NOWHERE = "http://127.0.0.1:1"
"""A store that is found out to be missing only where it is opened."""
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "no bank": (("show",), "which bank?"),
    "two banks": (("show", "BARE", *STORE), "a bank is a file or lies in a store"),
    "no file": (("show", "nothing"), "cannot be read: No such file"),
    "a folder": (("show", "."), "cannot be read: Is a directory"),
    "no item": (("show", "BARE", "--item", "x\x1b"), "there is no item 'x\\x1b'"),
    "no store": (("show", *STORE), "there is no store 'chroma:STORE'"),
    "no store in a file": (("show", "--store", "sqlite:STORE", *STORE[2:]), "no such file"),
    "a store of no kind": (("show", "--store", "redis"), "no store is called 'redis'"),
    "a secret": (
        ("show", "--store", "postgresql://a:s3cret@127.0.0.1:1/x", "--provider", "insight"),
        "store postgresql://127.0.0.1:1/x cannot be opened",
    ),
    "a folder that is no store": (
        ("show", "--store", "chroma:.", "--provider", "insight"),
        "no Chroma database in it",
    ),
    "a store that ends with the command": (
        ("import", "BARE", "--store", "memory", "--provider", "insight"),
        "is gone when the command ends",
    ),
    "a store that begins with the command": (
        ("export", "x", "--store", "memory", "--provider", "insight"),
        "is empty whenever a command begins",
    ),
    "neither provider nor namespace": (("show", "--store", NOWHERE), "may hold many banks"),
    "no provider": (("show", "--store", NOWHERE, "--provider", "nobody"), "unknown provider"),
    "a namespace of nothing": (
        ("show", "--store", NOWHERE, "--namespace", "a//b"),
        "cannot hold the label ''",
    ),
    "settings of text": (("import", "BARE", *STORE, "--settings", "x"), "--settings takes a map"),
    "settings unread": (("import", "BARE", *STORE, "--settings", "no.yaml"), "cannot be read"),
    "settings of no provider": (("import", "BARE", *STORE, "--settings", "{k: 1}"), "k: "),
    "settings cut": (("import", "BARE", *STORE, "--settings", "{k: "), "neither YAML nor JSON"),
    "an import of nothing": (("import", "nothing", *STORE), "No such file"),
    "an import into a file": (("import", "BARE"), "give --store and --provider"),
    "a filter by text": (
        ("import", "BARE", *STORE, "--where", "text=x"),
        "cannot filter by 'text'",
    ),
    "a filter of no value": (("import", "BARE", *STORE, "--where", "type"), "FIELD=VALUE"),
    "success of maybe": (("import", "BARE", *STORE, "--where", "success=1"), "true or false"),
    "a remap of ids": (("import", "BARE", *STORE, "--remap", "id=x"), "remap"),
    "a remap twice": (
        ("import", "BARE", *STORE, "--remap", "domain=a", "--remap", "domain:b=c"),
        "--remap takes FIELD=NEW once",
    ),
    "a domain of nothing": (("import", "BARE", *STORE, "--remap", "domain="), "cannot be empty"),
    "a conflict of no kind": (("import", "BARE", *STORE, "--on-conflict", "x"), "on_conflict"),
    "no query": (("search", " ", "BARE"), "the query is empty"),
    "no ranker": (("search", "x", "BARE", "--ranker", "best"), "unknown ranker 'best'"),
    "no format": (("convert", "BARE", "x", "--from", "zep"), "no format is called 'zep'"),
    "two formats": (("convert", "BARE", "x", "--from", "reme", "--map", "m.yaml"), "give one"),
    "no form": (("convert", "BARE", "x", "--to", "zep"), "no form is called 'zep'"),
    "two targets": (("convert", "BARE", "x", "--to", "mem0", "--bundle"), "give one"),
    "not its form": (("convert", "BARE", "x", "--from", "mem0"), "[0]: field 'memory' is missing"),
    "no map": (("convert", "BARE", "x", "--map", "m.yaml"), "--map: 'm.yaml' cannot be read"),
    "not ReMe's": (
        ("convert", "BARE", "x", "--from", "reme"),
        "row 1: not in a form that is known",
    ),
    "provenance of bare content": (
        ("convert", "BARE", "x", "--from", "reme", "--provenance", "{run: r}"),
        "give --bundle, too",
    ),
    "provenance of no field": (
        ("convert", "BARE", "x", "--bundle", "--provenance", "{runs: r}"),
        "--provenance: runs: ",
    ),
    "nowhere to write": (("convert", "BARE", "no/x", "--bundle"), "cannot be written"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_command_when_something_is_wrong_says_so_in_a_line_and_changes_nothing(
    case: str, bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 2, no file and no folder, no password."""
    monkeypatch.chdir(tmp_path)
    arguments, said = REFUSED[case]
    before = sorted(tmp_path.rglob("*"))
    line = refusal(*(text.replace("BARE", str(bare)) for text in arguments))
    assert said in line
    assert "s3cret" not in line
    assert sorted(tmp_path.rglob("*")) == before


def test_import_when_it_is_a_preview_needs_no_store_that_lasts(bare: Path) -> None:
    """What would change can be seen without a store; only a real import is refused there."""
    place = ("--store", "memory", "--provider", "insight")
    assert len(told("import", bare, *place, "--dry-run")["added"]) == len(ITEMS)


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1e999", "NaN", "[" * 20_000, "1" * 5_000])
def test_filter_when_its_value_is_no_number_that_can_be_held_is_a_text(
    value: str, bare: Path
) -> None:
    """It fits nothing, and that is all: no traceback."""
    place = ("--store", "memory", "--provider", "insight")
    chosen = told("import", bare, *place, "--where", f"metadata.n={value}", "--dry-run")
    assert chosen["added"] == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_show_when_the_terminal_is_not_utf8_spells_out_what_it_cannot_show(
    encoding: str, tmp_path: Path
) -> None:
    """A bank can be looked at wherever it is; nothing ends in a traceback."""
    bare = tmp_path / "bare"
    write_items(bare, [make_item("far", text="né 🜁 … 門")])
    code = "from langgraft.cli.app import run_command_line; run_command_line()"
    done = subprocess.run(
        [sys.executable, "-c", code, "memory", "show", str(bare)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "\\U0001f701" in done.stdout.decode(encoding)


def test_help_when_asked_loads_nothing_heavy() -> None:
    """What a command needs is imported when it runs."""
    code = (
        "import sys\nsys.argv = ['langgraft', 'memory', '--help']\n"
        "from langgraft.cli.app import run_command_line\n"
        "try: run_command_line()\nexcept SystemExit: pass\n"
        "print([m for m in ('langgraph', 'langchain_core', 'numpy', 'rich', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")


# Changing by hand -------------------------------------------------------------------------


def test_item_when_forgotten_or_edited_is_so_in_the_store(
    bare: Path, place: tuple[str, ...]
) -> None:
    """What followed is told."""
    memory("import", bare, *place)
    assert told("forget", "plain", *place)["forgotten"] == ["plain"]
    done = memory("edit", "math/1", "--text", "count", "--metadata", "{n: 2}", *place)
    assert done.stdout == "0 forgotten, 1 edited\n~ math/1\n"
    item = told("show", "--item", "math/1", *place)["item"]
    assert (item["text"], item["metadata"]) == ("count", {"n": 2})
    assert told("edit", "math/1", "--key", "units", *place)["edited"] == ["math/1"]
    assert told("search", "units", *place)["found"][0]["item"]["id"] == "math/1"
    assert told("show", *place)["items"] == 2
    assert r"hos\x1b]0;tile" in memory("forget", ITEMS[2].id, *place).stdout


def test_bank_when_cleared_is_empty_if_somebody_said_yes(
    bare: Path, place: tuple[str, ...]
) -> None:
    """Without a yes nothing happens."""
    memory("import", bare, *place)
    assert "forget all 3 items of 'langgraft/insight': give --yes" in refusal("clear", *place)
    assert told("show", *place)["items"] == 3
    assert told("clear", "--yes", *place) == {"forgotten": 3}
    assert told("show", *place)["items"] == 0
    assert memory("clear", "--yes", *place).stdout == "0 forgotten; the bank is empty\n"


def test_change_when_it_is_not_possible_is_one_line_and_no_change(
    bare: Path, place: tuple[str, ...], tmp_path: Path
) -> None:
    """No such item, store or field; no store is made."""
    memory("import", bare, *place)
    before = told("show", *place)
    assert "no item 'plan' in the bank 'langgraft/insight': did you mean 'plain'" in refusal(
        "forget", "plan", *place
    )
    assert "nothing to edit of item 'plain'" in refusal("edit", "plain", *place)
    assert "metadata" in refusal("edit", "plain", "--metadata", "{n: [1]}", *place)
    assert "--metadata takes a mapping" in refusal("edit", "plain", "--metadata", "n", *place)
    assert told("show", *place) == before
    missing = ("--store", f"chroma:{tmp_path / 'none'}", "--provider", "insight")
    for command in (("forget", "x"), ("edit", "x", "--text", "y"), ("clear", "--yes")):
        assert "there is no store" in refusal(*command, *missing)
        assert "give --store and --provider" in refusal(*command, *place[:2])
        assert "is empty whenever a command begins" in refusal(
            *command, "--store", "memory", "--provider", "insight"
        )
    assert not (tmp_path / "none").exists()


def test_bank_when_it_is_empty_names_those_that_its_store_holds(tmp_path: Path) -> None:
    """Users of an application have banks of their own, and nobody knows a namespace by heart."""
    path = tmp_path / "users.sqlite"
    with Banks(path) as banks:
        for user in ("ada@example.org", "bob"):
            banks[user].file(make_episode("e1"))
    said = memory("show", "--store", f"sqlite:{path}", "--provider", "trajectory").stdout
    named = "langgraft-users/trajectory/ada@example%2Eorg"
    assert "no items" in said
    assert f"--namespace {named}, langgraft-users/trajectory/bob" in said
    store = ("--store", f"sqlite:{path}", "--provider", "trajectory")
    found = memory("search", "open the red door", *store).stdout
    assert f"--namespace {named}, langgraft-users/trajectory/bob" in found
    assert told("show", "--store", f"sqlite:{path}", "--namespace", named)["items"] == 1
