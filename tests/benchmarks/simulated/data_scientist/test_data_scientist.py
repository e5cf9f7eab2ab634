"""`SimulatedDataScientist`: the documented rules are the rules it writes by."""

import ast
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage, SystemMessage
from scientist_cases import Case, code_of, debugging, drafting, improving, merging, said

from langgraft.benchmarks.simulated import SimulatedDataScientist, data_scientist
from langgraft.benchmarks.simulated.data_scientist.notes import Habit, habits_for, read_notes
from langgraft.benchmarks.simulated.data_scientist.programs import SLOTS, sections_of, title_of
from langgraft.benchmarks.simulated.data_scientist.tasks import Task, read_task
from langgraft.nodes.prompts import prompt

pytestmark = pytest.mark.matrix  # a learner, by its shares

SAMPLES = [str(number) for number in range(40)]
SPARSE = (
    "Package: sklearn\nError: TypeError: OneHotEncoder.__init__() got an unexpected keyword argument"
    " 'sparse'\n"
)
USE_SPARSE_OUTPUT = f"{SPARSE}Fix: Replaced `OneHotEncoder(sparse=False)` by `sparse_output=False`."
PLACEBO = (
    "Package: notes\nError: it is good to be careful\nFix: Read the task twice and take your time."
)
TIMEOUTS = tuple(
    f"Package: {package}\nError: TimeoutError: timed out while fitting {name}\nFix: none known yet"
    for package, name in (("lightgbm", "LGBMClassifier"), ("xgboost", "XGBClassifier"))
)


def drafts(case: Case, *notes: str, **settings: float) -> list[str]:
    """Write a draft for each sample."""
    return [code_of(said(drafting(case, *notes), each, **settings)) for each in SAMPLES]


def share(programs: list[str], *words: str) -> float:
    """Return what part of some programs holds one of some words."""
    return sum(any(word in each for word in words) for each in programs) / len(programs)


def test_draft_when_asked_is_a_plan_and_a_whole_program(cases: dict[str, Case]) -> None:
    """For every form the reply has the form asked for, and its code is Python with all six parts."""
    for case in cases.values():
        for sample in SAMPLES[:10]:
            reply = said(drafting(case), sample)
            assert re.match(r"Make [^\n]+\. [^\n]+\.\n\n```python\n", reply)
            assert len(sections_of(code_of(reply))) == 6
            ast.parse(code_of(reply))


def test_reply_when_asked_again_is_the_same_and_of_another_sample_or_seed_another(
    cases: dict[str, Case],
) -> None:
    """Messages, seed and the sample's name decide, and nothing else."""
    asked = drafting(cases["kinds"])
    assert said(asked, "a", seed=1) == said(asked, "a", seed=1)
    assert len({said(asked, sample) for sample in SAMPLES[:8]}) > 5
    assert len({said(asked, seed=seed) for seed in range(8)}) > 5
    assert len({said(asked, sample, temperature=0) for sample in SAMPLES[:8]}) == 1


def test_placebo_when_recalled_changes_nothing(cases: dict[str, Case]) -> None:
    """A note that tells nothing leaves every program as it was, to the letter."""
    for case in cases.values():
        for sample in SAMPLES[:8]:
            assert said(drafting(case, PLACEBO, PLACEBO), sample) == said(drafting(case), sample)


def test_habit_when_its_fix_is_recalled_is_gone(cases: dict[str, Case]) -> None:
    """With the fix in the prompt the mistake is never made; without it, it is."""
    plain, told = drafts(cases["kinds"]), drafts(cases["kinds"], USE_SPARSE_OUTPUT)
    assert share(plain, 'OneHotEncoder(handle_unknown="ignore", sparse=False') > 0.02
    assert share(told, "sparse=False") == 0
    assert share(told, "sparse_output=False") > share(plain, "sparse_output=False")


def test_habit_when_its_error_is_recalled_without_a_fix_is_rare(cases: dict[str, Case]) -> None:
    """A note that names the mistake alone makes it a tenth as frequent, and the encoder less liked."""
    warned = drafts(cases["kinds"], f"{SPARSE}Fix: none known yet")
    assert share(warned, "sparse=False") <= 0.05
    assert share(warned, "OneHotEncoder") < share(drafts(cases["kinds"]), "OneHotEncoder")


def test_habit_when_a_wrong_fix_is_recalled_is_followed(cases: dict[str, Case]) -> None:
    """It believes what it is told: a wrong fix makes programs fail in another way."""
    wrong = f"{SPARSE}Fix: Replaced `OneHotEncoder(sparse=False)` by `OneHotEncoder(dense=True)`."
    told = drafts(cases["kinds"], wrong)
    assert share(told, "dense=True") == share(told, "OneHotEncoder") - share(
        told, 'words", OneHotEncoder(handle_unknown="ignore", sparse_output'
    )
    assert share(told, "dense=True") > 0.1


