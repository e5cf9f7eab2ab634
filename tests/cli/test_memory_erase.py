"""`langgraft memory erase` and `receipts`."""

import json
from pathlib import Path

import pytest
from langchain_core.outputs import Generation
from memory_cases import asking, make_episode
from memory_command import memory

from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.memory.banks import Banks, open_memory
from langgraft.memory.erasure import Wanted
from langgraft.memory.erasure.places import found_in
from langgraft.memory.testing.providers.base import with_every_text

PHRASE = "zanzibar-7431"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A bank and a cache that say something that has to go."""
    with open_memory(tmp_path / "bank.sqlite", "trajectory") as bank:
        bank.file(with_every_text(make_episode("told"), PHRASE))
        bank.file(make_episode("other"))
        bank.provide("open", asking())
    with ResponseCache(tmp_path / "responses.sqlite") as cache:
        cache.update(f'["{PHRASE}"]', "model", [Generation(text="yes")])
        cache.update('["nothing"]', "model", [Generation(text="no")])
    return tmp_path


def holding(folder: Path) -> list[Path]:
    """Return the files that say it."""
    return found_in([folder], Wanted(phrases=(PHRASE,)))


def test_episode_when_erased_is_nowhere_and_the_receipt_verifies(place: Path) -> None:
    """The command prints the receipt; a forged one is refused with exit code 1."""
    where = ["--store", f"sqlite:{place / 'bank.sqlite'}", "--provider", "trajectory"]
    ledger = ["--ledger", place / "ledger"]
    done = memory(
        "erase",
        "--episode",
        "told",
        *where,
        *ledger,
        "--responses",
        place / "responses.sqlite",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    assert not holding(place)
    told = memory("receipts", *ledger, "--covers", "told")
    assert (told.returncode, "1 receipts; they verify" in told.stdout) == (0, True)
    assert "0 receipts" in memory("receipts", *ledger, "--covers", "other").stdout
    receipt = json.loads(done.stdout)
    kept = place / "kept.json"
    kept.write_text(json.dumps(receipt))
    assert memory("receipts", *ledger, "--receipt", kept).returncode == 0
    kept.write_text(json.dumps({**receipt, "ended": receipt["began"] + "0"}))
    absent = memory("receipts", *ledger, "--receipt", kept.with_name("absent"))
    assert absent.returncode == 2
    assert "cannot be read: No such file" in " ".join(absent.stderr.split())
    forged = memory("receipts", *ledger, "--receipt", kept)
    assert (forged.returncode, "not signed with this key" in forged.stdout) == (1, True)
    with ResponseCache(place / "responses.sqlite") as cache:
        assert len(cache) == 1
    shown = json.loads(memory("show", *where, "--json").stdout)
    assert "told" not in json.dumps(shown)


def test_what_is_old_is_erased_and_what_is_not_stays(place: Path) -> None:
    """By age, or by a date."""
    where = ["--store", f"sqlite:{place / 'bank.sqlite'}", "--provider", "trajectory"]
    ledger = ["--ledger", place / "ledger"]
    assert memory("erase", "--older-than", "90d", *where, *ledger).returncode == 0
    assert holding(place / "bank.sqlite")
    assert memory("erase", "--older-than", "2999-01-01", *where, *ledger).returncode == 0
    with open_memory(place / "bank.sqlite", "trajectory") as bank:
        assert not bank.content().items


def test_user_when_erased_leaves_other_users(tmp_path: Path) -> None:
    """Of a store of many."""
    with Banks(tmp_path / "banks.sqlite", "trajectory") as banks:
        for label in ("ada", "bob"):
            banks[label].file(make_episode("e0", task=f"what {label} wants"))
    where = ["--store", f"sqlite:{tmp_path / 'banks.sqlite'}", "--provider", "trajectory"]
    done = memory("erase", "--user", "ada", *where, "--ledger", tmp_path / "ledger")
    assert done.returncode == 0, done.stderr
    with Banks(tmp_path / "banks.sqlite", "trajectory") as banks:
        assert banks.users() == ["bob"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--item", "told/trajectry"], "no item 'told/trajectry'"),
        ([], "erase one thing"),
        (["--older-than", "soon"], "takes an age such as 90d"),
        (["--older-than", "999999d"], "takes an age such as 90d"),
        (["--item", "a", "--run", "nowhere"], "there is nothing to erase in"),
        (["--resume"], "no erasure is under way"),
    ],
)
def test_request_that_is_not_possible_is_one_line(place: Path, given: list[str], told: str) -> None:
    """Nothing is changed."""
    where = ["--store", f"sqlite:{place / 'bank.sqlite'}", "--provider", "trajectory"]
    done = memory("erase", *given, *where, "--ledger", place / "ledger")
    assert told in " ".join((done.stderr + done.stdout).split())
    assert holding(place / "bank.sqlite")
