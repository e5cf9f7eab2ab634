"""Agents that work step by step in a study, in a live workspace with a log of steps: chain and MLAB.

Cells of a kernel build on each other, so that what they did cannot be looked up as a program's
result can: nothing of a kernel is cached. Conditions run all of their own, and a run that goes on
after a crash runs again what it had done.

Of each run stays `events.jsonl`, all that happened in it; the file of that name in a run's folder
is another one, the harness's, which holds what differs between repetitions.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from langchain_core.language_models import BaseChatModel
from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict, override

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft._core.files import atomic_write, each_whole_line
from langgraft._core.texts import in_a_line
from langgraft.benchmarks.harness.conversations import Message
from langgraft.benchmarks.mle.agents.base import (
    SOLUTION,
    Agent,
    AgentResult,
    Graph,
    Left,
    Parts,
    Place,
    Solved,
    must_be,
)
from langgraft.benchmarks.mle.agents.settings import (
    AgentName,
    AgentSettings,
    ChainSettings,
    MlabSettings,
    StepSettings,
)
from langgraft.memory.model import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.chain.deps import ChainPrompts
from langgraft.nodes.mlab.deps import MLABPrompts
from langgraft.nodes.mlab.tools import BLOCKS
from langgraft.nodes.workbench.limits import RunLimits, TokenPrices
from langgraft.nodes.workbench.log import (
    MESSAGE,
    Action,
    EventLog,
    Observation,
    StepRecord,
    log_lines,
    read_log,
    steps_of,
)
from langgraft.nodes.workbench.memory import memory_needs
from langgraft.nodes.workbench.start import EVENTS, arestore_run_memory, run_bank, solution_of

STEPS: Final = "steps.json"

_PROMPTS: Final = (
    *("bounds", "use_all_time", "may_finish"),
    *("diagnose", "diagnose_by_example", "judge_novelty", "judge_novelty_message", "repair"),
)
"""Prompts of both agents: what a run may use, and what becomes of failures."""

FILING_CALLS: Final = 4
"""Model calls that filing a failure takes at most: a diagnosis, a judgment, and a correction each."""


class StepAgent(Agent):
    """Acts, observes, and acts again."""

    unit: ClassVar[str] = "steps"
    files: ClassVar[tuple[str, ...]] = (SOLUTION, EVENTS)
    record_file: ClassVar[str] = STEPS
    cached: ClassVar[bool] = False
    ignorance: ClassVar[float]
    """Of the simulated model."""

    @abstractmethod
    def calls_a_step(self, settings: AgentSettings) -> int:
        """Return how many calls of its own model a step takes at the most."""

    @override
    def most_calls(self, settings: AgentSettings, *, memory: bool) -> int:
        """Return the calls of all steps; every one may fail and be filed."""
        filing = FILING_CALLS if memory else 0
        return must_be(settings, StepSettings).steps * (self.calls_a_step(settings) + filing)

    @override
    def most_executions(self, settings: AgentSettings) -> int:
        """Return the steps: each executes something at the most."""
        return must_be(settings, StepSettings).steps

    @override
    def simulated_model(self, *, temperature: float) -> tuple[BaseChatModel, Mapping[str, JSON]]:
        """Return the simulated engineer."""
        from langgraft.benchmarks.simulated.engineer import (  # noqa: PLC0415  (not for real models)
            SimulatedEngineer,
        )

        model = SimulatedEngineer(temperature=temperature, ignorance=self.ignorance)
        return model, {"ignorance": self.ignorance}

    @override
    def check_memory(self, memory: MemoryProvider[Any], *, learn: bool) -> None:
        """Refuse what the builder of the graph would refuse."""
        memory_needs(memory, learn=learn)

    @override
    def told(self, left: Left) -> Sequence[StepRecord]:
        """Return the steps that something was observed of."""
        log = _log(left)
        steps = steps_of(log)
        return steps[:-1] if _under_way(log) else steps

    @override
    def read(self, left: Left, run: str) -> AgentResult:
        """Read the log."""
        log = _log(left)
        submission = str(left.state.get("submission") or "")
        files = {EVENTS: log_lines(log).encode("utf-8", "replace")}
        if program := solution_of(log):
            files[SOLUTION] = program.encode("utf-8", "replace")
        steps = steps_of(log)
        return AgentResult(
            record=log.reference,
            fields={
                "steps": [step.model_dump(mode="json") for step in steps],
                "ended": str(left.state.get("ended") or ""),
                "attempts": max((step.attempt for step in steps), default=0) + 1,
            },
            deltas=log.deltas,
            validation=left.state.get("metric"),
            submission=submission,
            files=files,
        )

    @override
    def bank_of(self, left: Left) -> BankContent:
        """Return what the run's log says that memory held."""
        return run_bank(left.artifacts, left.state)

    @override
    async def restore(self, memory: MemoryProvider[Any], left: Left) -> None:
        """Make memory what the run's log says that it was."""
        await arestore_run_memory(memory, left.artifacts, left.state)

    @override
    def leave(self, came: AgentResult, out: Path, about: Solved) -> Mapping[str, Path]:
        """Write the steps as a study's log has them."""
        atomic_write(out / STEPS, f"{canonical_json(dict(came.fields))}\n".encode())
        return {"events": out / EVENTS, "steps": out / STEPS}