def test_every_plan_of_a_repair_is_understood_as_that_repair() -> None:
    """What a repair's plan says is what a later program that recalls it does."""
    for habit in all_habits():
        for repair in (habit.repair, *habit.others):
            error = " ".join(word.rstrip("*") for word in habit.about)
            notes = read_notes(f"Package: x\nError: {error}\nFix: {repair.plan}", [habit])
            assert notes.known == {habit.name: repair}, habit.name


def test_packages_when_limits_are_recalled_are_others(cases: dict[str, Case]) -> None:
    """A store of timeouts steers it to lighter packages, whatever the rest of the prompt says."""
    plain, told = drafts(cases["kinds"]), drafts(cases["kinds"], *TIMEOUTS)
    assert share(plain, "lightgbm", "xgboost") > 0.15
    assert share(told, "lightgbm", "xgboost") < share(plain, "lightgbm", "xgboost") / 3


def test_packages_when_the_prompt_lists_them_are_no_others(cases: dict[str, Case]) -> None:
    """It imports what is installed."""
    listed = "numpy, pandas, scikit-learn"
    for sample in SAMPLES:
        code = code_of(said(drafting(cases["kinds"], packages=listed), sample))
        assert "lightgbm" not in code
        assert "xgboost" not in code


def test_draft_when_there_are_earlier_attempts_takes_other_models(cases: dict[str, Case]) -> None:
    """What was tried is chosen less."""
    attempts = "Design: Make one-hot columns of the data, and fit a random forest."
    tried = [code_of(said(drafting(cases["kinds"], attempts=attempts), each)) for each in SAMPLES]
    assert share(tried, "# Model: a random forest") < share(
        drafts(cases["kinds"]), "# Model: a random forest"
    )


def test_choices_when_more_notes_tell_something_are_narrower(cases: dict[str, Case]) -> None:
    """Each note that tells something sharpens its preferences, up to ten."""
    notes = [
        f"Package: x\nError: {' '.join(word.rstrip('*') for word in habit.about)}\nFix: {habit.repair.plan}"
        for habit in all_habits()
        if habit.name in {"squared=False", "np.int", "np.product", "fillna(method)", "np.float"}
    ]

    def models(programs: list[str]) -> list[str]:
        return [sections_of(each)["Model"].partition("\n")[0] for each in programs]

    plain, told = models(drafts(cases["kinds"])), models(drafts(cases["kinds"], *notes * 2))
    assert plain != told
    assert len(set(told)) <= len(set(plain))


def test_improvement_when_asked_changes_one_part_and_keeps_what_is_right(
    cases: dict[str, Case],
) -> None:
    """All sections but one are carried on as they are, and a program that was right stays right."""
    for case in cases.values():
        for sample in SAMPLES[:12]:
            code = code_of(said(drafting(case), sample, ignorance=0))
            old, new = sections_of(code), sections_of(code_of(said(improving(case, code), sample)))
            changed = [slot for slot in old if old[slot] != new[slot]]
            assert len(changed) <= 1
            assert set(changed) <= {"Model", "Features"}


@pytest.mark.parametrize("form", ["counts", "kinds", "texts", "pictures", "restoring", "table"])
def test_merge_when_asked_is_made_of_sections_that_both_programs_have(
    form: str, cases: dict[str, Case]
) -> None:
    """It invents nothing: what is not the first's is the second's, or the mean of both models."""
    drafts = [code_of(said(drafting(cases[form]), str(at), ignorance=0)) for at in range(6)]
    crossed = 0
    for first, second in itertools.pairwise(drafts):
        merged = code_of(said(merging(cases[form], first, second), ignorance=2))
        ast.parse(merged)
        ours, theirs, both = map(sections_of, (first, second, merged))
        assert list(both) == list(SLOTS)
        assert both["Validation"] == ours["Validation"]
        changed = {slot for slot in SLOTS if both[slot] != ours[slot]}
        assert len(changed) <= 1
        if title_of(both["Model"]).startswith("the mean of"):
            titles = [title_of(each["Model"]) for each in (ours, theirs)]
            assert title_of(both["Model"]) == f"the mean of {titles[0]} and {titles[1]}"
            crossed += 1
        elif changed and all(both[slot] == theirs[slot] for slot in changed):
            crossed += 1
    assert crossed >= 3


