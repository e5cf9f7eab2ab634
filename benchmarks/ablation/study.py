"""The ablation as the harness sees it."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError, PlanError
from langgraft.benchmarks.ablation.plan import OWN, RERUN, STUDY, AblationPlan, runs_of
from langgraft.benchmarks.harness.plans import (
    check_provider,
    is_foreign,
    is_path,
    look_here,
    provider_modules,
    source_digests,
)
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    PlanLogReader,
    Report,
    RunSession,
    RunSpec,
    Study,
    list_runs,
)
from langgraft.memory.model import MemoryDelta
from langgraft.memory.providers import provider_class, provider_settings

if TYPE_CHECKING:  # a log is read without them
    from langchain_core.language_models import BaseChatModel

    from langgraft.benchmarks.ablation.experiment import Experiment

CODE: Final = (
    "langgraft.benchmarks.ablation.attempt",
    "langgraft.benchmarks.ablation.session",
)
"""What carries out a run."""


def load_experiment(name: str) -> "Experiment":
    """Import an experiment, or call what makes one.

    Args:
        name: `package.module:object`; the current folder is looked at, too.

    Raises:
        InputError: It cannot be imported, or is none.
    """
    from langgraft.benchmarks.ablation.experiment import Experiment  # noqa: PLC0415

    if not is_path(name):
        msg = f"an experiment is named 'package.module:object', got {name!r:.80}"
        raise InputError(msg)
    look_here()
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
        if not isinstance(found, Experiment) and callable(found):
            found = found()
    except InputError:
        raise
    except Exception as error:
        msg = f"the experiment {name!r} cannot be imported: {type(error).__name__}: {error}"
        raise InputError(msg) from error
    if not isinstance(found, Experiment):
        msg = f"{name!r} is {found!r:.80}, and no `Experiment`"
        raise InputError(msg)
    return found


class AblationStudy(Study[AblationPlan]):
    """Does memory help somebody's own agent?

    Args:
        experiment: The agent, its tasks and its score; `None`: it is imported by the plan's name of it
            when a run is opened.
        against: The earlier bank of a guard.
        logged: Outcomes of an earlier run of a guard.
    """

    name = STUDY
    plan_model = AblationPlan

    def __init__(
        self,
        experiment: "Experiment | None" = None,
        *,
        against: Path | None = None,
        logged: Mapping[str, float] | None = None,
    ) -> None:
        self._experiment, self._against, self._logged = experiment, against, logged or {}

    @override
    def check(self, plan: AblationPlan) -> None:
        """Refuse memories that there are not.

        Raises:
            SettingsError: A provider or setting is not known.
        """
        for memory in plan.memories:
            check_provider(memory.provider, memory.settings)

    @override
    def expand(self, plan: AblationPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan.

        Raises:
            PlanError: There are too many.
        """
        return list_runs(runs_of(plan))

    def fingerprints(self, plan: AblationPlan) -> Mapping[str, JSON]:
        """Return digests of tasks, of the agent's code, and of the memories' architectures and code."""
        modules = {*CODE, *provider_modules(each.provider for each in plan.memories)}
        architectures: dict[str, JSON] = {
            each.name: digest(
                {
                    "provider": provider_class(each.provider).name,
                    "settings": provider_settings(each.provider, each.settings).describe(),
                }
            )
            for each in plan.memories
        }
        unused = ("langgraft.benchmarks.simulated",)
        return {
            "experiment": dict(plan.fingerprint),
            "code": dict(source_digests(modules, apart_from=unused)),
            "architectures": architectures,
        }

    def open(
        self,
        plan: AblationPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: "BaseChatModel",
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run.

        Raises:
            InputError: The experiment was handed over by a program, and is not there.
        """
        from langgraft.benchmarks.ablation.session import AblationSession  # noqa: PLC0415

        own = plan.model == OWN
        return AblationSession(
            plan,
            run,
            deltas,
            None if own else model,
            place,
            experiment=self._known(plan),
            against=self._against,
            logged=self._logged,
        )

    def _known(self, plan: AblationPlan) -> "Experiment":
        if self._experiment is None:
            if not plan.experiment:
                msg = "its experiment was handed over by a program: run that again to go on"
                raise PlanError(msg)
            self._experiment = load_experiment(plan.experiment)
        return self._experiment

    def simulated_model(self, plan: AblationPlan, run: RunSpec) -> "BaseChatModel":
        """Return the simulated model that the experiment makes for a replicate.

        Raises:
            PlanError: It makes none.
        """
        from langchain_core.language_models import BaseChatModel  # noqa: PLC0415

        from langgraft.benchmarks.harness.models import MeteredChatModel  # noqa: PLC0415

        model = self._known(plan).model
        if not callable(model):
            msg = "the plan's model is simulated, and its experiment makes none"
            raise PlanError(msg)
        seed = plan.seed + int(str(run.factors["run"]))
        if run.factors["memory"] == RERUN:
            seed += plan.replicates  # other samples than any other run has
        identity: dict[str, JSON] = {"model": SIMULATED, "seed": seed}
        made = model(seed)
        if not isinstance(made, BaseChatModel):
            msg = f"`model` is a function of a seed that makes a chat model, and made {made!r:.80}"
            raise PlanError(msg)
        return MeteredChatModel(inner=made, identity=identity, call_seconds=None)

    @override
    def most_calls(self, plan: AblationPlan, run: RunSpec) -> int:
        """Return how many model calls a run makes, if an attempt takes as many as declared."""
        if run.factors["kind"] == "build" and plan.made != "played":
            return 0
        return run.length * plan.calls

    @override
    def foreign_code(self, plan: AblationPlan) -> tuple[str, ...]:
        """Return the experiment, and the memories that are not langgraft's own."""
        own = [plan.experiment] if plan.experiment else []
        return (*own, *(each.provider for each in plan.memories if is_foreign(each.provider)))

    @override
    def notes(self, plan: AblationPlan, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Say what could be found."""
        from langgraft.benchmarks.ablation.analysis import reach_of  # noqa: PLC0415

        del runs
        return reach_of(plan)

    @override
    def went_well(self, result: Mapping[str, JSON]) -> bool | None:
        """Say whether an attempt solved its task."""
        found = result.get("solved")
        return found if isinstance(found, bool) else None

    @override
    def report(self, plan: AblationPlan, log: PlanLogReader, out: Path) -> Report:
        """Write the verdict page and its tables."""
        from langgraft.benchmarks.ablation.report import write_report  # noqa: PLC0415  ([bench])

        return write_report(plan, log, out)


__all__ = ["AblationStudy", "load_experiment"]
