"""Which runs the continual study asks for: continual-memory §2.1, §A.1.1 and Table 8."""

from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import PlanError, SettingsError
from langgraft.benchmarks import plans
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan, paper_conditions
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.directory import hold_directory
from langgraft.benchmarks.harness.plans import PreparedPlan, load_plan, plan_from_data, prepare
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.memory.providers import provider_settings

STUDY = ContinualStudy()
MEMORIES = ("raw", "agg", "ind", "step")


def planned(**fields: Any) -> PreparedPlan[ContinualPlan]:
    """Expand a plan as a plan file is expanded."""
    data = {"study": "continual", **fields}
    study, plan = plan_from_data(data, {"continual": STUDY}, Path("plan.yaml"))
    assert study is STUDY
    return prepare(STUDY, plan)  # type: ignore[arg-type]  # a plan of this study


def by_name(prepared: PreparedPlan[ContinualPlan]) -> dict[str, RunSpec]:
    """Return the runs of a plan by name."""
    return {run.name: run.spec for run in prepared.graph}


@pytest.fixture(scope="module")
def paper() -> dict[str, RunSpec]:
    """Expand the plan of the paper's defaults."""
    return by_name(planned())


def test_plan_when_nothing_is_given_then_is_table_8() -> None:
    """The defaults are the paper's but for its two runs, from which one cannot tell."""
    plan = ContinualPlan()
    assert (plan.temperature, plan.max_tokens, plan.seed, plan.runs) == (0.5, 4096, 42, 5)
    assert (plan.train_items, plan.test_items, plan.milestones) == (200, 100, 1)
    assert (plan.tasks.A, plan.tasks.B) == ("babyai/action_obj_door", "babyai/find_obj")
    assert plan.sequences == ("A>B", "B>A")
    assert plan.memory_tokens is None
    assert plan.baseline_runs >= plan.runs


def test_conditions_when_not_given_then_are_the_papers_four() -> None:
    """Raw, Cond-Agg, Cond-Ind and Cond-Step, with top-k 1/1/3/3, every 4 steps, nothing left out."""
    settings: dict[str, Mapping[str, Any]] = {
        condition.name: provider_settings(condition.provider, condition.settings).describe()
        for condition in paper_conditions()
    }
    assert tuple(settings) == MEMORIES
    assert {name: each["top_k"] for name, each in settings.items()} == {
        "raw": 1,
        "agg": 1,
        "ind": 3,
        "step": 3,
    }
    assert not any(each["success_only"] for each in settings.values())
    insights = {name: settings[name] for name in ("agg", "ind", "step")}
    assert {name: each["granularity"] for name, each in insights.items()} == {
        "agg": "aggregate",
        "ind": "individual",
        "step": "individual",
    }
    intervals = {name: each["requery_interval"] for name, each in insights.items()}
    assert intervals == {"agg": None, "ind": None, "step": 4}


def test_expansion_when_paper_sized_then_has_the_planned_runs_and_items(
    paper: dict[str, RunSpec],
) -> None:
    """Baseline and re-run 5 x 2 tests each; per memory and run 4 streams and 6 tests."""
    train = [run for run in paper.values() if run.factors["kind"] == "train"]
    tests = [run for run in paper.values() if run.factors["kind"] == "evaluate"]
    assert len(train) == 4 * 5 * 4
    assert len(tests) == 5 * 2 + 5 * 2 + 4 * 5 * 6
    assert len(paper) == len(train) + len(tests)
    assert {run.length for run in train} == {200}
    assert {run.length for run in tests} == {100}
    assert sum(run.length for run in paper.values()) == 80 * 200 + 140 * 100


def test_expansion_when_listed_then_sources_come_before_their_readers() -> None:
    """A run may start as soon as those before it are done."""
    seen: set[str] = set()
    for run in STUDY.expand(ContinualPlan(milestones=4)):
        assert run.source is None or run.source.run in seen
        seen.add(run.name)


