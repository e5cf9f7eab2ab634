"""`ablate` played whole: credit by item, guards, kills, prompts, and the README's own example."""

import difflib
import hashlib
import math
import random
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from langchain_core.messages import BaseMessage

from acceptance.command import clean_environment, command_line, run
from acceptance.figure import Figure, Setting, share
from langgraft import MemoryProvider
from langgraft.benchmarks.ablation import Ablation, Experiment, Task, ablate
from langgraft.benchmarks.ablation.credit import ItemCredit, credits_of, next_replays
from langgraft.benchmarks.ablation.plan import ROUNDS
from langgraft.benchmarks.ablation.study import load_experiment
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import BLOCK_END, BLOCK_START, MemoryItem
from langgraft.memory.recall import RecallContext

EXAMPLE: Final = "examples.does_memory_help:experiment"

# A bank whose items are known ---------------------------------------------------------------

GOOD, BAD, INERT = 10, 10, 20
ITEMS: Final = GOOD + BAD + INERT
RECALLED: Final = 4
TASKS: Final = 120
RUNS: Final = 3
CREDIT: Final = 20 * ITEMS
"""Attempts: twenty an item."""
FIRST_WORLD: Final = 300
_LOGITS: Final = 3.0
"""What a good item adds to the logit of success, and a bad one takes off."""

Result = Mapping[str, Any]


def worth(item: int) -> int:
    """Return what an item is planted to do: 1, -1, or 0."""
    return 1 if item < GOOD else -1 if item < GOOD + BAD else 0


def topics(task: int) -> list[int]:
    """Return the items that are about a task."""
    return sorted(random.Random(f"topics {task}").sample(range(ITEMS), RECALLED))


def solved(task: int, run: int, items: Sequence[int], *, unsteady: bool) -> bool:
    """Return whether the agent solves a task with these items in its prompt.

    Its luck is that of task and run; of an unsteady agent that of the very prompt: any change of the
    prompt is another draw.
    """
    skill = 0.5 if _fraction("skill", task) < 0.5 else -0.5
    logit = skill + _LOGITS * sum(map(worth, items))
    luck = _fraction("luck", task, run, *(sorted(items) if unsteady else ()))
    return luck < 1 / (1 + math.exp(-logit))


def _fraction(*what: object) -> float:
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:6]) / 2**48


def _bank(path: Path, lacking: range = range(0)) -> Path:
    items = [
        MemoryItem(
            id=f"item-{n:02}",
            text=f"note on topic{n:02}: worth is {worth(n):+d}",
            type="strategic",
            source_domain="tasks",
            episode_id=f"e{n}",
            success=True,
            order_index=n,
            key=f"topic{n:02}",
        )
        for n in range(ITEMS)
        if n not in lacking
    ]
    write_items(path, items)
    return path


