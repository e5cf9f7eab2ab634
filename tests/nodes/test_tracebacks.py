"""Tracebacks in all of Python's forms, and what rules tell from them."""

import traceback
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.nodes.tracebacks import (
    Raised,
    api_symbol,
    canonical_error,
    code_names,
    error_kind,
    exception_class,
    masked,
    mentioned_error,
    parse_traceback,
    responsible_package,
)


def raised_by(code: str) -> str:
    """Return what Python prints for a program that fails."""
    try:
        exec(compile(code, "run.py", "exec"), {})
    except BaseException:  # noqa: BLE001
        return traceback.format_exc()
    pytest.fail("the program ran")


def told(text: str) -> Raised:
    """Return the exception of a text that tells of one."""
    raised = parse_traceback(text)
    assert raised is not None
    return raised


# Formats ----------------------------------------------------------------------------------


def test_traceback_when_python_prints_it_gives_class_message_and_frames() -> None:
    """The innermost frame comes last, as printed."""
    raised = told(raised_by("def f():\n    return {}['breed']\nf()"))
    assert (raised.exception, raised.message) == ("KeyError", "'breed'")
    assert [(frame.file, frame.line, frame.function) for frame in raised.frames[-2:]] == [
        ("run.py", 3, "<module>"),
        ("run.py", 2, "f"),
    ]


@pytest.mark.parametrize("link", ["raise ValueError('late') from e", "int('late')"])
def test_traceback_when_chained_gives_the_last_and_its_causes(link: str) -> None:
    """Both kinds of chains; what was raised last ended the program."""
    raised = told("log\n" + raised_by(f"try:\n  {{}}['a']\nexcept KeyError as e:\n  {link}"))
    assert raised.exception == "ValueError"
    assert [cause.exception for cause in raised.causes] == ["KeyError"]


def test_traceback_when_another_one_was_only_logged_before_is_not_mixed_with_it() -> None:
    """Two tracebacks without a link are two failures; the later counts."""
    raised = told(raised_by("1/0") + "we go on\n" + raised_by("int('x')"))
    assert (raised.exception, raised.causes) == ("ValueError", ())


@pytest.mark.parametrize(
    ("code", "name"),
    [("def f(:\n  pass", "SyntaxError"), ("if x:\npass", "IndentationError")],
)
def test_syntax_error_when_it_comes_with_or_without_a_header_is_read(code: str, name: str) -> None:
    """Compiling a program prints no stack of the program."""
    full = raised_by(code)
    bare = full[full.index('  File "run.py"') :]
    for text in (full, bare):
        raised = told(text)
        assert (raised.exception, raised.frames[-1].file) == (name, "run.py")


def test_exception_group_when_printed_is_told_by_its_first_member() -> None:
    """The group itself says only how many there are; nested and bare members go along."""
    members = "[ValueError('one'), ExceptionGroup('h', [TypeError('two')])]"
    raised = told(raised_by(f"raise ExceptionGroup('g', {members})"))
    assert (raised.exception, raised.message) == ("ValueError", "one")
    assert {cause.exception for cause in raised.causes} == {"ExceptionGroup", "TypeError"}


def test_exception_group_when_it_begins_with_a_group_is_told_by_the_first_that_is_none() -> None:
    """However deep the first error lies, it is an error that is told."""
    members = "[ExceptionGroup('h', [KeyError('deep')]), TypeError('two')]"
    raised = told(raised_by(f"raise ExceptionGroup('g', {members})"))
    assert (raised.exception, raised.message) == ("KeyError", "'deep'")
    assert [cause.name for cause in raised.causes] == ["ExceptionGroup"] * 2 + ["TypeError"]


def test_package_when_the_class_is_within_one_of_the_program_is_not_that_class() -> None:
    """Python writes `Outer.Bad` where `module.Bad` could stand."""
    code = "class Outer:\n    class Bad(Exception):\n        pass\nraise Outer.Bad('odd')\n"
    raised = told(raised_by(code))
    assert raised.exception == "Outer.Bad"
    assert responsible_package(raised, code) == "general"


