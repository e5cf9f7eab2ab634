"""Drafts: a plan and a whole program, unlike the earlier ones."""

from langgraft.benchmarks.simulated.data_scientist.desk import Desk
from langgraft.benchmarks.simulated.data_scientist.forms import parts_for, slot_parts
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS, Part
from langgraft.benchmarks.simulated.data_scientist.programs import assembled, reply


def write_draft(desk: Desk, attempts: str) -> str:
    """Write a new solution, unlike the earlier ones."""
    parts = desk.available(parts_for(desk.task))
    features = desk.chosen("features", slot_parts(parts, "Features"), attempts)
    fitting = [each for each in slot_parts(parts, "Model") if features.makes in each.takes]
    model = desk.chosen("model", fitting, attempts)
    ways = slot_parts(parts, "Validation")
    # Folds of what takes long take too long where there are many features.
    quick = not model.heavy or desk.task.form == "table"
    validation = desk.chosen("validation", ways) if quick else ways[0]
    chosen: dict[str, Part] = {each.slot: each for each in parts}
    chosen |= {"Features": features, "Model": model, "Validation": validation}
    sections = [desk.spoiled(chosen[slot].written(desk.dice, "draft")) for slot in SLOTS]
    plan = (
        f"Make {features.title} of the data, and fit {model.title}. "
        f"Validate with {validation.title} by {chosen['Metric'].title}. "
        "Nothing is tuned yet: this is to be a plain solution that runs."
    )
    return reply(plan, assembled(sections))
