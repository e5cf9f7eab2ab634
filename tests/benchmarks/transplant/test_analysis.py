"""What the analysis of a transplant study claims, where effects are planted and where none are."""

import random
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transplant_log import SYSTEMS, DrawnLog, Effect, transplant_plan

from langgraft.benchmarks.transplant.analysis import Analysis, analyze
from langgraft.benchmarks.transplant.gates import claims_hold, gates_of, read_cells
from langgraft.benchmarks.transplant.report import (
    findings,
    possible,
    published,
    tables_of,
    write_report,
)

pytestmark = pytest.mark.matrix  # whole studies

PLAN = transplant_plan(noise_runs=2, systems=SYSTEMS[:3], solvers=[{"name": "strong"}])


def nothing(_: Mapping[str, Any]) -> float:
    """Plant nothing."""
    return 0.0


def architecture(f: Mapping[str, Any]) -> float:
    """The source domain's settings are better, whatever they read."""
    return 0.3 if f["architecture"] == "source" else 0.0


def content(f: Mapping[str, Any]) -> float:
    """Imported items help, whichever domain they are from."""
    return 0.3 if f["content"] in {"source", "target"} else 0.0


def interaction(f: Mapping[str, Any]) -> float:
    """The source domain's items help under its own settings only."""
    return 0.4 if f["architecture"] == f["content"] == "source" else 0.0


@cache
def study(effect: Effect) -> Analysis:
    """Return the analysis of a study with that effect."""
    return analyze(PLAN, DrawnLog(PLAN, effect))


def claimed(found: Analysis) -> set[str]:
    """Return the hypotheses of which something is claimed."""
    return {each.hypothesis for each in found.claims}


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (nothing, set()),
        (architecture, {"H1", "H4"}),
        (content, {"H2"}),
        (interaction, {"H3"}),
    ],
)
def test_hypotheses_when_an_effect_is_planted_find_that_one_only(
    effect: Effect, expected: set[str]
) -> None:
    """Each contrast sees its own part of the design; retrieval's too, where settings help."""
    found = study(effect)
    assert claimed(found) == expected
    for each in found.claims:
        assert each.estimate is not None
        assert each.estimate.value > 0.1


def test_moderation_when_the_weaker_solver_gains_more_says_so() -> None:
    """One registered interaction, over all systems and conditions."""
    plan = transplant_plan(noise_runs=0, systems=SYSTEMS[:2], controlled=[], budgets=[400])
    (weak,), (alike,) = (
        [e for e in analyze(plan, DrawnLog(plan, effect)).hypotheses if e.hypothesis == "M"]
        for effect in (lambda f: 0.2 if f["solver"] == "weak" else 0.0, lambda _: 0.2)
    )
    assert (weak.verdict, weak.budget, weak.system) == ("helped", None, "")
    assert weak.estimate is not None
    assert weak.estimate.low > 0.05
    assert alike.verdict == "no detectable difference"


def test_effects_when_one_system_gains_in_one_condition_stand_where_they_are() -> None:
    """A gain of one cell is partly its system's, partly its condition's, and for the rest its own."""
    plan = transplant_plan(
        noise_runs=0, systems=SYSTEMS[:3], controlled=[], solvers=[{"name": "strong"}]
    )

    def cell(f: Mapping[str, Any]) -> float:
        return 0.4 * ((f["system"], f["condition"]) == ("simple_rag", "FULL"))

    found = analyze(plan, DrawnLog(plan, cell)).effects
    assert len(found) == 2 + 6 + 12
    of = {at[1:]: each.value for at, each in found.items()}
    own = "system in condition"
    assert max(of, key=of.__getitem__) == ("condition", "FULL")
    assert of["system", "simple_rag"] > of["system", "lightweight"] + 0.03
    rest = {level: value for (factor, level), value in of.items() if factor == own}
    assert max(rest, key=rest.__getitem__) == "simple_rag FULL"
    assert sum(rest.values()) == pytest.approx(0, abs=1e-9)


def test_verdicts_when_there_are_fewer_than_three_seeds_are_none() -> None:
    """One bank supports no claim about content, however large the difference."""
    for seeds in (1, 2):
        plan = transplant_plan(
            noise_runs=0,
            seeds=seeds,
            systems=SYSTEMS[:2],
            controlled=[],
            solvers=[{"name": "strong"}],
        )
        found = analyze(plan, DrawnLog(plan, content))
        assert {each.verdict for each in found.hypotheses} == {"too few runs"}
        assert not found.sound  # G4


