"""Files that somebody made to take memory, time or a terminal: plans, journals, run directories."""

import gzip
import json
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

SIZE: Final = 1 << 24
"""Bytes of a large file."""

Command = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Attack:
    """A hostile file, and the command that is to read it."""

    name: str
    write: Callable[[], object]
    """Write the file; what was written for another attack is gone."""
    command: Command
    usual: str
    """Name of the command on a usual file that it is measured against."""


def attacks(folder: Path, run: Path, size: int) -> Iterator[Attack]:
    """List hostile files, and what is to read them.

    Args:
        folder: Where to write them, one at a time.
        run: A finished run directory, which is copied.
        size: Bytes of the large ones.
    """
    path = folder / "plan.yaml"
    for name, text in _plans(size).items():
        write = partial(path.write_text, text, encoding="utf-8")
        yield Attack(f"a plan: {name}", write, ("preview", path), "preview")
    path = folder / "journal.json"
    for name, data in _journals(size).items():
        yield Attack(f"a journal: {name}", partial(_write, path, data), ("tree", path), "tree")
    copy = folder / "run"
    for name, spoil in _runs(size).items():
        for command in ("status", "verify", "report"):
            spoiled = partial(_spoiled, run, copy, spoil)
            yield Attack(f"a run directory: {name} ({command})", spoiled, (command, copy), command)


def _write(path: Path, data: Callable[[], bytes]) -> None:
    path.write_bytes(data())


def _spoiled(run: Path, copy: Path, spoil: Callable[[Path], object]) -> None:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(run, copy)
    spoil(copy)


def usual(folder: Path, run: Path, plan: Path) -> dict[str, Command]:
    """Return the commands that attacks are measured against."""
    journal = folder / "usual.json"
    journal.write_bytes(_journal(_node(0)))
    return {
        "preview": ("preview", plan),
        "tree": ("tree", journal),
        **{name: (name, run) for name in ("status", "verify", "report")},
    }


