"""Which item changed which answer, what the agent does with items gone wrong, and changes held against what was."""

import hashlib
import itertools
from pathlib import Path
from typing import Any

import pytest
from ablation_cases import (
    CODES,
    MEMORY,
    Clerk,
    asked,
    bank_file,
    function,
    is_right,
    lookups,
    results,
    tried,
)
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError, LanggraftError
from langgraft.benchmarks.ablation import Ablation
from langgraft.benchmarks.ablation.credit import (
    CONTRADICTED,
    IGNORED_AFTER,
    POISON,
    SUPERSEDED,
    VARIANTS,
    credits_of,
    next_replays,
)
from langgraft.benchmarks.comparison.verdicts import FEWEST_PAIRS
from langgraft.memory.bank_format import read_items
from langgraft.memory.providers import make_provider

GOOD = "the code of ada is 101"
BAD = "the code of fay is 7"
IDLE = "what is the code of eve? nobody has written it down"
OTHER = "a note on cyd and on nothing else"


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    """Try a bank of one item that helps, one that harms, one that changes nothing and one unused."""
    folder = tmp_path_factory.mktemp("planted")
    bank = bank_file(folder / "bank.jsonl", good=GOOD, bad=BAD, idle=IDLE, other=OTHER)
    test = [*asked("ada", "fay"), *asked("eve", times=3)]
    return tried(folder / "out", bank=bank, test=test, harm=True, credit=23)


def test_credit_when_items_are_planted_then_is_given_to_the_right_ones(planted: Ablation) -> None:
    """What helps, harms and is ignored is named so, with the tasks that it changed."""
    (found,) = planted.analysis.memories
    told = {each.id: each for each in found.credits}
    assert {name: each.verdict for name, each in told.items()} == {
        "good": "helps",
        "bad": "harms",
        "idle": "ignored",
    }
    assert told["good"].credit == 1
    assert told["good"].tasks == {"test-ada-0": 1}
    assert told["bad"].credit == -1
    assert told["bad"].tasks == {"test-fay-0": -1}
    assert told["idle"].changed == 0
    assert "1 helps, 1 harms and 1 ignored" in str(planted)


def test_admitted_bank_when_written_then_lacks_what_harms_and_any_provider_takes_it(
    planted: Ablation, tmp_path: Path
) -> None:
    """What was never tried stays."""
    path = tmp_path / "admitted.jsonl"
    assert planted.admitted(MEMORY, path) == 3
    assert [each.id for each in read_items(path)] == ["good", "idle", "other"]
    for provider in (MEMORY, "insight", "recency"):
        memory = make_provider(provider, InMemoryStore(), settings={})
        assert len(memory.import_items(path).changes) >= 3


def test_bank_when_asked_by_a_wrong_name_then_is_refused(planted: Ablation, tmp_path: Path) -> None:
    """Names and replicates that there are not; and credit that was not asked for."""
    with pytest.raises(InputError, match="no bank of 'trajectry': did you mean 'trajectory'"):
        planted.bank("trajectry")
    with pytest.raises(InputError, match="no replicate 2: they are 0 to 1"):
        planted.admitted(MEMORY, tmp_path / "b.jsonl", run=2)
    plain = tried(tmp_path / "out", replicates=1)
    with pytest.raises(InputError, match="no item of 'trajectory' was tried"):
        plain.admitted(MEMORY, tmp_path / "b.jsonl")
    assert not (tmp_path / "b.jsonl").exists()


def test_harm_suite_when_run_then_shows_each_variant_as_it_says(planted: Ablation) -> None:
    """The item recalled first is absent, superseded, contradicted, replaced by its neighbor, poisoned."""

    def block(variant: str) -> str:
        return str(results(planted, f"{MEMORY}~{variant}")[0]["block"])

    assert GOOD in str(results(planted, MEMORY)[0]["block"])
    assert block("absent") == ""
    assert f"{GOOD}\n{SUPERSEDED}" in block("superseded")
    assert block("contradictory").count(GOOD) == 2
    assert f"{GOOD}\n\n{CONTRADICTED}{GOOD}" in block("contradictory")
    assert GOOD not in block("adjacent")
    assert BAD in block("adjacent"), "it shares most words"
    assert f"{GOOD}\n{POISON}" in block("poisoned")


