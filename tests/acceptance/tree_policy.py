"""The tree's policies: each against a second statement of its rules, AIDE's against its own runs, too."""

import importlib.util
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from statistics import fmean
from types import ModuleType
from typing import Any, Final, TypeAlias

from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import InputError
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.environments.competitions.registry import lite_competitions
from langgraft.nodes.search.aira import EvolutionPolicy, UCTPolicy
from langgraft.nodes.search.journal import Journal, JournalNode, Stage
from langgraft.nodes.search.policy import AIDEPolicy, Expansion, Progress, unexplained

RULES: Final = "tests/support/aide_rules.py"
OTHER_RULES: Final = "tests/support/policy_rules.py"
_MLEBENCH: Final = AIDEPolicy(debug_probability=1, debug_depth=20)
"""AIDE as MLE-bench runs it; the journals in `LANGGRAFT_DATA` come from there."""
_NAMED: Final = AIDEPolicy(debug_probability=1, debug_depth=20, published_depth=False)
_SETTINGS: Final[Mapping[str, AIDEPolicy]] = {
    "MLE-bench's settings (probability 1, depth 20)": _MLEBENCH,
    "AIDE's own (0.5, 3)": AIDEPolicy(),
}
_JOURNALS: Final = 30
"""Journals whose frequencies are counted."""
_SPREADS: Final = 5.0
"""Standard deviations that none of some hundred frequencies leaves by chance (p < 1e-4)."""


def measure(setting: Setting) -> list[Figure]:
    """Compare the policy with AIDE's rules, then with the runs in `LANGGRAFT_DATA`."""
    rules = _rules(setting.checkout / RULES)
    setting.say("the tree's policy against AIDE's rules")
    figures = [_random_journals(rules), _frequencies(rules, setting.size(4000, 1000))]
    figures += _other_policies(_rules(setting.checkout / OTHER_RULES))
    data = Path(os.environ.get("LANGGRAFT_DATA", setting.checkout.parent / "shared" / "data"))
    folder = data / "aide"
    if not folder.is_dir():
        absent = "not measured: LANGGRAFT_DATA has no folder `aide`"
        return [*figures, Figure("The policy on real runs of AIDE", "", absent, "", passed=None)]
    return [*figures, *_real_runs(read_journals(folder))]


