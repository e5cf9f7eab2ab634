"""Models that need no key and no network: rule-based learners behind LangChain's interface.

They make a study of memory run end to end anywhere, and let its machinery be checked against
known causes. They are not language models, and every report says so. The rules for them:

* A simulated model reads messages only. It acts by simple rules in the real environment, and
  is competent in a situation only when the prompt tells it what it lacks.
* Its rules and its declared ignorance are fixed and documented before a study runs.
* Its source knows no name of a condition, provider, split or task family, and no seed.
* Conditions that should make no difference appear next to those that might.
* Its numbers are never presented as a language model's.

`docs/simulated-models.md` has the details. `serve` puts any chat model behind HTTP.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.simulated.alfworld import SimulatedALFWorld
    from langgraft.benchmarks.simulated.babyai import SimulatedBabyAI
    from langgraft.benchmarks.simulated.clerk import SimulatedClerk
    from langgraft.benchmarks.simulated.data_scientist import SimulatedDataScientist
    from langgraft.benchmarks.simulated.engineer import SimulatedEngineer
    from langgraft.benchmarks.simulated.faults import Fault, FaultKind, FaultScript
    from langgraft.benchmarks.simulated.server import ModelServer, serve

__all__ = [
    "Fault",
    "FaultKind",
    "FaultScript",
    "ModelServer",
    "SimulatedALFWorld",
    "SimulatedBabyAI",
    "SimulatedClerk",
    "SimulatedDataScientist",
    "SimulatedEngineer",
    "serve",
]

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "SimulatedALFWorld": "langgraft.benchmarks.simulated.alfworld",
        "SimulatedBabyAI": "langgraft.benchmarks.simulated.babyai",
        "SimulatedClerk": "langgraft.benchmarks.simulated.clerk",
        "SimulatedDataScientist": "langgraft.benchmarks.simulated.data_scientist",
        "SimulatedEngineer": "langgraft.benchmarks.simulated.engineer",
        "Fault": "langgraft.benchmarks.simulated.faults",
        "FaultKind": "langgraft.benchmarks.simulated.faults",
        "FaultScript": "langgraft.benchmarks.simulated.faults",
        "ModelServer": "langgraft.benchmarks.simulated.server",
        "serve": "langgraft.benchmarks.simulated.server",
    },
)