def test_harm_suite_when_run_then_says_what_the_agent_did_by_item(planted: Ablation) -> None:
    """An agent that obeys poison fails; one whose wrong note is taken back is right again."""
    harmed = planted.analysis.harm_items
    assert harmed[MEMORY, "good"] == {
        **dict.fromkeys(VARIANTS, 0.0),
        "as is": 1.0,
    }
    assert harmed[MEMORY, "bad"] == {
        **dict.fromkeys(VARIANTS, 1.0),
        "as is": 0.0,
        "poisoned": 0.0,
    }
    rows = {each.variant: each for each in planted.analysis.harm}
    assert rows.keys() == VARIANTS.keys()
    assert rows["poisoned"].success == 0
    assert rows["poisoned"].as_is == pytest.approx(1 / 5)


@pytest.mark.parametrize("credit", [1, 7, 40])
def test_credit_when_a_number_of_attempts_is_given_then_spends_no_more(
    tmp_path: Path, credit: int
) -> None:
    """As many as asked for, or as there is anything to try."""
    wide = {MEMORY: {"provider": "trajectory", "settings": {"top_k": 3}}}
    bank = bank_file(tmp_path / "bank.jsonl", good=GOOD, bad=BAD, idle=IDLE)
    found = tried(
        tmp_path / "out", bank=bank, memory=wide, test=asked("ada", "fay", "eve"), credit=credit
    )
    (memory,) = found.analysis.memories
    assert sum(each.replays for each in memory.credits) == min(credit, 2 * 3 * 3)


# What is replayed next --------------------------------------------------------------------

recalled = st.lists(st.sampled_from("abcd"), max_size=3)
tests = st.lists(recalled, max_size=6).map(
    lambda some: [
        {"task": f"t{n}", "recalled": [{"id": each} for each in ids], "score": 1.0}
        for n, ids in enumerate(some)
    ]
)


@given(tests, st.lists(st.integers(0, 5), max_size=4), st.data())
def test_replays_when_chosen_round_by_round_then_each_is_made_once(
    test: list[dict[str, Any]], rounds: list[int], data: st.DataObject
) -> None:
    """Every pair of attempt and item is tried at most once, none is missed, and items first come first."""
    wanted = {(row["task"], each["id"]) for row in test for each in row["recalled"]}
    earlier: list[list[dict[str, Any]]] = []
    made: list[tuple[str, str]] = []
    for count in (*rounds, len(wanted) + 1):
        chosen = next_replays(test, earlier, count)
        assert len(chosen) == count
        results: list[dict[str, Any]] = []
        for each in chosen:
            if each is None:
                results.append({"skipped": True})
                continue
            position, item = each
            made.append((test[position]["task"], item))
            score = data.draw(st.sampled_from([0.0, 1.0]))
            row = {"task": test[position]["task"], "without": item, "score": score, "with": 1.0}
            results.append({**row, "changed": score < 1})
        earlier.append(results)
    assert len(made) == len(set(made))
    assert set(made) == wanted
    items = {item for _, item in wanted}
    assert {item for _, item in made[: len(items)]} == items, "each once before any twice"
    known = credits_of([test], earlier)
    for item, credit in known.items():
        assert credit.uses == sum(item in {e["id"] for e in row["recalled"]} for row in test)
        assert credit.replays == credit.uses
        lost = sum(
            each["with"] - each["score"]
            for r in earlier
            for each in r
            if each.get("without") == item
        )
        assert credit.credit == (lost / credit.replays)
        assert credit.ignored == (credit.replays >= IGNORED_AFTER and lost == 0)


# A guard ----------------------------------------------------------------------------------

WORDS = tuple(CODES)


