"""Figures 11 and 13, appendices C, D and F: what is told of retrieval and of learning."""

from collections.abc import Iterator

from langgraft.benchmarks.continual.published.findings import Finding, change, tested_on
from langgraft.benchmarks.continual.published.printed import (
    COLLAPSE,
    CONTEXT_DIVERSITY,
    MILESTONES,
    SCRATCH,
    STEP_LEAD,
    TASKS,
    TRAIN_ITEMS,
    scratch,
)

TOP_K = 3
"""Items per retrieval of Cond-Ind, Table 8."""

LESSONS = 3
"""Lessons per episode, about (§A.1.4)."""

_HALF_DIGIT = 0.05


def appendix_c() -> Iterator[Finding]:
    """Hold what the text repeats to Table 5."""
    for (world, task, role), printed in SCRATCH.items():
        found = scratch(world, task, role)
        name = f"{tested_on(world, task)}, {role}"
        yield Finding(
            "Appendix C", name, f"{printed:.1f}", f"Table 5: {found:.1f}", found == printed
        )
    lead = scratch("ALFWorld", "B", "step") - scratch("ALFWorld", "B", "ind")
    text = f"difference {change(lead)}"
    yield Finding(
        "Appendix C", "Step over Ind, ALFWorld B", change(STEP_LEAD), text, lead == STEP_LEAD
    )
    for task in TASKS["BabyAI"]:
        ind, step, agg = (scratch("BabyAI", task, role) for role in ("ind", "step", "agg"))
        text = f"Ind {ind:.1f}, Step {step:.1f}, Agg {agg:.1f}"
        holds = min(ind, agg) < step < max(ind, agg)
        yield Finding(
            "Appendix C", f"{tested_on('BabyAI', task)}, Step", "between Ind and Agg", text, holds
        )


def appendix_d() -> Iterator[Finding]:
    """Hold the collapse of Cond-Ind on task B of BabyAI to itself."""
    unique, retrieved = COLLAPSE["unique"], COLLAPSE["retrieved"]
    share = 100 * unique / retrieved
    yield Finding(
        "Appendix D",
        "coverage, Figure 11b",
        f"{unique:.0f} of {retrieved:.0f}, {COLLAPSE['coverage']} %",
        f"{share:.2f} %",
        abs(share - COLLAPSE["coverage"]) <= _HALF_DIGIT,
    )
    slots = TOP_K * COLLAPSE["queries"]
    text = f"{COLLAPSE['queries']:.0f} queries of {TOP_K} items are {slots:.0f}; {retrieved / TOP_K:.0f} queries fit"
    yield Finding("Appendix D", "items retrieved", f"{retrieved:.0f}", text, slots == retrieved)
    pool = LESSONS * TRAIN_ITEMS
    text = f"{TRAIN_ITEMS} episodes of about {LESSONS} lessons are {pool}"
    yield Finding("Appendix D", "or items in the bank", f"{retrieved:.0f}", text, pool == retrieved)
    yield from _top1()
    yield from _loss()
    ind, agg = (CONTEXT_DIVERSITY["B", role] for role in ("ind", "agg"))
    text = f"less by {agg - ind:.2f}; in task A more by {CONTEXT_DIVERSITY['A', 'ind'] - CONTEXT_DIVERSITY['A', 'agg']:.2f}"
    yield Finding(
        "Appendix D", "context diversity of B, Ind and Agg", f"{ind} and {agg}", text, ind < agg
    )


def _top1() -> Iterator[Finding]:
    queries, printed = COLLAPSE["queries"], COLLAPSE["top1"]
    for asked in (queries, COLLAPSE["retrieved"] / TOP_K):
        whole = printed * asked / 100
        text = f"{whole:.1f} of {asked:.0f} queries"
        yield Finding("Appendix D", "top-1 concentration", f"{printed} %", text, whole.is_integer())
    share = 100 * COLLAPSE["top1_queries"] / queries
    told = f"{COLLAPSE['top1_queries']:.0f} of {queries:.0f}"
    text = f"{share:.1f} %, not {printed} %"
    yield Finding("Appendix F", "top-1 entry of case 4", told, text, share == printed)


def _loss() -> Iterator[Finding]:
    ind, agg = (scratch("BabyAI", "B", role) for role in ("ind", "agg"))
    for name, base in (("Cond-Agg", agg), ("the baseline", TASKS["BabyAI"]["B"].baseline)):
        text = f"{ind:.1f} less {base:.1f} is {change(ind - base)}"
        loss = COLLAPSE["loss"]
        yield Finding(
            "Appendix D",
            f"loss within task B, against {name}",
            change(loss, 0),
            text,
            ind - base == loss,
        )


def figure_13() -> Iterator[Finding]:
    """Hold the dynamics of RR and NL to the evaluations there are."""
    text = f"{MILESTONES} evaluation a phase (Table 8) is one point"
    yield Finding("Figure 13", "RR and NL over training", "curves", text, False)
