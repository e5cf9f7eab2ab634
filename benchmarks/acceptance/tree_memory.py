"""What timeouts in memory do to a tree search, and what keeping kinds apart by stage does about it.

A store holds errors of a competition's programs, three of seven of them timeouts of boosted trees
and forests, as in the paper's dog-breed runs (mle-agent-memory §4.6: 40.7 % of the entries). The
simulated data scientist, which is no language model, writes drafts and improvements by the tree's
own prompts under five memories:

none        no memory
seeded      the store, all of it told in every stage (preset `implied`)
by stage    the same store with preset `kinds_by_stage`: timeouts are told to debugging alone
no limits   the store without its timeouts, preset `implied`
placebo     filler as long as what `seeded` tells

What is counted are the packages that a program imports. Programs need not run for that; in the
second part the real graph searches in Docker, and the programs that ran are counted, as in §4.6.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.harness.statistics import Estimate, mean_estimate
from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.competitions.registry import Registry
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.docker import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.environments.sandboxes.telling import span
from langgraft.graphs.tree import build_tree_agent
from langgraft.memory.controls import Placebo
from langgraft.memory.episodes import Episode, ErrorKind, ErrorRecord, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.coding import CodingMemory, coding_preset
from langgraft.memory.recall import RecallContext
from langgraft.nodes.code_names import code_names
from langgraft.nodes.search.artifacts import MemoryArtifacts
from langgraft.nodes.search.briefing import TreePrompts, domain, instruction
from langgraft.nodes.search.chain import read_search
from langgraft.nodes.search.journal import Journal, JournalNode, Stage
from langgraft.nodes.search.packages import shipped_packages
from langgraft.nodes.search.program_text import read_program
from langgraft.nodes.search.sampling import sample_config
from langgraft.nodes.search.summary import summarize

COMPETITION: Final = "weather"
BOOSTED: Final = ("lightgbm", "xgboost")
"""Packages whose timeouts are in the store; what is counted is the share of programs with one."""
SECONDS: Final = 60.0
FEWEST: Final = 30
"""Programs that ran, of each memory, whose shares are judged."""
LEFT: Final = 0.2
"""The part of the shift that may be left where kinds are kept apart."""

Memory: TypeAlias = MemoryProvider[Any] | None

_CODE: Final[tuple[tuple[str, str, str], ...]] = (
    ("pandas", "KeyError: 'wind_speed'", "Use the column wind of the data."),
    ("numpy", "AttributeError: module 'numpy' has no attribute 'float'", "Write float instead."),
    ("general", "FileNotFoundError: ./data/train.csv", "Read ./input/train.csv."),
    ("pandas", "ValueError: columns overlap but no suffix specified", "Join on the id."),
)
_LIMITS: Final[tuple[tuple[str, str, str], ...]] = tuple(
    (
        package,
        f"TimeoutError: the program was stopped while fitting {model}",
        "Use a lighter model.",
    )
    for package, model in (
        ("sklearn", "RandomForestClassifier"),
        ("xgboost", "XGBClassifier"),
        ("lightgbm", "LGBMClassifier"),
    )
)


def measure(setting: Setting) -> list[Figure]:
    """Write programs for many seeds under each memory, and search in Docker for a few."""
    competition = Registry(setting.work / "tree-memory").get_competition(COMPETITION)
    prepare_competition(competition)
    seeds, searches = setting.size(1000, 400), setting.size(5, 2)
    setting.say(
        f"{seeds} drafts and improvements under each of {len(memories(competition))} memories"
    )
    written = write_programs(competition, seeds)
    setting.say(f"{searches} searches in Docker under each of three memories")
    return [*_shift(written, seeds), *_searched(competition, setting, searches)]


# The memories ---------------------------------------------------------------------------------


def memories(competition: Competition) -> Mapping[str, Memory]:
    """Make a memory for each condition, each in a bank of its own."""
    return {
        "none": None,
        "seeded": seeded(competition, "implied"),
        "by stage": seeded(competition, "kinds_by_stage"),
        "no limits": seeded(competition, "implied", limits=False),
        "placebo": Placebo(seeded(competition, "implied")),
    }


def seeded(competition: Competition, preset: str, *, limits: bool = True) -> CodingMemory:
    """Make a memory with the store's entries, errors of code and timeouts in turn."""
    memory = CodingMemory(InMemoryStore(), settings=coding_preset(preset))
    records: list[ErrorRecord] = []
    for number, told in enumerate(_CODE):
        records.append(ErrorRecord(*told))
        if limits and number:
            records.append(_limit(*_LIMITS[number - 1]))
    for record in records:
        name = f"earlier/{record.package}: {record.error}"
        how = Outcome(success=False)
        memory.take_in(
            Episode(name, domain(competition), competition.id, "", (), how, errors=(record,))
        )
    return memory


