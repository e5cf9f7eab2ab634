"""The tree agent: a search over programs for a competition, with memory grafted on.

    start → select ⇒ branch (several at once) → (judge → remember)… → select … → choose

A branch is a graph of its own: recall → write → execute → review → diagnose → reflect, of which
memory's nodes are there where memory asks for what they give. The state holds references and
numbers only; programs, outputs and the journal lie in `artifacts`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from langgraft._core.arguments import check_whole, checked
from langgraft._core.errors import SettingsError
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.submissions import sample_file
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.graphs.building import add_chain, check_seconds, contents_of, package_names
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.competition_run import Gpus
from langgraft.nodes.dialogue import ChatModel, Node, chat_model
from langgraft.nodes.search.deps import (
    BranchOutput,
    BranchState,
    SearchDeps,
    TreeInput,
    TreeOutput,
    TreePrompts,
    TreeState,
    branch_end,
    timed,
)
from langgraft.nodes.search.ends import (
    FRESH_SPLITS,
    after_choosing,
    after_rescoring,
    choose_node,
    rescore_node,
    start_search_node,
)
from langgraft.nodes.search.memory import (
    after_filing,
    diagnose_program_node,
    judge_program_node,
    recall_program_node,
    reflect_program_node,
    remember_program_node,
)
from langgraft.nodes.search.policy import AIDEPolicy, SearchPolicy, branches, select_node
from langgraft.nodes.search.programs import execute_node, review_node, write_node

Graph: TypeAlias = "StateGraph[TreeState, None, TreeInput, TreeOutput]"
Branch: TypeAlias = dict[str, Node[BranchState]]
"""Nodes of a branch by name, in the order they run."""


@checked
def build_tree_agent(
    code_model: ChatModel,
    *,
    competition: Competition,
    sandbox: Sandbox,
    feedback_model: ChatModel | None = None,
    memory: MemoryProvider[Any] | None = None,
    learn: bool = True,
    artifacts: Artifacts | None = None,
    folder: Path | str | None = None,
    policy: SearchPolicy | None = None,
    steps: int = 30,
    seconds: float = 7200.0,
    folds: int = 5,
    width: int = 1,
    candidates: int = 1,
    hours: float | None = None,
    invalid_is_bug: bool = True,
    budget: Budget | None = None,
    packages: Sequence[str] | None = None,
    gpus: Gpus = None,
    weights: Sequence[str] = (),
    prompts: TreePrompts | None = None,
    checkpointer: Checkpointer = None,
    clock: Callable[[], float] = time.monotonic,
    name: str = "tree",
) -> CompiledStateGraph[TreeState, None, TreeInput, TreeOutput]:
    """Build an agent that searches for the best program for a competition.

    Invoke it with `{"episode_id": …, "seed": 0}`, both optional. It returns the reference of the
    journal (`read_search(artifacts, reference)` reads it), and the program and submission chosen.

    =================  ===============================  ========  ============  ===================
    setting            meaning                          here      the paper,    AIDE 0.2.2, and
                                                                  Table 6       as MLE-bench has it
    =================  ===============================  ========  ============  ===================
    `code_model`       writes plans and programs        -         o3            o4-mini
    `feedback_model`   reviews, diagnoses, reflects,    the code  gpt-4.1       gpt-4.1-mini
                       and answers what memory asks     model
    `steps`            programs                         30        30            20; 500
    `seconds`          wall clock of one program        7200      7200          3600; 32400
    `folds`            of a cross-validation, as the    5         -             5
                       prompt says
    `policy`           what to write next; also         AIDE's    debug_prob    5 drafts, 0.5, 3;
                       `UCTPolicy`, `EvolutionPolicy`             0.5, max_     5, 1, 20
                                                                  debug_depth 3
                       together
    `width`            programs written side by side    1         -             1
    `candidates`       best programs that are run       1         -             1
                       again on two fresh splits
                       before one is submitted
    `hours`            wall clock of the search         none      24 (§4.1)     none; 24
    `invalid_is_bug`   a submission that is not valid   `True`    -             no such check;
                       is a failure, not only none                              only none
    `packages`         what the prompt says can be      names in  -             11 names, shuffled
                       imported                         the image
    `memory`           a provider; `None` has no        -         on, off       -
                       memory nodes at all
    `learn`            file episodes in it              `True`    yes           -
    =================  ===============================  ========  ============  ===================

    (mle-agent-memory Table 6; aideml `9643875`; mle-bench `783b15a`.)

    Each program is one episode of memory, `<episode_id>/<node id>`, in the domain
    `mle/<competition>`. What memory recalls, at which stages and from which step, is its own
    setting (`CodingMemory`).

    Going on: with a checkpointer a search that was stopped or killed is continued by
    `invoke(None, config)`, branches in flight from where each was. Contents must be on disk then
    (`folder`), memory is put back first (`restore_memory` in `langgraft.nodes.search`), and the
    search runs with `durability="sync"`. It ends as if it had not been stopped, byte for byte, as
    far as models and programs do the same again (`CachedSandbox` sees to that for programs). A
    search that has ended goes on in an agent with more `steps`, invoked on the thread with the
    same `episode_id`; another `episode_id` begins anew.

    Args:
        code_model: Any LangChain chat model, or the name of one (`openai:gpt-4.1-mini`).
        competition: Prepared; its board says which way the metric goes.
        sandbox: Made with `inputs={"input": competition.input_dir}`.
        feedback_model: `None` takes `code_model`.
        memory: The provider; `None` leaves recall, diagnose, judge and filing out of the graph.
        learn: Take episodes in. `False` evaluates on memory as it stands.
        artifacts: Where contents are kept; `None` takes `<folder>/artifacts`, and without a folder
            this process, where they end with it.
        folder: The search's own: the best solution lies in `<folder>/best`.
        policy: `None` takes `AIDEPolicy()`.
        steps: At least 1.
        seconds: Of wall clock, for one program.
        folds: At least 2.
        width: At least 1. The journal depends on it: programs of a wave do not see each other.
        candidates: At least 1.
        hours: Of models and executions, together; of programs written side by side, the slowest
            counts, and one whose result is looked up counts as it ran. `None` sets no limit.
        invalid_is_bug: `False` takes a program whose submission is not valid for one that works.
        budget: Room for recalled text; `None`: that of `Budget()`.
        packages: `None` takes what the image of `langgraft sandbox build` is asked to hold, by
            name; of another image, `installed_packages(sandbox)` asks it (`langgraft.environments.
            sandboxes.image.packages`), or give your own, also with versions.
        gpus: Of a program, as the sandbox was made; prompts name them.
        weights: Names of pretrained weights that programs find, as the sandbox was made; prompts name
            them.
        prompts: `None` takes `TreePrompts()`, which ask as AIDE's do; `CurrentTreePrompts()` of
            `langgraft.nodes.search` asks and tells more.
        checkpointer: Any LangGraph checkpointer.
        clock: Seconds that go on.
        name: Name of the graph in traces.

    Raises:
        SettingsError: A number is out of its range, a prompt cannot be filled in, or memory needs
            what a tree search cannot give.
        CompetitionError: The data is not prepared.
        InputError: It is no competition.
    """
    for named, value in (("steps", steps), ("width", width), ("candidates", candidates)):
        check_whole(named, value)
    check_whole("folds", folds, 2)
    check_seconds(seconds)
    if hours is not None:
        check_seconds(hours, "hours")
    sample_file(competition)
    needs = tree_memory_needs(memory, learn=learn)
    code_model = chat_model(code_model, "`code_model` of build_tree_agent")
    feedback = chat_model(feedback_model, "`feedback_model` of build_tree_agent") or code_model
    folder = None if folder is None else Path(folder)
    deps = SearchDeps(
        competition,
        contents_of(artifacts, folder),
        sandbox,
        prompts or TreePrompts(),
        seconds,
        folds,
        package_names(packages),
        gpus,
        steps,
        hours,
        invalid_is_bug,
        candidates,
        clock,
        tuple(weights),
    )
    policy = policy or AIDEPolicy()
    taught = memory if learn else None

    branch: Branch = {}
    if memory is not None:
        branch["recall"] = recall_program_node(deps, memory, budget=budget)
    branch["write"] = write_node(deps, code_model)
    branch["execute"] = execute_node(deps)
    branch["review"] = review_node(deps, feedback)
    if "errors" in needs:
        branch["diagnose"] = diagnose_program_node(deps, feedback)
    if "lessons" in needs:
        branch["reflect"] = reflect_program_node(deps, feedback)

    graph: Graph = StateGraph(TreeState, input_schema=TreeInput, output_schema=TreeOutput)
    graph.add_node("start", start_search_node(deps, memory=taught, policy=policy))
    selecting = select_node(deps, policy, width=width)
    graph.add_node("select", selecting)
    graph.add_node("branch", _branch({name: timed(node, clock) for name, node in branch.items()}))
    graph.add_node("remember", remember_program_node(deps, taught, folder=folder))
    graph.add_node("choose", choose_node(deps, count=candidates))
    graph.add_edge(START, "start")
    graph.add_edge("start", "select")
    graph.add_conditional_edges("select", branches, ["branch", "choose"])
    judge = None
    if taught is not None and "verdicts" in needs:
        judge = judge_program_node(deps, taught, feedback)
    _file_one_by_one(graph, judge)
    rescore = rescore_node(deps) if candidates > 1 else None
    _choose(graph, rescore)
    compiled = graph.compile(checkpointer=checkpointer, name=name)
    limit = 5 * steps + len(FRESH_SPLITS) * candidates + 20
    return compiled.with_config(recursion_limit=limit)


def _file_one_by_one(graph: Graph, judge: Node[TreeState] | None) -> None:
    """Wire what follows the branches: each program is judged, if it is, and filed before the next.

    An edge from many branches is the fan-in: what it leads to runs once, when all are done.
    """
    first = "remember"
    if judge is not None:
        first = "judge"
        graph.add_node("judge", judge)
        graph.add_edge("judge", "remember")
    graph.add_edge("branch", first)
    graph.add_conditional_edges("remember", after_filing, {"more": first, "all": "select"})


def _choose(graph: Graph, rescore: Node[TreeState] | None) -> None:
    """Wire the end: choose, and before that run the candidates again, if there are several."""
    if rescore is None:
        graph.add_edge("choose", END)
        return
    graph.add_node("rescore", rescore)
    graph.add_conditional_edges("choose", after_choosing, {"rescore": "rescore", "end": END})
    graph.add_conditional_edges("rescore", after_rescoring, ["rescore", "choose"])


def _branch(nodes: Branch) -> CompiledStateGraph[BranchState, None, BranchState, BranchOutput]:
    """Wire the nodes of a branch one after the other; what they made is its output."""
    graph = StateGraph(BranchState, output_schema=BranchOutput)
    *_, last = nodes
    add_chain(graph, {**nodes, last: branch_end(nodes[last])}, after=START)
    graph.add_edge(last, END)
    return graph.compile(name="branch")


def tree_memory_needs(memory: MemoryProvider[Any] | None, *, learn: bool) -> frozenset[str]:
    """Return what memory needs for filing.

    Raises:
        SettingsError: It needs what a tree search does not have.
    """
    if memory is None:
        return frozenset()
    if "draft" in memory.needs:
        msg = (
            f"{type(memory).__name__} wants a tentative answer before it is asked, to look for"
            " contradictions, and a tree search has none: a plan is written together with its"
            " program. Turn that off in its settings (gate=False)"
        )
        raise SettingsError(msg)
    return frozenset(memory.needs) if learn else frozenset()
