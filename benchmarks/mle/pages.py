"""The tree study's page from templates: what comes from outside is escaped, nothing is fetched."""

from importlib import resources
from typing import Any, Final

from langgraft.benchmarks.continual.pages import escaping_environment
from langgraft.benchmarks.continual.wording import p_value, several
from langgraft.benchmarks.mle import wording

_STYLE: Final = ("langgraft.benchmarks.continual", "style.css")
"""All reports of the benchmarks look alike."""


def environment() -> Any:
    """Return the templates' environment.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    made = escaping_environment(_template)
    made.filters.update(
        number=wording.number,
        interval=wording.interval,
        mean=wording.mean,
        correlation=wording.correlation,
        p=lambda p: p_value(p).removeprefix("p ").removeprefix("= "),
    )
    made.globals.update(several=several)
    return made


def _template(name: str) -> str:
    package = _STYLE[0] if name == _STYLE[1] else __package__
    return resources.files(package).joinpath("templates", name).read_text(encoding="utf-8")