def test_expansion_when_repeated_then_is_the_same() -> None:
    """The runs are a function of the plan."""
    assert STUDY.expand(ContinualPlan()) == STUDY.expand(ContinualPlan())


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("replicate", [0, 1])
def test_scratch_when_trained_then_starts_from_nothing(
    paper: dict[str, RunSpec], memory: str, replicate: int
) -> None:
    """A scratch stream is one family from an empty bank, tested on the same family alone."""
    for task, domain in (("A", "babyai/action_obj_door"), ("B", "babyai/find_obj")):
        name = f"{memory}/{replicate}/train {task}"
        run = paper[name]
        assert run.source is None
        assert not run.frozen
        assert {item.rpartition("/")[0] for item in run.item_ids} == {domain}
        tests = [each for each in paper.values() if each.source and each.source.run == name]
        assert [each.factors["task"] for each in tests if each.frozen] == [task]


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("replicate", [0, 1])
def test_cross_task_when_trained_then_goes_on_with_the_first_phases_bank(
    paper: dict[str, RunSpec], memory: str, replicate: int
) -> None:
    """The later stream starts from all that the scratch stream of the earlier family left."""
    for earlier, later in (("A", "B"), ("B", "A")):
        run = paper[f"{memory}/{replicate}/train {earlier}>{later}"]
        assert run.source is not None
        assert (run.source.run, run.source.items) == (f"{memory}/{replicate}/train {earlier}", None)
        assert not run.frozen
        assert run.item_ids == paper[f"{memory}/{replicate}/train {later}"].item_ids


@pytest.mark.parametrize("memory", MEMORIES)
def test_cross_task_when_tested_then_later_task_and_earlier_one_are_probed(
    paper: dict[str, RunSpec], memory: str
) -> None:
    """After X→Y both families are tested on its bank: Y for FWT, X as the eval-only probe."""
    for sequence in ("A>B", "B>A"):
        source = f"{memory}/0/train {sequence}"
        tests = [run for run in paper.values() if run.source and run.source.run == source]
        assert [run.factors["task"] for run in tests] == [sequence[2], sequence[0]]
        assert all(run.frozen and run.source and run.source.items is None for run in tests)


def test_evaluations_when_listed_then_all_are_frozen(paper: dict[str, RunSpec]) -> None:
    """Nothing is learned from a test instance."""
    assert all(run.frozen == (run.factors["kind"] == "evaluate") for run in paper.values())


def test_tests_when_of_one_family_then_have_the_same_held_out_items(
    paper: dict[str, RunSpec],
) -> None:
    """Every evaluation of a family has the same items in the same order, none of them trained on."""
    tests: dict[object, set[tuple[str, ...]]] = {}
    trained: set[str] = set()
    for run in paper.values():
        if run.frozen:
            tests.setdefault(run.factors["task"], set()).add(run.item_ids)
        else:
            trained.update(run.item_ids)
    assert {task: len(orders) for task, orders in tests.items()} == {"A": 1, "B": 1}
    held_out = {item for orders in tests.values() for order in orders for item in order}
    assert len(held_out) == 200
    assert len(trained) == 400
    assert not held_out & trained


def test_training_order_when_replicated_then_is_shared_by_conditions_only(
    paper: dict[str, RunSpec],
) -> None:
    """A replicate's order is a permutation that all memories share; another replicate has another."""
    for task in "AB":
        orders = [
            {paper[f"{memory}/{replicate}/train {task}"].item_ids for memory in MEMORIES}
            for replicate in (0, 1)
        ]
        assert [len(order) for order in orders] == [1, 1]
        (first,), (second,) = orders
        assert first != second
        assert sorted(first) == sorted(second)
        assert list(first) != sorted(first, key=lambda item: int(item.rpartition("/")[2]))


def test_training_order_when_the_seed_changes_then_changes(paper: dict[str, RunSpec]) -> None:
    """The plan's seed decides the order, and what the model draws."""
    name = "agg/0/train A"
    other = by_name(planned(seed=43))[name]
    assert other.item_ids != paper[name].item_ids
    assert sorted(other.item_ids) == sorted(paper[name].item_ids)
    assert other.factors["model_seed"] == 43


