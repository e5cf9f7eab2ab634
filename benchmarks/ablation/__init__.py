"""Does memory help *my* agent? An agent of one's own, with and without memory, and with what tells why."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.ablation.experiment import Experiment, Task
    from langgraft.benchmarks.ablation.running import (
        Ablation,
        AblationPreview,
        ablate,
        open_ablation,
        preview_ablation,
    )

_MODULES = {
    "running": ("Ablation", "AblationPreview", "ablate", "open_ablation", "preview_ablation"),
    "experiment": ("Experiment", "Task"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)

__all__ = [
    "Ablation",
    "AblationPreview",
    "Experiment",
    "Task",
    "ablate",
    "open_ablation",
    "preview_ablation",
]