def _plans(size: int) -> dict[str, str]:
    head = "study: continual\n"
    few = min(size, 900_000)
    many = range(19_000)
    bomb = "\n".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" if n else "a0: &a0 [lol]"
        for n in range(10)
    )
    merged = "\n".join(
        f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 10)}]}}" if n else "m0: &m0 {x: 1}"
        for n in range(10)
    )
    return {
        "aliases that unfold": head + bomb,
        "merges that unfold": head + merged,
        "3,000 lists in one another": head + "title: " + "[" * 3000 + "]" * 3000,
        "3,000 mappings in one another": head + "".join(f"{' ' * n}a:\n" for n in range(3000)),
        "a list without end": head + "title: [" + "a," * (size // 2) + "]",
        "keys without end": "".join(f"k{n}: v\n" for n in range(size // 12)),
        "one long text": head + f"title: '{'x' * size}'",
        "a long text within bounds": head + f"title: '{'x' * few}'",
        "a comment without end": head + "#" * size,
        "lines without end": head + "\n" * size,
        "anchors without end": "".join(f"k{n}: &k{n} v\n" for n in range(size // 16)),
        "a number to the base of 60": head + "seed: " + "1:" * (few // 2) + "1",
        "a number of many digits": head + "seed: " + "9" * few,
        "many unknown fields": head + "".join(f"k{n}: v\n" for n in many[:9000]),
        "long names of unknown fields": head + "".join(f"{'k' * 900}{n}: v\n" for n in range(900)),
        "a study of a long name": f"study: '{'x' * few}'",
        "half a pair": head + 'title: "\\ud800"',
        "a tag of Python": head + "title: !!python/object/apply:os.system [id]",
        "a date that is none": head + "title: 2024-99-99",
        "a key that is a list": head + "? [a]\n: b\n",
        "NUL": head + "\0" * few,
        "many conditions": head
        + "conditions:\n"
        + "".join(f"- {{name: c{n}, provider: trajectory}}\n" for n in many[:3900]),
        "many runs": head + "runs: 1000\nbaseline_runs: 1000\nmilestones: 200\n",
        "many seeds": "study: mle\nseeds: [" + ",".join(map(str, many)) + "]",
        "many names of competitions": "study: mle\ncompetitions: ["
        + ",".join(f"c{n}" for n in many)
        + "]",
        "a terminal's escapes": head + 'title: "\\e]0;owned\\a\\e[2J[bold]x[/nope]"\nnope: 1',
        "code": head + "conditions: [{name: a, provider: 'antigravity:X'}]",
    }


def _journals(size: int) -> dict[str, Callable[[], bytes]]:
    text = "x" * (size - 500)
    count = size // 150
    return {
        "gzip of a thousand times its size": lambda: _gzip_bomb(size),
        "gzip, cut off": lambda: gzip.compress(text.encode())[:-9],
        "objects without end": lambda: b"[" + b"{}," * (size // 3 - 9) + b"{}]",
        "lists without end": lambda: b"[" + b"[]," * (size // 3 - 9) + b"[]]",
        "names without end": lambda: b"{%s}" % b",".join(b'"k%d":0' % n for n in range(count)),
        "deep": lambda: b"[" * 100_000 + b"]" * 100_000,
        "deep within bounds of Python": lambda: b"[" * 900 + b"]" * 900,
        "a node of one long text": lambda: _journal(_node(0, code=text)),
        "a long text in wide characters": lambda: _journal(
            _node(0, code=text[: size // 2] + "\U0001f600")
        ),
        "a long name": lambda: _journal(_node(0, id=text)),
        "a number of many digits": lambda: b'[{"step": %s}]' % (b"9" * (size - 500)),
        "many nodes": lambda: _journal(*(_node(n) for n in range(count))),
        "a long chain of nodes": lambda: _journal(
            *(_node(n, parent_id=f"n{n - 1}" if n else None) for n in range(count))
        ),
        "as many nodes as may be": lambda: _journal(
            *(_node(n, parent_id=f"n{n - 1}" if n else None) for n in range(2000))
        ),
        "more nodes than may be": lambda: _journal(*(_node(n) for n in range(20_000))),
        "output in many pieces": lambda: _journal(_node(0, _term_out=["x"] * (size // 6))),
        "bytes that are not UTF-8": lambda: b"\xff" * size,
        "no node": lambda: b'["%s"]' % text.encode(),
    }


def _gzip_bomb(size: int) -> bytes:
    """Return blanks that are a hundred times larger than what holds them."""
    squeezed = zlib.compressobj(wbits=31)
    parts = [squeezed.compress(b" " * size) for _ in range(64)]
    return b"".join([*parts, squeezed.flush()])


def _node(number: int, **fields: object) -> dict[str, object]:
    return {
        "id": f"n{number}",
        "step": number,
        "parent_id": None,
        "plan": "p",
        "code": "c",
        "output": "o",
        "metric": 0.5,
        "is_buggy": False,
        **fields,
    }


def _journal(*nodes: dict[str, object]) -> bytes:
    return json.dumps(nodes, ensure_ascii=False).encode()


def _runs(size: int) -> dict[str, Callable[[Path], object]]:
    deep = b"[" * 100_000 + b"]" * 100_000
    less = b'{"a":' * 900 + b"1" + b"}" * 900
    objects = b'{"a":[' + b"{}," * (size // 3) + b"{}]}"
    return {
        "a deep manifest": lambda out: (out / "manifest.json").write_bytes(deep),
        "a less deep manifest": lambda out: (out / "manifest.json").write_bytes(less),
        "a manifest of many objects": lambda out: (out / "manifest.json").write_bytes(objects),
        "a manifest without a study": lambda out: (out / "manifest.json").write_bytes(b"{}"),
        "no runs, many times": lambda out: (out / "runs.jsonl").write_bytes(b"{}\n" * (size // 3)),
        "empty lines of runs": lambda out: (out / "runs.jsonl").write_bytes(b"\n" * size),
        "many runs": lambda out: _many_runs(out, size),
        "a run of many items": lambda out: _long_run(out, size),
        "a hostile plan": lambda out: (out / "plan.yaml").write_text(
            _plans(size)["merges that unfold"]
        ),
        "a plan of code": _with_code,
        "empty lines of items": lambda out: _items(out, b"\n" * size),
        "one line of items": lambda out: _items(out, b"x" * size),
        "items of many objects": lambda out: _items(out, _sealed(objects)),
        "deep items": lambda out: _items(out, _sealed(less)),
        "items whose results are deep": lambda out: _items(out, _sealed(_record(out, less))),
        "items whose results are many": lambda out: _items(out, _sealed(_record(out, objects))),
        "items whose changes are deep": lambda out: _items(
            out, _sealed(_record(out, b"{}", b"[" * 900 + b"]" * 900))
        ),
        "items of a long text": lambda out: _items(
            out, _sealed(_record(out, b'{"success":"' + b"x" * (size - 500) + b'"}'))
        ),
        "a large mark": lambda out: _first(out, "DONE.json").write_bytes(objects),
        "a deep description": lambda out: _first(out, "spec.json").write_bytes(less),
        "events without end": lambda out: _first(out, "events.jsonl").write_bytes(
            b"{}\n" * (size // 3)
        ),
    }


def _first(out: Path, name: str) -> Path:
    return min(path for path in out.glob(f"runs/*/{name}"))


def _items(out: Path, data: bytes) -> None:
    _first(out, "items.jsonl").write_bytes(data)


def _sealed(body: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(body), body)


def _record(out: Path, result: bytes, deltas: bytes = b"[]") -> bytes:
    """Return the first item of a run with another result."""
    log = _first(out, "items.jsonl").read_bytes()
    item = json.dumps(json.loads(log.split(b"\n")[0][9:])["item_id"]).encode()
    return b'{"deltas":%s,"index":0,"item_id":%s,"result":%s}' % (deltas, item, result)


def _many_runs(out: Path, size: int) -> None:
    path = out / "runs.jsonl"
    row = json.loads(path.read_bytes().splitlines()[0])
    row["identity"] |= {"item_ids": ["a"], "source": None}
    rows = (
        {**row, "identity": {**row["identity"], "name": f"r{number}"}}
        for number in range(size // (len(json.dumps(row)) + 8))
    )
    path.write_text("".join(f"{json.dumps(each)}\n" for each in rows))


def _long_run(out: Path, size: int) -> None:
    path = out / "runs.jsonl"
    row = json.loads(path.read_bytes().splitlines()[0])
    row["identity"] |= {"item_ids": ["a"] * (size // 5), "source": None}
    path.write_text(json.dumps(row) + "\n")


def _with_code(out: Path) -> None:
    path = out / "plan.yaml"
    path.write_text(path.read_text().replace("provider: insight", "provider: antigravity:X"))
