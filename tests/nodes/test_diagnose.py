"""`diagnose`: error records by a model, and by rules where it does not help."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.model import ErrorRecord
from langgraft.memory.providers import CodingMemory
from langgraft.nodes.diagnose import (
    Failure,
    adiagnose,
    advised_fix,
    diagnose,
    diagnose_by_rules,
    diagnose_node,
    diagnosis_messages,
)
from langgraft.nodes.judge import answer
from langgraft.nodes.prompts import prompt
from langgraft.nodes.state import AgentState

CODE = "import lightgbm as lgb\nmodel = lgb.train({}, data, early_stopping_rounds=5)\n"
OUTPUT = (
    "Traceback (most recent call last):\n"
    '  File "runfile.py", line 2, in <module>\n'
    "TypeError: train() got an unexpected keyword argument 'early_stopping_rounds'\n"
)
REVIEW = "The run crashed. To fix this, pass callbacks=[lgb.early_stopping(5)] instead."
FAILURE = Failure(OUTPUT, CODE, REVIEW)
BY_RULES = ErrorRecord(
    "lightgbm",
    "TypeError: train() got an unexpected keyword argument 'early_stopping_rounds'",
    "To fix this, pass callbacks=[lgb.early_stopping(5)] instead.",
    by="rules",
)


def saying(*replies: Any) -> GenericFakeChatModel:
    """Return a chat model that gives these replies in turn."""
    texts = [reply if isinstance(reply, str) else json.dumps(reply) for reply in replies]
    return GenericFakeChatModel(messages=iter(AIMessage(text) for text in texts))


def reply(**fields: Any) -> dict[str, Any]:
    """Return a good reply, with some fields changed."""
    good = {"package": "LightGBM", "error": "TypeError: no early_stopping_rounds"}
    return {**good, "fix": "Use callbacks.", "kind": "code", **fields}


def test_failure_when_diagnosed_by_rules_is_read_from_traceback_code_and_review() -> None:
    """Package from the imports, canonical error, and the fix that the review advises."""
    assert diagnose_by_rules(FAILURE) == BY_RULES
    found = diagnose(FAILURE, None)
    assert (found.record, found.calls) == (BY_RULES, 0)
    assert found.why != "ok"


@pytest.mark.parametrize(
    ("failure", "error", "kind"),
    [
        (Failure(exception="KeyError", message="'a'"), "KeyError: 'a'", "code"),
        (
            Failure(exception="TypeError", analysis="It fell: TypeError: f() takes no x."),
            "TypeError: f() takes no x",
            "code",
        ),
        (Failure(exception="TypeError", analysis="It fell."), "TypeError: It fell.", "code"),
        (Failure(analysis="It ended with a KeyError: 'a'."), "KeyError: 'a'", "code"),
        (Failure(analysis="It timed out after 3600 s."), "It timed out after <n> s.", "resource"),
        (Failure(output="epoch 1\nKilled\n"), "epoch <n> Killed", "resource"),
        (
            Failure("ModuleNotFoundError: No module named 'timm'"),
            "ModuleNotFoundError: No module named 'timm'",
            "environment",
        ),
    ],
)
def test_failure_when_little_is_known_is_told_from_what_there_is(
    failure: Failure, error: str, kind: str
) -> None:
    """An exception told apart, a review, or the end of the output."""
    record = diagnose_by_rules(failure)
    assert record is not None
    assert (record.error, record.kind, record.by, record.fix) == (error, kind, "rules", "")


def test_kind_when_output_and_review_tell_of_it_takes_either() -> None:
    """A review need not repeat that the process was killed."""
    record = diagnose_by_rules(Failure("epoch 1\nKilled", analysis="There was no metric \ud800."))
    assert record is not None
    assert (record.error, record.kind) == ("There was no metric ?.", "resource")


def test_failure_when_nothing_is_known_gives_no_record_and_asks_nobody() -> None:
    """There is nothing to diagnose."""
    found = diagnose(Failure(code=CODE), saying())
    assert (found.record, found.calls) == (None, 0)


@pytest.mark.parametrize(
    ("analysis", "fix"),
    [
        ("It crashed. Use callbacks instead. It took long.", "Use callbacks instead."),
        (
            "It crashed. The argument should be removed from fit().",
            "The argument should be removed from fit().",
        ),
        ("It crashed. Suggested fix: cast labels to int.", "Suggested fix: cast labels to int."),
        ("It crashed. Upgrade the package.", ""),
        ("It crashed. Try to pip install lightgbm. Or: remove it.", ""),
        ("The model used five folds and set a seed.", ""),
        ("", ""),
    ],
)
def test_fix_when_the_review_advises_one_is_its_sentence(analysis: str, fix: str) -> None:
    """Rules make nothing up, and take no advice that needs packages or a network."""
    assert advised_fix(analysis) == fix


async def test_failure_when_diagnosed_by_a_model_is_its_record() -> None:
    """The package is named as the program imports it; sync and async do the same."""
    expected = ErrorRecord("lightgbm", "TypeError: no early_stopping_rounds", "Use callbacks.")
    found = diagnose(FAILURE, saying(reply()))
    assert (found.record, found.why, found.calls) == (expected, "ok", 1)
    assert await adiagnose(FAILURE, saying(reply())) == found
    general = diagnose(FAILURE, saying(reply(package="General", fix=None, kind="Resource"))).record
    assert general == ErrorRecord("general", expected.error, "", kind="resource")


def test_reply_when_it_cannot_be_used_is_sent_back_once() -> None:
    """A fix that needs a package is no good reply, and can be mended."""
    found = diagnose(FAILURE, saying(reply(fix="pip install lightgbm"), reply()))
    assert (found.calls, found.why) == (2, "ok")
    assert found.record is not None
    assert (found.record.fix, found.record.by) == ("Use callbacks.", "model")


@pytest.mark.parametrize("package", ["scikit-learn", "the sklearn package", "ultra\n- light"])
def test_reply_when_its_package_cannot_be_imported_is_sent_back_once(package: str) -> None:
    """Entries are kept and compared by import names: the name in a registry is another one."""
    found = diagnose(FAILURE, saying(reply(package=package), reply()))
    assert (found.calls, found.why) == (2, "ok")
    assert found.record is not None
    assert found.record.package == "lightgbm"


@pytest.mark.parametrize("bad", ["no idea", '{"package": 3}', reply(error=" "), reply(kind="odd")])
def test_reply_when_it_cannot_be_mended_leaves_the_record_of_the_rules(bad: Any) -> None:
    """The deterministic record says who made it, and why is told."""
    found = diagnose(FAILURE, saying(bad, bad))
    assert (found.record, found.calls) == (BY_RULES, 2)
    assert found.why != "ok"


def test_question_when_written_shows_the_end_of_the_output_and_no_recalled_memory() -> None:
    """Tracebacks come last; memory does not feed on itself."""
    memory = "<recalled_memory>\nold advice\n</recalled_memory>\n"
    recalled = f"<recalled_memory>\n{'old advice ' * 999}\n</recalled_memory>\n"
    failure = Failure("x" * 99_999 + recalled + OUTPUT, "\ud800" + CODE, memory + REVIEW)
    (message,) = diagnosis_messages(failure, BY_RULES, prompt("diagnose"))
    text = str(message.content)
    assert OUTPUT.strip() in text
    assert len(text) < 10_000
    assert "old advice" not in text
    text.encode()


class DiagnosisState(AgentState, total=False):
    """What a graph that diagnoses declares."""

    code: str
    output: str
    analysis: str
    diagnosis: dict[str, Any]


async def test_node_when_in_a_graph_adds_the_record_and_says_what_came_of_it() -> None:
    """The records are those that `remember` puts into the episode."""
    graph = StateGraph(DiagnosisState)
    graph.add_node("diagnose", diagnose_node(None))
    graph.add_edge(START, "diagnose")
    graph.add_edge("diagnose", END)
    agent = graph.compile()
    state: Any = {
        "code": CODE,
        "output": OUTPUT,
        "errors": [{"package": "a", "error": "b", "fix": ""}],
    }
    for end in (agent.invoke(state), await agent.ainvoke(state)):
        assert len(end["errors"]) == 2
        assert ErrorRecord(**end["errors"][1]).package == "lightgbm"
        assert end["diagnosis"]["by"] == "rules"
    nothing = agent.invoke({"code": CODE, "output": ""})
    assert nothing["errors"] == []


def test_error_when_diagnosed_judged_and_filed_is_known_again() -> None:
    """From a failure to memory and back without a model: the judge's rules see the same error."""
    memory = CodingMemory(InMemoryStore())
    for number, review in enumerate((REVIEW, "It crashed. Remove early_stopping_rounds.")):
        record = diagnose_by_rules(Failure(OUTPUT, CODE, review))
        assert record is not None
        failed = make_episode(f"e{number}", task_id="leaf", errors=(record,))
        verdicts = [v for q in memory.questions(failed) for v in answer(q, None).verdicts]
        memory.file(replace(failed, verdicts=tuple(verdicts)))
    assert memory.content().notes == {"e0/error-0": {"seen": 2}}
    seen = asking(task_id="leaf", stage="debug", observation=OUTPUT)
    assert "callbacks" in memory.provide("do it", seen).text


@given(st.text(), st.text(), st.text())
def test_rules_when_given_anything_make_records_that_memory_takes(
    output: str, code: str, analysis: str
) -> None:
    """Whatever a program prints and a review says can be kept."""
    record = diagnose_by_rules(Failure(output, code, analysis))
    if record is not None:
        CodingMemory(InMemoryStore()).neighbours(record)


def test_examples_when_a_prompt_shows_them_are_records_that_would_be_taken() -> None:
    """Whoever keeps to them is never corrected; and no fix needs what is not there."""
    text = prompt("diagnose_by_example").text
    shown = re.findall(r"^\{.*\}$", text, re.MULTILINE)[:-1]
    assert len(shown) == 4
    for each in shown:
        model = GenericFakeChatModel(messages=iter([AIMessage(each)]))
        found = diagnose(Failure("Traceback\nValueError: x"), model)
        assert (found.why, found.calls) == ("ok", 1)
