"""A program runs once: what is kept, for whom, and what decides that it is the same program."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from counting_sandbox import CountingSandbox
from hypothesis import assume, given
from hypothesis import strategies as st

from langgraft._core.errors import InputError, SandboxFailureError
from langgraft.environments.sandboxes.cached import (
    CachedSandbox,
    ExecutionCache,
    job_key,
    read_result,
    write_result,
)
from langgraft.environments.sandboxes.sandbox import (
    Command,
    ExecutionResult,
    Frame,
    Job,
    Limits,
    Program,
    ProgramError,
    PythonProgram,
    Sandbox,
)

HELLO = Job(PythonProgram("print('hello')"))

ODD = ExecutionResult(
    exit_code=1,
    stdout="läuft \N{SNOWMAN}\n",
    stderr="\ud800 half of a pair",
    duration=1.25,
    stopped="output",
    oom=True,
    signal="SIGKILL",
    error=ProgramError("numpy.linalg.LinAlgError", "\udfff", (Frame("a.py", 3, "f", "g()"),)),
    printed=(10**12, 7),
    files={"z.bin": b"\0\xff", "a/empty": b"", "b.csv": b"id\n"},
    left_out={"z": "a link", "a": "too large"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Name a cache file in a folder that does not exist yet."""
    return tmp_path / "caches" / "executions.sqlite"


@pytest.fixture
def below() -> CountingSandbox:
    """Make the sandbox below, which counts what it is asked."""
    return CountingSandbox()


@pytest.fixture
def cached(below: CountingSandbox, path: Path) -> Iterator[CachedSandbox]:
    """Open an empty cache over it."""
    with CachedSandbox(below, path) as opened:
        yield opened


def test_cached_sandbox_is_a_sandbox(cached: CachedSandbox) -> None:
    """It can be given wherever a sandbox is wanted."""
    sandbox: Sandbox = cached
    assert isinstance(sandbox, Sandbox)
    assert sandbox.digest == "image-1"


def test_run_when_asked_again_then_answers_the_same_without_running(
    cached: CachedSandbox, below: CountingSandbox, path: Path
) -> None:
    """A known program is not run again, in this process or by the next one on the file."""
    first = cached.run(HELLO)
    assert cached.run(HELLO) == first
    with CachedSandbox(CountingSandbox(), path) as later:
        assert later.run(HELLO) == first
    assert len(below.jobs) == 1


async def test_arun_when_run_knows_then_answers_the_same(
    cached: CachedSandbox, below: CountingSandbox
) -> None:
    """Sync and async share what they know."""
    assert await cached.arun(HELLO) == cached.run(HELLO) == await cached.arun(HELLO)
    assert len(below.jobs) == 1


def test_run_when_everything_about_a_result_is_odd_then_gives_it_back_whole(path: Path) -> None:
    """Files of any bytes, halves of surrogate pairs and orders survive the file."""
    with CachedSandbox(CountingSandbox(lambda *_: ODD), path) as cached:
        results = [cached.run(HELLO), cached.run(HELLO)]
    assert results == [ODD, ODD]
    assert [list(result.files) for result in results] == [list(ODD.files)] * 2
    assert [list(result.left_out) for result in results] == [list(ODD.left_out)] * 2


@pytest.mark.parametrize(
    "result",
    [
        ExecutionResult(137, "", "", duration=5.0, oom=True, signal="SIGKILL"),
        ExecutionResult(137, "", "", duration=60.0, stopped="timeout", signal="SIGKILL"),
        ExecutionResult(1, "", "", duration=0.1, error=ProgramError("ValueError", "no")),
    ],
)
def test_run_when_a_program_failed_then_its_failure_is_kept(
    path: Path, result: ExecutionResult
) -> None:
    """Memory that ran out, timeouts and exceptions are the program's doing."""
    below = CountingSandbox(lambda *_: result)
    with CachedSandbox(below, path) as cached:
        assert cached.run(HELLO) == cached.run(HELLO) == result
    assert len(below.jobs) == 1


