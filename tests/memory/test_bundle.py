"""The bundle: what is written, what is read again, and what is refused."""

import io
import json
import struct
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import items, make_episode, make_item

import langgraft
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory import bundle as bundles
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.bundle import (
    Provenance,
    is_bundle,
    read_bank_file,
    read_bundle,
    write_bundle,
)
from langgraft.memory.model import BankContent
from langgraft.memory.providers import InsightMemory

NOTES: dict[str, JSON] = {"votes": 3, "tier": "long", "seen": [1, 2.5, None]}
DIGEST = "f638d45b34aa383a7aba40347f844e9589898659bfb71ef8d831d7d6326d93ea"
ORIGIN = Provenance(
    study="continual",
    run="agg-1",
    model="simulated",
    prompts={"think": "0" * 64},
    parents=("1" * 64,),
    text="made by hand\n\x1b[2J",
)


def small() -> BankContent:
    """Make a bank of two items, one of them with notes."""
    held = {"b": make_item("b", order_index=0), "a": make_item("a", text="𝄞\x00", order_index=3)}
    return BankContent(items=held, notes={"b": dict(NOTES)})


@st.composite
def contents(draw: st.DrawFn) -> BankContent:
    """Draw a bank."""
    held = draw(st.lists(items(), max_size=4, unique_by=lambda item: item.id))
    noted = [item.id for item in held if draw(st.booleans())]
    return BankContent(
        items={item.id: item for item in held}, notes={n: dict(NOTES) for n in noted}
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where a small bundle lies."""
    write_bundle(tmp_path / "bank.bundle", small(), architecture={"k": 1}, provenance=ORIGIN)
    return tmp_path / "bank.bundle"


def refusal(path: Path) -> str:
    """Return the one printable line that a bundle is refused with."""
    with pytest.raises(BankFormatError) as caught:
        read_bundle(path)
    line = str(caught.value)
    assert line.startswith(str(path))
    assert line.isprintable()
    return line


@given(contents())
def test_bank_when_bundled_and_read_is_the_same_and_so_are_the_bytes(content: BankContent) -> None:
    """Whatever a bank holds comes back, and depends on nothing but the bank."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        manifest = write_bundle(folder / "one", content, provenance=ORIGIN)
        found = read_bundle(folder / "one")
        backwards = BankContent(
            dict(reversed(content.items.items())), dict(reversed(content.notes.items()))
        )
        write_bundle(folder / "other", backwards, provenance=ORIGIN)
        assert (folder / "one").read_bytes() == (folder / "other").read_bytes()
    assert found.manifest == manifest
    assert {item.id: item for item in found.items} == content.items
    assert found.notes == content.notes
    assert (manifest.items, manifest.notes) == (len(content.items), len(content.notes))


def test_bytes_when_written_anywhere_are_these(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No clock, machine or library shows: this is the digest wherever it is written."""
    monkeypatch.setattr(langgraft, "__version__", "0.0.0")
    write_bundle(tmp_path / "bank", small(), architecture={"k": 1}, provenance=ORIGIN)
    assert sha256((tmp_path / "bank").read_bytes()).hexdigest() == DIGEST


def test_members_when_unpacked_are_plain_and_the_items_are_bare_content(
    path: Path, tmp_path: Path
) -> None:
    """Any ZIP program shows what is in it, and the items are what a transplant reads."""
    write_items(tmp_path / "bare.jsonl", read_bundle(path).items)
    with zipfile.ZipFile(path) as archive:
        assert archive.namelist() == ["manifest.json", "items.jsonl", "notes.jsonl"]
        assert archive.read("items.jsonl") == (tmp_path / "bare.jsonl").read_bytes()
        said = read_bundle(path).manifest.members["items.jsonl"]
        assert said.sha256 == sha256(archive.read("items.jsonl")).hexdigest()
    assert read_bundle(path).manifest.provenance == ORIGIN


def test_bundle_when_cut_anywhere_is_refused(path: Path) -> None:
    """No beginning of a bundle is a bundle."""
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        refusal(path)


@given(st.data())
@settings(max_examples=300)
def test_bundle_when_bytes_change_is_refused(data: st.DataObject) -> None:
    """What is altered, put in or left out anywhere is found, in the ZIP's own fields too."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "bank.bundle"
        write_bundle(path, small(), provenance=ORIGIN)
        whole = path.read_bytes()
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(start + 8, len(whole))))
        altered = whole[:start] + data.draw(st.binary(max_size=8)) + whole[end:]
        path.write_bytes(altered)
        if altered == whole:
            read_bundle(path)
        else:
            refusal(path)


