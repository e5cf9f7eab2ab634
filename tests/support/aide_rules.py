"""AIDE's search policy, stated a second time from its description, and journals to try it on.

It shares no code and no approach with `langgraft.nodes.search.policy`: it grows a tree of
programs with their children, walks it from the roots, and says how likely each choice is as a
fraction. Chance is nothing but these fractions here.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from random import Random

from langgraft.nodes.search.journal import JournalNode, Stage

Choice = tuple[Stage, str | None]
"""What to do, and to which program."""


@dataclass
class Program:
    """A program of AIDE's tree."""

    node: JournalNode
    repairs: int
    """How many repairs in a row end in it."""
    children: list["Program"] = field(default_factory=list)


def chances(
    nodes: list[JournalNode],
    *,
    num_drafts: int,
    debug_prob: Fraction,
    max_debug_depth: int,
    maximize: bool,
) -> dict[Choice, Fraction]:
    """Return every choice AIDE may make next, with its probability; those add up to one."""
    roots = grow(nodes)
    if len(roots) < num_drafts:
        return {("draft", None): Fraction(1)}
    everything = [program for root in roots for program in below(root)]
    repairable = [
        program
        for program in everything
        if program.node.is_buggy and not program.children and program.repairs <= max_debug_depth
    ]
    found: dict[Choice, Fraction] = {}
    rest = Fraction(1)
    if repairable:
        rest -= debug_prob
        for program in repairable:
            found["debug", program.node.id] = debug_prob / len(repairable)
    found[otherwise([each.node for each in everything], maximize=maximize)] = rest
    return {choice: chance for choice, chance in found.items() if chance}


def otherwise(nodes: list[JournalNode], *, maximize: bool) -> Choice:
    """Say what AIDE does where it repairs nothing."""
    champion: JournalNode | None = None
    for node in sorted(nodes, key=lambda each: each.step):
        if node.is_buggy:
            continue
        assert node.metric is not None
        if champion is None:
            champion = node
            continue
        assert champion.metric is not None
        ahead = node.metric - champion.metric
        if (ahead > 0) if maximize else (ahead < 0):
            champion = node
    return ("draft", None) if champion is None else ("improve", champion.id)


def grow(nodes: list[JournalNode]) -> list[Program]:
    """Make trees of a journal, and return their roots."""
    roots: list[Program] = []
    planted: dict[str, Program] = {}
    for node in nodes:
        parent = planted[node.parent_id] if node.parent_id else None
        repairs = parent.repairs + 1 if parent and parent.node.is_buggy else 0
        planted[node.id] = Program(node, repairs)
        (parent.children if parent else roots).append(planted[node.id])
    return roots


def below(program: Program) -> list[Program]:
    """List a program and all that descend from it."""
    found, waiting = [], [program]
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].children
    return found


def random_journal(random: Random, *, most: int = 40) -> list[JournalNode]:
    """Make a journal of any shape: long chains, bushes, ties, all failing, all working."""
    bugginess = random.choice([0.0, 0.3, 0.6, 0.9, 1.0])
    newest = random.choice([1, 2, 40])
    nodes: list[JournalNode] = []
    for step in range(random.randrange(most + 1)):
        root = not nodes or random.random() < random.choice([0.1, 0.5])
        buggy = random.random() < bugginess
        nodes.append(
            JournalNode(
                step=step,
                id=f"{step:03d}",
                parent_id=None if root else random.choice(nodes[-newest:]).id,
                plan="a plan",
                code="pass",
                metric=None if buggy else random.choice([-1.0, 0.0, 0.25, 0.5, 1e9]),
                is_buggy=buggy,
            )
        )
    return nodes
