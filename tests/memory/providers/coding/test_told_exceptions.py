"""Exceptions as agents are told of them: `Exception: KeyError: 'x'`, below what was printed."""

import pytest

from langgraft.memory.providers.coding.tracebacks import canonical_error, parse_traceback
from langgraft.nodes.diagnose import Failure, diagnose_by_rules

TRACEBACK = """Traceback (most recent call last):
  File "solution.py", line 3, in <module>
    booster.train(rate=1)
  File "/usr/lib/python3/site-packages/lightgbm/engine.py", line 9, in train
    return inner(**given)
TypeError: train() got an unexpected keyword argument 'rate'
"""
LINE = "Exception: TypeError: train() got an unexpected keyword argument 'rate'"
STACK = """
  solution.py, line 3, in <module>: booster.train(rate=1)
  [4 more calls]
  /usr/lib/python3/site-packages/lightgbm/engine.py, line 9, in train: return inner(**given)
"""
AFTER = "\nIt ran for less than a minute of the 2 minutes allowed.\n\nSubmission: absent.\n"
ERROR = "TypeError: train() got an unexpected keyword argument 'rate'"


@pytest.mark.parametrize(
    "text",
    [TRACEBACK, f"{TRACEBACK}\n{LINE}\n{AFTER}", f"epoch 1\n\n{LINE}\n{AFTER}",
     f"epoch 1\n[cut]\n{LINE}{STACK}{AFTER}"],
    ids=["printed", "printed-and-told", "told", "told-with-stack"],
)  # fmt: skip
def test_exception_when_told_in_any_way_is_kept_in_one_form(text: str) -> None:
    """What is filed when it fails is what is looked for when it is debugged."""
    assert canonical_error(text) == ERROR


@pytest.mark.parametrize("text", [f"{TRACEBACK}\n{LINE}\n{AFTER}", f"{LINE}{STACK}{AFTER}"])
def test_exception_when_told_with_its_stack_belongs_to_the_package_that_raised_it(
    text: str,
) -> None:
    """The line below a traceback does not hide it, and a stack told in short is read as well."""
    raised = parse_traceback(text)
    assert raised is not None
    assert raised.frames[-1].file.endswith("lightgbm/engine.py")
    assert (raised.frames[-1].line, raised.frames[0].code) == (9, "booster.train(rate=1)")
    record = diagnose_by_rules(Failure(output=text, code="import lightgbm as booster"))
    assert record is not None
    assert (record.package, record.error) == ("lightgbm", ERROR)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{TRACEBACK}\nException: KeyError: 'sex'\n", "KeyError: 'sex'"),
        ("Exception: ValueError: two\n  lines of it\n\nmore", "ValueError: two\n  lines of it"),
        ("Exception: KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("Exception: it is too late\n", "Exception: it is too late"),
        ("Exception: Note: nothing\n", "Exception: Note: nothing"),
        ("Exception\n", "Exception"),
    ],
)
def test_exception_when_another_one_or_a_plain_one_is_told_is_that_one(
    text: str, expected: str
) -> None:
    """What came last counts; an `Exception` that a program raised itself stays one."""
    assert canonical_error(text) == expected