def packed(path: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]]) -> None:
    """Pack changed members as a bundle is packed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in change(members).items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    path.write_bytes(buffer.getvalue())


def with_manifest(members: dict[str, bytes], /, **fields: JSON) -> dict[str, bytes]:
    """Change fields of the manifest."""
    value = {**json.loads(members["manifest.json"]), **fields}
    return {**members, "manifest.json": (canonical_json(value) + "\n").encode()}


def resealed(members: dict[str, bytes]) -> dict[str, bytes]:
    """Let the manifest tell the truth about changed members."""
    said: dict[str, JSON] = {
        name: {"bytes": len(data), "sha256": sha256(data).hexdigest()}
        for name, data in members.items()
        if name != "manifest.json"
    }
    return with_manifest(members, members=said)


LINE = b'{"id":"b","notes":{"votes":1}}\n'
HOSTILE: dict[str, tuple[Callable[[dict[str, bytes]], dict[str, bytes]], str]] = {
    "one member more": (lambda m: {**m, "vectors.bin": b""}, "in this order and alone"),
    "a member less": (lambda m: {n: m[n] for n in list(m)[:2]}, "in this order and alone"),
    "another order": (lambda m: dict(reversed(m.items())), "in this order and alone"),
    "no members": (lambda m: {}, "this is no bundle"),
    "a path up": (
        lambda m: {**{n: m[n] for n in list(m)[:2]}, "../notes.jsonl": b""},
        "in this order and alone",
    ),
    "an absolute path": (
        lambda m: {**{n: m[n] for n in list(m)[:2]}, "/notes.jsonl": b""},
        "in this order and alone",
    ),
    "a folder": (lambda m: {**m, "x/": b""}, "in this order and alone"),
    "items altered": (
        lambda m: {**m, "items.jsonl": m["items.jsonl"].replace(b"text of b", b"text of c")},
        "items.jsonl' is not what the manifest says",
    ),
    "notes altered": (lambda m: {**m, "notes.jsonl": LINE}, "notes.jsonl' is not what"),
    "a manifest of text": (lambda m: {**m, "manifest.json": b"hello"}, "manifest.json: not JSON"),
    "a manifest of a list": (lambda m: {**m, "manifest.json": b"[]"}, "manifest.json: "),
    "a manifest nested deeply": (
        lambda m: {**m, "manifest.json": b'{"a":' * 100_000},
        "manifest.json: not JSON",
    ),
    "a field twice": (
        lambda m: {**m, "manifest.json": b'{"format":"x",' + m["manifest.json"][1:]},
        "'format' stands twice",
    ),
    "a field unknown": (lambda m: with_manifest(m, vectors=1), "vectors: extra inputs"),
    "another format": (lambda m: with_manifest(m, format="zip"), "format: input should be"),
    "a later version": (lambda m: with_manifest(m, format_version=2), "format_version 2 is not"),
    "a version that is true": (
        lambda m: with_manifest(m, format_version=True),
        "format_version True is not",
    ),
    "a count of text": (lambda m: with_manifest(m, items="2"), "items: input should be"),
    "a wrong count": (lambda m: with_manifest(m, items=3), "says 3 items, and there are 2"),
    "a member unheard of": (lambda m: with_manifest(m, members={}), "not what the manifest says"),
    "layout of its own": (
        lambda m: {**m, "manifest.json": m["manifest.json"].replace(b",", b", ")},
        "not as a bundle is written",
    ),
    "a torn item": (
        lambda m: resealed({**m, "items.jsonl": m["items.jsonl"][:-1]}),
        "items.jsonl, row 2: the last line is not ended",
    ),
    "an item twice": (
        lambda m: resealed({**m, "items.jsonl": m["items.jsonl"] * 2}),
        "items.jsonl, row 3: id 'b' is already used",
    ),
    "items in another order": (
        lambda m: resealed(
            {**m, "items.jsonl": b"".join(reversed(m["items.jsonl"].splitlines(keepends=True)))}
        ),
        "not as a bundle is written",
    ),
    "notes on nobody": (
        lambda m: resealed({**m, "notes.jsonl": LINE.replace(b'"b"', b'"z\\u001b"')}),
        "notes on 'z\\x1b', which is none of the items",
    ),
    "notes that stand twice": (
        lambda m: resealed({**m, "notes.jsonl": LINE * 2}),
        "notes.jsonl, row 2: notes on 'b' stand twice",
    ),
    "notes that are none": (
        lambda m: resealed({**m, "notes.jsonl": b'{"id":"b","notes":[]}\n'}),
        "notes.jsonl, row 1: expected an id and its notes",
    ),
    "notes no log can hold": (
        lambda m: resealed({**m, "notes.jsonl": b'{"id":"b","notes":{"x":"\\ud800"}}\n'}),
        "not as a bundle is written: ",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_bundle_when_repacked_with_something_else_is_refused_in_a_line(
    path: Path, case: str
) -> None:
    """A bundle that is a sound ZIP file has yet to be a sound bundle."""
    change, said = HOSTILE[case]
    packed(path, change)
    assert said in refusal(path)


@pytest.mark.parametrize("depth", [50, 300, 900, 5000])
def test_bundle_when_nested_deeply_is_read_or_refused(path: Path, depth: int) -> None:
    """Values within values are taken up to where Python ends, and no further error gets out."""
    nested = b'{"x":' * depth + b"1" + b"}" * depth
    packed(path, lambda m: resealed({**m, "notes.jsonl": LINE.replace(b"1", nested)}))
    with suppress(BankFormatError):
        read_bundle(path)
    packed(
        path,
        lambda m: {**m, "manifest.json": m["manifest.json"].replace(b'{"k":1}', nested)},
    )
    with suppress(BankFormatError):
        read_bundle(path)


def test_bundle_when_compressed_is_refused_before_it_is_unpacked(path: Path) -> None:
    """A bomb of a gigabyte in a megabyte is not lit."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["items.jsonl"] = bytes(2**26)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert "is compressed; the members of a bundle are stored as they are" in refusal(path)