class _Reader(SimulatedChatModel):
    """Solves what it solves with the notes in its prompt; its seed is the replicate's."""

    model_name: str = "reader"
    unsteady: bool = False

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Answer the one message."""
        text = messages[-1].text
        (task,) = re.findall(r"task (\d+):", text)
        notes = [int(each) for each in re.findall(r"note on topic(\d+)", text)]
        right = solved(int(task), sampling.seed, notes, unsteady=self.unsteady)
        return "yes" if right else "no"


def _build(memory: MemoryProvider[Any], model: Any) -> Any:
    async def agent(question: str) -> str:
        context = RecallContext(domain="tasks", task_id="t", episode_id="e")
        recall = await memory.aprovide(question, context)
        return str((await model.ainvoke(f"{recall.text}{question}")).text)

    return agent


def _banked(bank: Path, *, world: int = 0, unsteady: bool = False) -> Experiment:
    """Return an experiment on a bank, with the tasks of a world."""
    return Experiment(
        build=_build,
        bank=bank,
        test=[
            Task(f"t{task}", f"task {task}: {' '.join(f'topic{n:02}' for n in topics(task))}")
            for task in range(1000 * world, 1000 * world + TASKS)
        ],
        score=lambda _, output: output == "yes",
        memory={"notes": {"provider": "simple_rag", "settings": {"top_k": RECALLED}}},
        conditions=(),
        replicates=RUNS,
        model=lambda seed: _Reader(seed=seed, unsteady=unsteady),
    )


def measure_credit(setting: Setting) -> list[Figure]:
    """Ask which items of a planted bank help, harm or are ignored, whole and by the allocation alone."""
    bank = _bank(setting.work / "bank.jsonl")
    figures = []
    for unsteady in (False, True) if not setting.reduced else (False,):
        worlds = []
        for world in range(setting.size(5, 1)):
            out = setting.work / f"credit-{unsteady}-{world}"
            experiment = _banked(bank, world=FIRST_WORLD + world, unsteady=unsteady)
            (memory,) = ablate(experiment, out=out, credit=CREDIT).analysis.memories
            worlds.append({int(each.id.removeprefix("item-")): each for each in memory.credits})
        figures += _credit_figures(worlds, unsteady=unsteady)
    return [*figures, _allocations(setting.size(40, 4))]


def _credit_figures(worlds: Sequence[Mapping[int, ItemCredit]], *, unsteady: bool) -> list[Figure]:
    spent = max(sum(each.replays for each in found.values()) for found in worlds)
    what = "unsteady: every prompt another draw" if unsteady else "steady: luck by task and run"
    how = (
        f"{len(worlds)} ablations; {GOOD} good, {BAD} bad, {INERT} inert items, {RECALLED} recalled at"
        f" once, {TASKS} tasks × {RUNS} runs; credit={CREDIT}, at most {spent} spent; an agent that is"  # noqa: RUF001
        f" {what}"
    )
    good, bad = (np.array(each) for each in zip(*map(_areas, worlds), strict=True))
    inert = set(range(GOOD + BAD, ITEMS))
    named = [{n for n, each in found.items() if each.verdict == "ignored"} for found in worlds]
    right = sum(len(each & inert) for each in named)
    precision = right / max(sum(map(len, named)), 1)
    recall = right / (INERT * len(worlds))
    told = f"precision {precision:.2f}, recall {recall:.2f}"
    judged = not unsteady  # whose answers turn over with any change of the prompt
    areas = f"good {good.mean():.3f} (least {good.min():.3f}), bad {bad.mean():.3f} (least {bad.min():.3f})"
    return [
        Figure(
            "Credit sets good items above the rest and bad ones below: area under the curve",
            how,
            areas,
            "both ≥ .95 on average" if judged else "",
            bool(min(good.mean(), bad.mean()) >= 0.95 and spent <= CREDIT) if judged else None,
        ),
        Figure(
            "Ignored items are named",
            how,
            told,
            "both ≥ .90" if judged else "",
            min(precision, recall) >= 0.9 if judged else None,
        ),
    ]


def _allocations(worlds: int) -> Figure:
    found = {
        unsteady: [
            np.array(
                [_auc(_allocated(world, choose, unsteady=unsteady)) for world in range(worlds)]
            )
            for choose in (next_replays, _uniform)
        ]
        for unsteady in (False, True)
    }
    told = [
        f"{'unsteady' if unsteady else 'steady'} {a.mean():.3f} against {b.mean():.3f} (difference"
        f" {(a - b).mean():+.3f} ± {(a - b).std() / worlds**0.5:.3f})"
        for unsteady, (a, b) in found.items()
    ]
    return Figure(
        "Attempts spent by what is known so far against as many spent evenly: area under the curve",
        f"{worlds} worlds, {CREDIT // 4} attempts in {ROUNDS} rounds, by the functions of a run",
        "; ".join(told),
        "",
        None,
    )


def _areas(found: Mapping[int, ItemCredit]) -> tuple[float, float]:
    values = {n: found[n].credit or 0.0 if n in found else 0.0 for n in range(ITEMS)}

    def area(chosen: int) -> float:
        ours = np.array([v * chosen for n, v in values.items() if worth(n) == chosen])
        rest = np.array([v * chosen for n, v in values.items() if worth(n) != chosen])
        above = (ours[:, None] > rest) + 0.5 * (ours[:, None] == rest)
        return float(above.mean())

    return area(1), area(-1)


def _auc(found: Mapping[str, ItemCredit]) -> float:
    return min(_areas({int(name): each for name, each in found.items()}))


def _allocated(seed: int, choose: Callable[..., Any], *, unsteady: bool) -> dict[str, ItemCredit]:
    """Spend attempts on one replicate of another world, as the rounds of a run do."""

    def attempt(task: int, items: Sequence[int]) -> bool:
        return solved(task + 1000 * seed, seed, items, unsteady=unsteady)

    test = [
        {
            "task": str(task),
            "score": float(attempt(task, topics(task + 1000 * seed))),
            "recalled": [{"id": str(n)} for n in topics(task + 1000 * seed)],
        }
        for task in range(TASKS * RUNS)
    ]
    earlier: list[list[Result]] = []
    for _ in range(ROUNDS):
        results: list[Result] = []
        for chosen in choose(test, earlier, CREDIT // 4 // ROUNDS):
            if chosen is None:
                continue
            place, item = chosen
            left = [n for n in topics(place + 1000 * seed) if str(n) != item]
            score = float(attempt(place, left))
            before = test[place]["score"]
            results.append(
                {
                    "task": str(place),
                    "without": item,
                    "with": before,
                    "score": score,
                    "changed": before != score,
                }
            )
        earlier.append(results)
    return credits_of([test], earlier)


def _uniform(
    test: Sequence[Result], earlier: Sequence[Sequence[Result]], count: int
) -> list[tuple[int, str]]:
    """Choose the items in turn, each in an attempt of its own."""
    done = {(r["task"], r["without"]) for results in earlier for r in results}
    turn = sum(map(len, earlier))
    chosen: list[tuple[int, str]] = []
    while len(chosen) < count:
        item = str(turn % ITEMS)
        turn += 1
        places = [
            place
            for place, each in enumerate(test)
            if {"id": item} in each["recalled"]
            and (each["task"], item) not in done
            and (place, item) not in chosen
        ]
        if places:
            chosen.append((places[0], item))
    return chosen


# Guards, whole ----------------------------------------------------------------------------


def measure_guards(setting: Setting) -> list[Figure]:
    """Hold a bank without its good items, and one without inert ones, against the whole bank."""
    before = _bank(setting.work / "before.jsonl")
    changes = {
        "without half of its good items": (range(GOOD // 2), "regressed"),
        "without its inert items": (range(GOOD + BAD, ITEMS), "passed"),
    }
    figures = []
    for change, (lacks, wanted) in changes.items():
        bank = _bank(setting.work / f"{wanted}.jsonl", lacks)
        found = ablate(_banked(bank), out=setting.work / wanted, against=before)
        decision = found.analysis.guard
        assert decision is not None
        code = int(wanted == "regressed")
        figures.append(
            Figure(
                f"A guard on a bank {change}",
                f"`ablate(against=…)`, {TASKS} tasks × {RUNS} runs",  # noqa: RUF001
                f"{decision.verdict} after {decision.pairs} pairs, exit code {found.exit_code}",
                f"{wanted}, exit code {code}, fewer pairs than {TASKS * RUNS}",
                (decision.verdict, found.exit_code) == (wanted, code)
                and decision.pairs < TASKS * RUNS,
            )
        )
    return figures


# kill -9 ----------------------------------------------------------------------------------


def measure_kills(setting: Setting) -> list[Figure]:
    """Kill `langgraft ablate` at seeded moments, and compare what it leaves when it is run again."""
    kills = setting.size(10, 1)
    whole = setting.work / "whole"
    done = run(_ablate(whole), folder=setting.checkout, environment=_environment(setting))
    if done.code not in (0, 1):
        msg = f"the uninterrupted run ended with {done.code}: {done.stderr.strip()[-300:]}"
        raise RuntimeError(msg)
    expected, chance = _items(whole), random.Random(7)
    killed = between = 0
    wrong: list[str] = []
    for number in range(kills):
        out = setting.work / f"killed-{number}"
        share_done = chance.uniform(0.02, 0.9)
        killed += _killed_after(out, share_done, sum(map(len, expected.values())), setting)
        left = _items(out)
        between += 0 < sum(map(len, left.values())) < sum(map(len, expected.values()))
        again = run(_ablate(out), folder=setting.checkout, environment=_environment(setting))
        found = _items(out)
        wrong += [f"{out.name}/{n}" for n in expected | found if found.get(n) != expected.get(n)]
        if (again.code, again.stdout.count("\n")) != (done.code, done.stdout.count("\n")):
            wrong.append(f"{out.name}: ended with {again.code}: {again.stderr.strip()[-200:]}")
    total = kills * len(expected)
    return [
        Figure(
            "`langgraft ablate` killed anywhere resumes to the bytes of an uninterrupted run",
            f"{EXAMPLE}, with credit; {killed} SIGKILLs ({between} between first and last attempt), each"
            " in a directory of its own, then the same command again",
            share(total - len(wrong), total, wrong) + " logs",
            "all",
            killed == kills == between and not wrong,
        )
    ]


def _ablate(out: Path) -> list[str]:
    return command_line("ablate", EXAMPLE, "--out", out, "--credit", 30)


def _environment(setting: Setting) -> dict[str, str]:
    return clean_environment() | {"PYTHONPATH": str(setting.checkout / "src")}


def _items(out: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(out.glob("runs/*/items.jsonl"))}


def _killed_after(out: Path, part: float, size: int, setting: Setting) -> bool:
    """Kill the command when it has written that part of its logs; return whether it was running."""
    process = subprocess.Popen(
        _ablate(out),
        cwd=setting.checkout,
        env=_environment(setting),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with process:
        while process.poll() is None:
            if sum(path.stat().st_size for path in out.glob("runs/*/items.jsonl")) >= part * size:
                process.kill()  # SIGKILL
                return True
            try:
                process.wait(timeout=0.02)
            except subprocess.TimeoutExpired:
                continue
    return False


# Prompts ----------------------------------------------------------------------------------


def measure_prompts(setting: Setting) -> list[Figure]:
    """Compare the first prompt of every attempt with that of the same task and run without memory."""
    experiment = load_experiment(EXAMPLE)
    conditions = ("random", "placebo", "instructions", "write_only", "full_history", "rerun")
    found = ablate(
        experiment,
        out=setting.work / "prompts",
        harm=True,
        conditions=conditions,
        replicates=setting.size(5, 3),
    )
    prompts = {
        arm.arm.name: {
            (task, number): result
            for number, results in arm.results.items()
            for task, result in results.items()
        }
        for arm in found.analysis.arms
    }
    base = prompts["none"]
    outside, digests, blocks = [], [], 0
    for name, attempts in prompts.items():
        for at, result in attempts.items():
            added = _outside(base[at]["prompt"], result["prompt"])
            outside += [f"{name}, {at}: {line!r:.80}" for line in added]
            digests += [f"{name}, {at}"] * (result["rest_sha256"] != base[at]["rest_sha256"])
            blocks += BLOCK_START in result["prompt"]
    total = sum(map(len, prompts.values()))
    gate = next(each for each in found.analysis.gates if "prompts" in each.name)
    return [
        Figure(
            "First prompts of all conditions differ in the memory section alone",
            f"a create_agent app; {len(prompts)} conditions: {', '.join(prompts)}",
            f"{total} prompts, {blocks} with a memory section; {len(outside)} lines of their diffs lie"
            f" outside of it{': ' + outside[0] if outside else ''}; {len(digests)} digests of the rest"
            f" differ; the page's own check {gate.state}",
            "0 lines, 0 digests, passed",
            not outside and not digests and gate.state == "passed" and blocks > total / 3,
        ),
        _told_apart(prompts),
    ]


def _outside(before: str, after: str) -> list[str]:
    """Return the lines that differ and do not belong to a memory section."""
    wrong, inside = [], False
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        sign, text = line[:2], line[2:]
        if sign == "?":
            continue
        inside = inside or BLOCK_START in text
        if sign in ("+ ", "- ") and not inside and text.strip():
            wrong.append(line)
        if BLOCK_END in text:
            inside = False
    return wrong


def _told_apart(prompts: Mapping[str, Mapping[Any, Result]]) -> Figure:
    """Hold that every condition with a memory section has its own."""
    memory = next(name for name in prompts if f"{name}~placebo" in prompts)
    silent = ("none", "rerun", f"{memory}~write_only", f"{memory}~absent")
    shown = {
        name: tuple(each["prompt"] for each in attempts.values())
        for name, attempts in prompts.items()
        if name not in silent
    }
    different = len(set(shown.values()))
    return Figure(
        "And each condition's memory section is its own",
        f"{len(shown)} conditions that put something there",
        f"{different} different",
        "all",
        different == len(shown),
    )


# The README -------------------------------------------------------------------------------

MOST_LINES: Final = 25


@dataclass(frozen=True, slots=True)
class Snippet:
    """The README's code, and its lines that are neither empty nor a comment."""

    code: str
    lines: int


