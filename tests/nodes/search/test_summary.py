"""What prompts say of attempts that worked."""

from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.summary import MOST, summarize


def node(step: int, metric: float | None = None, words: int = 1) -> JournalNode:
    """Make a program: without a metric it failed."""
    return JournalNode(
        step=step,
        id=str(step),
        plan=f"plan-{step} " * words,
        code="secret",
        analysis=f"result-{step}",
        metric=metric,
        is_buggy=metric is None,
    )


def test_summary_when_attempts_worked_tells_plan_result_and_metric_in_order() -> None:
    """Nothing of failures, and no code: failures never reach another branch."""
    text = summarize([node(0), node(1, 0.5), node(2), node(3, 0.25)], lower_is_better=True)
    assert text == (
        "Plan: plan-1\nResult: result-1\nValidation metric: 0.5\n\n"
        "Plan: plan-3\nResult: result-3\nValidation metric: 0.25"
    )


def test_summary_when_nothing_worked_says_so() -> None:
    """A prompt's section is never empty."""
    assert summarize([node(0)], lower_is_better=True) == "No attempt has worked so far."


def test_summary_when_not_all_fit_keeps_the_best_and_the_newest() -> None:
    """Within its bound, in the order of the steps, saying how many are left out."""
    nodes = [node(step, 1.0 if step == 7 else 0.5, words=30) for step in range(200)]
    text = summarize(nodes, lower_is_better=False)
    assert len(text) <= MOST
    first, best, *newest = text.split("\n\n")
    assert "plan-7 " in best
    assert newest[-1].startswith("Plan: plan-199 ")
    assert first == f"({200 - 1 - len(newest)} older attempts that worked are left out.)"
    assert all(f"plan-{200 - len(newest) + at} " in each for at, each in enumerate(newest))


def test_summary_when_a_plan_is_endless_cuts_it() -> None:
    """One attempt never takes the room of all others."""
    text = summarize([node(0, 0.5, words=100_000), node(1, 0.4)], lower_is_better=True)
    assert len(text) < 3000
    assert "plan-1" in text
