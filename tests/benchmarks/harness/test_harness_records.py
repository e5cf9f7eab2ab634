"""The commit log: what is read back after which damage."""

import hashlib
import io
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import (
    LogWriter,
    decode_record,
    encode_record,
    parse_log,
    read_log,
)
from langgraft.memory.model import MemoryDelta, SetState

PATH = Path("items.jsonl")
LINES = [
    encode_record(index, f"item-{index}", {"text": "é\u2028\n" * index, "n": index}, ())
    for index in range(6)
]
WHOLE = b"".join(LINES)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), json_values))
def test_record_when_encoded_then_reads_back(result: dict[str, object]) -> None:
    """Any JSON result comes back as it was, from a single line."""
    delta = MemoryDelta((SetState("key", "value"),))
    line = encode_record(3, "item", result, (delta,))  # type: ignore[arg-type]
    assert line.count(b"\n") == 1
    record = decode_record(line[:-1])
    assert record is not None
    assert (record.index, record.item_id, record.result) == (3, "item", result)
    assert record.deltas() == (delta,)


def test_log_when_cut_at_any_byte_then_longest_valid_prefix_is_read() -> None:
    """Cut at any byte, a log gives every record that is whole, and none that is not."""
    ends = [len(b"".join(LINES[: count + 1])) for count in range(len(LINES))]
    for size in range(len(WHOLE) + 1):
        content = parse_log(io.BytesIO(WHOLE[:size]), PATH)
        whole = sum(end <= size for end in ends)
        assert len(content.records) == whole
        valid = b"".join(LINES[:whole])
        assert content.sha256 == hashlib.sha256(valid).hexdigest()
        assert (content.size, content.tail) == (len(valid), size - len(valid))


def test_log_when_any_bit_flips_then_damage_is_noticed() -> None:
    """No flipped bit, the checksum's own digits included, passes for a record."""
    original = parse_log(io.BytesIO(WHOLE), PATH).records
    chance = random.Random(7)
    for _ in range(600):
        damaged = bytearray(WHOLE)
        damaged[chance.randrange(len(WHOLE))] ^= 1 << chance.randrange(8)
        try:
            records = parse_log(io.BytesIO(damaged), PATH).records
        except RunDirectoryError:
            continue
        assert len(records) < len(original)
        assert records == original[: len(records)]


def test_log_when_middle_is_damaged_then_error_names_file_and_line() -> None:
    """A damaged line before a sound one is no crash's work and is never dropped in silence."""
    damaged = LINES[0] + LINES[1].replace(b"item", b"itom") + LINES[2]
    with pytest.raises(RunDirectoryError, match=r"items\.jsonl: line 2 is damaged but line 3"):
        parse_log(io.BytesIO(damaged), PATH)


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([0, 2], "line 2 holds index 2, expected 1"),
        ([0, 1, 1], "line 3 holds index 1, expected 2"),
        ([1], "line 1 holds index 1, expected 0"),
    ],
)
def test_log_when_index_is_out_of_sequence_then_refused(lines: list[int], complaint: str) -> None:
    """Sound lines that are missing, doubled or swapped are refused."""
    with pytest.raises(RunDirectoryError, match=complaint):
        parse_log(io.BytesIO(b"".join(LINES[line] for line in lines)), PATH)


def test_writer_when_log_has_torn_tail_then_cuts_it_and_appends(tmp_path: Path) -> None:
    """Opening for writing cuts a torn record off, and the next one follows the last whole one."""
    path = tmp_path / "items.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:20])
    content = read_log(path)
    writer = LogWriter(path, content)
    writer.append(LINES[1])
    writer.close()
    assert path.read_bytes() == LINES[0] + LINES[1]
    assert writer.sha256 == read_log(path).sha256


def test_log_when_read_with_torn_tail_then_file_is_untouched(tmp_path: Path) -> None:
    """Reading alone changes nothing, torn tail or not."""
    path = tmp_path / "items.jsonl"
    path.write_bytes(WHOLE[:-5])
    assert read_log(path).tail == len(LINES[-1]) - 5
    assert path.read_bytes() == WHOLE[:-5]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", object()])
def test_record_when_result_is_not_canonical_then_not_encoded(value: object) -> None:
    """What JSON cannot hold the same way everywhere is not committed."""
    with pytest.raises((TypeError, ValueError)):
        encode_record(0, "item", {"value": value}, ())  # type: ignore[dict-item]


def test_log_when_its_values_are_many_and_short_then_reads_back() -> None:
    """A log of any length is one of ours; a line of a million values is refused before it is written."""
    few = [encode_record(index, "item", {"seen": [0] * 500_000}, ()) for index in range(3)]
    content = parse_log(io.BytesIO(b"".join(few)), PATH, results=False)
    assert [record.result for record in content.records] == [{}] * 3
    with pytest.raises(ValueError, match="more than"):
        encode_record(0, "item", {"seen": [0] * 1_500_000}, ())
