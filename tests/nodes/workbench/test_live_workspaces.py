"""Live workspaces: kept between steps, and built anew to the same state where they are gone."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_places import ScriptedSandbox, saying, well
from tree_cases import toy
from typing_extensions import override
from workbench_cases import HandRun, desk_of, output, workspaces

from langgraft._core import effects
from langgraft._core.effects import ado, arun, do
from langgraft._core.errors import SandboxFailureError
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.environments.sandboxes.supervised import SupervisedKernel
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.workbench.log import RunState

pytestmark = pytest.mark.matrix  # interpreters that live and die

DEAD = saying(b"")
"""A place that ends while it is asked for something."""


class Counting(SubprocessSandbox):
    """Counts the kernels it opens, and keeps them."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[SupervisedKernel] = []
        self.tell: Callable[[], None] = lambda: None

    @override
    def _kernel(self, preload: Sequence[str], files: object, errand: object) -> SupervisedKernel:
        kernel = super()._kernel(preload, files, errand)  # type: ignore[arg-type]
        self.opened.append(kernel)
        self.tell()
        return kernel


@pytest.fixture(scope="module")
def shared() -> Iterator[Counting]:
    """Return a sandbox that counts its kernels."""
    with Counting() as place:
        yield place


@pytest.fixture
def run(shared: Counting) -> Iterator[HandRun]:
    """Return a run that has not begun."""
    shared.opened.clear()
    begun = HandRun(workspaces(shared))
    yield begun
    begun.spaces.close()


def wait_for(file: Path) -> None:
    """Wait until there is such a file."""
    while not file.exists():
        time.sleep(0.01)


def state(run: HandRun) -> str:
    """Return variables and files of a run's workspace, as a cell and a command see them."""
    names = run.cell("sorted((n, v) for n, v in globals().items() if len(n) == 1)")
    return output(names) + output(run.bash("ls; cat *.txt"))


def test_run_when_its_workspace_lives_then_each_action_is_done_once(
    run: HandRun, shared: Counting
) -> None:
    """Variables and files stay from one action to the next, in one kernel."""
    run.cell("x = 1")
    run.bash("echo one >> a.txt")
    assert output(run.cell("x += 1; print(x, open('a.txt').read())")) == "2 one"
    assert output(run.do("read", "a.txt")) == "one\n"
    assert len(shared.opened) == 1