def test_run_when_the_sandbox_failed_then_nothing_is_kept(path: Path) -> None:
    """What failed around a program is asked again."""

    def dies_once(job: Job, count: int) -> ExecutionResult:
        if count == 1:
            raise SandboxFailureError("the engine died")
        return ExecutionResult(0, "fine", "", duration=1.0)

    with CachedSandbox(CountingSandbox(dies_once), path) as cached:
        with pytest.raises(SandboxFailureError):
            cached.run(HELLO)
        assert len(cached.cache) == 0
        assert cached.run(HELLO).stdout == "fine"


async def test_arun_when_many_ask_at_once_then_runs_once(
    cached: CachedSandbox, below: CountingSandbox
) -> None:
    """Tasks that want one program share one run of it."""
    results = await asyncio.gather(*(cached.arun(HELLO) for _ in range(8)))
    assert all(result == results[0] for result in results)
    assert len(below.jobs) == 1


def test_run_when_threads_ask_at_once_then_runs_once(path: Path) -> None:
    """Threads that want one program share one run of it, and another one is not held up."""
    started, go_on = threading.Event(), threading.Event()

    def slowly(job: Job, count: int) -> ExecutionResult:
        if job == HELLO:
            started.set()
            assert go_on.wait(300)
        return ExecutionResult(0, f"{count}", "", duration=1.0)

    below = CountingSandbox(slowly)
    with CachedSandbox(below, path) as cached, ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(cached.run, HELLO) for _ in range(4)]
        assert started.wait(300)
        cached.run(replace(HELLO, seed=1))
        go_on.set()
        assert {future.result().stdout for future in asked} == {"1"}
    assert len(below.jobs) == 2