def _rules(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InputError(f"{path}: is missing from this checkout")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _random_journals(rules: ModuleType) -> Figure:
    random, wrong, count = Random(17), [], 1000
    stages: Counter[str] = Counter()
    for number in range(count):
        nodes = rules.random_journal(random)
        policy = AIDEPolicy(
            random.randrange(1, 7),
            random.choice([0.0, 0.5, 1.0]),
            random.randrange(6),
            published_depth=random.random() < 0.5,
        )
        lower = random.random() < 0.5
        stated = {Expansion(*choice) for choice in _stated(rules, policy, nodes, lower)}
        chosen = [
            policy.choose(nodes, step=len(nodes), seed=seed, lower_is_better=lower)
            for seed in range(5)
        ]
        stages.update(each.stage for each in chosen)
        if policy.admissible(nodes, lower_is_better=lower) != stated or not set(chosen) <= stated:
            wrong.append(str(number))
    told = ", ".join(f"{stage} {stages[stage]:,}" for stage in ("draft", "debug", "improve"))
    return Figure(
        "The policy may choose exactly what AIDE's rules may, and chooses among these",
        f"random journals of up to 40 programs, random settings, 5 seeds; rules stated anew in {RULES}",
        f"{share(count - len(wrong), count, wrong)}; chosen: {told}",
        "all",
        passed=not wrong,
    )


def _other_policies(rules: ModuleType) -> Iterator[Figure]:
    """Hold UCT and evolution to their rules, on journals with merges and programs under way."""
    for name, choose in (("UCT", _by_uct), ("evolution", _by_evolution)):
        random, wrong, count = Random(23), [], 1000
        stages: Counter[str] = Counter()
        for number in range(count):
            nodes, lower = rules.bushy_journal(random), random.random() < 0.5
            begun = rules.under_way(random, nodes)
            chosen, stated = choose(rules, nodes, begun, random, lower)
            stages[chosen.stage] += 1
            if (chosen.stage, chosen.parent_id, chosen.partner_id) != stated:
                wrong.append(str(number))
        told = ", ".join(f"{stage} {chosen:,}" for stage, chosen in sorted(stages.items()))
        yield Figure(
            f"{name} chooses what its rules say",
            "random journals of up to 30 programs, random settings, up to 3 programs under way;"
            f" rules stated anew in {OTHER_RULES}",
            f"{share(count - len(wrong), count, wrong)}; chosen: {told}",
            "all",
            passed=not wrong,
        )


_Chosen: TypeAlias = tuple[Expansion, tuple[Stage, str | None, str | None]]
"""What a policy chose, and what the rules say."""


def _by_uct(
    rules: ModuleType, nodes: list[JournalNode], begun: list[Expansion], random: Random, lower: bool
) -> _Chosen:
    used, depth = random.random(), random.randrange(4)
    top = random.choice([None, 1, 2])
    policy = UCTPolicy(random.randrange(1, 7), 0.25, random.random(), top, depth)
    chosen = policy.choose(
        nodes, step=0, seed=0, lower_is_better=lower, under_way=begun, progress=Progress(used)
    )
    c = policy.c * (1 - policy.decay * used)
    table = rules.Table(nodes, begun, lower)
    stated = rules.uct_choice(table, children=policy.children, c=c, top=top, debug_depth=depth)
    return chosen, stated


def _by_evolution(
    rules: ModuleType, nodes: list[JournalNode], begun: list[Expansion], random: Random, lower: bool
) -> _Chosen:
    settings: dict[str, Any] = {
        "generation": random.randrange(1, 6),
        "population": random.randrange(1, 8),
        "crossover": random.choice([0.0, 0.5, 1.0]),
        "crossover_from": random.choice([1, 2]),
        "tournament": random.choice([None, 1, 3]),
        "debug_depth": random.randrange(4),
    }
    step, seed = len(nodes) + len(begun), random.randrange(1000)
    chosen = EvolutionPolicy(**settings).choose(
        nodes, step=step, seed=seed, lower_is_better=lower, under_way=begun
    )
    table = rules.Table(nodes, begun, lower)
    return chosen, rules.evolution_choice(table, seed=seed, step=step, **settings)


def _stated(
    rules: ModuleType, policy: AIDEPolicy, nodes: Sequence[JournalNode], lower: bool
) -> Mapping[tuple[Stage, str | None], Fraction]:
    found: Mapping[tuple[Stage, str | None], Fraction] = rules.chances(
        nodes,
        num_drafts=policy.drafts,
        debug_prob=Fraction(policy.debug_probability),
        max_debug_depth=policy.debug_depth - (not policy.published_depth),
        maximize=not lower,
    )
    return found


def _frequencies(rules: ModuleType, draws: int) -> Figure:
    random, policy, journals = Random(3), AIDEPolicy(drafts=2), 0
    worst, choices = 0.0, 0
    while journals < _JOURNALS:
        nodes = rules.random_journal(random)
        stated = _stated(rules, policy, nodes, lower=False)
        if len(stated) <= 2:
            continue
        journals += 1
        step = len(nodes)
        counts = Counter(
            policy.choose(nodes, step=step, seed=seed, lower_is_better=False)
            for seed in range(draws)
        )
        for choice, chance in stated.items():
            choices += 1
            spread = math.sqrt(draws * chance * (1 - chance))
            worst = max(worst, abs(counts[Expansion(*choice)] - float(draws * chance)) / spread)
    return Figure(
        "It chooses as often as AIDE does: the coin, and each failure evenly",
        f"{journals} random journals, {choices} possible choices, {draws:,} seeds each",
        f"largest deviation of a frequency: {worst:.2f} standard deviations",
        f"< {_SPREADS:g}",
        passed=worst < _SPREADS,
    )


def _real_runs(journals: Sequence[Journal]) -> list[Figure]:
    nodes = sum(len(each.nodes) for each in journals)
    fits = {each.run: _fit(each) for each in journals}
    wrong = [f"{run} step {node.step}" for run, fit in fits.items() for node in fit.unexplained]
    how = f"{len(journals)} runs, {nodes} programs"

    def left(policy: AIDEPolicy, *, flipped: bool = False) -> int:
        return sum(
            len(unexplained(each, policy, lower_is_better=fits[each.run].lower is not flipped))
            for each in journals
        )

    depth = _MLEBENCH.debug_depth
    others = {
        f"depth {depth} as its name says, not as published": left(_NAMED),
        f"depth {depth - 1}": left(AIDEPolicy(debug_probability=1, debug_depth=depth - 1)),
        f"depth {depth + 1}": left(AIDEPolicy(debug_probability=1, debug_depth=depth + 1)),
        "AIDE's own settings": left(AIDEPolicy()),
        "the metrics' directions turned round": left(_MLEBENCH, flipped=True),
    }
    return [
        Figure(
            "In real runs of AIDE every parent lies in the policy's admissible set",
            f"{how}; {'; '.join(f'{run}: {fit.words}' for run, fit in fits.items())}",
            share(nodes - len(wrong), nodes, wrong),
            "all",
            passed=not wrong,
        ),
        Figure(
            "The audit can tell settings apart: programs that others would not explain",
            f"{how}; MLE-bench's settings, but for what is named",
            "; ".join(f"{name}: {count}" for name, count in others.items()),
            "",
            passed=None,
        ),
        _even(journals),
    ]


@dataclass(frozen=True, slots=True)
class _Fit:
    """What explains a run best."""

    lower: bool
    words: str
    unexplained: Sequence[JournalNode]


def _fit(journal: Journal) -> _Fit:
    """Find a run's settings and, where no board says it, its metric's direction."""
    known = lite_competitions().get(journal.task)
    directions = [known.thresholds.lower_is_better] if known else [True, False]
    tried = [
        (len(wrong), settings, lower, wrong)
        for settings, policy in _SETTINGS.items()
        for lower in directions
        for wrong in [unexplained(journal, policy, lower_is_better=lower)]
    ]
    fewest, settings, lower, wrong = min(tried, key=lambda each: each[0])
    alike = {each[2] for each in tried if each[:2] == (fewest, settings)}
    better = f"{'lower' if lower else 'higher'} is better"
    if known:
        better += " by its board"
    elif len(alike) == 1:
        better += " by what it went on with"
    else:
        better = "no program shows the metric's direction"
    return _Fit(lower, f"{settings}, {better}", wrong)


def _even(journals: Sequence[Journal]) -> Figure:
    """Say where among the failures AIDE's own draws fell: a check of the rule, not of our code."""
    places = []
    for journal in journals:
        for number, node in enumerate(journal.nodes):
            leaves = [each.id for each in _MLEBENCH.debuggable(journal.nodes[:number])]
            if journal.stage(node) == "debug" and len(leaves) > 1 and node.parent_id in leaves:
                places.append((leaves.index(node.parent_id) + 0.5) / len(leaves))
    if not places:
        return Figure("AIDE's own draws are even", "", "no draws", "", passed=None)
    z = (fmean(places) - 0.5) * math.sqrt(12 * len(places))
    return Figure(
        "AIDE's own draws among failures are even, from the oldest (0) to the newest (1)",
        f"{len(places)} draws with a choice",
        f"mean place {fmean(places):.3f}, z = {z:+.2f} against 0.5",
        "",
        passed=None,
    )