def test_exception_group_when_members_were_raised_keeps_their_frames() -> None:
    """Members with stacks of their own."""
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "run.py", line 1, in <module>\n'
        "  | ExceptionGroup: msg (2 sub-exceptions)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/v/site-packages/torch/nn.py", line 2, in go\n'
        "    |     go()\n"
        "    | ValueError: one\n"
        "    +---------------- 2 ----------------\n"
        "    | TypeError: two\n"
        "    +------------------------------------\n"
    )
    raised = told(text)
    assert (raised.exception, raised.frames[0].code) == ("ValueError", "go()")
    assert responsible_package(raised) == "torch"


def test_traceback_when_cut_so_that_the_end_is_left_gives_the_last_line() -> None:
    """Output is often cut in the middle; what follows the traceback does not matter."""
    text = "... [900 characters truncated] ...\n   x()\nlightgbm.basic.LightGBMError: bad\ntook 3 s"
    raised = told(text)
    assert (raised.name, raised.module, raised.frames) == ("LightGBMError", "lightgbm.basic", ())
    cut = raised_by("1/0") + "... [cut] ...\nValueError: later\n"
    assert told(cut).exception == "ValueError"


@pytest.mark.parametrize("text", ["", "epoch 1: loss 0.3", "Note: done", "UserWarning: careful"])
def test_output_when_it_tells_of_no_exception_gives_none(text: str) -> None:
    """Colons alone make no error, and warnings end no program."""
    assert parse_traceback(text) is None


IPYTHON = """---------------------------------------------------------------------------
\x1b[0;31mKeyError\x1b[0m                                  Traceback (most recent call last)
Cell \x1b[0;32mIn[3], line 2\x1b[0m
      1 x = 1
----> 2 frame['breed']

File \x1b[0;32m~/lib/python3.11/site-packages/pandas/core/frame.py:4102\x1b[0m, in DataFrame.__getitem__(self, key)
\x1b[0;32m-> 4102\x1b[0m     indexer = self.columns.get_loc(key)

\x1b[0;31mKeyError\x1b[0m: 'breed'
"""
OLD_IPYTHON = """---------------------------------------------------------------------------
ValueError                                Traceback (most recent call last)
<ipython-input-3-abc> in <module>
----> 2 frame.pivot()

~/conda/lib/python3.7/site-packages/pandas/core/frame.py in pivot(self, index)
-> 2926                 return self._pivot(key)

ValueError: Index contains duplicate entries
"""


@pytest.mark.parametrize(
    ("text", "message", "code", "first"),
    [
        (IPYTHON, "'breed'", "indexer = self.columns.get_loc(key)", 2),
        (OLD_IPYTHON, "Index contains duplicate entries", "return self._pivot(key)", 2),
    ],
)
def test_traceback_when_ipython_shows_it_is_read_too(
    text: str, message: str, code: str, first: int
) -> None:
    """Colors and arrows, in the present form and in the one before."""
    raised = told(text)
    assert (raised.message, raised.frames[-1].code) == (message, code)
    assert raised.frames[0].line == first
    assert responsible_package(raised) == "pandas"


def test_message_when_it_has_several_lines_goes_on_while_they_are_part_of_it() -> None:
    """Indented lines, or all up to a blank one after a colon; what is printed next is not."""
    lines = "RuntimeError: Error(s) in loading state_dict for Net:\n\tsize mismatch\n\nmore"
    assert told(lines).message.split("\n")[1:] == ["  size mismatch"]
    assert told("ValueError: short\nExecution time: 3 s").message == "short"


# Canonical form ---------------------------------------------------------------------------