def test_merge_when_the_two_are_the_same_makes_the_first_better(cases: dict[str, Case]) -> None:
    """There is nothing to cross, and the reply is a program all the same."""
    draft = code_of(said(drafting(cases["kinds"]), ignorance=0))
    merged = code_of(said(merging(cases["kinds"], draft, draft), ignorance=0))
    changed = [s for s in SLOTS if sections_of(merged)[s] != sections_of(draft)[s]]
    assert len(changed) == 1
    foreign = code_of(said(merging(cases["kinds"], draft, "print('hello')\n"), ignorance=0))
    assert list(sections_of(foreign)) == list(SLOTS)


def test_repair_when_told_the_fix_is_right_and_states_it_first(cases: dict[str, Case]) -> None:
    """With the fix recalled, the first try gets rid of the fault; the plan's first words say how."""
    bad = spoiled(cases["kinds"])
    reply = said(debugging(cases["kinds"], bad, TRACEBACK, USE_SPARSE_OUTPUT), "x")
    assert reply.startswith("Replaced `sparse=False` by `sparse_output=")
    assert "sparse=False" not in code_of(reply)
    assert sections_of(code_of(reply))["Model"] == sections_of(bad)["Model"]


def test_repair_when_nothing_is_recalled_is_right_some_of_the_time(cases: dict[str, Case]) -> None:
    """It tries, and is right with the chance that is documented."""
    bad = spoiled(cases["kinds"])
    samples = [str(number) for number in range(120)]
    tries = [code_of(said(debugging(cases["kinds"], bad, TRACEBACK), each)) for each in samples]
    assert 0.5 < share(tries, "sparse_output=False") < 0.8
    assert share(tries, "sparse_output=False", "dense=True") == 1
    again = [
        code_of(said(debugging(cases["kinds"], tried, TRACEBACK), f"{each}-again"))
        for tried, each in zip(tries, samples, strict=True)
    ]
    assert share(again, "sparse_output=False") > share(tries, "sparse_output=False")


TRACEBACK = (
    "Exception: TypeError: OneHotEncoder.__init__() got an unexpected keyword argument 'sparse'"
)


def spoiled(case: Case) -> str:
    """Write a program with one fault."""
    programs = (code_of(said(drafting(case), each, ignorance=0)) for each in SAMPLES)
    code = next(each for each in programs if "OneHotEncoder(" in each)
    return code.replace("sparse_output=False", "sparse=False")


def all_habits() -> list[Habit]:
    """Return the habits of all tasks."""
    accuracy = Task(metric="accuracy", target="kind", outputs=("kind",))
    losses = Task(metric="log-loss", target="kind", outputs=("a", "b"))
    return [*habits_for(accuracy), *habits_for(losses)]


OUTPUTS: dict[str, tuple[str, bool, float | None]] = {
    "ran": ("Validation metric: 0.25\n\nSubmission: present and valid.", False, 0.25),
    "raised": (f"Traceback (most recent call last):\n  …\n{TRACEBACK}\n", True, None),
    "no submission": ("Validation metric: 3\n\nSubmission: absent.\n- none", True, 3.0),
    "bad submission": (
        "Validation metric: 3e-2\n\nSubmission: present, but not valid.\n- no rows\n",
        True,
        0.03,
    ),
    "ended": ("TIMEOUT: it was stopped with all its processes after 20 s. Do less.", True, None),
    "silent": ("", True, None),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_review_says_what_the_output_says(name: str) -> None:
    """Failed or not, and the metric, come from the output alone."""
    output, is_bug, metric = OUTPUTS[name]
    asked = prompt("tree_review").render(task="# A task", code="pass", output=output)
    review = json.loads(said(asked))
    assert (review["is_bug"], review["metric"]) == (is_bug, metric)
    assert review["summary"]


def test_review_advises_only_what_an_output_shows() -> None:
    """Half of the reviews of a refused argument advise to remove it, and no other advice is given."""
    asked = prompt("tree_review").render(task="", code="", output=TRACEBACK)
    advice = [json.loads(said(asked, each))["summary"] for each in SAMPLES]
    assert 0.3 < share(advice, "The argument `sparse` of `OneHotEncoder` should be removed.") < 0.7
    silent = prompt("tree_review").render(task="", code="", output="ValueError: no")
    assert {json.loads(said(silent, each))["summary"] for each in SAMPLES} == {
        "It failed with ValueError: no."
    }


def test_diagnosis_names_package_and_kind() -> None:
    """An error is read by rules; a limit is blamed on the model with the most rounds."""
    code = "import lightgbm as lgb\nlgb.LGBMRegressor(n_estimators=200000, num_leaves=7)\n"
    asked = prompt("diagnose").render(
        code=code,
        output="TIMEOUT: it was stopped after 20 s.",
        analysis="(empty)",
        rules="package general",
    )
    found = json.loads(said(asked))
    assert (found["package"], found["kind"]) == ("lightgbm", "resource")
    assert found["error"] == "TimeoutError: timed out while fitting LGBMRegressor"
    asked = prompt("diagnose").render(code="", output=TRACEBACK, analysis="(empty)", rules="")
    assert json.loads(said(asked))["kind"] == "code"


@pytest.mark.parametrize(
    ("error", "fix", "action"),
    [
        ("AttributeError: module 'numpy' has no attribute 'int'", "", "none"),
        ("AttributeError: module 'numpy' has no attribute 'int'", "Use int.", "add"),
        ("AttributeError: module 'numpy' has no attribute 'float'", "", "add"),
    ],
)
def test_novelty_counts_names_and_new_fixes(error: str, fix: str, action: str) -> None:
    """Another name is another error; a fix where none was known is something new."""
    kept = {
        "package": "numpy",
        "error": "AttributeError: module 'numpy' has no attribute 'int'",
        "fix": "",
    }
    asked = prompt("judge_novelty").render(
        record=json.dumps({"package": "numpy", "error": error, "fix": fix}),
        neighbours=json.dumps({"id": "a", **kept}),
    )
    assert json.loads(said(asked))["action"] == action


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("", "I can only"),
        ("Reply with a JSON list.", "[]"),
        ("Reply with one JSON object.", "{}"),
        ("Play BabyAI.", "I can only"),
    ],
)
def test_nonsense_gets_a_harmless_reply(text: str, reply: str) -> None:
    """A prompt that it does not know is answered in the form that is asked for."""
    assert said(text).startswith(reply)