def test_baseline_when_expanded_then_has_no_bank_and_a_seed_for_each_repetition(
    paper: dict[str, RunSpec],
) -> None:
    """Baseline and re-run read no bank and share no sample; a memory is paired with its baseline."""
    seeds: dict[str, set[object]] = {}
    for run in paper.values():
        condition = str(run.factors["condition"])
        seeds.setdefault(condition, set()).add(run.factors["model_seed"])
        if condition in {"none", "rerun"}:
            assert run.source is None
            assert run.factors["sequence"] == ""
    assert seeds["none"] == {42, 43, 44, 45, 46}
    assert len(seeds["rerun"]) == 5
    assert not seeds["rerun"] & seeds["none"]
    for memory in MEMORIES:
        assert seeds[memory] == seeds["none"]


def test_rerun_when_switched_off_then_is_left_out() -> None:
    """The re-run is a choice; the baseline is not."""
    conditions = {run.factors["condition"] for run in by_name(planned(rerun=False)).values()}
    assert conditions == {"none", *MEMORIES}


def test_baseline_when_at_its_most_runs_then_still_shares_no_seed_with_the_rerun() -> None:
    """However many repetitions a plan may have, no sample is used as baseline and as re-run."""
    plan = ContinualPlan(
        runs=1000,
        baseline_runs=1000,
        train_items=1,
        test_items=1,
        conditions=paper_conditions()[:1],
    )
    seeds: dict[object, set[object]] = {"none": set(), "rerun": set()}
    for run in STUDY.expand(plan):
        seeds.setdefault(run.factors["condition"], set()).add(run.factors["model_seed"])
    assert len(seeds["none"] | seeds["rerun"]) == 2000


@pytest.mark.parametrize(
    ("steps", "ats"), [(1, []), (2, [5]), (4, [2, 5, 7]), (10, [*range(1, 10)])]
)
def test_milestones_when_asked_for_then_are_evenly_spaced(steps: int, ats: list[int]) -> None:
    """Each phase is tested at evenly spaced points, always also at its end."""
    runs = by_name(planned(train_items=10, milestones=steps, sequences=["A>B"], runs=1))
    for task, sequence in (("A", "A"), ("B", "B"), ("B", "A>B"), ("A", "A>B")):
        found = [
            (run.source.items, run.factors["at"])
            for run in runs.values()
            if run.source
            and run.frozen
            and run.source.run == f"agg/0/train {sequence}"
            and run.factors["task"] == task
        ]
        assert found == [*((at, at) for at in ats), (None, None)]


def test_controls_when_planned_then_read_their_conditions_banks() -> None:
    """A control trains nothing: it is tested on the final banks of both sequences."""
    controls = [{"control": kind, "of": "agg"} for kind in ("random", "placebo", "shuffled")]
    runs = by_name(planned(controls=controls))
    for name in ("agg+random", "agg+placebo", "agg+shuffled"):
        mine = [run for run in runs.values() if run.factors["condition"] == name]
        assert len(mine) == 5 * 2 * 2
        assert all(run.frozen for run in mine)
        for run in mine:
            twin = runs[run.name.replace(name, "agg", 1)]
            assert run.source == twin.source
            assert run.item_ids == twin.item_ids
            assert run.factors["model_seed"] == twin.factors["model_seed"]


CROSSED = [{"retrieval": "step", "pool": "ind"}, {"retrieval": "ind", "pool": "step"}]


