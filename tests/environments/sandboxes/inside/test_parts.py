"""The parts of the scripts that run inside, one by one."""

import ast
import builtins
import dis
import errno
import fcntl
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.environments.sandboxes.inside.exceptions import describe
from langgraft.environments.sandboxes.inside.files import Patterns, Puts, Putting
from langgraft.environments.sandboxes.inside.frames import MAX_REPORT, KernelChild
from langgraft.environments.sandboxes.inside.running import (
    open_pipe,
    parsed_report,
    read_report,
    told_exit,
)
from langgraft.environments.sandboxes.inside.watching import Relay
from langgraft.environments.sandboxes.places import (
    kernel_script,
    launcher_script,
    supervisor_script,
)


@pytest.mark.parametrize("script", [supervisor_script, launcher_script, kernel_script])
def test_script_when_joined_then_no_name_hides_another_and_nothing_of_ours_is_imported(
    script: object,
) -> None:
    """Joined files share one namespace, in which each name is defined once."""
    assert callable(script)
    tree = ast.parse(script())
    names = Counter(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
    )
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                names.update(n.id for n in ast.walk(target) if isinstance(n, ast.Name))
    assert [name for name, count in names.items() if count > 1] == []
    imported = {
        ((node.module or "") if isinstance(node, ast.ImportFrom) else node.names[0].name).split(
            "."
        )[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom | ast.Import)
    }
    assert imported <= sys.stdlib_module_names


@pytest.mark.parametrize("script", [supervisor_script, launcher_script, kernel_script])
def test_script_when_joined_then_every_name_it_looks_up_is_there(
    script: Callable[[], str],
) -> None:
    """Imports for annotations alone are dropped, so nothing else may use them."""
    there, looked_up = set(dir(builtins)), set()
    codes = [compile(script(), "script", "exec")]
    while codes:
        code = codes.pop()
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        for instruction in dis.get_instructions(code):
            if instruction.opname in {"STORE_NAME", "STORE_GLOBAL"}:
                there.add(instruction.argval)
            elif instruction.opname in {"LOAD_NAME", "LOAD_GLOBAL"}:
                looked_up.add(instruction.argval)
    assert [name for name in looked_up - there if not name.startswith("__")] == []


@given(st.lists(st.binary(max_size=40), max_size=12), st.integers(1, 60))
def test_relay_when_a_stream_is_fed_then_head_and_tail_are_kept_exactly(
    pieces: list[bytes], limit: int
) -> None:
    """However a stream is cut up: all of it where it fits, else its two ends."""
    relay = Relay(limit)
    kept = b"".join(relay.feed(piece) for piece in pieces) + relay.tail()
    whole = b"".join(pieces)
    assert relay.count == len(whole)
    if len(whole) <= limit:
        assert kept == whole
    else:
        assert kept == whole[: limit // 2] + whole[-(limit - limit // 2) :]


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a.csv", "a.csv", True),
        ("a.csv", "b/a.csv", False),
        ("*.csv", ".a.csv", True),
        ("*.csv", "b/a.csv", False),
        ("w/**", "w/a/b", True),
        ("w/**", "x/a", False),
        ("**", "a/b/c", True),
        ("**/x", "x", True),
        ("**/x", "a/b/x", True),
        ("**/x", "a/x/b", False),
        ("a/**/b/*", "a/b/c", True),
        ("a/**/b/*", "a/x/b/b/c", True),
        ("a?[0-9]", "ab7", True),
    ],
)
def test_patterns_when_a_path_is_walked_then_it_matches_as_a_glob(
    pattern: str, path: str, matches: bool
) -> None:
    """`*` stays within a name and finds hidden ones; `**` goes through folders."""
    patterns = Patterns([pattern])
    states = patterns.start()
    for name in path.split("/"):
        states = patterns.step(states, name)
    assert patterns.ended(states) is matches


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../b", ""])
def test_patterns_when_one_leaves_the_workspace_then_it_is_refused(pattern: str) -> None:
    """The supervisor checks patterns as well."""
    with pytest.raises(ValueError, match="workspace"):
        Patterns([pattern])


