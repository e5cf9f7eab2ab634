"""Numbers in words: one place that decides how a number, an interval or a list is written."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.measures import Measure
from langgraft.benchmarks.comparison.outcomes import Spread

MINUS = "\N{MINUS SIGN}"
DASH = "\N{EN DASH}"
TIMES = "\N{MULTIPLICATION SIGN}"
SMALLEST_P = 0.001
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    r"\ufeff\ufffe\uffff\ud800-\udfff]"
)
"""What a browser shows as nothing, reorders a line by, or cannot hold: control characters but tab
and line feed, marks of direction, characters without width, lone surrogates."""
LONGEST_TEXT = 6_000
"""Characters of a text that a page shows, unless it says another number."""
UNCHANGED = "no net change in any item"
"""Said of a difference that is 0 in every item, beside its interval."""


class Ranged(Protocol):
    """A mean over runs, with the least and the greatest value of a run."""

    @property
    def mean(self) -> float: ...  # noqa: D102
    @property
    def low(self) -> float: ...  # noqa: D102
    @property
    def high(self) -> float: ...  # noqa: D102


def number(value: float | None, digits: int = 2, *, scale: float = 1.0, sign: bool = False) -> str:
    """Write a number, with its sign where it is a difference; a dash where there is none."""
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{scale * value:+,.{digits}f}" if sign else f"{scale * value:,.{digits}f}"
    if not any(character in "123456789" for character in text):
        text = text.lstrip("+-")
    return text.replace("-", MINUS)


def signed(value: float) -> str:
    """Write a difference of shares in percentage points with its sign, such as `+12.3`."""
    return number(value, 1, scale=100, sign=True)


def change(value: float, digits: int = 1) -> str:
    """Write a difference that is in percentage points already: `+12.3`."""
    return number(value, digits, sign=True)


def plain(value: float) -> str:
    """Write a share in percent: `54.0`."""
    return number(value, 1, scale=100)


def unchanged(estimate: Estimate) -> bool:
    """Say whether a difference is 0 in every item.

    Its interval is then made of the number of items alone, ±18 points of 18 of them.
    """
    return estimate.method == "exact" and not estimate.value


def interval(estimate: Estimate, *, difference: bool = True) -> str:
    """Write an interval: `[+3.1, +9.8]`, or `[44.2, 63.4]` for a share."""
    ends = _ends(estimate.low, estimate.high, difference=difference)
    return f"{ends} ({UNCHANGED})" if difference and unchanged(estimate) else ends


def for_these_orders(
    estimate: Estimate, *, difference: bool = True, label: str = "for these orders "
) -> str:
    """Write the interval for these orders; nothing where it is the other one."""
    if estimate.these_orders == (estimate.low, estimate.high):
        return ""
    return f"{label}{_ends(*estimate.these_orders, difference=difference)}"


def _ends(low: float, high: float, *, difference: bool) -> str:
    write = signed if difference else plain
    return f"[{write(low)}, {write(high)}]"


def points(estimate: Estimate) -> str:
    """Write a difference with its interval: `+6.4 pp [+3.1, +9.8]`."""
    return f"{signed(estimate.value)} pp {interval(estimate)}"


def spread(found: Ranged | None, digits: int = 1) -> str:
    """Write a mean with the range of its runs: `12.4 (11.9 to 13.0)`."""
    return DASH if found is None else _over_range(found, digits)


def percent(found: Ranged | None) -> str:
    """Write a share in percent with the range of its runs: `88.5 % (86.0 to 91.0)`."""
    return DASH if found is None else _over_range(found, 1, scale=100, unit=" %")


def _over_range(found: Ranged, digits: int, *, scale: float = 1.0, unit: str = "") -> str:
    mean, low, high = (
        number(each, digits, scale=scale) for each in (found.mean, found.low, found.high)
    )
    return f"{mean}{unit}" if found.low == found.high else f"{mean}{unit} ({low} to {high})"


def mean_error(
    found: Spread | None, digits: int = 2, *, scale: float = 1.0, sign: bool = False
) -> str:
    """Write a mean with its standard error: `31.82 ± 6.94`."""
    if found is None:
        return DASH
    written = number(found.mean, digits, scale=scale, sign=sign)
    return written if found.sem is None else f"{written} ± {number(found.sem, digits, scale=scale)}"


def measured_interval(
    ends: Estimate | tuple[float, float], measure: Measure, *, sign: bool = False
) -> str:
    """Write an interval with the digits of a measure: `[0.4, 1.9]`, or `[+0.4, +1.9]`."""
    low, high = (ends.low, ends.high) if isinstance(ends, Estimate) else ends
    written = (number(e, measure.digits, scale=measure.scale, sign=sign) for e in (low, high))
    return f"[{', '.join(written)}]"


def measured_change(estimate: Estimate | None, measure: Measure, *, runs: str = "runs") -> str:
    """Write a difference with its interval, and that for these runs, by the study's word for them.

    `-12.0 [-20.1, -3.9] (for these seeds [-18.3, -5.7])`, with minus signs.
    """
    if estimate is None:
        return DASH
    value = number(estimate.value, measure.digits, scale=measure.scale, sign=True)
    told = f"{value} {measured_interval(estimate, measure, sign=True)}"
    if estimate.these_orders == (estimate.low, estimate.high):
        return told
    these = measured_interval(estimate.these_orders, measure, sign=True)
    return f"{told} (for these {runs} {these})"


def p_value(p: float) -> str:
    """Write a p value as `p = 0.012` or `p < 0.001`."""
    return f"p < {SMALLEST_P}" if p < SMALLEST_P else f"p = {p:.3f}"


def detectable(effect: float) -> str:
    """Write a detectable difference: `8.3 pp`, or `none` for an infinite one."""
    return f"{plain(effect)} pp" if math.isfinite(effect) else "none"


def subtraction(minuend: Estimate, subtrahend: Estimate) -> str:
    """Write the two shares behind a difference: `73.61 - 57.87`, with a minus sign.

    One digit more than the difference itself has, so that the three agree in spite of rounding.
    """
    return f"{100 * minuend.value:.2f} {MINUS} {100 * subtrahend.value:.2f}"


def several(count: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun: `1 run`, `3 runs`."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def listing(words: Sequence[str]) -> str:
    """Join words as a sentence does: `a`, `a and b`, `a, b and c`."""
    if len(words) < 2:  # noqa: PLR2004  (nothing to join)
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def sample(estimate: Estimate) -> str:
    """Say what an estimate rests on: items by runs."""
    return sample_of(estimate.n_items, estimate.n_replicates)


def sample_of(items: int, runs: int, noun: str = "item") -> str:
    """Write items by runs: `36 items x 4 runs`, with a multiplication sign."""
    return f"{several(items, noun)} {TIMES} {several(runs, 'run')}"


def shortened(text: str, limit: int = LONGEST_TEXT) -> str:
    """Return the beginning of a text, and say how many characters are left out."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]} […{len(text) - limit:,} more characters]"


def visible(text: str) -> str:
    r"""Write a text so that a reader sees all that is in it: `\u202e` for a mark of direction."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", plain)


def flat(value: JSON, name: str = "") -> list[tuple[str, str]]:
    """Return nested JSON as rows of dotted names and values; lists stay JSON."""
    if isinstance(value, Mapping) and value:
        prefix = f"{name}." if name else ""
        return [row for key, each in value.items() for row in flat(each, f"{prefix}{key}")]
    return [(name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))]


def short(value: str) -> str:
    """Cut a digest down to what tells it from others, and leave all else as it is."""
    return value[:12] if re.fullmatch(r"[0-9a-f]{32,}", value) else value
