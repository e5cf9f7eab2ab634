"""`ExpeL` by votes: what is asked, which verdicts count, and what they change."""

import logging
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item

from langgraft._core.errors import InputError
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import (
    Episode,
    Feedback,
    MemoryDelta,
    Outcome,
    Question,
    Step,
    Verdict,
    fold,
)
from langgraft.memory.providers import ExpeL, ExpeLSettings
from langgraft.memory.recall import Budget

Answer = tuple[str, str | None, str]


def voting(*, votes: dict[str, Any] | None = None, **settings: Any) -> ExpeL:
    """Make a provider that lets a judge vote."""
    chosen = ExpeLSettings.model_validate({"votes": votes or {}, **settings})
    return ExpeL(InMemoryStore(), settings=chosen)


def asked(memory: ExpeL, episode: Episode) -> Question:
    """Return the one question about an episode."""
    (question,) = memory.questions(episode)
    return question


def judge(memory: ExpeL, identity: str, *answers: Answer, **fields: Any) -> MemoryDelta:
    """File an episode with these answers to what memory asks about it."""
    question = asked(memory, make_episode(identity, **fields))
    verdicts = tuple(Verdict(question.id, *answer) for answer in answers)
    return memory.file(make_episode(identity, verdicts=verdicts, **fields))


def add(text: str) -> Answer:
    """Answer that a rule is new."""
    return "add", None, text


def rules(memory: ExpeL) -> dict[str, int]:
    """Return the rules' texts with their votes, as they are recalled."""
    recall = memory.provide("no such thing", asking())
    return {item.text: int(score) for item, score in zip(recall.items, recall.scores, strict=True)}


def test_question_when_asked_shows_the_episode_and_the_rules() -> None:
    """It is asked of every episode, once, and never of one that was filed."""
    memory = voting()
    judge(memory, "e1", add("look"), add("wait"))
    judge(memory, "e2", ("agree", "e1/rule-1", ""))
    question = asked(memory, make_episode("e3", outcome=Outcome(None)))
    assert memory.needs == {"verdicts"}
    assert (question.kind, question.episode_id) == ("votes", "e3")
    assert question.shows == {
        "task": "open the red door",
        "outcome": "not known",
        "trajectory": "Observation: a room\n"
        "Thought: doors open\nAction: toggle\nObservation: it is open",
        "rules": {
            "e1/rule-1": {"text": "wait", "votes": 3},
            "e1/rule-0": {"text": "look", "votes": 2},
        },
        "limit": 4,
        "full": False,
    }
    assert list(cast("dict[str, Any]", question.shows["rules"])) == ["e1/rule-1", "e1/rule-0"]
    assert memory.questions(make_episode("e2")) == []


def test_question_when_the_task_ended_the_other_way_shows_the_latest_such_episode() -> None:
    """A success and a failure of one task are compared; what nobody could judge is not."""
    memory = voting()
    for identity, success in (("a", False), ("b", False), ("c", None), ("d", True)):
        judge(memory, identity, task_id="t", outcome=Outcome(success))
    judge(memory, "elsewhere", task_id="t", domain="other", outcome=Outcome(success=False))

    def other(success: bool | None, task_id: str) -> Any:
        episode = make_episode("e", task_id=task_id, outcome=Outcome(success))
        return asked(memory, episode).shows.get("other")

    shown = other(success=True, task_id="t")
    assert (shown["id"], shown["outcome"]) == ("b/trajectory", "failure")
    assert shown["trajectory"].endswith("Result: failure")
    assert other(success=False, task_id="t")["id"] == "d/trajectory"
    assert other(success=None, task_id="t") is None
    assert other(success=True, task_id="another") is None


def test_question_when_a_batch_of_successes_is_complete_shows_them() -> None:
    """Every third success here; failures and unknown ends in between do not count."""
    memory = voting(votes={"success_batch": 3})
    shown: dict[str, list[str]] = {}
    for number, success in enumerate([True, False, True, None, True, True, True, False, True]):
        episode = make_episode(f"e{number}", outcome=Outcome(success))
        successes = asked(memory, episode).shows.get("successes", {})
        if successes:
            shown[episode.id] = list(cast("dict[str, str]", successes))
        memory.file(episode)
    assert shown == {
        "e4": ["e0/trajectory", "e2/trajectory"],
        "e8": ["e5/trajectory", "e6/trajectory"],
    }
    assert memory.content().state["succeeded"] == 6


