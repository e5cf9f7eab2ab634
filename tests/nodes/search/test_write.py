"""Asking for a program: no reply ends a search, and what a prompt says of attempts stays short."""

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage
from tree_cases import RuleModel, good, reply, scripted

from langgraft.nodes.dialogue import arun_dialogue, run_dialogue
from langgraft.nodes.search.deps import TreePrompts
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.programs import LONGEST_SUMMARY, TRIES, Written, summarize, writing

PROGRAM = good()


def write(model: RuleModel) -> Written:
    """Ask a model for a program."""
    held = writing([HumanMessage("Write.")], TreePrompts().repair)
    return run_dialogue(held, model, ("s", "007"))


def test_program_when_the_first_reply_holds_none_is_asked_for_again() -> None:
    """The model is told what was wrong, and each call is a sample of its own."""
    model = scripted("Sure!", "```python\nprint(\n```", reply(PROGRAM))
    assert write(model) == Written("First I try this. Then I see. And more.", PROGRAM, "ok", 3)
    samples, texts = zip(*model.asked, strict=True)
    assert samples == ("s/007/write", "s/007/write/2", "s/007/write/3")
    assert "no fenced block of Python" in texts[1]
    assert "never closed" in texts[2]


async def test_program_when_it_is_asked_for_asynchronously_is_the_same() -> None:
    """One logic serves both."""
    model = scripted("Sure!", reply(PROGRAM))
    held = writing([HumanMessage("Write.")], TreePrompts().repair)
    assert await arun_dialogue(held, model, ("s", "007")) == write(
        scripted("Sure!", reply(PROGRAM))
    )


def test_program_when_no_reply_holds_one_is_none_and_says_why() -> None:
    """Three tries, as in AIDE, which then runs the prose."""
    written = write(scripted("Sure!"))
    assert (written.code, written.calls) == ("", TRIES)
    assert "no fenced block of Python" in written.why


def test_program_when_none_compiles_is_the_last_that_was_written() -> None:
    """What it fails with in the sandbox can be repaired; nothing cannot."""
    written = write(scripted("```python\nprint(1\n```", "```python\nprint(2\n```", "Sorry."))
    assert written.code == "print(2\n"
    assert "never closed" in written.why


def test_program_when_the_model_refuses_or_has_no_room_is_not_asked_for_again() -> None:
    """It would say the same; the reason is kept."""
    failure = {"kind": "model_behavior", "reason": "refusal", "detail": "I cannot"}
    refused = write(scripted(AIMessage("", response_metadata={"failure": failure})))
    assert refused == Written("", "", "the model gave none: refusal: I cannot", 1)
    unasked = write(scripted(AIMessage("", additional_kwargs={"refusal": "No."})))
    assert unasked.why == "the model gave none: refusal: No."
    filtered = write(scripted(AIMessage("", response_metadata={"finish_reason": "content_filter"})))
    assert filtered.why == "the model gave none: content_filter"

    def overflow(text: str, sample: str) -> str:
        raise ContextOverflowError("too long: 9 tokens")

    full = write(RuleModel(rule=overflow))
    assert full == Written("", "", "the model gave none: context_length: too long: 9 tokens", 1)


def test_reply_when_it_holds_what_no_file_can_is_kept_without_it() -> None:
    """Halves of surrogate pairs become question marks."""
    written = write(scripted(reply("print('\ud800')\n", plan="\udfffPlan.")))
    assert (written.plan, written.code) == ("?Plan.", "print('?')\n")


def test_reply_when_it_was_cut_off_tells_the_model_so() -> None:
    """A shorter program may fit."""
    cut = AIMessage("```python\nprint(", response_metadata={"finish_reason": "length"})
    model = scripted(cut, reply(PROGRAM))
    assert write(model).code == PROGRAM
    assert "the reply was cut off" in model.asked[1][1]


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
    assert len(text) <= LONGEST_SUMMARY
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