def test_numbers_when_ids_are_renamed_or_systems_come_in_another_order_stay() -> None:
    """Nothing hangs on names or on the order of the plan."""
    chance = random.Random(3)
    names = [f"x{n:03}" for n in range(100)]
    chance.shuffle(names)
    first = study(content)
    renamed = analyze(
        PLAN, DrawnLog(PLAN, content, rename=lambda item: names[int(item.split("-")[1])])
    )
    other = PLAN.model_copy(update={"systems": PLAN.systems[::-1]})
    turned = analyze(other, DrawnLog(other, content))

    def told(found: Analysis) -> dict[Any, Any]:
        return {
            (e.hypothesis, e.solver, e.system, e.budget, e.what): (
                e.estimate and (round(e.estimate.value, 9), round(e.estimate.low, 9)),
                e.p_adjusted and round(e.p_adjusted, 9),
                e.verdict,
            )
            for e in found.hypotheses
        }

    assert told(first) == told(renamed) == told(turned)


def test_cell_when_all_prompts_are_those_without_memory_is_not_tested() -> None:
    """A recall that is always empty cannot have done anything."""

    class Silent(DrawnLog):
        def _result(self, run: Any, item: str) -> Mapping[str, Any]:
            result = dict(super()._result(run, item))
            if run.factors["condition"] == "C_ONLY":
                result |= {"prompt": f"bare/{item}", "recalled": 0}
            return result

    found = analyze(PLAN, Silent(PLAN, nothing))
    verdicts = {each.verdict for each in found.hypotheses if each.hypothesis in {"H2", "H3"}}
    assert verdicts == {"not tested"}
    assert all(found.cells[place].place[3] == "C_ONLY" for place in found.untested if not place[4])
    family = [each for comparison in found.against_none.values() for each in comparison.family]
    assert not any("C_ONLY" in each.condition for each in family)


def test_hypotheses_when_settings_differ_and_no_prompt_does_are_not_tested() -> None:
    """Settings that do not bind show nothing of architecture: H1 and H3, not H2."""

    class Idle(DrawnLog):
        def _result(self, run: Any, item: str) -> Mapping[str, Any]:
            f = run.factors
            result = super()._result(run, item)
            same = f["architecture"] != "none" and f["system"] == "simple_rag"
            named = f"{f['content']}/{f['budget']}/{f['seed']}/{item}"
            return {**result, "prompt": named} if same else result

    found = analyze(PLAN, Idle(PLAN, nothing))
    told = {(e.hypothesis, e.system): (e.verdict, e.why) for e in found.hypotheses}
    same = ("not tested", "all prompts of both sides are the same")
    assert told["H1", "simple_rag"] == told["H3", "simple_rag"] == same
    assert told["H2", "simple_rag"][0] == told["H1", "lightweight"][0] == "no detectable difference"


def test_hypotheses_when_both_architectures_are_one_are_not_testable() -> None:
    """H1 and H3 have nothing to compare there."""
    same = transplant_plan(
        systems=[{"name": "none", "provider": "none"}, {"name": "rag", "provider": "simple_rag"}],
        controlled=[],
    )
    found = analyze(same, DrawnLog(same, architecture))
    kinds = {each.hypothesis: each.verdict for each in found.hypotheses}
    assert kinds["H1"] == kinds["H3"] == "not testable"
    assert kinds["H2"] != "not testable"


def test_seeds_when_their_prompts_are_the_same_are_one_observation() -> None:
    """At temperature 0 they are one run told three times."""
    found = study(nothing)
    assert len(found.cells["strong", 400, "none", "NM", ""].seeds) == 1
    assert len(found.cells["strong", 400, "simple_rag", "C_ONLY", ""].seeds) == 3


def test_claims_when_a_gate_before_them_has_not_passed_are_none(tmp_path: Path) -> None:
    """Numbers are shown; nothing is claimed, on the page, in tables or in lines."""

    class TwoTemplates(DrawnLog):
        def _result(self, run: Any, item: str) -> Mapping[str, Any]:
            changed = {"template": "u" * 64} if run.factors["system"] == "simple_rag" else {}
            return {**super()._result(run, item), **changed}

    log = TwoTemplates(PLAN, content)
    found = analyze(PLAN, log)
    gate = next(each for each in found.gates if each.name.startswith("G2"))
    assert gate.state == "failed"
    assert any(each.claims for each in found.hypotheses)
    assert (found.claims, found.negative) == ((), ())
    report = write_report(PLAN, log, tmp_path)
    assert "Nothing is claimed" in " ".join(report.lines)
    assert not any("helped" in row for row in report.rows)
    for name in ("hypotheses", "against_none"):
        table = (tmp_path / "tables" / f"{name}.csv").read_text()
        assert "open" in table
        assert "helped" not in table