class Limited(TypedDict):
    """What a builder is told of limits."""

    limits: RunLimits
    prices: TokenPrices | None
    use_all_time: bool


def limited(section: StepSettings) -> Limited:
    """Return the limits of a section, as builders take them."""
    prices = None
    if section.prompt_price is not None and section.completion_price is not None:
        prices = TokenPrices(section.prompt_price, section.completion_price)
    limits = RunLimits(steps=section.steps, hours=section.hours, dollars=section.dollars)
    return Limited(limits=limits, prices=prices, use_all_time=section.use_all_time)


def _log(left: Left) -> EventLog:
    return read_log(left.artifacts, str(left.state.get("log") or ""))


def _under_way(log: EventLog) -> bool:
    """Whether the last thing the agent did is still to be answered."""
    return (
        bool(log.events) and isinstance(log.events[-1], Action) and log.events[-1].source == "agent"
    )


class ChainAgent(StepAgent):
    """Runs commands and cells, edits files, and looks at what came of each."""

    name: ClassVar[AgentName] = "chain"
    title: ClassVar[str] = "chain of actions (OpenHands CodeAct)"
    prompts: ClassVar[tuple[str, ...]] = (
        "chain_system",
        "chain_shell",
        "chain_shell_of_jobs",
        "chain_task",
        "chain_continue",
        "chain_recovery",
        *_PROMPTS,
    )
    ignorance: ClassVar[float] = 1.6

    @override
    def calls_a_step(self, settings: AgentSettings) -> int:
        """Return one: a reply is a step whatever it says, and one that is too long is cut down."""
        del settings
        return 1

    @override
    def graph(self, parts: Parts, place: Place) -> Graph:
        """Build the chain; it shows nothing while it goes on."""
        from langgraft.graphs.chain import build_chain_agent  # noqa: PLC0415  (not for plans)

        section = must_be(parts.settings, ChainSettings)
        return build_chain_agent(
            parts.model,
            prompts=ChainPrompts(diagnose=parts.diagnosis),
            context=section.context,
            soft_seconds=section.soft_seconds,
            on_stuck=section.on_stuck,
            recoveries=section.recoveries,
            **parts.arguments(place),
            **limited(section),
        )


INSIDE_CALLS: Final = 2 * (BLOCKS + 1)
"""Calls beside the reply at the most: a file is read in blocks and put together, and what was seen
is shortened in the same way. One that is too long for the model is asked in short, which is more."""


class MlabAgent(StepAgent):
    """Reflects, plans and calls one tool a step, seeing its last three."""

    name: ClassVar[AgentName] = "mlab"
    title: ClassVar[str] = "MLAB (MLAgentBench)"
    prompts: ClassVar[tuple[str, ...]] = (
        "mlab_task",
        "mlab_turn",
        "mlab_format",
        "mlab_repair",
        "mlab_edit",
        "mlab_edit_repair",
        "mlab_understand",
        "mlab_understand_all",
        "mlab_summarize",
        *_PROMPTS,
    )
    ignorance: ClassVar[float] = 1.6

    @override
    def calls_a_step(self, settings: AgentSettings) -> int:
        """Return a reply, its corrections, and what a tool asks."""
        return 1 + must_be(settings, MlabSettings).retries + INSIDE_CALLS

    @override
    def graph(self, parts: Parts, place: Place) -> Graph:
        """Build MLAB; it shows nothing while it goes on."""
        from langgraft.graphs.mlab import build_mlab_agent  # noqa: PLC0415  (not for plans)

        section = must_be(parts.settings, MlabSettings)
        return build_mlab_agent(
            parts.model,
            prompts=MLABPrompts(diagnose=parts.diagnosis),
            window=section.window,
            retries=section.retries,
            **parts.arguments(place),
            **limited(section),
        )


def messages_of(kept: Path) -> tuple[Message, ...]:
    """Return the events that are kept of a run as messages: calls of tools, and what came of each.

    Args:
        kept: The folder of its files; of another agent's run there is nothing to tell.

    Raises:
        InputError: The file is damaged.
    """
    path = kept / EVENTS
    if not path.is_file():
        return ()
    try:
        events = [_EVENT.validate_json(line) for line in each_whole_line(path.read_bytes())]
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is no list of events: {in_a_line(str(error), 200)}") from error
    calls: dict[int, tuple[str, str, Mapping[str, JSON]]] = {}
    told = []
    for event in events:
        if isinstance(event, Observation):
            call = calls.get(-1 if event.cause is None else event.cause)
            told.append(Message("user" if call is None else "tool", event.text, call=call))
            continue
        text = event.arguments.get("text")
        said = text if isinstance(text, str) else canonical_json(event.arguments)
        if event.source != "agent":
            told.append(Message("user", said if event.name == MESSAGE else f"{event.name}: {said}"))
        elif event.name == MESSAGE:
            told.append(Message("assistant", "\n".join(filter(None, (event.thought, said)))))
        else:
            calls[event.id] = (str(event.id), event.name, event.arguments)
            told.append(Message("assistant", event.thought, call=calls[event.id]))
    return tuple(told)


_EVENT: Final[TypeAdapter[Action | Observation]] = TypeAdapter(
    Annotated[Action | Observation, Field(discriminator="kind")]
)