def test_bundle_when_it_has_very_many_members_is_refused_before_they_are_listed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each member takes time and memory; a file of 16 MiB has room for 150,000."""
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda _: pytest.fail("listed"))
    packed(path, lambda m: {**m, **{f"m{number}": b"" for number in range(200)}})
    assert "here are 203 members" in refusal(path)


def test_bundle_when_a_size_is_a_lie_is_refused(path: Path) -> None:
    """Nothing is allocated for what is not there."""
    data = bytearray(path.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = struct.pack("<I", 0xFFFFFF00)
    path.write_bytes(data)
    assert "larger than the whole file" in refusal(path)


def test_bundle_when_it_has_company_is_refused(path: Path) -> None:
    """Before it, behind it, or as a comment."""
    whole = path.read_bytes()
    for data in (b"MZ" + whole, whole + b"!", whole[:-2] + b"\x01\x00!"):
        path.write_bytes(data)
        refusal(path)


def test_bundle_when_too_large_is_neither_read_nor_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit holds on both sides, and an older file stays."""
    monkeypatch.setattr(bundles, "MAX_BUNDLE_BYTES", 1000)
    before = path.read_bytes()
    with pytest.raises(InputError, match="a bundle holds up to 1,000"):
        write_bundle(path, small())
    assert path.read_bytes() == before
    assert "larger than the 1,000 bytes of a bundle" in refusal(path)


def test_bundle_when_it_is_no_file_or_something_else_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder, an empty file and bare content are told as what they are."""
    bare, empty = tmp_path / "bare", tmp_path / "empty"
    write_items(bare, [make_item()])
    empty.touch()
    for path, said in (
        (tmp_path / "none", "No such file"),
        (tmp_path, "Is a directory"),
        (bare, "this is no bundle"),
        (empty, "this is no bundle"),
    ):
        assert said in refusal(path)
    with pytest.raises(BankFormatError, match="No such file"):
        is_bundle(tmp_path / "none")


def test_bank_file_when_either_kind_is_read_as_what_it_is(path: Path, tmp_path: Path) -> None:
    """One reader for both, where both may be given."""
    bundle = read_bundle(path)
    write_items(tmp_path / "bare", bundle.items)
    assert read_bank_file(path) == bundle
    assert read_bank_file(tmp_path / "bare") == bundle.items


def test_bundle_when_bare_content_is_asked_for_is_refused_with_the_way_out(path: Path) -> None:
    """A transplant never sees what stands beside the content."""
    memory = InsightMemory(InMemoryStore())
    for read in (read_items, memory.import_items):
        with pytest.raises(BankFormatError, match=r"this is a bundle.*langgraft memory convert"):
            read(path)
    assert not memory.content().state


def test_provider_when_bundled_names_its_architecture_and_its_notes(tmp_path: Path) -> None:
    """What a bank has become is told, and what made it so."""
    memory = InsightMemory(InMemoryStore())
    memory.file(make_episode())
    write_bundle(tmp_path / "bank", memory.content(), architecture=memory.describe())
    found = read_bundle(tmp_path / "bank")
    assert found.manifest.architecture == memory.describe()
    assert {item.id for item in found.items} == set(memory.content().items)


def test_file_when_it_cannot_be_written_says_why(tmp_path: Path) -> None:
    """A folder in the place of the file, and no folder for it."""
    for name in (".", "none/bank"):
        with pytest.raises(InputError, match="cannot be written: "):
            write_bundle(tmp_path / name, small())
    assert list(tmp_path.iterdir()) == []