def test_question_when_batches_are_off_never_shows_successes() -> None:
    """`success_batch=None` leaves the comparison alone."""
    memory = voting(votes={"success_batch": None})
    for number in range(9):
        assert "successes" not in asked(memory, make_episode(f"e{number}")).shows
        judge(memory, f"e{number}")


def test_question_when_a_trajectory_is_long_leaves_out_its_middle() -> None:
    """How it began and how it ended are shown, with how much is missing."""
    memory = voting(votes={"shown_characters": 55})
    steps = (Step("", "", "begin" + "x" * 500 + "the end"),)
    text = asked(memory, make_episode(steps=steps)).shows["trajectory"]
    assert text == "Observation:\n[… 501 characters left out …]\nxxxxxthe end"


def test_votes_when_verdicts_come_follow_them() -> None:
    """2 for a new rule, 1 more for agreeing or editing, 1 less for removing, and then it goes."""
    memory = voting()
    log = [judge(memory, "e1", add("look"), add("wait"), add("run"))]
    assert rules(memory) == {"look": 2, "wait": 2, "run": 2}
    log.append(
        judge(
            memory,
            "e2",
            ("remove", "e1/rule-2", ""),
            ("agree", "e1/rule-1", ""),
            ("edit", "e1/rule-0", " look twice "),
            add("ask"),
        )
    )
    assert rules(memory) == {"wait": 3, "look twice": 3, "ask": 2, "run": 1}
    notes = memory.content().notes
    assert notes["e2/rule-0"] == {"votes": 3, "history": ["e1/rule-0"]}
    log.append(
        judge(memory, "e3", ("remove", "e1/rule-2", ""), ("edit", "e2/rule-0", "look thrice"))
    )
    assert rules(memory) == {"look thrice": 4, "wait": 3, "ask": 2}
    assert memory.content().notes["e3/rule-0"]["history"] == ["e1/rule-0", "e2/rule-0"]
    assert fold(log).to_bytes() == memory.content().to_bytes()
    assert not memory.manage()


def test_operations_when_mixed_take_effect_in_the_published_order() -> None:
    """REMOVE, AGREE, EDIT, ADD, whatever the order of the verdicts."""
    memory = voting()
    judge(memory, "e1", add("a"), add("b"), add("c"))
    delta = judge(
        memory,
        "e2",
        add("d"),
        ("edit", "e1/rule-2", "c!"),
        ("agree", "e1/rule-1", ""),
        ("remove", "e1/rule-0", ""),
    )
    ops = [change.to_json() for change in delta][:6]
    assert [(op["op"], op.get("id")) for op in ops] == [
        ("annotate", "e1/rule-0"),
        ("annotate", "e1/rule-1"),
        ("remove", "e1/rule-2"),
        ("add", None),
        ("annotate", "e2/rule-0"),
        ("add", None),
    ]


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([("agree", "no such rule", "")], {}),
        ([("agree", None, "")], {}),
        ([("remove", "e1/trajectory", "")], {}),
        ([("promote", "e1/rule-0", "")], {}),
        ([("", "e1/rule-0", "")], {}),
        ([("AGREE", "e1/rule-0", "")], {}),
        ([("edit", "e1/rule-0", " \n")], {}),
        ([add(" ")], {}),
        ([add("Look  around")], {}),
        ([add("look"), add(" LOOK ")], {"look": 2}),
        ([add("look around the corner")], {"look around the corner": 2}),
        ([("add", "no such rule", "jump")], {"jump": 2}),
        ([("agree", "e1/rule-0", "")] * 3, {"look around": 3}),
        ([("agree", "e1/rule-0", ""), ("remove", "e1/rule-0", "")], {"look around": 3}),
        ([("edit", "e1/rule-0", "look AROUND")], {"look around": 3}),
        ([("edit", "e1/rule-0", "wait")], {"wait": 3}),
        ([("edit", "e1/rule-0", "wait"), ("remove", "e1/rule-1", "")], {"wait": 3}),
        (
            [("edit", "e1/rule-0", "go"), ("edit", "e1/rule-1", "go")],
            {"go": 3, "look around": None},
        ),
        ([add(f"{n}") for n in range(6)], {"0": 2, "1": 2, "2": 2, "3": 2}),
        ([("x", None, "")] * 9 + [add("jump")], {"jump": 2}),
    ],
)
def test_verdict_when_odd_counts_as_documented(
    answers: list[Answer], expected: dict[str, int | None]
) -> None:
    """By id alone, one per rule, at most four, and never twice the same rule."""
    memory = voting()
    judge(memory, "e1", add("look around"), add("wait"))
    judge(memory, "e2", *answers)
    before: dict[str, int | None] = {"look around": 2, "wait": 2}
    assert rules(memory) == {k: v for k, v in {**before, **expected}.items() if v is not None}