def test_error_when_it_ran_elsewhere_is_the_same() -> None:
    """Paths, users, addresses, ids, times and sizes are masked; names are not."""
    form = (
        "OSError: {home}/train.csv of {user} at {address}, line {line}: {size} of shape"
        " ({line}, 3) in float64 for ResNet50, see {url} ({uid})"
    )
    here = form.format(
        home="/home/ann/in",
        user="ann@host-1",
        address="0x7f01",
        line=3,
        size="1.5GiB",
        url="https://a.org/1",
        uid="0123456789abcdef0123",
    )
    there = form.format(
        home="C:\\Users\\bob",
        user="bob@box",
        address="0xffee99",
        line=1204,
        size="900 MB",
        url="http://b.net",
        uid="fedcba98-7654-3210-fedc-ba9876543210",
    )
    first = canonical_error(raised_by(f"raise OSError({here.removeprefix('OSError: ')!r})"))
    assert first == canonical_error(there).replace("<n> MB", "<n>GiB")
    for kept in ("OSError: <path>/train.csv", "float64", "ResNet50"):
        assert kept in first
    assert "ann" not in first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("and/or 5-fold </html> conv2d v1.2.3", "and/or <n>-fold </html> conv2d v1.2.3"),
        (
            "./in/a.csv ../b.py ~/c.txt data/d.json",
            "<path>/a.csv <path>/b.py <path>/c.txt <path>/d.json",
        ),
        ("/tmp/tmpab12cd9_/x", "<path>"),
        ("n_estimators=500, lr=1e-5, -3.5", "n_estimators=<n>, lr=<n>, <n>"),
    ],
)
def test_mask_when_applied_keeps_what_names_something(text: str, expected: str) -> None:
    """Prose, tags, versions and identifiers are left alone."""
    assert masked(text) == expected


@given(st.text() | st.text("/\\.0x<>ab1~@:-E \n'\"|+", max_size=60))
def test_canonical_form_when_taken_twice_is_the_same(text: str) -> None:
    """A record that is canonical already is kept as it is."""
    once = masked(text)
    assert masked(once) == once
    assert canonical_error(canonical_error(text)) == canonical_error(text)


def test_error_when_it_has_no_message_is_told_by_its_failing_line() -> None:
    """A bare assertion says nothing by itself."""
    text = (
        'Traceback (most recent call last):\n  File "x.py", line 3, in <module>\n'
        "    assert len(a) == 10\n    ^^^^^^^^^^^\nAssertionError\n"
    )
    assert canonical_error(text) == "AssertionError at assert len(a) == <n>"
    assert canonical_error("AssertionError") == "AssertionError"
    assert len(canonical_error("ValueError: " + "x" * 9999)) == 1000


# Kind -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("TimeoutError: Execution exceeded the time limit of 1 hour", "resource"),
        ("MemoryError", "resource"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "resource"),
        ("RuntimeError: CUDA error: out of memory", "resource"),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 3 GiB", "resource"),
        ("OSError: [Errno 28] No space left on device", "resource"),
        ("ModuleNotFoundError: No module named 'timm'", "environment"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'", "environment"),
        ("requests.exceptions.ConnectionError: Max retries exceeded with url: /x", "environment"),
        ("urllib.error.URLError: <urlopen error Name or service not known>", "environment"),
        ("ReadTimeout: HTTPSConnectionPool: Read timed out.", "environment"),
        ("ModuleNotFoundError: No module named 'sklearn.externals'", "code"),
        ("ImportError: cannot import name 'x' from 'y'", "code"),
        ("TypeError: f() got an unexpected keyword argument 'timeout'", "code"),
    ],
)
def test_kind_when_told_from_class_and_message_is_what_failed(error: str, kind: str) -> None:
    """Limits, surroundings, and else the program."""
    assert error_kind(told(error)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Epoch 3\nKilled\n", "resource"),
        ("The run timed out before saving.", "resource"),
        ("Connection refused", "environment"),
        ("No module named 'catboost'", "environment"),
        ("The metric was never printed.", "code"),
        ("", "code"),
    ],
)
def test_kind_when_there_is_no_exception_is_told_from_the_text(text: str, kind: str) -> None:
    """A process that is killed raises nothing."""
    assert error_kind(None, text) == kind


