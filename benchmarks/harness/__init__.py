"""The harness executes any plan of any study, and a run cut off anywhere ends the same.

A study says what its runs are and how one item is worked through (`Study`, `RunSpec`,
`RunSession`). The harness does the rest: it expands a plan to a graph of runs (`prepare`),
works through them (`run_plan`), commits each item together with the changes it made to
memory, goes on after a crash from the last committed item with the bank folded from the log,
and reads (`PlanLog`) and checks (`verify_directory`) what it wrote.

    prepared = prepare(study, plan)
    outcome = await run_plan(prepared, Path("out"), model_for=study.simulated_model)
    log = PlanLog(Path("out"))
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.harness.execute import Execution, execute_run
    from langgraft.benchmarks.harness.log import PlanLog, RunProgress
    from langgraft.benchmarks.harness.plans import PreparedPlan, Studies, load_plan, prepare
    from langgraft.benchmarks.harness.progress import (
        PlanOutcome,
        Progress,
        ProgressEvent,
        RunOutcome,
        make_progress,
    )
    from langgraft.benchmarks.harness.schedule import run_plan, stop_on_signals
    from langgraft.benchmarks.harness.study import (
        BankPlace,
        BankSource,
        ItemOutcome,
        Plan,
        PlanLogReader,
        PlannedRun,
        Report,
        RunGraph,
        RunSession,
        RunSpec,
        Study,
        build_graph,
    )
    from langgraft.benchmarks.harness.verify import Finding, verify_directory

_MODULES = {
    "execute": ("Execution", "execute_run"),
    "log": ("PlanLog", "RunProgress"),
    "plans": ("PreparedPlan", "Studies", "load_plan", "prepare"),
    "progress": ("PlanOutcome", "Progress", "ProgressEvent", "RunOutcome", "make_progress"),
    "schedule": ("run_plan", "stop_on_signals"),
    "study": (
        "BankPlace",
        "BankSource",
        "ItemOutcome",
        "Plan",
        "PlanLogReader",
        "PlannedRun",
        "Report",
        "RunGraph",
        "RunSession",
        "RunSpec",
        "Study",
        "build_graph",
    ),
    "verify": ("Finding", "verify_directory"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)

__all__ = [
    "BankPlace",
    "BankSource",
    "Execution",
    "Finding",
    "ItemOutcome",
    "Plan",
    "PlanLog",
    "PlanLogReader",
    "PlanOutcome",
    "PlannedRun",
    "PreparedPlan",
    "Progress",
    "ProgressEvent",
    "Report",
    "RunGraph",
    "RunOutcome",
    "RunProgress",
    "RunSession",
    "RunSpec",
    "Studies",
    "Study",
    "build_graph",
    "execute_run",
    "load_plan",
    "make_progress",
    "prepare",
    "run_plan",
    "stop_on_signals",
    "verify_directory",
]
