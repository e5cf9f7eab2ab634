"""Python's parser under threads."""

import ast
import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from langgraft._core.untrusted import parse_program

PROGRAM = "\n".join(f"x{n} = [{{'a': (b + {n}) for b in c if b}}, d]" for n in range(300))


@pytest.fixture
def switching() -> Iterator[None]:
    """Let other threads go on at each garbage collection: inside of a parse there are several."""

    def give_way(*_: object) -> None:
        time.sleep(0)

    gc.callbacks.append(give_way)
    yield
    gc.callbacks.remove(give_way)


@pytest.mark.usefixtures("switching")
def test_program_when_threads_parse_at_once_is_the_same_tree() -> None:
    """No thread's depth is taken for another's, which CPython 3.11 ends with a `SystemError`."""
    expected = ast.dump(ast.parse(PROGRAM))
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(parse_program, [PROGRAM] * 24))
    assert {ast.dump(tree) for tree in trees} == {expected}


@pytest.mark.parametrize("code", ["def f(:\n", "x = 1\0"])
def test_program_when_it_is_no_python_fails_and_the_next_one_is_parsed(code: str) -> None:
    """An error leaves nothing locked."""
    with pytest.raises((SyntaxError, ValueError)):
        parse_program(code)
    assert parse_program("x = 1").body
