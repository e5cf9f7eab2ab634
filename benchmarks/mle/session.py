"""One run of a study, an agent at one competition with one memory, seed after seed; and what it came to, written down.

What a run is made of is made here, too: its models, cached, capped and retried as that of the plan
itself is, and its memory.

Submissions are listed as MLE-bench lists them, to be graded again by anybody:

    langgraft competitions grade report/submissions.jsonl

A line for each run that ended, `{"competition_id": …, "submission_path": …}`. Where nothing was
submitted there is no file at the path, as MLE-bench has it.
"""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeAlias

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import SystemClock
from langgraft._core.errors import InfrastructureError, PlanError, SettingsError
from langgraft._core.files import atomic_write, make_directory
from langgraft.benchmarks.harness.execute import in_thread
from langgraft.benchmarks.harness.failures import one_line
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.models import make_model, shared_by, silence
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    ItemOutcome,
    RunFiles,
    RunSpec,
)
from langgraft.benchmarks.harness.usage import current_meters, replicate_scope
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.base import SUBMISSION, Parts
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings
from langgraft.benchmarks.mle.conditions import CODING, MemoryCondition
from langgraft.benchmarks.mle.execute_agent import Found, find
from langgraft.benchmarks.mle.plan import (
    SEARCH,
    MlePlan,
    agent_of,
    memory_of,
    seed_of,
    seed_of_item,
)
from langgraft.benchmarks.mle.sandboxes import Borrowed
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import grade_submission, report, report_json
from langgraft.memory.controls import REPLACEMENTS
from langgraft.memory.embedders.cached import SQLiteVectors, VectorCache
from langgraft.memory.embedders.named import make_embedder, read_name
from langgraft.memory.model import MemoryDelta, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import provider_class
from langgraft.memory.rankers.dense import Dense

SUBMISSIONS: Final = "submissions.jsonl"
"""The file that lists submissions."""

_ELSEWHERE: Final = {"created_at", "submission_path"}
"""Fields of a grade that differ between machines."""


def keep_files(found: Found, agent: AgentName, folder: Path) -> Path:
    """Write what a run left to a folder; return where its submission is, or would be.

    A run that left no file of a name removes one that was there.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    make_directory(folder)
    contents: dict[str, bytes | None] = dict.fromkeys(agent_named(agent).files)
    contents |= {SUBMISSION: found.submission, **found.came.files}
    for name, content in contents.items():
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            atomic_write(folder / name, content)
    return folder / SUBMISSION


def grade(submission: Path, competition: Competition) -> dict[str, JSON]:
    """Grade a submission; return what is the same on every machine of the report on it.

    Where there is no file nothing was submitted, which is no fault to be warned of.

    Raises:
        CompetitionError: The competition's own files are at fault.
        MissingExtraError: pandas or scikit-learn is not installed.
    """
    if submission.exists():
        made = grade_submission(submission, competition)
    else:
        made = report(None, competition, submission, exists=False, clock=SystemClock())
    return {key: value for key, value in report_json(made).items() if key not in _ELSEWHERE}


def result_of(
    found: Found, agent: AgentName, competition: Competition, report: Mapping[str, JSON]
) -> dict[str, JSON]:
    """Return what a study's log holds of a run: what all agents have, and the agent's own."""
    submission = found.submission
    return {
        "agent": agent,
        "competition": competition.id,
        "modality": competition.modality,
        "metric_group": competition.metric_group,
        "metric": competition.grader.name,
        "lower_is_better": competition.board.thresholds.lower_is_better,
        **found.came.fields,
        "validation": found.came.validation,
        "report": dict(report),
        "submission_sha256": "" if submission is None else hashlib.sha256(submission).hexdigest(),
        "usage": dict(found.usage),
    }


def list_submissions(log: PlanLog, out: Path) -> Path:
    """List the submissions of a run directory in a file of the folder `out`; return the file.

    Raises:
        RunDirectoryError: It cannot be written.
    """
    lines = []
    for run in log.graph:
        if run.spec.factors["phase"] != SEARCH:
            continue
        kept = RunFiles(run_folder(log.path, run), log.path).kept
        for record in log.records(run.name):
            path = (kept / record.item_id / SUBMISSION).resolve()
            row = {"competition_id": record.result["competition"], "submission_path": str(path)}
            lines.append(f"{canonical_json(row)}\n")
    make_directory(out)
    atomic_write(out / SUBMISSIONS, "".join(lines).encode())
    return out / SUBMISSIONS


Models: TypeAlias = tuple[BaseChatModel, BaseChatModel | None]
"""The model that acts, and the one for feedback; `None` where that is the same."""


class MleSession:
    """The items of one run, each of which is one run of its agent.

    An item's work lies in the run's folder until it is committed: a process that is killed in the
    middle leaves it there, and the next one goes on from the last checkpoint. What an item left
    stays as files, `kept/<item>/submission.csv` and `kept/<item>/solution.py`, and of agents that
    work step by step all that happened, `kept/<item>/events.jsonl`.
    """

    def __init__(
        self,
        plan: MlePlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        *,
        models: Models,
        competition: Competition,
        borrowed: Borrowed,
        place: BankPlace,
        files: RunFiles,
    ) -> None:
        self._files = files
        self._borrowed = borrowed
        condition = memory_of(plan, run)
        self._resampled = condition.resampled
        bank = None
        if condition.start != "off":
            bank = make_bank(plan, condition, place)
            bank.restore(fold(deltas))
        self._parts = Parts(
            plan,
            plan.agent(agent_of(run)),
            competition,
            borrowed.sandbox,
            *models,
            memory=_asked(bank, condition, seed_of(run)),
            learn=condition.control is None,
        )

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Run the agent once, from the beginning or from the last checkpoint, and grade the result.

        The grade is made when the run is over: nothing of it can reach the agent.
        """
        parts = self._parts
        agent, competition = parts.settings.name, parts.competition
        with replicate_scope(item_id):
            found = await find(
                parts,
                self._files.work(index),
                episode_id=self._episode_id(item_id),
                seed=seed_of_item(item_id),
            )
        file = await in_thread(keep_files, found, agent, self._files.kept / item_id)
        report = await in_thread(grade, file, competition)
        return ItemOutcome(
            result_of(found, agent, competition, report),
            found.came.deltas,
            events={"usage": dict(found.billing), "resumed": found.resumed},
        )

    async def aclose(self) -> None:
        """Give the sandbox back; the last one who does closes it."""
        await asyncio.to_thread(self._borrowed.release)

    def _episode_id(self, item_id: str) -> str:
        """Return the item's name: the same under every condition, which share their samples.

        Where prompts are equal so are replies, and what conditions have in common is paid once.
        Agents share none.
        """
        parts = self._parts
        drawn = "rerun/" if self._resampled else ""
        return parts.plan.named(parts.settings.name, f"{drawn}{parts.competition.id}/{item_id}")