class _NastyError(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


_NastyError.__module__ = 5  # type: ignore[assignment]


class _NastyText(str):
    __slots__ = ()

    def __getitem__(self, _place: object) -> str:
        raise KeyboardInterrupt

    __str__ = __eq__ = __format__ = __getitem__  # type: ignore[assignment]
    __hash__ = str.__hash__


class _NamelessError(Exception):
    __module__ = _NastyText("nasty")


_ENDLESS_NAME = type("E" * 2_000_000, (Exception,), {})
_NOWHERE = SyntaxError("x", (_NastyText("nasty.py"), 1, 1, "x"))


@pytest.mark.parametrize(
    "error",
    [
        _NastyError(),
        ValueError("\0\udc80" * 100_000),
        SyntaxError(7),
        KeyError(),
        BaseException("x"),
        _NamelessError(),
        _ENDLESS_NAME(),
        _NOWHERE,
    ],
)
def test_describe_when_an_exception_is_odd_then_it_is_told_in_bounds(error: BaseException) -> None:
    """Nothing an exception does keeps it from being told."""
    told = describe(error, None, lambda _file, _line: "")
    assert len(told) < MAX_REPORT
    parsed = parsed_report(told)
    assert parsed is not None
    assert parsed["type"]
    assert len(parsed["message"]) < 120_000


@given(st.binary(max_size=300))
def test_report_when_a_program_forges_it_then_it_is_an_exception_or_nothing(told: bytes) -> None:
    """What a program writes in place of its launcher is its own word, and does no harm."""
    parsed = parsed_report(told)
    if parsed is not None:
        assert parsed["type"].strip()
        assert all(frame["line"] >= 0 for frame in parsed["frames"])


def _told(*fields: str) -> bytes:
    return "".join(f"{field}\0" for field in fields).encode()


def test_report_when_it_is_sound_then_is_told_as_it_is() -> None:
    """A type, a message, and four fields a frame, in their order."""
    told = _told("E", "m", "a.py", "7", "f", "x = 1", "b.py", "123456789", "g", "y")
    assert parsed_report(told) == {
        "type": "E",
        "message": "m",
        "frames": [
            {"file": "a.py", "line": 7, "function": "f", "text": "x = 1"},
            {"file": "b.py", "line": 123_456_789, "function": "g", "text": "y"},
        ],
    }
    assert parsed_report(_told("E", "m")) == {"type": "E", "message": "m", "frames": []}


@pytest.mark.parametrize("told", [b"", b"E\0", _told(" ", "m"), _told("", "m"), b"E\0m"])
def test_report_when_it_names_no_exception_then_there_is_none(told: bytes) -> None:
    """A type that says something and a message that ended are the least."""
    assert parsed_report(told) is None


@pytest.mark.parametrize("line", ["1234567890", "-1", "", "1.0", "x"])
def test_report_when_a_line_is_no_number_of_one_then_it_is_0(line: str) -> None:
    """Nine digits at the most."""
    parsed = parsed_report(_told("E", "m", "a.py", line, "f", "x"))
    assert parsed is not None
    assert parsed["frames"][0]["line"] == 0


@pytest.mark.parametrize(
    ("fields", "frames"), [(3, 0), (4, 1), (7, 1), (8, 2), (4 * 200, 200), (4 * 201, 200)]
)
def test_report_when_it_has_many_frames_then_whole_ones_are_told_up_to_200(
    fields: int, frames: int
) -> None:
    """What is cut off, or beyond the bound, is left out."""
    parsed = parsed_report(_told("E", "m", *("1" for _ in range(fields))))
    assert parsed is not None
    assert len(parsed["frames"]) == frames


def test_report_when_a_field_is_long_then_it_is_cut() -> None:
    """At 50,000 characters, whichever field it is."""
    parsed = parsed_report(_told("E" * 60_000, "m" * 50_000, "a" * 50_001, "1", "f", "x"))
    assert parsed is not None
    lengths = len(parsed["type"]), len(parsed["message"]), len(parsed["frames"][0]["file"])
    assert lengths == (50_000, 50_000, 50_000)


def test_pipe_when_opened_then_is_large_and_only_its_reading_end_does_not_block() -> None:
    """A program that prints much wakes nobody for every line, and waits where nobody reads."""
    reading, writing = open_pipe()
    try:
        assert fcntl.fcntl(reading, fcntl.F_GETPIPE_SZ) == 1 << 20
        assert not os.get_blocking(reading)
        assert os.get_blocking(writing)
    finally:
        os.close(reading)
        os.close(writing)


def test_reading_a_report_when_it_may_go_on_says_so_up_to_its_bound() -> None:
    """Not where nothing waits, at its end, or where it is as long as any may be."""
    reading, writing = open_pipe()
    try:
        told = bytearray()
        assert not read_report(reading, told)
        os.write(writing, b"x")
        assert read_report(reading, told)
        told += bytes(MAX_REPORT - 3)
        os.write(writing, b"y")
        assert read_report(reading, told)
        assert len(told) == MAX_REPORT - 1
        os.write(writing, b"z")
        assert not read_report(reading, told)
        told.clear()
        os.write(writing, b"w")
        os.close(writing)
        writing = -1
        assert read_report(reading, told)
        assert not read_report(reading, told)
        assert bytes(told) == b"w"
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (None, (137, "SIGKILL")),
        (0, (0, None)),
        (7 << 8, (7, None)),
        (11, (139, "SIGSEGV")),
        (11 | 0x80, (139, "SIGSEGV")),
        (63, (191, "signal 63")),
    ],
)
def test_exit_when_told_is_a_shells_code_and_the_signals_name(
    status: int | None, told: tuple[int, str | None]
) -> None:
    """Without a status the process was killed and is stuck."""
    assert told_exit(status) == told


def test_kernel_child_when_a_report_claims_to_be_huge_then_it_is_broken() -> None:
    """A kernel that says it will send gigabytes is not waited for."""
    child = KernelChild(1, -1, -1, (-1, -1))
    child._heard += (1 << 31).to_bytes(4, "big")
    assert child.told(1) is None
    assert child.broken


def test_puts_when_there_is_no_room_then_the_rest_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first refusal is told, by the file's name; what was whole before stays."""

    def full(_file: object, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder = os.open(tmp_path, os.O_RDONLY)
    puts = Puts(folder)
    puts.begin("whole")
    puts.write(b"x")
    puts.begin("part")
    monkeypatch.setattr(Putting, "write", full)
    puts.write(b"x")
    puts.begin("further")
    puts.finish()
    os.close(folder)
    assert puts.refused == "part: No space left on device"
    assert [path.name for path in tmp_path.iterdir()] == ["whole"]