# Package and symbol -----------------------------------------------------------------------

PROGRAM = """
import os, json
import numpy as np
import pandas as pd
import lightgbm as lgb
from sklearn.preprocessing import OneHotEncoder
from sklearn.model_selection import train_test_split
def load(path, sep=","):
    return pd.read_csv(path, sep=sep)
model = lgb.LGBMClassifier(n_estimators=10)
model.fit(x, y, early_stopping_rounds=3)
encoder = OneHotEncoder(sparse=False)
booster = lgb.train({}, data, verbose_eval=10)
"""


@pytest.mark.parametrize(
    ("error", "package", "symbol"),
    [
        ("lightgbm.basic.LightGBMError: bad input", "lightgbm", ""),
        ("json.decoder.JSONDecodeError: Expecting value", "general", ""),
        (
            "TypeError: LGBMClassifier.fit() got an unexpected keyword argument 'early_stopping_rounds'",
            "lightgbm",
            "LGBMClassifier.fit(early_stopping_rounds)",
        ),
        (
            "TypeError: train() got an unexpected keyword argument 'verbose_eval'",
            "lightgbm",
            "train(verbose_eval)",
        ),
        (
            "TypeError: __init__() got an unexpected keyword argument 'sparse'",
            "sklearn",
            "__init__(sparse)",
        ),
        ("TypeError: load() got an unexpected keyword argument 'sep'", "general", "load(sep)"),
        (
            "AttributeError: module 'numpy' has no attribute 'bool'",
            "numpy",
            "numpy.bool",
        ),
        (
            "AttributeError: 'DataFrame' object has no attribute 'append'",
            "pandas",
            "DataFrame.append",
        ),
        (
            "ImportError: cannot import name 'plot_roc_curve' from 'sklearn.metrics' (x.py)",
            "sklearn",
            "sklearn.metrics.plot_roc_curve",
        ),
        ("ModuleNotFoundError: No module named 'timm'", "general", "timm"),
        (
            "ModuleNotFoundError: No module named 'sklearn.externals'",
            "sklearn",
            "sklearn.externals",
        ),
        ("TypeError: the LightGBM function refused it", "lightgbm", ""),
        ("NameError: name 'x' is not defined", "general", ""),
        ("KeyError: 'label'", "general", ""),
    ],
)
def test_package_and_symbol_when_there_is_no_stack_come_from_message_and_imports(
    error: str, package: str, symbol: str
) -> None:
    """Python's messages name callables, arguments, attributes and modules."""
    assert responsible_package(told(error), PROGRAM) == package
    assert api_symbol(error) == symbol


STACK = """Traceback (most recent call last):
  File "run.py", line 9, in <module>
    {line}
{frames}ValueError: no
"""
FRAME = '  File "{}", line 3, in f\n    g()\n'


@pytest.mark.parametrize(
    ("files", "line", "package"),
    [
        (
            ["/v/lib/python3.11/site-packages/sklearn/base.py", "/usr/lib/python3.11/re.py"],
            "x",
            "sklearn",
        ),
        (
            ["C:\\v\\Lib\\site-packages\\sklearn\\a.py", "C:\\v\\Lib\\site-packages\\numpy\\b.py"],
            "x",
            "numpy",
        ),
        (["/usr/lib/python3/dist-packages/pandas/a.py"], "lgb.train()", "pandas"),
        (["<__array_function__ internals>"], "x", "numpy"),
        ([], "booster = lgb.train(params)", "lightgbm"),
        ([], "np.sum(pd.x)", "general"),
        ([], "os.path.join(a)", "general"),
    ],
)
def test_package_when_there_is_a_stack_is_that_of_the_innermost_installed_frame(
    files: list[str], line: str, package: str
) -> None:
    """Frames first, then the failing line if it names one package alone."""
    text = STACK.format(line=line, frames="".join(map(FRAME.format, files)))
    assert responsible_package(told(text), PROGRAM) == package


