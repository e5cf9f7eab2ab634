"""Circles: each rule fires on its loop, and not on what only looks like one."""

import pytest
from chain_cases import LogMaker

from langgraft.nodes.chain.stuck import Stuck, find_stuck, same_text
from langgraft.nodes.workbench.log import CONDENSATION


def test_find_stuck_when_one_pair_comes_four_times_fires_and_not_after_three() -> None:
    """The same call with the same result is a loop the fourth time."""
    log = LogMaker().did("run_bash", "a", command="pwd")
    for _ in range(3):
        log.did("run_bash", "x", command="ls")
    assert find_stuck(log.events) is None
    log.did("run_bash", "x", command="ls", thought="Once more, in other words.")
    assert find_stuck(log.events) == Stuck("pairs", 2)


def test_find_stuck_when_the_output_differs_each_time_does_not_fire() -> None:
    """Waiting for something that makes progress is no loop."""
    log = LogMaker()
    for number in range(8):
        log.did("run_bash", f"epoch {number}", command="tail log")
    assert find_stuck(log.events) is None


def test_find_stuck_when_only_process_ids_and_addresses_differ_fires() -> None:
    """What differs between two runs of the same program makes no difference."""
    log = LogMaker()
    for number in (311, 4712, 98765, 12):
        seen = f"[1] {number}\nkilled pid {number}: <Model object at 0x7f{number:010x}>"
        log.did("run_bash", seen, command="train &")
    assert find_stuck(log.events) == Stuck("pairs", 0)


def test_find_stuck_when_one_action_fails_three_times_fires_whatever_it_shows() -> None:
    """The same failing call is a loop the third time, and two failures are none."""
    log = LogMaker()
    for number in range(2):
        log.did("run_python", f"error {number}", failed=True, code="f(")
    assert find_stuck(log.events) is None
    log.did("run_python", "error 2", failed=True, code="f(")
    assert find_stuck(log.events) == Stuck("errors", 0)


def test_find_stuck_when_different_actions_fail_or_one_works_between_does_not_fire() -> None:
    """Trying other things that fail as well is no loop, nor is a failure that went away."""
    log = LogMaker()
    for code in ("f(1", "f(2", "f(3"):
        log.did("run_python", "SyntaxError", failed=True, code=code)
    assert find_stuck(log.events) is None
    log = LogMaker()
    for failed in (True, True, False, True, True):
        log.did("run_python", "x" if failed else "y", failed=failed, code="f()")
    assert find_stuck(log.events) is None


def test_find_stuck_when_a_message_comes_three_times_fires_unless_something_is_done_between() -> (
    None
):
    """A monologue is a loop the third time, whatever the user answers."""
    log = LogMaker().said("Done.").said("Done.")
    assert find_stuck(log.events) is None
    assert find_stuck(log.said("Done.", "Then finish.").events) == Stuck("messages", 0)
    log = LogMaker().said("Done.").said("Done.").did("run_bash", command="ls").said("Done.")
    assert find_stuck(log.events) is None
    assert find_stuck(LogMaker().said("One").said("Two").said("Three").events) is None


def test_find_stuck_when_two_pairs_alternate_over_six_steps_fires() -> None:
    """A, B, A, B, A, B is a loop, and five steps or a C at the end are none."""

    def steps(word: str) -> LogMaker:
        log = LogMaker()
        for letter in word:
            log.did("run_bash", f"saw {letter}", command=letter)
        return log

    assert find_stuck(steps("XABABAB").events) == Stuck("alternation", 2)
    for word in ("ABABA", "ABABAC", "ABABCB", "AABBAB"):
        assert find_stuck(steps(word).events) is None


def test_find_stuck_when_an_attempt_began_anew_looks_at_that_alone() -> None:
    """What was before a recovery does not count again."""
    log = LogMaker()
    for _ in range(4):
        log.did("run_bash", "x", command="ls")
    log.recovered("pairs", 0)
    for _ in range(3):
        log.did("run_bash", "x", command="ls")
    assert find_stuck(log.events) is None
    log.did("run_bash", "x", command="ls")
    assert find_stuck(log.events) == Stuck("pairs", 9)


def test_find_stuck_when_the_prompt_is_shortened_ten_times_in_a_row_fires() -> None:
    """Ten condensations with nothing done between are a loop, nine are none."""
    log = LogMaker().did("run_bash", command="ls")
    for _ in range(9):
        log.event("environment", CONDENSATION, first_kept=0)
    assert find_stuck(log.events) is None
    log.event("environment", CONDENSATION, first_kept=0)
    assert find_stuck(log.events) == Stuck("condensations", 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("process 12 ended", "process 345 ended"),
        ("{'pid': 12}", "{'pid': 9}"),
        ("[2]+ 12\n", "[2]+ 99\n"),
        ("at 0x7ffd12ab", "at 0x00ab"),
    ],
)
def test_same_text_when_ids_differ_is_the_same(one: str, other: str) -> None:
    """Process ids and addresses are left out of account."""
    assert same_text(one) == same_text(other)


def test_same_text_when_numbers_mean_something_keeps_them() -> None:
    """Scores, epochs and shapes are not ids."""
    for text in ("Validation metric: 0.81", "[1] 0.5", "rapid 12", "epoch 3 of 10", "0x1f"):
        assert same_text(text) == text
