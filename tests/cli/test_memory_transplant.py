"""`langgraft memory transplant` as a user meets it: what is kept, what is written, and what it helps."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from memory_cases import make_item
from memory_command import contents, memory, refusal, told

from langgraft.benchmarks.simulated.server import serve
from langgraft.benchmarks.simulated.solver import KnownProblem, SimulatedSolver, Strengths
from langgraft.memory.bank_format import read_items, write_items
from langgraft.memory.bundle import write_bundle
from langgraft.memory.model import BankContent

pytestmark = pytest.mark.matrix  # whole studies

SUMS = [
    {
        "problem": f"What is the sum of {n} and {n + 1}?",
        "level": "Level 1",
        "type": "Sums",
        "solution": rf"\boxed{{{2 * n + 1}}}",
    }
    for n in range(20)
]
KNOWN = tuple(
    KnownProblem(text=row["problem"], kind="Sums", level="Level 1", right=right, wrong="0")
    for row in SUMS
    for right in [row["solution"][7:-1]]
)
ADVICE = [
    make_item(
        f"note{n}",
        text="When a problem is about sums: check the result.",
        key=f"what is the sum {n}",
        order_index=n,
    )
    for n in range(4)
]
RAG = ("--provider", "simple_rag", "--settings", "{max_items: 3, top_k: 1}")


@pytest.fixture
def donor(tmp_path: Path) -> Path:
    """Return the donor's bank as a file."""
    write_items(tmp_path / "donor.jsonl", ADVICE)
    return tmp_path / "donor.jsonl"


