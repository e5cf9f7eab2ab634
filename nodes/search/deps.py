"""What the nodes of a tree search share: its state, and what it depends on.

The state holds references and numbers, so that no checkpoint grows with the steps. Programs, outputs,
submissions and records are contents in `Artifacts`; the journal is a chain of records there.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeAlias

from typing_extensions import TypedDict, override

from langgraft._core.arguments import checked
from langgraft._core.texts import Prompt
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.competition_run import BOUNDS, Begun, Bounds, CompetitionDeps, Gpus
from langgraft.nodes.dialogue import Node, Update
from langgraft.nodes.prompts import PromptSet, prompt_field
from langgraft.nodes.search.journal import JournalNode, Search, Stage, read_search

Scope: TypeAlias = Literal["all", "siblings", "ancestors"]
"""Which of the search's programs a writer is told of: all, those written from the same parents, or
those that the new one descends from."""


class Work(TypedDict, total=False):
    """One program on its way through a branch: what is known of it so far."""

    step: int
    id: str
    """Name of the program in the journal."""
    stage: Stage
    parent_id: str | None
    partner_id: str
    """The other parent of a merge."""
    hint: str
    """What the policy tells the writer; missing: nothing."""
    scope: Scope
    """Which attempts the writer is told of; missing: all."""
    recalled: str
    """Reference of what memory said."""
    written: str
    """Reference of plan and code."""
    executed: str
    """Reference of what came of the program."""
    reviewed: str
    """Reference of what the review made of that."""
    diagnosed: str
    """Reference of the error record."""
    reflected: str
    """Reference of the lessons."""
    seconds: float
    """Of the search so far, as far as this program knows: those before its wave and its own."""


class TreeInput(TypedDict, total=False):
    """What a tree search is invoked with."""

    episode_id: str
    """Unique name of the search; made up where it is not given."""
    seed: int
    """Of the policy's chance; 0 where it is not given."""


class TreeOutput(TypedDict, total=False):
    """What a tree search gives back. `episode_id` names the search, and `done` says that it has ended."""

    episode_id: str
    journal: str
    """Reference of the journal's last record, for `read_search`; empty without a program."""
    chosen: str
    """The program whose submission counts; empty where none is valid."""
    metric: float | None
    """Its validation metric."""
    submission: str
    """Reference of its submission, or empty."""
    candidates: list[dict[str, Any]]
    """The programs looked at before submitting, as `langgraft.nodes.search.ends.Candidate`."""
    done: bool


class BranchOutput(TypedDict, total=False):
    """What a branch gives back to the search."""

    finished: list[Work]


def merge_finished(held: list[Work], update: list[Work] | int | None) -> list[Work]:
    """Change the list of programs that are done and not yet filed.

    Args:
        held: The list.
        update: What a branch brings, which takes its place in the order of the steps; the step of
            a program that has been filed; or `None`, which empties the list.
    """
    if update is None:
        return []
    if isinstance(update, int):
        return [work for work in held if work["step"] != update]
    done = {work["step"]: work for work in (*held, *update)}
    return [done[step] for step in sorted(done)]


class BegunSearch(Begun, total=False):
    """A search that a thread has begun."""

    policy: dict[str, Any]
    """What its policy says of itself."""


class TreeState(TreeOutput, total=False):
    """State of a tree search: plain JSON, of the same size at every step.

    `seed` decides all draws of the search that has `begun`.

    Each key costs a hundred bytes or so in each checkpoint, so there are few.
    """

    seed: int
    seconds: float
    """Wall clock so far, of models and executions; of a wave, that of its slowest program."""
    begun: BegunSearch
    wave: list[Work]
    """The programs being written now, at most `width` of them."""
    finished: Annotated[list[Work], merge_finished]
    """Those of them that branches have brought and that are not yet in the journal."""
    judged: str
    """Reference of the answers to what memory asked about the first of these."""


class BranchState(BranchOutput, total=False):
    """State of a branch, which brings one program from recall to review."""

    episode_id: str
    preview: str
    journal: str
    """Reference of the journal as it was when the branch began."""
    work: Work


def with_work(state: BranchState, **made: Any) -> Update:
    """Note what a node of a branch has made, mostly by reference."""
    return {"work": {**state["work"], **made}}


def spent(work: Work) -> float:
    """Return the seconds of the search so far, as far as a program knows."""
    return work.get("seconds", 0.0)


@checked
def timed(node: Node[BranchState], clock: Callable[[], float]) -> Node[BranchState]:
    """Make a node of a branch add the time that it takes to that of its program.

    Where it counts seconds itself, as of a program whose result was looked up, the larger number
    holds.
    """

    def noted(state: BranchState, update: Update, seconds: float) -> Update:
        work, before = update.get("work", state["work"]), spent(state["work"])
        own = max(spent(work) - before, seconds, 0.0)
        return {**update, "work": {**work, "seconds": round(before + own, 3)}}

    def run(state: BranchState) -> Update:
        began = clock()
        update = node.invoke(state)
        return noted(state, update, clock() - began)

    async def arun(state: BranchState) -> Update:
        began = clock()
        update = await node.ainvoke(state)
        return noted(state, update, clock() - began)

    return Node(node.get_name(), run, arun)