def readme_snippet(checkout: Path) -> Snippet:
    """Return the first code block below the heading *Does memory help*."""
    text = (checkout / "README.md").read_text(encoding="utf-8")
    _, _, section = text.partition("Does memory help")
    code = section.partition("```python\n")[2].partition("```")[0]
    lines = [
        each for each in code.splitlines() if each.strip() and not each.strip().startswith("#")
    ]
    return Snippet(code, len(lines))


def measure_readme(setting: Setting) -> list[Figure]:
    """Count the README's lines, and play them with a simulated model in the place of a paid one."""
    snippet = readme_snippet(setting.checkout)
    namespace: dict[str, Any] = {"__name__": "my_app"}
    exec(compile(snippet.code, "README.md", "exec"), namespace)
    simulated = load_experiment(EXAMPLE).model
    found: Ablation = ablate(namespace["experiment"], out=setting.work / "readme", model=simulated)
    verdicts = ", ".join(f"{name} {word}" for name, word in found.verdicts.items())
    known = {"helps", "harms", "no detectable difference", "cannot tell"}
    return [
        Figure(
            f"From nothing to a verdict on one's own graph in at most {MOST_LINES} lines",
            "the README's block, with a simulated model in the place of the one by name",
            f"{snippet.lines} lines; {verdicts}; page {'there' if found.page.is_file() else 'missing'}",
            f"at most {MOST_LINES} lines, a verdict and a page",
            snippet.lines <= MOST_LINES
            and set(found.verdicts.values()) <= known
            and bool(found.verdicts)
            and found.page.is_file(),
        )
    ]


def measure(setting: Setting) -> list[Figure]:
    """Measure credit, guards, prompts and the README's example."""
    return [
        *measure_credit(setting),
        *measure_guards(setting),
        *measure_prompts(setting),
        *measure_readme(setting),
    ]