# The memory of a run ---------------------------------------------------------------------------


def make_bank(plan: MlePlan, condition: MemoryCondition, place: BankPlace) -> MemoryProvider[Any]:
    """Make the provider of a condition over the run's store; of a control, the one it is of."""
    filling, cache = plan.filled_by(condition), None
    if place.files is not None and plan.embedder is not None:
        cache = SQLiteVectors(place.files.shared / "vectors.sqlite")
    return provider_of(filling, place.store, place.namespace, ranker_of(plan, filling, cache))


def ranker_of(
    plan: MlePlan, condition: MemoryCondition, cache: VectorCache | None = None
) -> Dense | None:
    """Return what compares errors by the plan's embedder; `None` where a condition has its own way.

    Args:
        plan: Names the embedder.
        condition: Whose memory it is.
        cache: Where vectors are kept; `None`: in memory.
    """
    name = plan.embedder
    if name is None or condition.provider_name != CODING or "ranker" in condition.settings:
        return None
    counted = CountedEmbeddings(name)
    return Dense(make_embedder(counted, fingerprint=name, cache=cache), ties="newest")


class CountedEmbeddings(Embeddings):
    """A model's embeddings by name, each text counted in what a run paid for.

    Args:
        name: As LangChain's `init_embeddings` takes it; nothing is loaded before it is used.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    @cached_property
    def inner(self) -> Embeddings:
        """The embeddings of the provider.

        Raises:
            SettingsError: They cannot be made: a package or a key is missing.
        """
        return read_name(self._name).make()

    @override
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed texts.

        Raises:
            InfrastructureError: The provider failed, after what its client tries again.
        """
        with self._counting(texts):
            return self.inner.embed_documents(texts)

    @override
    def embed_query(self, text: str) -> list[float]:
        """Embed a text that others are compared with; as `embed_documents` otherwise."""
        with self._counting([text]):
            return self.inner.embed_query(text)

    @contextmanager
    def _counting(self, texts: Sequence[str]) -> Iterator[None]:
        try:
            yield
        except SettingsError:
            raise
        except Exception as error:  # clients have classes of their own
            msg = f"embedder {self._name!r} failed: {one_line(error)}"
            raise InfrastructureError(msg) from error
        for meter in current_meters():
            meter.count_embedded(len(texts), sum(map(len, texts)))