async def test_arun_when_the_first_asker_is_cancelled_then_the_next_one_runs_it(
    path: Path,
) -> None:
    """One who gives up takes nothing from those who wait."""
    started = asyncio.Event()

    class Hangs(CountingSandbox):
        async def arun(self, job: Job) -> ExecutionResult:
            started.set()
            self.jobs.append(job)
            if len(self.jobs) == 1:
                await asyncio.sleep(3600)
            return ExecutionResult(0, "second", "", duration=1.0)

    below = Hangs()
    async with CachedSandbox(below, path) as cached:
        first = asyncio.create_task(cached.arun(HELLO))
        await started.wait()
        waiting = [asyncio.create_task(cached.arun(HELLO)) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        first.cancel()
        done = await asyncio.gather(first, *waiting, return_exceptions=True)
    assert [isinstance(end, asyncio.CancelledError) for end in done] == [True, True, False, False]
    assert len(below.jobs) == 2


def test_run_when_another_process_kept_a_result_meanwhile_then_uses_that_one(path: Path) -> None:
    """The first result kept counts for everybody, or two readers of one file would differ."""

    def meanwhile(job: Job, count: int) -> ExecutionResult:
        other = ExecutionCache(path)
        other.keep(job_key(job, asked), ExecutionResult(0, "theirs", "", duration=1.0))
        other.close()
        return ExecutionResult(0, "ours", "", duration=2.0)

    asked = CountingSandbox(meanwhile)
    with CachedSandbox(asked, path) as cached:
        assert cached.run(HELLO).stdout == "theirs"


def test_run_when_the_process_is_killed_right_after_then_the_result_is_on_disk(
    cached: CachedSandbox, below: CountingSandbox, path: Path
) -> None:
    """A result that somebody could have used survives `kill -9`."""
    support = Path(__file__).resolve().parents[2] / "support"
    killed = subprocess.run(
        [sys.executable, "-c", _RUN_AND_DIE, str(support), str(path)], check=False, timeout=600
    )
    assert killed.returncode == -signal.SIGKILL
    assert cached.run(HELLO).stdout == "run 1\n"
    assert below.jobs == []


_RUN_AND_DIE = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from counting_sandbox import CountingSandbox
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram
CachedSandbox(CountingSandbox(), sys.argv[2]).run(Job(PythonProgram("print('hello')")))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_run_when_processes_share_a_new_file_then_all_use_the_same_results(path: Path) -> None:
    """Whoever came first decides for all, also while the file is being made."""
    support = Path(__file__).resolve().parents[2] / "support"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _RUN_TWENTY, str(support), str(path)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    told = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert told[0].count("by ") == 20
    assert len(set(told)) == 1


_RUN_TWENTY = """
import os, sys
sys.path.insert(0, sys.argv[1])
from counting_sandbox import CountingSandbox
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram
from langgraft.environments.sandboxes.sandbox import ExecutionResult
mine = ExecutionResult(0, f"by {os.getpid()}", "", duration=1.0)
with CachedSandbox(CountingSandbox(lambda *_: mine), sys.argv[2]) as cached:
    for number in range(20):
        print(cached.run(Job(PythonProgram(f"print({number})"))).stdout)
"""


def test_run_when_an_input_file_changes_its_content_then_runs_again(
    cached: CachedSandbox, below: CountingSandbox, tmp_path: Path
) -> None:
    """Files count by what they hold: not by their path, and as bytes or a path alike."""
    data, copy = tmp_path / "data.csv", tmp_path / "copy.csv"
    data.write_bytes(b"1\n")
    copy.write_bytes(b"1\n")
    for content in (data, copy, b"1\n"):
        cached.run(replace(HELLO, files={"data.csv": content}))
    assert len(below.jobs) == 1
    data.write_bytes(b"2\n")
    cached.run(replace(HELLO, files={"data.csv": data}))
    assert len(below.jobs) == 2


def test_run_when_an_input_file_changes_meanwhile_then_says_so_and_keeps_nothing(
    path: Path, tmp_path: Path
) -> None:
    """A result is never kept for a content that it may not come from."""
    data = tmp_path / "data.csv"
    data.write_bytes(b"1\n")

    def rewrites(job: Job, count: int) -> ExecutionResult:
        data.write_bytes(b"2\n")
        return ExecutionResult(0, "", "", duration=1.0)

    with CachedSandbox(CountingSandbox(rewrites), path) as cached:
        with pytest.raises(InputError, match=r"data\.csv.* changed|changed.*data\.csv"):
            cached.run(replace(HELLO, files={"data.csv": data}))
        assert len(cached.cache) == 0


def test_run_when_an_input_file_is_missing_then_names_it(
    cached: CachedSandbox, tmp_path: Path
) -> None:
    """A file that is not there is told by its path."""
    with pytest.raises(InputError, match=r"absent\.csv"):
        cached.run(replace(HELLO, files={"data.csv": tmp_path / "absent.csv"}))


def test_open_when_the_file_is_something_else_then_names_it_in_one_error(
    below: CountingSandbox, tmp_path: Path
) -> None:
    """Text, another program's database and a folder are refused, each in one line."""
    text, other = tmp_path / "notes.txt", tmp_path / "other.sqlite"
    text.write_text("not a database " * 100)
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE replies (key TEXT)")
    database.close()
    for path in (text, other, tmp_path):
        with pytest.raises(InputError, match=path.name) as refused:
            CachedSandbox(below, path)
        assert "\n" not in str(refused.value)


def test_run_when_the_file_is_damaged_then_says_so_and_answers_nothing(
    below: CountingSandbox, path: Path
) -> None:
    """Flipped bytes are told, never returned as a result."""
    with CachedSandbox(below, path) as cached:
        cached.run(HELLO)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE executions SET files = x'00'")
    database.close()
    with (
        CachedSandbox(below, path) as cached,
        pytest.raises(InputError, match=r"damaged.*delete the file"),
    ):
        cached.run(HELLO)


def test_close_when_called_then_closes_the_sandbox_below(
    below: CountingSandbox, path: Path
) -> None:
    """Whoever holds the cached one need not hold the other."""
    with CachedSandbox(below, path):
        pass
    assert below.closed == 1


TEXTS = st.text(max_size=8)
PROGRAMS: st.SearchStrategy[Program] = st.one_of(
    st.builds(
        PythonProgram,
        code=TEXTS,
        name=TEXTS,
        arguments=st.lists(TEXTS, max_size=2).map(tuple),
    ),
    st.builds(Command, line=TEXTS | st.lists(TEXTS, max_size=3).map(tuple)),
)
JOBS = st.builds(
    Job,
    program=PROGRAMS,
    files=st.dictionaries(TEXTS, st.binary(max_size=8), max_size=3),
    collect=st.lists(TEXTS, max_size=2).map(tuple),
    seconds=st.floats(0.1, 100),
    seed=st.integers(0, 5),
    environment=st.dictionaries(TEXTS, TEXTS, max_size=3),
)
SANDBOXES = st.builds(CountingSandbox, digest=TEXTS)


@given(JOBS, JOBS, SANDBOXES, SANDBOXES)
def test_key_when_one_deciding_part_is_another_then_is_another(
    job: Job, other: Job, sandbox: CountingSandbox, elsewhere: CountingSandbox
) -> None:
    """Each part of a job, and the sandbox's digest, decides by itself what is looked up."""
    key = job_key(job, sandbox)
    for part in ("program", "files", "collect", "seconds", "seed", "environment"):
        changed = replace(job, **{part: getattr(other, part)})
        assert (job_key(changed, sandbox) == key) == (changed == job)
    assert (job_key(job, elsewhere) == key) == (elsewhere.digest == sandbox.digest)


@given(JOBS)
def test_key_when_mappings_are_in_another_order_then_is_the_same(job: Job) -> None:
    """The order in which files and variables were given says nothing."""
    turned = replace(
        job,
        files=dict(reversed(list(job.files.items()))),
        environment=dict(reversed(list(job.environment.items()))),
    )
    assert job_key(turned, CountingSandbox()) == job_key(job, CountingSandbox())


@given(st.lists(TEXTS, max_size=3), TEXTS)
def test_key_when_a_command_is_a_line_or_arguments_then_differs(
    arguments: list[str], line: str
) -> None:
    """A line goes to a shell and arguments do not: they are never taken for each other."""
    as_list = Job(Command(arguments))
    assert job_key(as_list, CountingSandbox()) == job_key(
        Job(Command(tuple(arguments))), CountingSandbox()
    )
    assume(line)
    assert job_key(Job(Command(line)), CountingSandbox()) != job_key(as_list, CountingSandbox())


def test_key_when_the_limit_is_the_jobs_own_or_the_sandboxs_then_is_the_same() -> None:
    """`seconds` counts as what holds in the end, whole numbers and fractions alike."""
    sandbox = CountingSandbox(limits=Limits(seconds=60))
    keys = {job_key(replace(HELLO, seconds=seconds), sandbox) for seconds in (None, 60, 60.0)}
    assert len(keys) == 1
    assert job_key(replace(HELLO, seconds=61), sandbox) not in keys


@given(
    st.builds(
        ExecutionResult,
        exit_code=st.none() | st.integers(0, 255),
        stdout=st.text(st.characters(exclude_categories=())),
        stderr=st.text(),
        duration=st.floats(0, 1e6),
        stopped=st.sampled_from([None, "timeout", "output"]),
        oom=st.booleans(),
        signal=st.none() | st.just("SIGSEGV"),
        files=st.dictionaries(TEXTS, st.binary(max_size=30), max_size=4),
        left_out=st.dictionaries(TEXTS, TEXTS, max_size=4),
        kernel_lost=st.booleans(),
    )
)
def test_result_when_written_and_read_then_is_equal(result: ExecutionResult) -> None:
    """Nothing of a result is lost in the file."""
    assert read_result(*write_result(result)) == result


def test_result_when_its_files_are_large_is_kept_compressed(tmp_path: Path) -> None:
    """A submission may have 157 MB, and a search thirty of them."""
    content = b"".join(b"%d,0.5\n" % number for number in range(500_000))
    result = ExecutionResult(0, "", "", 1.0, files={"submission.csv": content, "empty": b""})
    cache = ExecutionCache(tmp_path / "executions.sqlite")
    assert cache.keep("key", result) == result
    assert cache.get("key") == result
    assert cache.keep("key", ExecutionResult(1, "", "", 2.0)) == result
    cache.close()
    assert sum(each.stat().st_size for each in tmp_path.iterdir()) < len(content) / 2
