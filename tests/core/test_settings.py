"""What pydantic finds wrong with a value, in one line."""

import pytest
from pydantic import BaseModel, model_validator

from langgraft._core.arguments import validation_as
from langgraft._core.errors import InputError


class _Range(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def _ordered(self) -> "_Range":
        if self.low > self.high:
            msg = "Low is above high"
            raise ValueError(msg)
        return self


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"low": 2, "high": 1}, "low is above high"),
        ({"low": "x", "high": 1}, "low: input should be a valid integer"),
        ({"low": 2}, "high: field required"),
        ("x", "value: input should be"),
    ],
)
def test_validation_when_it_fails_is_one_line_that_names_the_field(
    given: object, said: str
) -> None:
    """What concerns several fields is said as it is, without a dump of all of them."""
    with pytest.raises(InputError) as caught, validation_as(InputError, "here: "):
        _Range.model_validate(given)
    line = str(caught.value)
    assert line.startswith(f"here: {said}")
    assert "\n" not in line
    assert ("got" in line) is (said not in {"low is above high", "high: field required"})