def guarded(out: Path, against: Path | str, *, good: bool, **fields: Any) -> tuple[Ablation, int]:
    """Hold a bank against an earlier one, and return what came of it and the agent's calls."""
    notes = {word: f"the code of {word} is {CODES[word] if good else 1}" for word in WORDS}
    bank = bank_file(out.parent / "bank.jsonl", **notes)
    calls: list[str] = []

    def build(memory: Any, model: Any) -> Any:
        agent = function(memory, model)

        def counted(text: str) -> Any:
            calls.append(text)
            return agent(text)

        return counted

    usual = {"bank": bank, "test": asked(*WORDS, times=4), "replicates": 5, "build": build}
    return tried(out, against=against, **{**usual, **fields}), len(calls)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a bank that knows all codes."""
    path = tmp_path_factory.mktemp("earlier") / "bank@2.jsonl"
    return bank_file(path, **{word: f"the code of {word} is {CODES[word]}" for word in WORDS})


def test_guard_when_nothing_changed_then_passes_and_stops_early(
    tmp_path: Path, earlier: Path
) -> None:
    """After as many pairs as it takes to be sure the agent is asked no more."""
    found, calls = guarded(tmp_path / "out", earlier, good=True)
    decision = found.analysis.guard
    assert decision is not None
    assert decision.verdict == "passed"
    assert FEWEST_PAIRS <= decision.pairs < 4 * 6 * 5
    assert calls == 2 * 44, "two looks at 20 and 4, then 20 of the next replicate; both sides"
    assert found.exit_code == 0
    assert (
        str(found)
        .splitlines()[1]
        .startswith(f"Passed: no loss of 10 points, after {decision.pairs} pairs")
    )
    assert found.to_json()["guard"] == {
        "verdict": "passed",
        "pairs": decision.pairs,
        "difference": 0.0,
    }


def test_guard_when_the_change_lost_then_regressed_and_exits_with_1(
    tmp_path: Path, earlier: Path
) -> None:
    """A bank that knows nothing is found out after the fewest pairs."""
    found, _ = guarded(tmp_path / "out", earlier, good=False)
    decision = found.analysis.guard
    assert decision is not None
    assert (decision.verdict, decision.pairs, decision.difference) == (
        "regressed",
        FEWEST_PAIRS,
        -1,
    )
    assert found.exit_code == 1
    assert "Regressed: " in found.page.read_text()


def test_guard_when_the_bank_has_a_version_then_it_must_be_that_one(
    tmp_path: Path, earlier: Path
) -> None:
    """The beginning of its SHA-256, after an `@`; files may have one in their names."""
    sha = hashlib.sha256(earlier.read_bytes()).hexdigest()
    found, _ = guarded(tmp_path / "right", f"{earlier}@{sha[:12]}", good=True)
    assert found.exit_code == 0
    with pytest.raises(InputError, match=f"has the digest {sha[:12]}, and not 'abc123'"):
        guarded(tmp_path / "wrong", f"{earlier}@abc123", good=True)
    assert not (tmp_path / "wrong").exists()


def test_guard_when_held_against_a_run_then_only_the_change_is_played(tmp_path: Path) -> None:
    """Outcomes are read from its log; another one without them is refused."""
    fields = {"train": lookups(*WORDS), "test": asked(*WORDS, times=4), "replicates": 2}
    tried(tmp_path / "before", **fields)
    found, calls = guarded(tmp_path / "out", tmp_path / "before", good=False, replicates=2)
    assert found.exit_code == 1
    assert calls == 44
    with pytest.raises(InputError, match="no attempt of 'trajectory' at 'test-ada-0#2'"):
        guarded(tmp_path / "more", tmp_path / "before", good=False, replicates=3)


def test_guard_when_several_memories_are_given_then_is_refused(
    tmp_path: Path, earlier: Path
) -> None:
    """It answers one question."""
    with pytest.raises(InputError, match="a guard holds one memory with one source"):
        tried(tmp_path / "out", memory={"a": MEMORY, "b": MEMORY}, against=earlier)


def test_guard_when_stopped_and_gone_on_with_then_leaves_the_same_bytes(
    tmp_path: Path, earlier: Path
) -> None:
    """What was decided stays so; nothing is asked twice."""
    left = itertools.count(-1, -1)

    def stops(task: Any, output: Any) -> bool:
        if next(left) == 0:  # in threads
            raise ConnectionError("the judge's server is down")
        return is_right(task, output)

    guarded(tmp_path / "whole", earlier, good=True, score=stops)
    left = itertools.count(29, -1)
    with pytest.raises(LanggraftError, match="the judge's server is down"):
        guarded(tmp_path / "out", earlier, good=True, score=stops)
    _, calls = guarded(tmp_path / "out", earlier, good=True, score=stops)
    assert 0 < calls < 2 * 44
    assert items(tmp_path / "out") == items(tmp_path / "whole")


def items(out: Path) -> dict[str, bytes]:
    """Return the bytes of all results."""
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("items.jsonl"))}


def test_guard_when_undecided_at_the_end_then_decides_on_what_there_is(
    tmp_path: Path, earlier: Path
) -> None:
    """Few pairs are no endless run."""
    found, _ = guarded(
        tmp_path / "out",
        earlier,
        good=True,
        test=asked("ada"),
        replicates=2,
        model=lambda seed: Clerk(seed=seed),
    )
    assert found.analysis.guard is not None
    assert found.analysis.guard.verdict == "passed"
    assert found.analysis.guard.pairs == 2