def test_probes_when_planned_then_read_the_pools_banks_and_train_nothing() -> None:
    """A crossed probe is tested where its pool's condition is, paired with it run by run."""
    runs = by_name(planned(probes=CROSSED))
    for name, retrieval, pool in (("step@ind", "step", "ind"), ("ind@step", "ind", "step")):
        mine = [run for run in runs.values() if run.factors["condition"] == name]
        assert len(mine) == 5 * 2 * 2
        for run in mine:
            twin = runs[run.name.replace(name, pool, 1)]
            assert run.frozen
            assert run.source == twin.source
            assert run.item_ids == twin.item_ids
            assert run.factors["model_seed"] == twin.factors["model_seed"]
            assert (run.factors["retrieval"], run.factors["pool"]) == (retrieval, pool)
    assert not any("pool" in run.factors for name, run in runs.items() if "@" not in name)


def test_probes_when_planned_then_leave_all_other_runs_as_they_are(
    paper: dict[str, RunSpec],
) -> None:
    """Probes stand beside a plan's conditions: the runs of these are the same without them."""
    runs = by_name(planned(probes=CROSSED))
    assert {name: run for name, run in runs.items() if "@" not in name} == paper


def test_condition_when_it_mends_another_then_only_its_own_runs_say_so() -> None:
    """The log tells which condition to compare an improved one with."""
    insight = {"provider": "insight", "settings": {}}
    conditions = [{"name": "ind", **insight}, {"name": "fold", "mends": "ind", **insight}]
    runs = by_name(planned(conditions=conditions)).values()
    told = {str(run.factors["condition"]): run.factors.get("mends") for run in runs}
    assert told == {"none": None, "rerun": None, "ind": None, "fold": "ind"}


def test_sequences_when_one_is_chosen_then_both_scratch_streams_stay() -> None:
    """Forward transfer of A→B is measured against B from scratch, so B is trained alone as well."""
    runs = by_name(planned(sequences=["A>B"], runs=1, rerun=False))
    trained = {str(run.factors["sequence"]) for run in runs.values() if not run.frozen}
    assert trained == {"A", "B", "A>B"}


def test_tasks_when_exchanged_then_are_what_the_letters_mean() -> None:
    """A and B are names; the plan says which families they are."""
    runs = by_name(planned(tasks={"A": "babyai/find_obj", "B": "babyai/action_obj_door"}))
    assert runs["raw/0/train A"].factors["domain"] == "babyai/find_obj"
    assert runs["raw/0/train A"].item_ids[0].startswith("babyai/find_obj/")


def test_most_calls_when_asked_then_count_rounds_and_reflections() -> None:
    """A test takes at most 20 replies an item, a training stream one reflection more."""
    plan = ContinualPlan(train_items=10, test_items=5, runs=1)
    runs = {run.name: run for run in STUDY.expand(plan)}
    assert STUDY.most_calls(plan, runs["agg/0/train A"]) == 10 * 21
    assert STUDY.most_calls(plan, runs["raw/0/train A"]) == 10 * 20
    assert STUDY.most_calls(plan, runs["agg/0/test A after A"]) == 5 * 20
    longer = plan.model_copy(update={"max_rounds": 50})
    assert STUDY.most_calls(longer, runs["agg/0/test A after A"]) == 5 * 50


def test_most_calls_when_memory_asks_then_count_drafts_and_judgments() -> None:
    """A gate costs a draft and a judgment before every episode, votes a judgment after it."""
    conditions = [
        {"name": "gated", "provider": "agent_kb", "settings": {"gate": True}},
        {"name": "voted", "provider": "expel", "settings": {"votes": {}}},
    ]
    plan = ContinualPlan.model_validate(
        {"conditions": conditions, "train_items": 10, "test_items": 5, "runs": 1}
    )
    runs = {run.name: run for run in STUDY.expand(plan)}
    assert STUDY.most_calls(plan, runs["gated/0/train A"]) == 10 * (20 + 1 + 3)
    assert STUDY.most_calls(plan, runs["gated/0/test A after A"]) == 5 * (20 + 3)
    assert STUDY.most_calls(plan, runs["voted/0/train A"]) == 10 * (20 + 2)