@checked
def branch_end(node: Node[BranchState]) -> Node[BranchState]:
    """Make the last node of a branch of one: it hands over what the branch made."""

    def brought(state: BranchState, update: Update) -> Update:
        return {"finished": [update.get("work", state["work"])]}

    def run(state: BranchState) -> Update:
        return brought(state, node.invoke(state))

    async def arun(state: BranchState) -> Update:
        return brought(state, await node.ainvoke(state))

    return Node(node.get_name(), run, arun)


def sample_name(state: BranchState) -> tuple[str, str]:
    """Name the sample of a call in a branch."""
    return state["episode_id"], state["work"]["id"]


@dataclass(frozen=True, slots=True)
class TreePrompts(PromptSet):
    """The prompts of a tree search, each with the placeholders that it may have.

    `draft`, `improve`, `debug` and `merge` ask for a program, `review` for what came of it, `diagnose`
    for what went wrong.
    """

    draft: Prompt = prompt_field("tree_draft", "task attempts memory rules data")
    improve: Prompt = prompt_field("tree_improve", "task attempts code memory rules")
    debug: Prompt = prompt_field("tree_debug", "task code output memory rules data")
    merge: Prompt = prompt_field(
        "tree_merge", "task attempts metric code partner_metric partner memory rules"
    )
    rules: Prompt = prompt_field("tree_rules", "split folds packages bounds")
    """What becomes `$rules`."""
    split: Prompt = prompt_field("tree_split", "")
    """What becomes `$split` of these, where programs are scored again on other splits."""
    bounds: Prompt = prompt_field("bounds", BOUNDS)
    """What becomes `$bounds` of these."""
    repair: Prompt = prompt_field("tree_repair", "problem")
    """Asks again for a program."""
    review: Prompt = prompt_field("tree_review", "task code output")
    diagnose: Prompt = prompt_field("diagnose", "code output analysis rules")

    def levels(self, stage: Stage) -> Sequence[str]:
        """Return how elaborate a program of a stage may be asked to be, the simplest first."""
        del stage
        return ()


@dataclass(frozen=True, slots=True)
class CurrentTreePrompts(TreePrompts):
    """Prompts that ask and tell more than AIDE's, after what AIRA found (arXiv:2507.02554).

    `draft`, `improve` and `debug` in the place of the others; `improve_complexity` is what becomes
    `$complexity` of an improvement.

    The more there is already, the more elaborate the next idea is to be; an improvement is shown
    what its parent reached and how long it ran, a repair how its parent came about.
    """

    draft: Prompt = prompt_field("tree_draft_current", "task attempts memory complexity rules data")
    improve: Prompt = prompt_field(
        "tree_improve_current",
        "task attempts metric direction code output memory complexity rules data",
    )
    debug: Prompt = prompt_field(
        "tree_debug_current", "task ancestors code output memory rules data"
    )
    draft_complexity: Prompt = prompt_field("tree_draft_complexity")
    """What becomes `$complexity` of a draft: a line for each level, the simplest first."""
    improve_complexity: Prompt = prompt_field("tree_improve_complexity")

    @override
    def levels(self, stage: Stage) -> Sequence[str]:
        """Return the lines."""
        by_stage = {"draft": self.draft_complexity, "improve": self.improve_complexity}
        return by_stage[stage].text.splitlines() if stage in by_stage else ()


@dataclass(frozen=True, slots=True)
class SearchDeps(CompetitionDeps):
    """What the nodes of a search depend on, beside models and memory."""

    sandbox: Sandbox
    """Runs programs."""
    prompts: TreePrompts = field(default_factory=TreePrompts)
    seconds: float = 7200.0
    """Wall clock of one program."""
    folds: int = 5
    """Of a cross-validation, as the prompt says."""
    packages: Sequence[str] = ()
    """What the prompt says can be imported."""
    gpus: Gpus = None
    """Of a program, as the prompt says."""
    steps: int = 30
    """Programs of the search."""
    hours: float | None = None
    """Wall clock of the search; `None` sets no limit."""
    invalid_is_bug: bool = True
    """Whether a program that leaves a submission which is not valid has failed."""
    candidates: int = 1
    """Best programs that are run again on fresh splits; with one, nobody is told of splits."""
    clock: Callable[[], float] = time.monotonic
    """Seconds that go on; of what it says only differences count."""
    weights: Sequence[str] = ()
    """Names of pretrained weights that programs find, as the prompt says."""

    @property
    def bounds(self) -> Bounds:
        """What the search may use."""
        return Bounds(
            self.sandbox.limits, self.seconds, self.steps, self.hours, self.gpus, self.weights
        )

    @property
    def lower_is_better(self) -> bool:
        """The metric's direction: the board's word, and nobody else's."""
        return self.competition.board.thresholds.lower_is_better

    def search(self, reference: str) -> Search:
        """Return the search so far, by the reference of its journal."""
        return read_search(self.artifacts, reference, task=self.competition.id)

    def nodes(self, reference: str) -> Sequence[JournalNode]:
        """Return the programs of a journal, in the order of their steps."""
        return self.search(reference).nodes

    def parent(self, state: BranchState) -> JournalNode | None:
        """Return the program that the one of a branch comes from."""
        return next(iter(self.parents(state)), None)

    def parents(self, state: BranchState) -> Sequence[JournalNode]:
        """Return what the program of a branch comes from: nothing, one program, or two."""
        work = state["work"]
        wanted = [each for each in (work["parent_id"], work.get("partner_id")) if each is not None]
        if not wanted:
            return ()
        nodes = {node.id: node for node in self.nodes(state["journal"])}
        return tuple(nodes[each] for each in wanted)
