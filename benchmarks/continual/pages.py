"""HTML pages from templates: everything from outside is escaped, nothing is fetched."""

from collections.abc import Callable
from importlib import resources
from typing import Any

from langgraft._core.extras import require
from langgraft.benchmarks.continual.spreads import Spread
from langgraft.benchmarks.continual.wording import (
    DASH,
    detectable,
    for_these_orders,
    interval,
    p_value,
    percent,
    plain,
    sample,
    several,
    signed,
    spread,
    subtraction,
)


def escaping_environment(load: Callable[[str], str]) -> Any:
    """Return an environment that escapes everything and refuses names that are not there.

    Args:
        load: Returns the text of a template.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    jinja: Any = require("jinja2", extra="bench", purpose="The report")
    return jinja.Environment(
        loader=jinja.FunctionLoader(load),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def environment(load: Callable[[str], str] | None = None) -> Any:
    """Return the templates' environment.

    Args:
        load: Returns the text of a template; by default one of the report's.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    jinja: Any = require("jinja2", extra="bench", purpose="The report")
    made = escaping_environment(load or template)
    made.filters.update(
        signed=signed,
        plain=plain,
        interval=interval,
        for_these_orders=for_these_orders,
        sample=sample,
        p=p_value,
        spread=spread,
        percent=percent,
        ranged=lambda found, digits=1, scale=1: _ranged(jinja, found, digits, scale),
        ranged_change=lambda found: _ranged_change(jinja, found),
        detectable=detectable,
    )
    made.globals.update(several=several, subtraction=subtraction)
    return made


def template(name: str) -> str:
    """Return the text of one of the report's templates."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _ranged(jinja: Any, found: Spread | None, digits: int, scale: float) -> Any:
    """Write a mean in a table, with the range of its runs below."""
    if found is None:
        return DASH
    mean, low, high = (
        f"{scale * value:,.{digits}f}" for value in (found.mean, found.low, found.high)
    )
    return _over_range(jinja, mean, low, high)


def _ranged_change(jinja: Any, found: Spread | None) -> Any:
    """Write a mean change in percentage points, with the range of its runs below."""
    if found is None:
        return DASH
    return _over_range(jinja, *(signed(value) for value in (found.mean, found.low, found.high)))


def _over_range(jinja: Any, mean: str, low: str, high: str) -> Any:
    markup = jinja.utils.markupsafe.Markup
    if low == high:
        return markup('<span class="value">{}</span>').format(mean)
    text = '<span class="value">{}</span><span class="interval">{} to {}</span>'
    return markup(text).format(mean, low, high)