def test_verdict_when_it_answers_another_question_has_no_effect(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An answer given before the rules moved is none; the question is open again."""
    memory = voting()
    judge(memory, "e1", add("look"))
    early = make_episode("e3")
    stale = Verdict(asked(memory, early).id, "remove", "e1/rule-0")
    judge(memory, "e2", ("agree", "e1/rule-0", ""))
    late = make_episode("e3", verdicts=(stale, Verdict("made up", "add", None, "obey me")))
    assert len(memory.questions(late)) == 1
    with caplog.at_level(logging.INFO, logger="langgraft.memory"):
        memory.file(late)
    assert caplog.messages == ["2 verdicts on episode 'e3' answer no open question"]
    assert rules(memory) == {"look": 3}


def test_removal_when_the_list_is_beyond_its_margin_weighs_more() -> None:
    """From `max_rules` and the margin on a removal takes 3 votes; from `max_rules`, it is full."""
    memory = voting(votes={"max_rules": 2, "full_margin": 1})
    assert asked(memory, make_episode()).shows["full"] is False
    judge(memory, "e1", add("a"), add("b"))
    assert asked(memory, make_episode("e2")).shows["full"] is True
    judge(memory, "e2", ("agree", "e1/rule-0", ""), ("agree", "e1/rule-1", ""), add("c"))
    judge(memory, "e3", ("remove", "e1/rule-0", ""), ("agree", "e1/rule-1", ""))
    assert rules(memory) == {"b": 4, "c": 2}
    judge(memory, "e4", ("remove", "e1/rule-1", ""))
    assert rules(memory) == {"b": 3, "c": 2}


def test_manage_when_there_are_too_many_rules_keeps_those_with_the_most_votes() -> None:
    """`max_insights` is the limit; of equals the oldest go. `max_rules` is advice."""
    memory = voting(votes={"max_rules": 2}, max_insights=3)
    judge(memory, "e1", add("a"), add("b"), add("c"))
    judge(memory, "e2", ("agree", "e1/rule-0", ""), add("d"))
    assert rules(memory) == {"a": 3, "c": 2, "d": 2}
    assert not memory.manage()


def test_recall_with_votes_gives_all_rules_and_the_shortest_success_of_other_tasks() -> None:
    """Rules by votes whatever is asked; of each task one success, and none of the task itself."""
    memory = voting(top_k_trajectories=2)
    judge(memory, "e0", add("a"), add("b"), task_id="own")
    judge(memory, "e1", ("agree", "e0/rule-1", ""), task_id="t1", steps=(Step("", "", "x " * 9),))
    judge(memory, "e2", task_id="t1", steps=(Step("", "", "x"),))
    judge(memory, "e3", task_id="t2", outcome=Outcome(success=False))
    judge(memory, "e4", task_id="t3")
    judge(memory, "e5", task_id="t4", task="pick up a ball")
    recall = memory.provide("open the red door", asking(task_id="own"))
    assert [item.id for item in recall.items] == [
        "e0/rule-1",
        "e0/rule-0",
        "e4/trajectory",
        "e2/trajectory",
    ]
    assert recall.scores[:2] == (3.0, 2.0)


def test_recall_with_votes_when_rules_exceed_their_share_gives_the_most_voted() -> None:
    """65 % of the budget is for rules even where there is nothing else to give."""
    memory = voting()
    for number in range(8):
        judge(memory, f"e{number}", add(f"rule {number}: " + "take care " * 12))
    judge(memory, "last", ("agree", "e5/rule-0", ""))
    recall = memory.provide("nothing alike", asking(), Budget(tokens=200))
    assert recall.items[0].id == "e5/rule-0"
    assert 1 < len(recall.items) < 8
    assert recall.tokens <= 200
    assert {drop.reason for drop in recall.dropped} == {"over its share of the budget"}


def test_import_when_votes_count_gives_each_rule_those_of_a_new_one(tmp_path: Path) -> None:
    """Votes stay behind; the reset is in the delta."""
    path = tmp_path / "bank.jsonl"
    donor = voting()
    judge(donor, "e1", add("look"), add("wait"))
    for name in ("e2", "e3"):
        judge(donor, name, ("agree", "e1/rule-0", ""))
    donor.export_items(path)
    target = voting(votes={"added": 5})
    log = [target.import_items(path)]
    assert rules(target) == {"look": 5, "wait": 5}
    log.append(judge(target, "e1", ("agree", "e1/rule-1", ""), add("jump")))
    assert rules(target) == {"wait": 6, "look": 5, "jump": 5}
    assert {"e1/rule-0", "e1/rule-1", "e1/rule-2"} < target.content().items.keys()
    assert fold(log).to_bytes() == target.content().to_bytes()


def test_insights_when_votes_are_turned_on_later_have_those_of_a_new_rule(tmp_path: Path) -> None:
    """A bank without notes is a bank of rules nobody has voted on."""
    store = InMemoryStore()
    ExpeL(store).file(make_episode("e1"))
    memory = ExpeL(store, settings=ExpeLSettings.model_validate({"votes": {}}))
    assert list(rules(memory).values()) == [2]
    judge(memory, "e2", ("remove", "e1/insight", ""))
    assert list(rules(memory).values()) == [1]


def test_rules_when_deterministic_rules_wrote_them_say_so() -> None:
    """A stand-in for a model is labelled in what it leaves."""
    memory = voting()
    question = asked(memory, make_episode("e1"))
    verdict = Verdict(question.id, "add", None, "look", by="rules")
    memory.file(make_episode("e1", verdicts=(verdict,)))
    assert memory.content().items["e1/rule-0"].metadata == {"by": "rules"}


def test_uses_when_rules_are_credited_stay_with_a_text_and_not_with_its_edit() -> None:
    """A vote leaves the counts alone; an edited rule is another text, and starts afresh."""
    memory = voting(credit=True)
    judge(memory, "e1", add("look"), add("wait"))
    receipt = memory.provide("anything", asking(episode_id="e2")).receipt
    verdicts = (("agree", "e1/rule-0", ""), ("edit", "e1/rule-1", "wait a bit"))
    start = memory.content()
    delta = judge(memory, "e2", *verdicts, recalls=(receipt,))
    notes = memory.content().notes
    assert notes["e1/rule-0"] == {"votes": 3, "uses": 1, "successes": 1}
    assert notes["e2/rule-0"] == {"votes": 3, "history": ["e1/rule-1"]}
    assert fold([delta], start) == memory.content()


def test_forgetting_when_a_policy_is_set_comes_after_the_providers_own(tmp_path: Path) -> None:
    """Policies see rules by their votes, too."""
    path = tmp_path / "bank.jsonl"
    write_items(path, [make_item(f"{n}", order_index=n) for n in range(4)])
    memory = voting(forgetting=({"policy": "votes", "floor": 2},), max_insights=20)
    delta = memory.import_items(path)
    assert memory.content().items == {}
    assert fold([delta]) == memory.content()


def test_question_when_the_episode_cannot_be_written_is_refused_in_a_line() -> None:
    """A lone surrogate has no digest; nothing is filed."""
    memory = voting()
    bad = make_episode("bad", task="open \ud800")
    for call in (memory.questions, memory.file):
        with pytest.raises(InputError, match="episode 'bad' holds a lone surrogate") as caught:
            call(bad)
        assert len(str(caught.value).encode().splitlines()) == 1
    assert not memory.content().state


@pytest.mark.parametrize("feedback", ["environment", "self"])
def test_rule_when_it_owes_to_gold_answers_says_so_after_an_edit(feedback: Feedback) -> None:
    """Other words, from an episode that saw none, do not wash the stamp off."""
    memory = voting(feedback="oracle")
    judge(memory, "told", add("look it up"), outcome=Outcome(success=True, feedback="oracle"))
    edit = ("edit", "told/rule-0", "look up the answer")
    judge(memory, "later", edit, outcome=Outcome(success=True, feedback=feedback))
    edited = memory.content().items["later/rule-0"]
    assert edited.text == "look up the answer"
    assert edited.metadata["feedback"] == "oracle"


def test_rule_when_a_trajectory_judged_by_gold_answers_was_shown_says_so() -> None:
    """What a judge was shown is in the rule that it words, whoever judged the episode at hand."""
    memory = voting(feedback="oracle")
    failed = Outcome(success=False, feedback="oracle")
    judge(memory, "told", task_id="same", outcome=failed)
    judge(memory, "later", add("try the handle"), task_id="same", outcome=Outcome(success=True))
    judge(memory, "apart", add("look around"), task_id="other", outcome=Outcome(success=True))
    items = memory.content().items
    assert items["later/rule-0"].metadata["feedback"] == "oracle"
    assert "feedback" not in items["apart/rule-0"].metadata
