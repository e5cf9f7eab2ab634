"""Reading a plan and a program from what models reply."""

import pytest

from langgraft.memory.recall import render_block
from langgraft.nodes.program_text import LONGEST_PROGRAM, read_program

PROGRAM = "import os\n\nprint(os.name)\n"


def fenced(code: str, info: str = "python") -> str:
    """Put a program into a block."""
    return f"```{info}\n{code}```\n"


@pytest.mark.parametrize("info", ["python", "py", "Python", "python3", "{.python}", "", "python x"])
def test_reply_when_it_is_as_asked_gives_plan_and_program(info: str) -> None:
    """The block is the program, what stands before it the plan."""
    found = read_program(f"I print.\nThen I stop.\n\n{fenced(PROGRAM, info)}\nDone.")
    assert (found.plan, found.code, found.problem) == ("I print.\nThen I stop.", PROGRAM, "")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("Certainly", "no fenced block"),
        ("I would rather not do that.", "no fenced block"),
        (fenced("pip install lightgbm\n", "bash"), "no fenced block"),
        (fenced("Certainly\n", ""), "no fenced block"),
        (fenced("", "python"), "no fenced block"),
        ("``` ```", "no fenced block"),
        (fenced("x = 1\n" * LONGEST_PROGRAM), "characters"),
    ],
)
def test_reply_when_it_holds_no_program_has_none(reply: str, problem: str) -> None:
    """Prose is never taken for a program, even where it compiles, nor is another language."""
    found = read_program(reply)
    assert found.code == ""
    assert problem in found.problem


def test_reply_when_it_has_no_fences_but_is_a_program_is_taken_as_one() -> None:
    """What compiles as a whole and imports something is no prose."""
    assert read_program(PROGRAM).code == PROGRAM


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("print(\n", "never closed"),
        ("x = '\x00'\n", "null bytes"),
        ("(" * 5000 + ")" * 5000 + "\n", "does not compile"),
        ("if True:\npass\n", "line 2"),
    ],
)
def test_program_when_it_does_not_compile_is_returned_with_the_reason(
    code: str, problem: str
) -> None:
    """It may compile where it is to run; a repair is asked for with the reason."""
    found = read_program("Plan.\n" + fenced(code))
    assert found.code == code
    assert problem in found.problem


def test_reply_when_it_is_cut_off_in_its_program_says_so() -> None:
    """A block that is not ended is read, with what is wrong with it."""
    found = read_program("Plan.\n```python\nimport os\nprint(")
    assert "not ended" in found.problem
    assert found.code == "import os\nprint(\n"


def test_reply_when_its_program_has_several_parts_joins_them() -> None:
    """Parts of like length are one program; a short excerpt beside a whole one is none."""
    first, second = "import os\nname = os.name\n", "print(name)\nprint('end')\n"
    joined = read_program(f"{fenced(first)}\nand then\n{fenced(second)}")
    assert joined.code == f"{first}\n\n{second}"
    excerpt = read_program(f"{fenced(PROGRAM * 5)}\nThe main line is\n{fenced('os.name')}")
    assert excerpt.code == PROGRAM * 5
    broken = read_program(f"{fenced(first)}\nor\n{fenced('import (')}")
    assert (broken.code, broken.problem) == (first, "")


def test_reply_when_it_has_longer_fences_or_fences_inside_is_read_whole() -> None:
    """A fence ends at one of its own kind, so that programs may hold others."""
    code = 'text = """\n```\nnot the end\n```\n"""\n'
    assert read_program(f"Plan.\n\n````python\n{code}````\n").code == code
    assert read_program(f"Plan.\n\n~~~python\n{code}~~~\n").code == code


def test_plan_when_it_quotes_memory_is_kept_without_it() -> None:
    """Memory never feeds on itself."""
    found = read_program(f"{render_block(['a secret'])}I print.\n{fenced(PROGRAM)}")
    assert found.plan == "I print."