@settings(max_examples=30, deadline=None)
@given(
    st.text(max_size=300),
    st.text(max_size=300),
    st.sampled_from(("draft", "debug", "improve", "merge", "review")),
)
def test_anything_in_a_prompt_is_answered(task: str, other: str, kind: str) -> None:
    """No task, program, output or preview stops it."""
    names = ["task", "code", "output", "attempts", "data", "memory", "rules"]
    names += ["metric", "partner", "partner_metric"]
    template = prompt(f"tree_{kind}")
    values = {name: other for name in names if f"${name}" in template.text} | {"task": task}
    assert SimulatedDataScientist().invoke(template.render(**values)).text


async def test_reply_in_a_coroutine_is_the_same(cases: dict[str, Case]) -> None:
    """Sync and async give one answer; instructions in a system message count as the prompt."""
    asked = drafting(cases["kinds"])
    model = SimulatedDataScientist(seed=3)
    reply = (await model.ainvoke([HumanMessage(asked)])).text
    assert reply == model.invoke([HumanMessage(asked)]).text
    assert "```python" in model.invoke([SystemMessage(asked), HumanMessage("Go.")]).text


READ: dict[str, Callable[[Task], bool]] = {
    "table": lambda task: (
        (task.form, task.metric, task.id, task.target) == ("table", "auc", "customer", "came_back")
    ),
    "counts": lambda task: (task.metric, task.target, task.classes) == ("rmsle", "calls", False),
    "kinds": lambda task: task.probabilities and task.outputs == ("calm", "odd", "wild"),
    "texts": lambda task: (task.form, task.text, task.target) == ("text", "text", "author"),
    "pictures": lambda task: (task.form, task.side, task.target) == ("pictures", 12, "way"),
    "restoring": lambda task: (
        (task.form, task.clean, task.metric) == ("restoring", "train_clean", "rmse")
    ),
}


@pytest.mark.parametrize("name", READ)
def test_task_is_read_from_description_and_preview(name: str, cases: dict[str, Case]) -> None:
    """Form, metric and names come from what a prompt says."""
    case = cases[name]
    assert READ[name](read_task(case.description, case.preview))


def test_source_knows_no_condition_competition_or_split() -> None:
    """Nothing in the package names what a study compares, so that no result is built in."""
    banned = (
        r"\b(?:cold|warm|placebo|scheduled|baseline|condition|provider)\b"
        r"|\b(?:denoising|digits|phrases|textures|visits|weather)\b"
        r"|memory\.providers|coding_?memory|task_id|episode_id|held.?out|private|leaderboard"
    )
    files = sorted(Path(data_scientist.__file__).parent.rglob("*.py"))
    names = {"model", "notes", "programs", "tasks", "writer"}
    assert {file.stem for file in files} >= names
    for file in files:
        # A way to validate that programs may choose is not a part of a study.
        text = re.sub(r"a quarter held out|_HELD_OUT|held_out", "", file.read_text("utf-8"))
        found = re.findall(banned, text, re.IGNORECASE)
        assert not found, f"{file.name}: {found}"