@pytest.fixture
def problems(tmp_path: Path) -> Path:
    """Return problems as MATH has them."""
    path = tmp_path / "problems.jsonl"
    path.write_text("\n".join(map(json.dumps, SUMS)))
    return path


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve a simulated solver over HTTP, in a thread of its own."""
    solver = SimulatedSolver(
        known=KNOWN, strengths=Strengths(otherwise=0.2, gain=0.7), seed=3, temperature=0
    )
    started, told_url, stop = threading.Event(), [""], asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serving() -> None:
        async with serve(solver) as server:
            told_url[0] = server.base_url
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serving(),), daemon=True)
    thread.start()
    assert started.wait(300)
    yield told_url[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


# Moving -------------------------------------------------------------------------------------


def test_transplant_when_nothing_is_to_be_written_says_what_would_be(
    donor: Path, tmp_path: Path
) -> None:
    """Kept, dropped with reasons, derived anew; in JSON too."""
    before = contents(tmp_path)
    done = memory("transplant", donor, *RAG)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0].startswith(
        "Of 4 items of the donor 3 were kept and 1 dropped (over the capacity of 3: 1);"
    )
    assert "- note0 (over the capacity of 3)" in done.stdout
    assert "nothing was written" in done.stdout
    found = told("transplant", donor, *RAG)
    assert found["transplant"]["dropped"] == [["note0", "over the capacity of 3"]]
    assert (found["written"], found["trial"]) == (False, None)
    assert contents(tmp_path) == before


def test_transplant_when_it_goes_to_a_file_or_a_store_is_the_same_there(
    donor: Path, tmp_path: Path
) -> None:
    """The donor may lie in a store; a dry run makes neither."""
    file, store = tmp_path / "out.jsonl", f"chroma:{tmp_path / 'store'}"
    for target in (file, store):
        assert not told("transplant", donor, *RAG, "--to", target, "--dry-run")["written"]
    assert not file.exists()
    assert not (tmp_path / "store").exists()
    for target in (file, store):
        assert told("transplant", donor, *RAG, "--to", target)["written"]
    assert read_items(file) == ADVICE[1:]
    there = ("--store", store, "--donor", "simple_rag")
    again = tmp_path / "again.jsonl"
    assert told("transplant", *there, "--provider", "insight", "--to", again)["written"]
    assert again.read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("DONOR",), "which recipient?"),
        ((*RAG,), "which bank?"),
        (("DONOR", "--provider", "insigt"), "unknown provider 'insigt': did you mean 'insight'?"),
        (("DONOR", "--provider", "insight", "--settings", "{k: 1}"), "there is no k"),
        (("DONOR", *RAG, "--store", "memory"), "a bank is a file or lies in a store"),
        (("DONOR", *RAG, "--to", "DONOR"), "is there already; --force replaces it"),
        (("DONOR", *RAG, "--to", "ftp://host"), "no store is called 'ftp://host'"),
        (("DONOR", *RAG, "--to-namespace", "a/b"), "give --to a store"),
        (("DONOR", *RAG, "--measure", "PROBLEMS"), "go together"),
        (("DONOR", *RAG, "--model", "openai:m"), "go together"),
        (("DONOR", *RAG, "--measure", "DONOR", "--model", "openai:m"), "'problem' is missing"),
        (("DONOR", *RAG, "--measure", "/no/where", "--model", "openai:m"), "cannot be read"),
        (("DONOR", *RAG, "--measure", "PROBLEMS", "--model", "nobody:m"), "nobody:m"),
        (("PROBLEMS", *RAG), "problems.jsonl, row 1"),
        (("BUNDLE", *RAG), "this is a bundle"),
        (("EMPTY", *RAG), "holds no items"),
        (("/no/where.jsonl", *RAG), "/no/where.jsonl"),
    ],
)
def test_transplant_when_it_cannot_be_is_refused_in_a_line(
    arguments: tuple[str, ...], said: str, donor: Path, problems: Path, tmp_path: Path
) -> None:
    """And nothing is written."""
    write_bundle(tmp_path / "donor.bundle", BankContent({item.id: item for item in ADVICE}))
    write_items(tmp_path / "empty.jsonl", [])
    paths = {
        "DONOR": donor,
        "PROBLEMS": problems,
        "BUNDLE": tmp_path / "donor.bundle",
        "EMPTY": tmp_path / "empty.jsonl",
    }
    before = contents(tmp_path)
    assert said in refusal("transplant", *(paths.get(each, each) for each in arguments))
    assert contents(tmp_path) == before


def test_transplant_when_the_recipient_holds_items_is_refused(donor: Path, tmp_path: Path) -> None:
    """Measured or not: an import is what adds to a bank."""
    store = f"chroma:{tmp_path / 'store'}"
    told("transplant", donor, *RAG, "--to", store)
    for more in ((), ("--dry-run",)):
        assert "needs an empty bank" in refusal("transplant", donor, *RAG, "--to", store, *more)


# Measuring ----------------------------------------------------------------------------------


def test_transplant_when_measured_says_whether_it_helped(
    donor: Path, problems: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over real HTTP, then written; a temperature of 0 makes a solver repeat itself, and that is said."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    target = tmp_path / "out.jsonl"
    model = ("--measure", problems, "--model", "openai:simulated", "--base-url", url)
    done = memory("transplant", donor, *RAG, *model, "--to", target)
    assert done.returncode == 0, done.stderr
    assert "transplanted helped: +" in done.stdout
    assert "; 20 items" in done.stdout
    assert done.stderr.startswith("WARNING: the 3 runs of each arm are all the same")
    rows = [line for line in done.stdout.split("\n") if line.startswith(("│", "|"))]
    assert len(rows) == 4
    assert "helped" in rows[1]
    assert f"written to {target}" in done.stdout.replace("\n", "")
    assert read_items(target) == ADVICE[1:]


def test_transplant_when_measured_dry_stands_beside_the_bank_that_is_there(
    donor: Path, problems: Path, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipient's own bank is an arm, and is what it was afterwards."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    write_items(tmp_path / "own.jsonl", [make_item("own", key="the sum of")])
    to = ("--to", f"chroma:{tmp_path / 'store'}")
    told("transplant", tmp_path / "own.jsonl", *RAG, *to)
    model = ("--measure", problems, "--model", "openai:simulated", "--base-url", url)
    few = ("--runs", 1, "--limit", 5, "--tokens", 300)
    trial = told("transplant", donor, *RAG, *to, *model, *few, "--dry-run")["trial"]
    assert [arm["name"] for arm in trial["arms"]] == [
        *("none", "own", "transplanted", "random", "placebo")
    ]
    assert {arm["attempts"] for arm in trial["arms"]} == {5}
    assert trial["verdict"] == "too few runs"
    shown = told("show", *to[:0], "--store", to[1], "--provider", "simple_rag")
    assert [item["id"] for item in shown["first"]] == ["own"]
