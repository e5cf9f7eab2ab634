"""docs/prompts.md: the originals' points beside ours, and each agent's whole prompts."""

import json
import re
from collections.abc import Mapping, Sequence
from textwrap import indent
from typing import Final

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.nodes.chain.tools import tool_schemas
from langgraft.nodes.prompts import prompt
from langgraft.nodes.search.deps import CurrentTreePrompts, TreePrompts
from prompts_page.points import AIDE, AIRA, MLAB, MLE_BENCH, OPENHANDS, Point
from prompts_page.runs import as_text, told_chain, told_mlab, told_tree

COMPETITIONS: Final = ("weather", "phrases", "digits")
"""A table, texts and pictures."""
TASK: Final = "⟨the task, as above⟩"
DATA: Final = "⟨the data, as above⟩"
WAY: Final = "(⟨lower or higher⟩ is better)"

_INTRODUCTION: Final = f"""\
# What agents are told

Each agent's whole prompt at the start of a run, in its middle and near its end, and beside it, point by
point, what its original tells its model. `make prompts` writes this page, and a test holds it to the
code: a passage that is named as ours has to be in the prompts, to the letter. What the originals tell is
described in our words.

The runs shown have 12 steps, 24 hours, 8 processors and a GPU; what happened in them is made up and short.
They are asked in three competitions that ship. Prompts of one agent at one moment are the same in all three
but for the task and the data, which stand here once, and in the prompts as {TASK} and {DATA},
and for which way the metric goes (the page is not written where that is not so). What memory recalls is marked as well.

The originals: AIDE 0.2.2 (aideml), as MLE-bench runs it; OpenHands 2.1.0, as MLE-bench runs it, and 0.62;
MLAB of MLAgentBench, as MLE-bench runs it. AIRA (arXiv:2507.02554) is where `operators: current` comes from.
"""


def written(competitions: Sequence[Competition]) -> str:
    """Write the page.

    Raises:
        ValueError: A passage is not in the prompts, or prompts differ by more than task and data.
    """
    trees = _same(competitions, [told_tree(each, TreePrompts()) for each in competitions])
    now = _same(competitions, [told_tree(each, CurrentTreePrompts()) for each in competitions])
    chains = _same(competitions, [_texts(each) for each in competitions])
    researchers = _same(competitions, [told_mlab(each) for each in competitions])
    tools = json.dumps(tool_schemas(jobs=True), indent=1, ensure_ascii=False)
    aside = {
        name: prompt(name).text
        for name in (
            "mlab_repair", "mlab_edit", "mlab_understand", "mlab_understand_all", "mlab_summarize",
        )
    }  # fmt: skip
    go_on = prompt("chain_continue").text
    levels = {
        name: prompt(name).text for name in ("tree_draft_complexity", "tree_improve_complexity")
    }
    chain_all = {**chains, "tools": tools, "continue": go_on}
    researcher_all = {**researchers, **aside}
    everyone = {"tree": trees, "chain": chain_all, "mlab": researcher_all}
    return "\n".join(
        [
            _INTRODUCTION,
            "## Point by point\n",
            _table("MLE-bench, to every agent", MLE_BENCH, everyone),
            _table("The tree, `operators: published`: AIDE", AIDE, {"": trees}),
            _table("The tree, `operators: current`: AIRA", AIRA, {"": {**now, **levels}}),
            _table("The chain: OpenHands", OPENHANDS, {"": chain_all}),
            _table("MLAB", MLAB, {"": researcher_all}),
            "## The three competitions\n",
            *(_competition(each) for each in competitions),
            "## The tree, `operators: published`\n",
            *(_shown(*each) for each in trees.items()),
            "## The tree, `operators: current`\n",
            "The review is the one above.\n",
            *(_shown(name, text) for name, text in now.items() if "review" not in name),
            "How elaborate a draft is to be: the first two, the next two, all others.\n",
            _fenced(levels["tree_draft_complexity"]),
            "And an improvement, by the number of its parent's children.\n",
            _fenced(levels["tree_improve_complexity"]),
            "## The chain\n",
            *(_shown(*each) for each in chains.items()),
            "<details><summary>its tools</summary>\n",
            _fenced(tools),
            "</details>\n",
            "To a reply that calls no tool:\n",
            _fenced(go_on),
            "## MLAB\n",
            *(_shown(*each) for each in researchers.items()),
            "What it asks aside, before it is filled in:\n",
            *(_shown(*each) for each in aside.items()),
        ]
    )


def _texts(competition: Competition) -> dict[str, str]:
    plain = {name: as_text(said) for name, said in told_chain(competition).items()}
    jobs = as_text(told_chain(competition, jobs=True)["start"]).partition("[user]")[0].strip()
    return {**plain, "start, with `soft_seconds: 120`: the system prompt": jobs}


def _same(
    competitions: Sequence[Competition], told: Sequence[Mapping[str, str]]
) -> Mapping[str, str]:
    """Return prompts without task and data, which are all that may differ."""
    bare = [
        {name: _without(text, each) for name, text in prompts.items()}
        for each, prompts in zip(competitions, told, strict=True)
    ]
    for other in bare[1:]:
        if different := [name for name in bare[0] if other[name] != bare[0][name]]:
            msg = f"prompts differ by more than task and data: {different}"
            raise ValueError(msg)
    return bare[0]


def _without(text: str, competition: Competition) -> str:
    task, data = competition.description.strip(), data_preview(competition.public_dir).strip()
    bare = text.replace(task, TASK).replace(data, DATA)
    return re.sub(r"\((?:lower|higher) is better\)", WAY, bare)


def _table(title: str, points: Sequence[Point], told: Mapping[str, Mapping[str, str]]) -> str:
    """Write points beside what the prompts of an agent tell, or of those that a point names."""
    lines = [f"### {title}\n", "| it tells | here | |", "|---|---|---|"]
    for each in points:
        for agent, texts in told.items():
            wanted = each.ours if not agent or agent in each.agents else ""
            if not any(wanted in text for text in texts.values()):
                msg = f"{title}: no prompt {agent} says {each.ours!r}"
                raise ValueError(msg)
        if not each.ours and not each.note:
            msg = f"{title}: {each.tells!r} is not told, and no reason is given"
            raise ValueError(msg)
        ours = f"“{each.ours}”" if each.ours else "not told"
        lines.append(f"| {each.tells} | {ours} | {each.note} |")
    return "\n".join([*lines, ""])


def _competition(competition: Competition) -> str:
    data = data_preview(competition.public_dir).strip()
    return _shown(
        f"{competition.id}: the task, and the data",
        f"{competition.description.strip()}\n\n\n{data}",
    )


def _shown(title: str, text: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{_fenced(text)}\n</details>\n"


def _fenced(text: str) -> str:
    # Indented, as fences stand within.
    return f"{indent(text.strip(), '    ')}\n"