def test_package_when_the_cause_has_the_installed_frame_is_that_of_the_cause() -> None:
    """A program that wraps a library's error in its own does not hide it."""
    inner = STACK.format(line="x", frames=FRAME.format("/v/site-packages/xgboost/core.py"))
    outer = STACK.format(line="x", frames="").replace("ValueError: no", "RuntimeError: wrapped")
    link = "\nThe above exception was the direct cause of the following exception:\n\n"
    raised = told(inner + link + outer)
    assert (raised.exception, responsible_package(raised)) == ("RuntimeError", "xgboost")


@pytest.mark.parametrize("code", ["def f(:", "\x00", "(" * 5000, ""])
def test_names_when_a_program_does_not_compile_are_none(code: str) -> None:
    """A broken program imports nothing."""
    assert not code_names(code).modules


@pytest.mark.parametrize(
    ("error", "name"),
    [
        ("TypeError: x", "TypeError"),
        ("LightGBMError", "LightGBMError"),
        ("AssertionError at assert x", "AssertionError"),
        ("The run ended", ""),
        ("Note: x", ""),
        ("TypeError was raised", ""),
        ("", ""),
    ],
)
def test_class_when_a_canonical_error_begins_with_one_is_read(error: str, name: str) -> None:
    """Prose begins with no class."""
    assert exception_class(error) == name


# Prose ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prose", "name", "message"),
    [
        (
            "It loaded. It crashed with: TypeError: f() got an unexpected keyword argument 'a'. Bad.",
            "TypeError",
            "f() got an unexpected keyword argument 'a'",
        ),
        ("Training failed (ValueError: bad 'x' (2)), so nothing ran.", "ValueError", "bad 'x' (2)"),
        ("A KeyError ('phone') stopped it.", "KeyError", "'phone'"),
        (
            "It raised a ValueError while merging.",
            "ValueError",
            "It raised a ValueError while merging.",
        ),
        (
            "A TypeError, as fit() got an unexpected keyword argument 'b', ended it.",
            "TypeError",
            "fit() got an unexpected keyword argument 'b'",
        ),
        (
            "It ended since no module named 'timm' is there.",
            "ModuleNotFoundError",
            "no module named 'timm'",
        ),
    ],
)
def test_mention_when_a_review_tells_of_an_error_is_read(
    prose: str, name: str, message: str
) -> None:
    """What is given as the message, else Python's words, else the sentence."""
    raised = mentioned_error(prose)
    assert raised is not None
    assert (raised.exception, raised.message) == (name, message)


@pytest.mark.parametrize("prose", ["", "All went well.", "The Error analysis is fine.", "No logs."])
def test_mention_when_a_review_tells_of_none_is_none(prose: str) -> None:
    """Words that look like classes are none by themselves."""
    assert mentioned_error(prose) is None


@given(st.text(), st.text())
@pytest.mark.parametrize("read", [parse_traceback, mentioned_error, api_symbol, exception_class])
def test_rules_when_given_anything_raise_nothing(
    read: Callable[[str], object], text: str, code: str
) -> None:
    """Output is whatever a program prints."""
    read(text)
    read(f"Traceback (most recent call last):\n{text}\nValueError: {text}")
    responsible_package(Raised("ValueError", text), code)


@pytest.mark.parametrize(
    "unit", ["%", "a/", "tmp_a", "a.", "aA.", "1", "1,", "a+", "aaaaaaaa-", "- "]
)
def test_rules_when_a_program_prints_one_long_line_end_soon(unit: str) -> None:
    """No pattern looks at each place of a name for another end: that would take hours here."""
    text = unit * (100_000 // len(unit))
    assert parse_traceback(text) is None
    assert mentioned_error(text) is None
    assert api_symbol(text) == ""
    assert masked(masked(text)) == masked(text)
    assert len(canonical_error(text)) <= 1000
