"""An exam of memory without a judge and without a model: histories, questions, answers that follow by rule.

histories   what happened, session by session, and what may be asked of it
sitting     a memory takes the exam: it files, is asked, and forgets; a reader by rules marks it
results     the table, as text, Markdown, CSV and a page
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.exam.histories import History, make_histories
    from langgraft.benchmarks.exam.results import markdown, write_report
    from langgraft.benchmarks.exam.sitting import Marks, take_exam

_MODULES = {
    "histories": ("History", "make_histories"),
    "results": ("markdown", "write_report"),
    "sitting": ("Marks", "take_exam"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)

__all__ = ["History", "Marks", "make_histories", "markdown", "take_exam", "write_report"]
