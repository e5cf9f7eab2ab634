"""Bad input: one line that says what and where, exit code 2, nothing changed."""

import json
import shutil
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import yaml
from langgraph.store.memory import InMemoryStore

from acceptance.command import (
    Ended,
    command_line,
    contents,
    cost,
    langgraft,
)
from acceptance.figure import Figure, Setting, share
from acceptance.hostile_files import SIZE, attacks, usual
from acceptance.kill import small_plan
from langgraft._core.errors import BankFormatError
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import MemoryItem
from langgraft.memory.providers import TrajectoryMemory

Spoil = Callable[[list[bytes]], bytes]

SPOILED: dict[str, tuple[int, Spoil]] = {
    "not JSON": (2, lambda rows: rows[0] + b"{]\n" + rows[2]),
    "a truncated last line": (3, lambda rows: b"".join(rows)[:-20]),
    "an id that stands twice": (3, lambda rows: rows[0] + rows[1] + rows[0]),
    "another schema version": (2, lambda rows: rows[0] + _with(rows[1], schema_version=99)),
    "a field of the wrong kind": (1, lambda rows: _with(rows[0], text=7)),
    "an unknown field": (2, lambda rows: rows[0] + _with(rows[1], texxt="x")),
    "a missing field": (1, lambda rows: _without(rows[0], "type")),
    "an id that is in the bank": (2, lambda rows: rows[0] + _with(rows[1], id="own")),
    "bytes that are not UTF-8": (1, lambda rows: b"\xff" + rows[0]),
    "an empty line": (2, lambda rows: rows[0] + b"\n" + rows[1]),
    "NaN": (1, lambda rows: rows[0].replace(b'"order_index":0', b'"order_index":NaN')),
}
"""What is wrong with a memory file → the row it must be found in, and how to spoil a good file."""


MOST_SECONDS = 2
"""CPU time that a hostile file may cost beyond a usual one."""
MOST_MEGABYTES = 200


def measure(setting: Setting) -> list[Figure]:
    """Give wrong input to the command line and to a bank."""
    return [_command_line(setting), _banks(setting), _hostile(setting)]


def _command_line(setting: Setting) -> Figure:
    folder = setting.work / "bad"
    cases = _cases(folder)
    wrong = []
    for name, arguments in cases.items():
        setting.say(f"bad input: {name}")
        before = contents(folder)
        done = langgraft(*arguments)
        lines = done.stderr.splitlines()
        one_line = len(lines) == 1 and lines[0].startswith("langgraft: ") and not done.stdout
        if done.code != 2 or not one_line or contents(folder) != before:
            wrong.append(f"{name} (exit code {done.code}, {len(lines)} lines)")
    return Figure(
        "Bad input is refused in one line, and nothing changes",
        f"`langgraft` with {'; '.join(cases)}",
        share(len(cases) - len(wrong), len(cases), wrong),
        "all: exit code 2, one line on stderr, every file as it was",
        not wrong,
    )


def _hostile(setting: Setting) -> Figure:
    """Read hostile files; the first figure has made the run directory they are copies of."""
    folder, bad = setting.work / "hostile", setting.work / "bad"
    folder.mkdir()
    size = setting.size(SIZE, 1 << 20)
    known = usual(folder, bad / "run", bad / "plan.yaml")
    for command in known.values():
        langgraft(*command)  # compiles what is imported
    expected = {name: cost(command_line(*command)) for name, command in known.items()}
    seconds = megabytes = 0.0
    wrong = []
    read = list(islice(attacks(folder, bad / "run", size), 0, None, setting.size(1, 6)))
    for attack in read:
        setting.say(f"bad input: {attack.name}")
        attack.write()
        spent = cost(command_line(*attack.command))
        more = spent.seconds - expected[attack.usual].seconds
        room = spent.megabytes - expected[attack.usual].megabytes
        seconds, megabytes = max(seconds, more), max(megabytes, room)
        if more > MOST_SECONDS or room > MOST_MEGABYTES or not _is_told(spent.ended):
            wrong.append(f"{attack.name} (+{more:.1f} s, +{room:.0f} MB, code {spent.ended.code})")
    return Figure(
        "A hostile file costs neither time nor memory, and steers no terminal",
        f"{len(read)} plans, journals and run directories of up to {size / 2**20:g} MiB,"
        " each read by a process of its own",
        f"{share(len(read) - len(wrong), len(read), wrong)}; at most +{seconds:.1f} s CPU"
        f" and +{megabytes:.0f} MB",
        f"beyond the same command on a usual file at most {MOST_SECONDS} s and"
        f" {MOST_MEGABYTES} MB; read, or refused in one line that can be printed",
        not wrong,
    )