@pytest.mark.parametrize(
    "fields", [{"budgets": [400]}, {"controlled": []}, {"controls": ["placebo"]}]
)
def test_claims_when_a_plan_has_one_budget_or_no_frozen_arm_are_none(
    fields: dict[str, Any],
) -> None:
    """G4 to G6 stand before any claim, as G1 to G3 do."""
    plan = transplant_plan(
        noise_runs=0, systems=SYSTEMS[:3], solvers=[{"name": "strong"}], **fields
    )
    log = DrawnLog(plan, content)
    assert not claims_hold(gates_of(plan, log, read_cells(log)))


def test_report_when_a_study_is_under_way_has_numbers_and_no_claims(tmp_path: Path) -> None:
    """Runs that are finished, begun, and not begun; nothing is compared that is not complete."""

    class UnderWay(DrawnLog):
        def results(self, name: str) -> list[Mapping[str, Any]]:
            done = (100, 37, 0, 100)[sum(map(ord, name)) % 4]
            return super().results(name)[:done]

    report = write_report(PLAN, UnderWay(PLAN, content), tmp_path)
    assert any("Nothing is claimed" in line for line in report.lines)
    assert "incomplete" in report.page.read_text()


def test_off_is_none_when_a_system_without_memory_is_asked_otherwise_fails() -> None:
    """NM of every system is asked what the solver without memory is, or nothing is claimed."""

    class Leaking(DrawnLog):
        def _result(self, run: Any, item: str) -> Mapping[str, Any]:
            leaks = run.factors["system"] == "simple_rag" and run.factors["condition"] == "NM"
            return {**super()._result(run, item), **({"prompt": f"x/{item}"} if leaks else {})}

    log = Leaking(PLAN, nothing)
    gates = gates_of(PLAN, log, read_cells(log))
    assert next(each for each in gates if each.name == "Off is none").state == "failed"
    assert not claims_hold(gates)


def test_controls_when_nothing_is_recalled_have_the_prompts_without_memory() -> None:
    """Write-only and recall-off arms are asked what an agent without memory is, byte for byte."""
    found = study(nothing)
    gate = next(each for each in found.gates if each.name == "Off is none")
    assert gate.state == "passed"
    arms = {"write_only", "frozen"}
    assert all(e.same_prompts is (e.cell.place[4] in arms) for e in found.controls)


def test_report_when_written_says_what_was_planted_and_explains_every_column(
    tmp_path: Path,
) -> None:
    """The page has the verdict in words, and no column is without a meaning."""
    report = write_report(PLAN, DrawnLog(PLAN, content), tmp_path)
    page = report.page.read_text()
    assert "H2 (content" in page
    assert "The model is simulated." in page
    assert any(line.startswith("H2") and "a difference in" in line for line in report.lines)
    tables = tables_of(study(content))
    explained = (tmp_path / "tables" / "columns.csv").read_text()
    assert {each.name for each in tables} <= {path.stem for path in (tmp_path / "tables").iterdir()}
    assert ",\n" not in explained  # a meaning for each
    again = write_report(PLAN, DrawnLog(PLAN, content), tmp_path / "again")
    assert again.page.read_bytes() == report.page.read_bytes()


def test_size_when_problems_differ_rarely_is_what_arithmetic_says() -> None:
    """At 15 % discordance 100 problems detect about 11 points, and 1,000 about 3.4."""
    planned = study(nothing).planned
    assert planned[100][0] == pytest.approx(0.1085, abs=0.001)
    assert planned[1000][0] == pytest.approx(0.0343, abs=0.001)
    assert planned[100][1] > planned[100][0]


# The paper's tables -------------------------------------------------------------------------


def test_published_figures_when_recomputed_come_to_what_the_page_says() -> None:
    """70 cells a solver; impossible ones counted by arithmetic, and once by brute force."""
    paper = published()
    assert [len(list(paper.cells(name))) for name in ("7B", "3B")] == [70, 70]
    every = {round(100 * k / (100 * runs), 1) for runs in (2, 3) for k in range(100 * runs + 1)}
    weak = list(paper.cells("3B"))
    assert sum(value not in every for *_, value in weak) == 29
    assert all(possible(value, 100, 3) for *_, value in paper.cells("7B"))
    told = {each.figure: each.recomputed for each in findings()}
    assert told["cells of the very same prompts, without memory"].startswith("22 of 70")
    assert told["cells that no whole number of solved problems gives"].startswith("29 of 70")
    assert told["largest gain, 7B and 3B"].startswith("+2.3 and +11.3")
    assert told["best static cell, 3B"].startswith("44.8")
    assert told["runs of the 3B plan"].startswith("207")
    best = told["gain of the best of 48 cells if memory did nothing, 7B and 3B"]
    assert best.startswith("+4.9 and +6.1")
    assert "lightweight 6.7" in told["most stable system"]
    assert told["what more room does without memory"].startswith("-4.4 to +6.0")