def test_run_when_another_process_goes_on_then_all_is_as_it_was(
    run: HandRun, shared: Counting, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Variables, files and where things failed: a replay through a log on disk shows the same."""
    run.artifacts = FolderArtifacts(tmp_path)
    run.cell("x = 1")
    run.bash("cat > t.py <<'EOF'\nopen('b.txt', 'w').write('two')\n1/0\nEOF\npython3 t.py")
    run.cell("y = x + 1\nraise ValueError(y)")
    run.cell("import os; z = 3; os._exit(7)")
    run.cell("w = 4")
    run.do("read", "t.py")
    other = run.elsewhere()
    other.artifacts = FolderArtifacts(tmp_path)
    before = len(shared.opened)
    assert state(other) == state(run)
    assert "('w', 4)" in state(run)
    assert "'x'" not in state(run)
    assert len(shared.opened) == before + 1
    assert not caplog.records
    other.spaces.close()


DEEDS = (
    ("run_python", "x = globals().get('x', 0) + 1"),
    ("run_python", "z = open('a.txt', 'a').write('z')\nraise KeyError(z)"),
    ("run_python", "import os; os._exit(1)"),
    ("run_bash", "echo b >> a.txt; exit 3"),
    ("run_bash", "rm a.txt"),
    ("read", "a.txt"),
)


@settings(max_examples=4)
@given(deeds=st.lists(st.sampled_from(DEEDS), min_size=1, max_size=6))
def test_run_when_anything_was_done_then_a_replay_has_the_same_state(
    shared: Counting, deeds: list[tuple[str, str]]
) -> None:
    """Whatever failed, ended its interpreter, or changed nothing."""
    run = HandRun(workspaces(shared))
    for name, what in deeds:
        run.do(name, what)
    other = run.elsewhere()
    assert state(other) == state(run)
    other.spaces.close()
    run.spaces.close()


def test_run_when_an_interpreter_was_killed_from_outside_then_it_is_lost_in_a_replay_too(
    run: HandRun, caplog: pytest.LogCaptureFixture
) -> None:
    """What the log says was lost is gone, though the same cell survives the second time."""
    run.bash("echo one > a.txt")
    run.cell("x = 1")
    once = "import os, sys\nif not os.path.exists('/proc/self/once'): pass\nv = 2"
    seen = run.action("run_python", once)
    told = run.spaces.run(run.name, run.log, seen)
    run.note(seen, told.model_copy(update={"lost": "kernel", "failed": True}))
    other = run.elsewhere()
    assert "'x'" not in state(other)
    assert "one" in state(other)
    assert "something else" in caplog.text
    other.spaces.close()


def test_run_when_a_place_was_lost_then_nothing_before_that_is_done_again(run: HandRun) -> None:
    """The workspace began afresh then: what is replayed begins there as well."""
    run.bash("echo one > a.txt")
    lost = run.action("run_python", "x = bytearray(10**6)")
    told = run.spaces.run(run.name, run.log, lost)
    run.note(lost, told.model_copy(update={"lost": "workspace", "failed": True}))
    other = run.elsewhere()
    other.bash("echo two > b.txt")
    assert output(other.bash("ls")) == "b.txt"
    third = other.elsewhere()
    assert output(third.bash("ls")) == "b.txt"
    for each in (other, third):
        each.spaces.close()


def test_run_when_a_limit_ended_what_ran_then_a_replay_gives_it_no_more_time(
    run: HandRun, caplog: pytest.LogCaptureFixture
) -> None:
    """Near its end a run gives less than usual: with all of it, more would be done the second time."""
    run.cell("import time\nx = 1")
    late = run.action("run_python", "time.sleep(40)\nx = 2")
    seen = run.note(late, run.spaces.run(run.name, run.log, late, seconds=1.0))
    assert (seen.timed_out, seen.allowed) == (True, 1.0)
    assert run.cell("1").allowed is None
    other = run.elsewhere()
    assert output(other.cell("x")) == "1"
    assert not caplog.records
    other.spaces.close()


@pytest.mark.parametrize("aside", [False, True])
def test_run_when_a_workspace_is_built_anew_then_that_takes_no_time_of_the_run(
    shared: Counting, tmp_path: Path, *, aside: bool
) -> None:
    """What is done again was counted when it was lived: here time passes as kernels open."""
    run = HandRun(workspaces(shared))
    run.cell("x = 1")
    other = run.elsewhere()
    deps = desk_of(toy(tmp_path), other, clock=lambda: float(len(shared.opened)))
    state: RunState = {"episode_id": run.name, "log": run.reference}
    look, before = other.action("run_python", "x"), len(shared.opened)
    for opened in (1, 2):  # where it was never there, and where its container died
        acting = deps.acting(state, look)
        seen, seconds = asyncio.run(arun(acting, ado)) if aside else effects.run(acting, do)
        assert (output(seen), seconds) == ("1", 0.0)
        assert len(shared.opened) == before + opened
        shared.opened[-1].close()
    for each in (run, other):
        each.spaces.close()


def test_run_when_memory_takes_the_place_then_the_observation_says_what_is_lost() -> None:
    """The sandbox's own word, which no program can print."""
    with ScriptedSandbox([DEAD], [well("new")], oom=True) as place:
        run = HandRun(workspaces(place))
        seen = run.cell("x = bytearray(10**12)")
        assert (seen.lost, seen.oom, seen.exception) == ("workspace", True, "MemoryError")
        assert seen.failed
        assert output(run.cell("1")).startswith("new")
        run.spaces.close()


def test_run_when_the_engine_dies_between_actions_then_the_workspace_is_built_anew(
    run: HandRun, shared: Counting, caplog: pytest.LogCaptureFixture
) -> None:
    """No action is lost, and none is done twice in one workspace."""
    caplog.set_level(logging.WARNING)
    run.cell("x = 1")
    shared.opened[-1].close()
    assert output(run.cell("x += 1; x")) == "2"
    assert output(run.cell("x")) == "2"
    assert "built anew" in caplog.text


def test_run_when_the_engine_dies_each_time_then_it_is_raised() -> None:
    """It is infrastructure's failure, and the action is not said to have failed."""
    with ScriptedSandbox([DEAD], [DEAD], [DEAD], [DEAD]) as place:
        run = HandRun(workspaces(place))
        with pytest.raises(SandboxFailureError):
            run.cell("1")


def test_run_when_an_action_was_done_and_never_noted_then_it_is_undone(run: HandRun) -> None:
    """As after a checkpoint that could not be written: the log decides what was done."""
    run.cell("x = 1")
    run.spaces.run(run.name, run.log, run.action("run_python", "x = 2"))
    assert output(run.cell("x")) == "1"


def test_run_when_there_are_more_runs_than_room_then_each_keeps_its_own_state(
    shared: Counting,
) -> None:
    """Two runs at once, from two threads, in a table of one."""
    spaces = workspaces(shared, capacity=1)
    runs = [HandRun(spaces, name=f"run-{n}") for n in range(2)]

    def work(run: HandRun) -> None:
        for n in range(3):
            run.cell(f"x = '{run.name}'" if n == 0 else f"x += '{n}'")

    threads = [threading.Thread(target=work, args=(each,)) for each in runs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [output(each.cell("x")) for each in runs] == ["'run-012'", "'run-112'"]
    assert len(spaces._live) == 1
    spaces.close()
    assert len(spaces._live) == 0


def test_end_when_a_run_is_over_then_its_kernel_is_gone_and_others_stay(
    run: HandRun, shared: Counting
) -> None:
    """What is asked of an ended run builds it anew."""
    other = HandRun(run.spaces, name="other")
    run.cell("x = 1")
    other.cell("x = 2")
    run.spaces.end("run")
    assert output(other.cell("x")) == "2"
    assert len(shared.opened) == 2
    assert output(run.cell("x")) == "1"
    assert len(shared.opened) == 3


def test_close_when_a_cell_runs_then_it_ends_and_is_raised(run: HandRun) -> None:
    """Closing wins over trying again."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            run.cell("print('begun', flush=True)\nimport time; time.sleep(60)")
        except SandboxFailureError as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    while not run.spaces._live._busy:
        thread.join(0.05)
    thread.join(0.3)
    run.spaces.close()
    thread.join()
    assert len(raised) == 1


def test_arun_when_cancelled_then_the_kernel_is_gone_and_the_log_decides(
    run: HandRun, tmp_path: Path
) -> None:
    """A task that is called off leaves no half-done workspace behind."""
    begun = tmp_path / "begun"

    async def work() -> str:
        first = run.action("run_python", "x = 1")
        run.note(first, await run.spaces.arun(run.name, run.log, first))
        code = f"x = 2\nopen({str(begun)!r}, 'w').close()\nimport time; time.sleep(3600)"
        late = run.action("run_python", code)
        task = asyncio.create_task(run.spaces.arun(run.name, run.log, late))
        await asyncio.to_thread(wait_for, begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not run.spaces._live._busy
        assert len(run.spaces._live) == 0
        look = run.action("run_python", "x")
        return output(await run.spaces.arun(run.name, run.log, look))

    assert asyncio.run(work()) == "1"


def test_arun_when_cancelled_again_and_again_then_no_kernel_is_left(
    run: HandRun, shared: Counting
) -> None:
    """Whatever it is about: the action, or closing the kernel for the first cancellation."""

    async def work() -> None:
        await run.spaces.arun(run.name, run.log, run.action("run_python", "x = 1"))
        late = run.action("run_python", "x = 2\nimport time; time.sleep(60)")
        opened = threading.Event()
        shared.tell = opened.set
        task = asyncio.create_task(run.spaces.arun("other", run.log, late))
        await asyncio.to_thread(opened.wait, 60)
        while not task.done():
            task.cancel()
            await asyncio.sleep(0.001)
        assert task.cancelled()

    asyncio.run(work())
    assert [bool(kernel._gone) for kernel in shared.opened] == [False, True]


def test_run_when_text_is_no_utf_8_then_what_is_repeated_is_what_was_done(run: HandRun) -> None:
    """Half of a surrogate pair runs as the question mark that the log holds."""
    seen = run.cell("x = '\ud800'\nprint(x)")
    assert output(seen) == "?"
    other = run.elsewhere()
    assert output(other.cell("x")) == "'?'"
    other.spaces.close()


def test_run_when_a_kernel_refuses_what_is_asked_then_the_action_failed(run: HandRun) -> None:
    """NUL in a command, and a request larger than any: told, and the run goes on."""
    seen = run.bash("echo \0")
    assert seen.failed
    assert "NUL" in seen.text
    assert run.cell("#" * 20_000_000).failed
    assert output(run.cell("1")) == "1"