def _limit(package: str, error: str, fix: str) -> ErrorRecord:
    kind: ErrorKind = "resource"
    return ErrorRecord(package, error, fix, kind)


# Programs that are written -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and what it imports."""

    stage: Stage
    code: str

    @property
    def packages(self) -> frozenset[str]:
        """The packages it imports."""
        return frozenset(code_names(self.code).packages)

    @property
    def boosted(self) -> bool:
        """Whether it uses a package whose timeouts are in the store."""
        return not self.packages.isdisjoint(BOOSTED)


def write_programs(
    competition: Competition, seeds: int
) -> Mapping[str, Sequence[Sequence[Program]]]:
    """Write a draft and an improvement for each seed under each memory, in the order of the seeds."""
    desk = _Desk(competition)
    return {
        name: [[desk.write(memory, stage, seed) for stage in _STAGES] for seed in range(seeds)]
        for name, memory in memories(competition).items()
    }


_STAGES: Final[tuple[Stage, ...]] = ("draft", "improve")


class _Desk:
    """Writes programs by the tree's prompts, without running them."""

    def __init__(self, competition: Competition) -> None:
        self._competition = competition
        self._prompts = TreePrompts()
        rules = self._prompts.rules.render(
            limit=span(SECONDS), folds="5", packages=", ".join(shipped_packages())
        )
        self._shown = {
            "task": competition.description.strip(),
            "rules": rules.strip(),
            "data": data_preview(competition.public_dir),
        }
        plain = self._asked("", "draft", SimulatedDataScientist(ignorance=0), "plain", ())
        self._ran = JournalNode(step=0, id="000", plan="", code=plain, metric=1.0, is_buggy=False)

    def write(self, memory: Memory, stage: Stage, seed: int) -> Program:
        """Write a draft, or an improvement of a plain program that ran."""
        here = self._competition
        step = 0 if stage == "draft" else 1
        context = RecallContext(
            domain(here), here.id, f"search-{seed}/{step:03d}", stage=stage, step=step
        )
        recalled = "" if memory is None else memory.provide(instruction(here), context).text
        earlier = (self._ran,) if stage == "improve" else ()
        code = self._asked(
            recalled, stage, SimulatedDataScientist(seed=seed), f"search-{seed}", earlier
        )
        return Program(stage, code)

    def _asked(
        self,
        recalled: str,
        stage: Stage,
        model: SimulatedDataScientist,
        search: str,
        earlier: Sequence[JournalNode],
    ) -> str:
        lower = self._competition.board.thresholds.lower_is_better
        shown = self._shown | {
            "attempts": summarize(earlier, lower_is_better=lower),
            "memory": f"{recalled}\n" if recalled else "",
            "code": earlier[0].code.rstrip() if earlier else "",
        }
        template = self._prompts.draft if stage == "draft" else self._prompts.improve
        reply = model.invoke(template.render(**shown), sample_config(search, stage, "write"))
        return read_program(reply.text).code


# What they tell ----------------------------------------------------------------------------------


def shift(written: Mapping[str, Sequence[Sequence[Program]]], of: str, against: str) -> Estimate:
    """Estimate by how much the share of boosted programs differs, paired by seed."""
    ours, theirs = (
        np.array([np.mean([each.boosted for each in pair]) for pair in written[name]])
        for name in (of, against)
    )
    return mean_estimate((ours - theirs)[:, None], bounds=(-1.0, 1.0))


def _shift(written: Mapping[str, Sequence[Sequence[Program]]], seeds: int) -> list[Figure]:
    moved, back = shift(written, "seeded", "none"), shift(written, "by stage", "seeded")
    left, nothing = shift(written, "by stage", "none"), shift(written, "placebo", "none")
    programs = seeds * len(_STAGES)
    same = sum(
        ours.code == theirs.code
        for pair, other in zip(written["by stage"], written["no limits"], strict=True)
        for ours, theirs in zip(pair, other, strict=True)
    )
    how = (
        f"{COMPETITION}, {seeds} seeds with a draft and an improvement each, simulated data"
        f" scientist (no language model); share of programs with {' or '.join(BOOSTED)}, paired by"
        " seed, 95 %"
    )
    counts = "; ".join(f"{name}: {_counted(_flat(each))}" for name, each in written.items())
    return [
        Figure("Packages imported by drafts and improvements, by memory (as §4.6 counts them)",
               f"{how}; n = {programs} programs each", counts, "", None),
        Figure("A store seeded with timeouts shifts the packages used", how, _told(moved),
               "upper end < 0", passed=moved.high < 0),
        Figure("Kinds by stage bring them back", how, _told(back),
               "lower end > 0", passed=back.low > 0),
        Figure("Kinds by stage leave at most a fifth of the shift", how, _told(left),
               f"interval above {LEFT:.0%} of the shift, {LEFT * moved.value:+.3f}",
               passed=left.low > LEFT * moved.value),
        Figure("With kinds by stage programs are those of a store that never held a timeout",
               f"{how}; byte for byte", share(same, programs), "all", passed=same == programs),
        Figure("A placebo as long as what the store tells shifts nothing", how, _told(nothing),
               "interval holds 0", passed=nothing.low <= 0 <= nothing.high),
    ]  # fmt: skip