def test_fingerprints_when_a_setting_changes_then_change_for_that_memory_alone() -> None:
    """A memory's architecture is its provider and settings; nothing else moves with it."""
    plan = ContinualPlan()
    first, *others = plan.conditions
    changed = first.model_copy(update={"settings": {"top_k": 2}})
    before = STUDY.fingerprints(plan)
    after = STUDY.fingerprints(plan.model_copy(update={"conditions": (changed, *others)}))
    old, new = before["architectures"], after["architectures"]
    assert isinstance(old, Mapping)
    assert isinstance(new, Mapping)
    assert {name for name in old if old[name] != new[name]} == {"raw"}
    assert {**before, "architectures": None} == {**after, "architectures": None}


INSIGHT = {"name": "a", "provider": "insight"}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"temperature": -0.1}, "temperature: .*greater than or equal to 0 .got -0.1."),
        ({"temperature": float("nan")}, "temperature: .*finite"),
        ({"max_tokens": 0}, "max_tokens: .*greater than or equal to 1"),
        ({"runs": 0}, "runs: .*greater than or equal to 1"),
        ({"baseline_runs": 1}, r"baseline_runs \(1\) must be at least runs \(5\)"),
        ({"runs": 1001, "baseline_runs": 1001}, "runs: .*1000 .got 1001."),
        ({"train_items": 201}, "train_items: .*200 .got 201."),
        ({"test_items": 101}, "test_items: .*100 .got 101."),
        ({"train_items": 3, "milestones": 4}, r"4 milestones do not fit into train_items \(3\)"),
        ({"milestones": 0}, "milestones: .*greater than or equal to 1"),
        ({"max_rounds": 0}, "max_rounds: .*greater than or equal to 1"),
        ({"model_settings": {"seed": 1}}, "model_settings are for a real model"),
        ({"memory_introduction": "</recalled_memory>"}, "memory_introduction: .*holds a marker"),
        ({"memory_place": "middle"}, "memory_place: .*'start' or 'end'"),
        ({"memory_tokens": -1}, "memory_tokens: .*greater than or equal to 0"),
        ({"semantics": "odd"}, "semantics: .*'compat' or 'fixed' .got 'odd'."),
        (
            {"sequences": []},
            "sequences: give at least one, such as 'A>B' or 'A>B>C', and each once",
        ),
        ({"sequences": ["A>B", "A>B"]}, "sequences: give at least one, .* and each once"),
        ({"sequences": ["A>A"]}, "sequences: .* joined by '>' .got 'A>A'."),
        ({"tasks": {"A": "babyai/find_obj"}}, "tasks A and B are both 'babyai/find_obj'"),
        (
            {"tasks": {"A": "babyai/cook"}},
            "no task family 'babyai/cook': did you mean 'babyai/go_to'",
        ),
        ({"tasks": {"C": "babyai/find_obj"}}, "tasks B and C are both 'babyai/find_obj'"),
        ({"tasks": {"C": "babyai/pickup_loc"}}, "task C is in none of the sequences A>B, B>A"),
        ({"tasks": {"c": "babyai/find_obj"}}, "tasks.c: extra inputs are not permitted"),
        ({"conditions": []}, "conditions: a study needs at least one condition"),
        ({"conditions": [INSIGHT, INSIGHT]}, "conditions: .*distinct.*'a', 'a'"),
        ({"conditions": [{**INSIGHT, "name": "none"}]}, "condition names must be .*not 'none'"),
        ({"conditions": [{**INSIGHT, "name": "a+b"}]}, r"conditions.0.name: .*\(got 'a\+b'\)$"),
        ({"conditions": [{**INSIGHT, "name": "a@b"}]}, r"conditions.0.name: .*\(got 'a@b'\)$"),
        (
            {"conditions": [{**INSIGHT, "provider": "x"}]},
            "conditions.0: unknown provider 'x': .*ins",
        ),
        ({"conditions": [{**INSIGHT, "provider": "os; x:Y"}]}, "unknown provider 'os; x:Y'"),
        ({"conditions": [{**INSIGHT, "settings": {"top_k": 0}}]}, "top_k: .*or equal to 1"),
        (
            {"conditions": [{**INSIGHT, "settings": {"topk": 1}}]},
            "there is no topk: did you mean 'top_k'",
        ),
        (
            {"conditions": [{"name": "c", "provider": "coding"}]},
            "condition 'c': provider 'coding' needs errors, but the agent of this study has only",
        ),
        ({"conditions": [{**INSIGHT, "mends": "x"}]}, r"condition 'a' mends 'x', not one of \[\]"),
        ({"conditions": [{**INSIGHT, "mends": "a"}]}, r"condition 'a' mends 'a', not one of \[\]"),
        ({"controls": [{"control": "placebo", "of": "x"}]}, r"'x\+placebo' is of no condition in"),
        ({"controls": [{"control": "sugar", "of": "raw"}]}, "controls.0.control: .*'placebo' or"),
        ({"controls": [{"control": "placebo", "of": "raw"}] * 2}, r"'raw\+placebo' is given twice"),
        ({"probes": [{"retrieval": "x", "pool": "ind"}]}, "'x@ind': retrieval 'x' is no condition"),
        ({"probes": [{"retrieval": "ind", "pool": "x"}]}, "'ind@x': pool 'x' is no condition"),
        ({"probes": [{"retrieval": "ind", "pool": "ind"}]}, "'ind@ind' reads its own banks"),
        ({"probes": [CROSSED[0]] * 2}, "probe 'step@ind' is given twice"),
        (
            {"probes": [{"retrieval": "ind", "pool": "raw"}]},
            "'ind@raw': 'trajectory' keeps what 'insight' does not read; .* one provider",
        ),
        (
            {"probes": [{"retrieval": "ind", "pool": "agg"}]},
            "'ind@agg': the pool's granularity is 'aggregate', the retrieval's 'individual'",
        ),
        ({"probes": [{"retrieval": "ind"}]}, "probes.0.pool: .*required"),
        ({"base_url": "http://localhost:1/v1"}, "is not for the simulated model"),
        ({"seed": "often"}, "seed: .*valid integer.* .got 'often'."),
        ({"title": "x", "titel": "x"}, "there is no titel: did you mean 'title'"),
    ],
)
def test_plan_when_impossible_then_is_one_clear_error(fields: dict[str, Any], says: str) -> None:
    """Whatever a plan asks wrongly, one line names the field and the value."""
    with pytest.raises(PlanError, match=says) as caught:
        planned(**fields)
    assert "\n" not in str(caught.value)
    assert "after validation" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "says"),
    [
        ("no_such:X", "No module named 'no_such'"),
        ("os:path", "'os:path' is no `MemoryProvider`"),
        ("langgraft.memory:MemoryProvider", "has no `_learn`, `_recall`"),
    ],
)
def test_plan_when_its_code_is_no_memory_then_refused_where_it_is_imported(
    provider: str, says: str, tmp_path: Path
) -> None:
    """To run a plan its code is imported, and checked before anything is written."""
    plan = ContinualPlan(conditions=(Condition(name="a", provider=provider),))
    prepared = prepare(STUDY, plan, limit=1)
    with pytest.raises(SettingsError, match=says), hold_directory(tmp_path / "out", prepared):
        pass
    assert not (tmp_path / "out").exists()


def test_remedies_plan_when_a_remedy_is_probed_then_reads_the_banks_of_what_it_mends() -> None:
    """Only there does the report set the two side by side, with nothing but retrieval differing."""
    path = resources.files(plans).joinpath("remedies-babyai.yaml")
    _, plan = load_plan(Path(str(path)), {"continual": STUDY})
    assert isinstance(plan, ContinualPlan)
    mended = {each.name: each.mends for each in plan.conditions if each.mends is not None}
    probed = {each.retrieval: each.pool for each in plan.probes if each.retrieval in mended}
    others = {each.name for each in plan.conditions if each.distillation == "by_outcome"}
    # Those keep something else than what they mend.
    assert set(mended) - set(probed) == {"adaptive", *others}
    assert probed.items() <= mended.items()