def check_memories(plan: MlePlan) -> None:
    """Refuse conditions whose memory needs what an agent cannot give.

    Raises:
        PlanError: There is one.
    """
    for section in plan.agents:
        for condition in plan.memory_of(section):
            if condition.start == "off":
                continue
            filling = plan.filled_by(condition)
            memory = provider_of(filling, InMemoryStore(), None, ranker_of(plan, filling))
            try:
                agent_named(section.name).check_memory(memory, learn=condition.control is None)
            except SettingsError as error:
                msg = f"condition {condition.name!r} of the agent {section.name}: {error}"
                raise PlanError(msg) from error


def provider_of(
    condition: MemoryCondition,
    store: BaseStore,
    namespace: tuple[str, ...] | None,
    ranker: Dense | None = None,
) -> MemoryProvider[Any]:
    """Make the provider that a condition describes, with another ranker if one is given."""
    made, settings = provider_class(condition.provider_name), condition.architecture()
    if ranker is not None:
        settings = settings.model_copy(update={"ranker": ranker})
    return made(store, namespace=namespace, settings=settings)


def _asked(
    bank: MemoryProvider[Any] | None, condition: MemoryCondition, seed: int
) -> MemoryProvider[Any] | None:
    if bank is None or condition.control is None:
        return bank
    return REPLACEMENTS[condition.control](bank, seed=seed)


# Its models ------------------------------------------------------------------------------------


def models_of(plan: MlePlan, agent: AgentSettings, model: BaseChatModel) -> Models:
    """Make an agent's models.

    Args:
        plan: Names them, where the agent's section does not.
        agent: The section.
        model: The model of the plan.

    Raises:
        InputError: One cannot be set up.
    """
    acting, feedback = _acting(plan, agent), _feedback(plan, agent)
    return (
        model if acting is None else _made(plan, acting, model),
        None if feedback is None else _made(plan, feedback, model),
    )


def check_models(plan: MlePlan) -> None:
    """See whether the models that agents have beside that of the plan can be made, and the embedder.

    Raises:
        InputError: One cannot be set up.
    """
    if plan.embedder is not None:
        read_name(plan.embedder).make()
    for agent in plan.agents:
        for named in (_acting(plan, agent), _feedback(plan, agent)):
            if named is not None:
                _made(plan, named, None)


@dataclass(frozen=True, slots=True)
class _Named:
    """A model, where its server listens, and how it is asked."""

    name: str
    url: str | None
    temperature: float
    max_tokens: int


def _acting(plan: MlePlan, agent: AgentSettings) -> _Named | None:
    """Return the model that acts, unless it is that of the plan."""
    if plan.model == SIMULATED:
        return None
    own = _as_it_acts(plan, agent)
    of_plan = _Named(plan.model, plan.base_url, plan.temperature, plan.max_tokens)
    return own if agent.model is not None or own != of_plan else None


def _as_it_acts(plan: MlePlan, agent: AgentSettings) -> _Named:
    return _Named(
        agent.model or plan.model,
        agent.base_url or plan.base_url,
        plan.temperature_of(agent),
        agent.max_tokens or plan.max_tokens,
    )


def _feedback(plan: MlePlan, agent: AgentSettings) -> _Named | None:
    """Return the model for feedback, unless it is the one that acts, asked in the same way."""
    if plan.model == SIMULATED:
        return None
    acting = _as_it_acts(plan, agent)
    temperature = agent.feedback_temperature
    if temperature is None:
        temperature = acting.temperature
    for named in (agent, plan):
        if named.feedback_model is not None:
            url = named.feedback_base_url or plan.base_url
            tokens = agent.feedback_max_tokens or plan.max_tokens
            return _Named(named.feedback_model, url, temperature, tokens)
    tokens = agent.feedback_max_tokens or acting.max_tokens
    same = replace(acting, temperature=temperature, max_tokens=tokens)
    return None if same == acting else same


def _made(plan: MlePlan, named: _Named, model: BaseChatModel | None) -> BaseChatModel:
    return make_model(
        named.name,
        base_url=named.url,
        temperature=named.temperature,
        max_tokens=named.max_tokens,
        settings=plan.model_settings,
        timeout=silence(plan),
        call_seconds=plan.call_seconds,
        reply_bytes=plan.reply_bytes,
        **shared_by(model),
    )
