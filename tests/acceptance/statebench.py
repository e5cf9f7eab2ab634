"""STATE-Bench: recorded calls replayed, transfer that is planted found, leaks found. No language model plays."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from acceptance.figure import Figure, Setting, share
from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.ablation.analysis import Split
from langgraft.benchmarks.ablation.running import ablate
from langgraft.benchmarks.comparison.verdicts import SIGNIFICANCE, holm
from langgraft.benchmarks.simulated.clerk import SimulatedClerk
from langgraft.benchmarks.statebench.learning_track import PROVIDERS, learning_track
from langgraft.benchmarks.statebench.retrieval import audit, telling_values
from langgraft.environments.statebench import StateBench, load
from langgraft.memory.controls import FILLER
from langgraft.memory.model import MemoryItem
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import RecallContext

CALLS: Final = 2_842
PLANTED: Final = frozenset(
    {
        ("travel", "travel"),
        ("customer_support", "customer_support"),
        ("shopping_assistant", "shopping_assistant"),
        ("customer_support", "shopping_assistant"),
    }
)
"""Where a bank of the one domain helps at tasks of the other."""
BASE: Final = 0.25
GAIN: Final = 0.5


def measure(setting: Setting) -> list[Figure]:
    """Measure what is promised of STATE-Bench."""
    return list(_measured(setting))


def _measured(setting: Setting) -> Iterator[Figure]:
    bench = load()
    replay = bench.replay()
    yield Figure(
        "Recorded calls of tools replay identically",
        "300 trajectories of a language model, each against a fresh database",
        share(replay.calls - len(replay.different), replay.calls, list(replay.different)),
        f"{CALLS:,} of {CALLS:,}",
        replay.calls == CALLS and not replay.different,
    )
    yield _leaks(bench)
    yield from _transfer(setting, bench)


def _leaks(bench: StateBench) -> Figure:
    tests = bench.tasks(split="test")
    task = next(each for each in tests if len(telling_values(each)) > 2)
    texts = {
        "gold": f"Set it to {' and '.join(sorted(telling_values(task)))}.",
        "label": "Task: cancel a flight\nAction: cancel({})\nResult: success",
        "task": f"At {task.id.partition('/')[2]} do the refund first.",
    }
    missed = [
        kind
        for kind, text in texts.items()
        if kind not in {each.kind for each in audit([_item(text, task.domain)], tests)}
    ]
    clean = audit([_item("Look the booking up before you change it.", task.domain)], tests)
    return Figure(
        "A training label, gold values or a test task's name in a learning are found",
        "one of each planted, and one learning without any",
        share(len(texts) - len(missed), len(texts), missed) + f"; in the clean one {len(clean)}",
        "all, and none",
        not missed and not clean,
    )


def _item(text: str, domain: str) -> MemoryItem:
    return MemoryItem(
        id="learning",
        text=text,
        type="other",
        source_domain=domain,
        episode_id="",
        success=None,
        order_index=0,
    )


def _transfer(setting: Setting, bench: StateBench) -> Iterator[Figure]:
    """Play a whole plan, three sources by three domains, with an agent whose gains are planted."""
    tests, replicates = setting.size(50, 30), setting.size(5, 5)
    providers = PROVIDERS[: setting.size(3, 1)]
    tasks = {task.id: task for task in bench.tasks()}

    def build(memory: MemoryProvider[Any], chat: Any) -> Any:
        seed = chat.inner.seed

        def attempt(name: str) -> bool:
            task = tasks[name]
            context = RecallContext(domain=task.domain, task_id=task.id, episode_id=task.id)
            recall = memory.provide(task.opening, context)
            told = [each for each in recall.items if not each.text.startswith(FILLER)]
            helped = any((each.source_domain, task.domain) in PLANTED for each in told)
            # As a model's above temperature 0: another prompt is another draw.
            drawn = seeded_fraction("planted", seed, name, recall.text)
            return drawn < BASE + GAIN * helped

        return attempt

    track = learning_track(
        providers=providers,
        tests=tests,
        replicates=replicates,
        model=lambda seed: SimulatedClerk(seed=seed),
    )
    found = ablate(replace(track, build=build), out=setting.work / "learning-track")
    how = (
        f"`ablate` of {tests} test tasks a domain by {replicates} replicates, banks of 300 real"
        f" trajectories, {', '.join(providers)}; an agent whose chances are planted"
    )
    cells = {
        (each.found.arm.memory, each.found.arm.source, cell.name): cell
        for each in found.analysis.memories
        for cell in each.by_kind
    }
    planted = {at: cell for at, cell in cells.items() if at[1:] in PLANTED}
    nulls = {at: cell for at, cell in cells.items() if at[1:] not in PLANTED}
    yield _cells("Transfer that is planted is recovered", how, planted, found_in=True)
    yield _cells("Where none is planted, none is found", how, nulls, found_in=False)
    placebos = [each for each in _comparison(found).controls if each.condition.endswith("~placebo")]
    adjusted = holm([each.estimate.p if each.estimate else 1.0 for each in placebos])
    wrong = [each.condition for each, p in zip(placebos, adjusted, strict=True) if p < SIGNIFICANCE]
    yield Figure(
        "A placebo of each bank is none",
        f"{how}; corrected by Holm",
        share(len(placebos) - len(wrong), len(placebos), wrong),
        "all",
        not wrong,
    )


def _comparison(found: Any) -> Any:
    assert found.analysis.comparison is not None
    return found.analysis.comparison


def _cells(
    promise: str, how: str, cells: dict[tuple[str, str, str], Split], *, found_in: bool
) -> Figure:
    def significant(cell: Split) -> bool:
        p = cell.p_adjusted
        return p is not None and p < SIGNIFICANCE

    wrong = [
        f"{memory} {source}→{target}"
        for (memory, source, target), cell in cells.items()
        if significant(cell) is not found_in
    ]
    sizes = [cell.difference.value for cell in cells.values() if cell.difference is not None]
    told = f"{100 * min(sizes):+.1f} to {100 * max(sizes):+.1f} points; as planted in "
    return Figure(
        promise, how, told + share(len(cells) - len(wrong), len(cells), wrong), "all", not wrong
    )