def _is_told(ended: Ended) -> bool:
    """Say whether a command did as asked, or said in a line that can be printed why not."""
    lines = (ended.stdout + ended.stderr).splitlines()
    refused = ended.code == 2 and len(lines) == 1 and lines[0].startswith("langgraft: ")
    printed = all(line.isprintable() for line in lines)
    return printed and (refused or ended.code in (0, 1)) and "Traceback" not in ended.stderr


def _cases(folder: Path) -> dict[str, tuple[object, ...]]:
    """Write the files of the cases; return the arguments of each."""
    folder.mkdir()
    plan = _plan(folder / "plan.yaml")
    out, run = folder / "out", folder / "run"
    (folder / "file").write_text("in the way")
    (folder / "taken").mkdir()
    (folder / "taken" / "thesis.tex").write_text("precious")
    (folder / "binary.yaml").write_bytes(b"\xff\x00")
    (folder / "torn.yaml").write_text("study: [")
    (folder / "twice.yaml").write_text("study: continual\nseed: 1\nseed: 2\n")
    langgraft("run", plan, "--out", run)
    damaged = folder / "damaged"
    shutil.copytree(run, damaged)
    log = next(path for path in sorted(damaged.rglob("items.jsonl")) if path.stat().st_size)
    log.write_bytes(b"{" + log.read_bytes()[1:].replace(b"a", b"b", 1))
    (damaged / "plan.yaml").unlink()
    misspelt = _plan(folder / "misspelt.yaml", trian_items=3)
    return {
        "a plan that is not YAML": ("run", folder / "torn.yaml", "--out", out),
        "a plan that is not text": ("run", folder / "binary.yaml", "--out", out),
        "a key given twice": ("run", folder / "twice.yaml", "--out", out),
        "an unknown field": ("run", misspelt, "--out", out),
        "a number out of range": ("run", _plan(folder / "0.yaml", train_items=0), "--out", out),
        "an unknown study": ("run", _plan(folder / "study.yaml", study="nothing"), "--out", out),
        "no such plan": ("run", "nowhere", "--out", out),
        "an unknown model": ("run", plan, "--out", out, "--model", "nobody:gpt"),
        "a path that cannot be written": ("run", plan, "--out", folder / "file" / "out"),
        "a folder of something else": ("run", plan, "--out", folder / "taken"),
        "another plan's directory": (
            "run",
            _plan(folder / "other.yaml", temperature=0.9),
            "--out",
            run,
        ),
        "a directory without its plan": ("report", damaged),
        "no directory": ("status", folder / "nowhere"),
    }


def _plan(path: Path, **changes: object) -> Path:
    path.write_text(yaml.safe_dump({**small_plan(1, 1), **changes}))
    return path


def _banks(setting: Setting) -> Figure:
    setting.say("bad input: memory files")
    good, bad = setting.work / "good.jsonl", setting.work / "bad.jsonl"
    write_items(good, [_item(f"i{number}", number) for number in range(3)])
    own = setting.work / "own.jsonl"
    write_items(own, [_item("own", 0)])
    memory = TrajectoryMemory(InMemoryStore())
    memory.import_items(own)
    before = memory.content().digest
    wrong = []
    for name, (row, spoil) in SPOILED.items():
        bad.write_bytes(spoil(good.read_bytes().splitlines(keepends=True)))
        said = _refusal(memory, bad)
        one_line = f"{bad}, row {row}: " in said and len(said.splitlines()) == 1
        if not one_line or memory.content().digest != before:
            wrong.append(f"{name} ({said or 'taken in'})")
    return Figure(
        "A bad memory file is refused with its row, and the bank is as it was",
        f"`import_items` of files with {'; '.join(SPOILED)}",
        share(len(SPOILED) - len(wrong), len(SPOILED), wrong),
        "all: one line naming file and row, the same digest",
        not wrong,
    )


def _refusal(memory: TrajectoryMemory, path: Path) -> str:
    try:
        memory.import_items(path)
    except BankFormatError as error:
        return str(error)
    return ""


def _item(identity: str, order_index: int) -> MemoryItem:
    return MemoryItem(
        id=identity,
        text=f"text of {identity}",
        type="strategic",
        source_domain="babyai/find_obj",
        episode_id="e1",
        success=True,
        order_index=order_index,
    )


def _with(row: bytes, **fields: object) -> bytes:
    return json.dumps({**json.loads(row), **fields}).encode() + b"\n"


def _without(row: bytes, name: str) -> bytes:
    return json.dumps({k: v for k, v in json.loads(row).items() if k != name}).encode() + b"\n"