def _flat(pairs: Sequence[Sequence[Program]]) -> list[Program]:
    return [program for pair in pairs for program in pair]


def _counted(programs: Sequence[Program]) -> str:
    """Count the programs with each package, the most used ones first."""
    counts = Counter(name for program in programs for name in program.packages)
    common = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{name} {count}" for name, count in common if name in _MODELS)


_MODELS: Final = frozenset((*BOOSTED, "sklearn", "statsmodels", "torch"))
"""Packages that models come from."""


def _told(estimate: Estimate) -> str:
    return (
        f"{estimate.value:+.3f} ({estimate.low:+.3f} to {estimate.high:+.3f}),"
        f" n = {estimate.n_items} seeds"
    )


# Programs that ran -------------------------------------------------------------------------------


def _searched(competition: Competition, setting: Setting, searches: int) -> list[Figure]:
    steps = setting.size(8, 5)
    inputs = {"input": competition.public_dir}
    path = setting.work / "tree-memory-executions.sqlite"
    found: dict[str, list[Journal]] = {}
    with CachedSandbox(DockerSandbox(inputs=inputs), path) as sandbox:
        for name in ("none", "seeded", "by stage"):
            found[name] = []
            for seed in range(searches):
                setting.say(f"searching with memory {name!r}, seed {seed}")
                # A new memory each time: searches of one condition do not learn from each other.
                memory = memories(competition)[name]
                found[name].append(search(competition, sandbox, memory, seed=seed, steps=steps))
    ran = {name: [_programs(journal) for journal in each] for name, each in found.items()}
    how = (
        f"{COMPETITION}, real graph, programs in Docker: {searches} searches of {steps} steps for"
        " each memory, two programs at a time, simulated data scientist that makes no mistakes;"
        " programs that ran"
    )
    counts = "; ".join(
        f"{name}: {_counted(_flat(each))} of {len(_flat(each))} that ran"
        for name, each in ran.items()
    )
    shares = {name: _boosted(_flat(each)) for name, each in ran.items()}
    enough = min(len(_flat(each)) for each in ran.values()) >= FEWEST
    kinds = _limits_told(found["by stage"])
    told = ", ".join(f"{name} {value:.1%}" for name, value in shares.items())
    return [
        Figure(f"The same in searches whose programs ran: share with {' or '.join(BOOSTED)}", how,
               f"{told}. {counts}",
               "seeded below the other two, pooled" if enough else "reported: too few to be judged",
               passed=shares["seeded"] < min(shares["none"], shares["by stage"]) if enough else None),
        Figure("In those searches no draft and no improvement is told of a limit by stage", how,
               f"{kinds} recalls with one", "0", passed=kinds == 0),
    ]  # fmt: skip


def search(
    competition: Competition, sandbox: Sandbox, memory: Memory, *, seed: int, steps: int
) -> Journal:
    """Search for real, and return the journal; without mistakes, so that what is chosen runs."""
    artifacts = MemoryArtifacts()
    agent = build_tree_agent(
        SimulatedDataScientist(seed=seed, ignorance=0),
        competition=competition,
        sandbox=sandbox,
        memory=memory,
        artifacts=artifacts,
        steps=steps,
        seconds=SECONDS,
        width=2,
    )
    done = agent.invoke({"episode_id": f"search-{seed}", "seed": seed})
    return read_search(
        artifacts, done["journal"], run=f"search-{seed}", task=competition.id
    ).journal


def _programs(journal: Journal) -> list[Program]:
    return [Program(journal.stage(node), node.code) for node in journal.nodes if not node.is_buggy]


def _boosted(programs: Sequence[Program]) -> float:
    return sum(program.boosted for program in programs) / max(len(programs), 1)


def _limits_told(journals: Sequence[Journal]) -> int:
    return sum(
        "resource" in node.recalled_kinds
        for journal in journals
        for node in journal.nodes
        if journal.stage(node) != "debug"
    )
