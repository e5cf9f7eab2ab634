"""Asking for a program: no reply ends a search."""

from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage, HumanMessage
from tree_cases import RuleModel, good, reply, scripted

from langgraft.nodes.search.briefing import TreePrompts
from langgraft.nodes.search.write import TRIES, Written, writing
from langgraft.nodes.talking import atalk, talk

PROGRAM = good()


def write(model: RuleModel) -> Written:
    """Ask a model for a program."""
    held = writing([HumanMessage("Write.")], TreePrompts().repair)
    return talk(held, model, "s", "007")


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
    assert await atalk(held, model, "s", "007") == write(scripted("Sure!", reply(PROGRAM)))


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
