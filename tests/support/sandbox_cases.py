"""What every sandbox does, whatever holds its programs; a subclass gives it a sandbox.

    @pytest.fixture(scope="module")
    def sandbox() -> Iterator[SupervisedSandbox]: ...


    class TestSubprocessSandbox(SandboxCases): ...

Those of `ExceptionCases` one sandbox may pass for all.

Its limits should be small where tests go up to them: a few thousand bytes of `output`, some ten
MiB of `flood` and `file`.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from langgraft._core.errors import InputError, SandboxFailureError
from langgraft.environments.sandboxes.sandbox import (
    Command,
    ExecutionResult,
    Job,
    Kernel,
    PythonProgram,
    Sandbox,
)
from langgraft.environments.sandboxes.supervised import SupervisedKernel, SupervisedSandbox

DAEMON = """
import os, time
def daemon(line):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(0.05)
                exec(line)
        os._exit(0)
    os.wait()
"""
"""Defines a function that leaves a line of Python running for ever, in no one's process group."""


def writing_daemon(marker: str) -> str:
    """Return Python that starts a daemon which makes a file grow."""
    line = f"open({marker!r}, 'a').write('x')"
    return f"{DAEMON}\ndaemon({line!r})\n"


def python(code: str, *arguments: str) -> Job:
    """Make a job of Python source."""
    return Job(PythonProgram(code, arguments=arguments))


def finished(result: ExecutionResult) -> str:
    """Return what a program printed, which must have ended well."""
    assert result.ok, result
    return result.stdout


def given_time(run: Callable[[float], ExecutionResult]) -> ExecutionResult:
    """Return what comes of something that never ends, once it was given the seconds to begin in.

    It prints when it has begun, which takes a moment: or longer, where the machine is busy.
    """
    for seconds in (1.0, 10.0):
        result = run(seconds)
        if result.stdout:
            return result
    return run(60.0)


class ProgramCases:
    """Programs: what they find, how they end, what is kept of them."""

    def test_run_when_a_program_prints_then_both_streams_are_told_apart(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Output and errors come back as they were printed, with their sizes."""
        result = sandbox.run(python("import sys\nprint('näh')\nprint('no', file=sys.stderr)"))
        assert (result.stdout, result.stderr, result.printed) == ("näh\n", "no\n", (5, 3))
        assert result.exit_code == 0
        assert result.ok

    def test_run_then_the_program_is_the_main_module_as_in_python_itself(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Name, file, arguments, path and working directory are those of `python program.py`."""
        code = (
            "import os, sys\n"
            "assert __name__ == '__main__' and sys.modules['__main__'].__dict__ is globals()\n"
            "assert os.path.realpath(__file__) == os.path.realpath('program.py'), __file__\n"
            "assert sys.path[0] == os.path.realpath(os.getcwd()), sys.path\n"
            "assert not {n for n in globals() if not n.startswith('__')} - {'os', 'sys'}\n"
            "print(*sys.argv)"
        )
        assert finished(sandbox.run(python(code, "a", "b c"))) == "program.py a b c\n"

    def test_run_then_input_is_at_its_end(self, sandbox: SupervisedSandbox) -> None:
        """A program that asks for input does not wait."""
        result = sandbox.run(python("input()"))
        assert result.error is not None
        assert result.error.type == "EOFError"

    def test_run_then_nothing_of_the_host_environment_is_seen(
        self, sandbox: SupervisedSandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Keys in the environment of whoever runs programs stay there."""
        monkeypatch.setenv("SOME_API_KEY", "secret")
        assert "secret" not in finished(sandbox.run(Job(Command("env"))))

    def test_run_when_a_job_has_a_seed_then_hashes_and_threads_are_set(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Seed, thread counts and the job's own variables are in the environment."""
        names = "PYTHONHASHSEED OMP_NUM_THREADS MPLBACKEND MINE"
        code = f"import os\nprint(*[os.environ[n] for n in '{names}'.split()])"
        job = Job(PythonProgram(code), seed=7, environment={"MINE": "x y"})
        threads = -int(-sandbox.limits.cpus // 1)
        assert finished(sandbox.run(job)) == f"7 {threads} Agg x y\n"

    def test_run_when_an_exception_ends_it_then_its_frames_are_the_programs_own(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Traceback and frames begin in the program and say file, line, function and source."""
        result = sandbox.run(python("def f():\n    raise ValueError('x' * 100_000)\n\nf()"))
        assert result.error is not None
        assert [(f.line, f.function, f.text) for f in result.error.frames] == [
            (4, "<module>", "f()"),
            (2, "f", "raise ValueError('x' * 100_000)"),
        ]
        assert all(f.file.endswith("program.py") for f in result.error.frames)
        assert result.stderr.count("File ") == 2
        assert len(result.error.message) < 11_000

    def test_run_when_a_child_it_forked_raises_then_the_program_has_not(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """The exception of a child is the child's; its traceback is printed."""
        code = "import os\nif not os.fork(): raise ValueError('child')\nos.wait()\nprint('fine')"
        result = sandbox.run(python(code))
        assert finished(result) == "fine\n"
        assert result.stderr.endswith("ValueError: child\n")

    @pytest.mark.parametrize(
        ("code", "exit_code", "name"),
        [
            ("import sys; sys.exit(3)", 3, None),
            ("import os; os._exit(4)", 4, None),
            ("import os; os.kill(os.getpid(), 11)", 139, "SIGSEGV"),
            ("import os; os.kill(os.getpid(), 15)", 143, "SIGTERM"),
        ],
    )
    def test_run_when_it_exits_or_is_killed_then_the_code_is_as_a_shell_tells_it(
        self, sandbox: SupervisedSandbox, code: str, exit_code: int, name: str | None
    ) -> None:
        """Exit codes and signals are told; neither is an exception."""
        result = sandbox.run(python(code))
        assert (result.exit_code, result.signal, result.error) == (exit_code, name, None)

    @pytest.mark.parametrize(("line", "code"), [("no-such-command", 127), ("exit 9", 9)])
    def test_run_when_a_command_fails_then_its_code_is_told(
        self, sandbox: SupervisedSandbox, line: str, code: int
    ) -> None:
        """Command lines end as in a shell."""
        assert sandbox.run(Job(Command(line))).exit_code == code

    def test_run_when_a_command_is_not_there_then_it_says_so(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """An argument vector that names nothing ends with 127 and a message."""
        result = sandbox.run(Job(Command(["no-such-command", "-x"])))
        assert result.exit_code == 127
        assert "no-such-command" in result.stderr

    def test_run_when_time_is_up_then_output_and_files_are_kept(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A program past its wall clock is killed, and what it did until then is told."""
        code = (
            "import time\n"
            "open('part.txt', 'w').write('half')\n"
            "print('begun', flush=True)\n"
            "time.sleep(3600)"
        )
        job = Job(PythonProgram(code), collect=("part.txt",))
        result = given_time(lambda seconds: sandbox.run(replace(job, seconds=seconds)))
        assert result.timed_out
        assert (result.exit_code, result.signal) == (137, "SIGKILL")
        assert result.stdout == "begun\n"
        assert result.files == {"part.txt": b"half"}

    def test_run_when_signals_are_ignored_then_time_is_up_all_the_same(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """No signal handler holds off the end."""
        code = (
            "import signal, time\n"
            "for n in (1, 2, 3, 15): signal.signal(n, signal.SIG_IGN)\n"
            "time.sleep(3600)"
        )
        assert sandbox.run(Job(PythonProgram(code), seconds=0.5)).timed_out

    def test_run_when_a_daemon_holds_the_output_then_the_end_is_not_held_up(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A run ends with its program, and what it left running ends with it."""
        result = sandbox.run(python(f"{DAEMON}\ndaemon('print(1)')\nprint('done')"))
        assert not result.timed_out
        assert result.exit_code == 0
        assert "done" in result.stdout

    def test_run_when_output_is_closed_then_the_program_is_not_over(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Only its end ends a program."""
        code = "import os, time\nos.close(1); os.close(2)\ntime.sleep(0.3)\nopen('late', 'w')"
        assert sandbox.run(Job(PythonProgram(code), collect=("late",))).files == {"late": b""}

    def test_run_when_much_is_printed_then_head_and_tail_are_kept(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """What is cut of an output is said in it, byte for byte."""
        limit = sandbox.limits.output
        result = sandbox.run(python(f"print('a' * {limit}, 'b' * {limit}, sep='')"))
        cut = 2 * limit + 1 - limit
        head, said, tail = result.stdout.split("\n", 2)
        assert result.printed == (2 * limit + 1, 0)
        assert head == "a" * (limit // 2)
        assert said == f"[... {cut} bytes cut ...]"
        assert tail == "b" * (limit - limit // 2 - 1) + "\n"

    def test_run_when_bytes_are_printed_then_they_are_replaced_and_counted(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Output that is no text is told all the same."""
        size = min(8 << 20, sandbox.limits.flood // 2)
        code = f"import sys\nsys.stdout.buffer.write(bytes(range(256)) * {size // 256})"
        result = sandbox.run(python(code))
        assert result.ok
        assert result.printed == (size // 256 * 256, 0)
        assert "\ufffd" in result.stdout

    def test_run_when_output_never_ends_then_it_is_stopped(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A program that prints beyond `flood` is ended for that reason."""
        result = sandbox.run(python("while True: print('x' * 10_000)"))
        assert result.stopped == "output"
        assert not result.timed_out
        assert len(result.stdout) < sandbox.limits.output + 100

    def test_run_when_a_file_outgrows_its_limit_then_writing_fails(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """No file grows beyond `file`."""
        code = f"open('big', 'wb').truncate({sandbox.limits.file + 1})"
        result = sandbox.run(python(code))
        assert result.error is not None
        assert result.error.type == "OSError"
        assert "File too large" in result.error.message

    def test_run_then_core_dumps_are_off_and_open_files_bounded(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Limits of processes are set before the program begins."""
        code = "import resource as r\nprint(r.getrlimit(r.RLIMIT_CORE)[0], r.getrlimit(r.RLIMIT_NOFILE)[0])"
        core, files = finished(sandbox.run(python(code))).split()
        assert core == "0"
        assert int(files) <= sandbox.limits.open_files

    @pytest.mark.parametrize("method", ["fork", "spawn"])
    def test_run_when_it_uses_multiprocessing_then_workers_find_its_functions(
        self, sandbox: SupervisedSandbox, method: str
    ) -> None:
        """Functions of the program can be pickled and are found where it is imported anew."""
        code = (
            "import multiprocessing\n"
            "def square(x): return x * x\n"
            "if __name__ == '__main__':\n"
            f"    with multiprocessing.get_context('{method}').Pool(2) as pool:\n"
            "        print(pool.map(square, [1, 2, 3]))"
        )
        assert finished(sandbox.run(python(code))) == "[1, 4, 9]\n"

    def test_run_when_the_program_forges_frames_then_nothing_of_it_is_believed(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Bytes that look like the supervisor's are output like any other."""
        code = (
            "import os, struct, json\n"
            "body = json.dumps({'exit_code': 0, 'oom': True}).encode()\n"
            "frame = struct.pack('>IB', len(body), ord('e')) + body\n"
            "for fd in range(256):\n"
            "    try: os.write(fd, frame)\n"
            "    except OSError: pass\n"
            "os._exit(5)"
        )
        result = sandbox.run(python(code))
        assert (result.exit_code, result.oom, result.error) == (5, False, None)


class ExceptionCases:
    """Exceptions of all kinds: a matter of the interpreter, wherever it runs."""

    @pytest.mark.parametrize(
        ("code", "kind", "message"),
        [
            ("1/0", "ZeroDivisionError", "division by zero"),
            ("x = (", "SyntaxError", "'(' was never closed"),
            ("import json\njson.loads('{')", "json.decoder.JSONDecodeError", "Expecting property"),
            ("class Odd(Exception): pass\nraise Odd('é')", "__main__.Odd", "é"),
            ("try:\n 1/0\nexcept Exception as e:\n raise KeyError('k') from e", "KeyError", "'k'"),
            ("raise ValueError('\\udc80')", "ValueError", "\\udc80"),
            ("raise ExceptionGroup('two', [OSError(), OSError()])", "ExceptionGroup", "two (2 sub"),
            (
                "class Odd(Exception):\n def __str__(self): raise RuntimeError\nraise Odd",
                "__main__.Odd",
                "<its str() raised RuntimeError>",
            ),
        ],
    )
    def test_run_when_an_exception_ends_it_then_type_and_message_are_told(
        self, sandbox: SupervisedSandbox, code: str, kind: str, message: str
    ) -> None:
        """The exception that was raised last is told apart from the output."""
        result = sandbox.run(python(code))
        assert result.error is not None
        assert result.error.type == kind
        assert result.error.message.startswith(message)
        assert (result.exit_code, result.signal, result.ok) == (1, None, False)

    def test_run_when_recursion_never_ends_then_the_frames_are_bounded(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A traceback of a thousand frames is told by its head and tail."""
        result = sandbox.run(python("def f(): f()\nf()"))
        assert result.error is not None
        assert result.error.type == "RecursionError"
        assert len(result.error.frames) <= 50

    def test_run_when_the_source_is_no_utf8_then_its_interpreter_says_so(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Half a surrogate pair in the source is the program's own error."""
        result = sandbox.run(python("x = '\ud800'"))
        assert result.error is not None
        assert result.error.type == "SyntaxError"


class FileCases:
    """Files, in and out."""

    def test_run_when_files_are_put_then_the_program_reads_them(
        self, sandbox: SupervisedSandbox, tmp_path: Path
    ) -> None:
        """Content and files of this machine land under their names, folders included."""
        (tmp_path / "data.bin").write_bytes(bytes(range(256)) * 5000)
        files: dict[str, bytes | Path] = {
            "a/b/c.txt": b"abc",
            "data.bin": tmp_path / "data.bin",
            "empty": b"",
        }
        job = Job(Command("cat a/b/c.txt; wc -c < data.bin; wc -c < empty"), files=files)
        assert finished(sandbox.run(job)).split() == ["abc1280000", "0"]

    def test_run_when_files_match_then_they_come_out_sorted(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Globs go into folders and find hidden files; names are relative to the workspace."""
        code = (
            "import os\n"
            "os.makedirs('working/deep/.hidden')\n"
            "for n in ('submission.csv', 'working/.h', 'working/deep/.hidden/x', 'other.csv'):\n"
            "    open(n, 'w').write(n)"
        )
        job = Job(PythonProgram(code), collect=("submission.csv", "working/**", "absent"))
        result = sandbox.run(job)
        assert list(result.files) == ["submission.csv", "working/.h", "working/deep/.hidden/x"]
        assert all(content == name.encode() for name, content in result.files.items())
        assert result.left_out == {}

    def test_run_when_odd_things_match_then_they_are_left_out_with_reasons(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Only regular files of a fitting size and name come out."""
        code = (
            "import os, socket\n"
            "os.symlink('/etc/passwd', 'link'); os.symlink('/etc', 'folder')\n"
            "os.mkfifo('fifo'); socket.socket(socket.AF_UNIX).bind('socket')\n"
            "open(b'\\xff', 'w'); os.mkdir('plain'); open('good', 'w').write('x')"
        )
        job = Job(PythonProgram(code), collect=("*", "folder/**", "plain"))
        result = sandbox.run(job)
        assert "good" in result.files
        assert "plain" in result.left_out
        left_out = {name: reason for name, reason in result.left_out.items() if name != "plain"}
        assert left_out == {
            "link": "a link",
            "folder": "a link",
            "fifo": "a FIFO",
            "socket": "a socket",
            "\\udcff": "its name is no UTF-8",
        }

    def test_run_when_files_are_too_large_or_many_then_the_rest_is_left_out(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Neither a sparse file nor a crowd of files fills this machine's memory."""
        most, size = sandbox.limits.collected_files, sandbox.limits.collected
        code = (
            "import os\n"
            "os.mkdir('many')\n"
            f"for i in range({most} + 5): open(f'many/{{i:06}}', 'w')\n"
            f"f = open('a-sparse', 'wb'); f.truncate(min({size} + 1, {sandbox.limits.file}))"
        )
        result = sandbox.run(Job(PythonProgram(code), collect=("a-sparse", "many/*")))
        assert len(result.files) <= most
        assert "too many files" in result.left_out.values()

    def test_run_when_folders_are_nested_without_end_then_the_walk_ends(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A thousand folders in each other break nothing."""
        code = "import os\nfor i in range(1000):\n    os.mkdir('d'); os.chdir('d')\nopen('x', 'w')"
        result = sandbox.run(Job(PythonProgram(code), collect=("**",)))
        assert result.ok
        assert list(result.files) == ["program.py"]
        assert any("folders deep" in reason for reason in result.left_out.values())

    @pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../x", "", "a//b", "a\0b", "./a", "a/"])
    def test_run_when_a_name_leaves_the_workspace_then_it_is_refused(
        self, sandbox: SupervisedSandbox, name: str
    ) -> None:
        """Names are checked before anything starts, those to collect as well."""
        with pytest.raises(InputError, match="workspace"):
            sandbox.run(Job(Command("true"), files={name: b""}))
        with pytest.raises(InputError, match="workspace"):
            sandbox.run(Job(Command("true"), collect=(name,)))

    def test_put_when_a_file_cannot_be_read_then_the_kernel_goes_on(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A file that fails in the middle is the caller's mistake, and breaks no protocol."""
        unreadable = Path("/proc/self/mem")
        if not unreadable.exists():
            pytest.skip("no file here that opens and cannot be read")
        with pytest.raises(InputError, match="to its end"):
            sandbox.run(Job(Command("true"), files={"a": unreadable}))
        with sandbox.kernel() as kernel:
            with pytest.raises(InputError, match="to its end"):
                kernel.put({"a": unreadable})
            assert finished(kernel.execute("1")) == "1\n"

    def test_run_when_a_file_to_put_is_not_there_then_it_is_refused(
        self, sandbox: SupervisedSandbox, tmp_path: Path
    ) -> None:
        """A path that is no file is the caller's mistake."""
        with pytest.raises(InputError, match="no file"):
            sandbox.run(Job(Command("true"), files={"a": tmp_path}))


class KernelCases:
    """Kernels: state between cells, and how cells end."""

    @pytest.fixture(scope="class")
    @classmethod
    def kernel(cls, sandbox: SupervisedSandbox) -> Iterator[SupervisedKernel]:
        """Return a kernel that tests share; each leaves it alive."""
        with sandbox.kernel(preload=["json", "no_such_module"], files={"in.txt": b"in"}) as kernel:
            yield kernel

    def test_execute_when_cells_follow_then_variables_stay(self, kernel: Kernel) -> None:
        """The value of a last expression is shown, as at the prompt."""
        assert finished(kernel.execute("import sys\nx = 20\nx + 1")) == "21\n"
        result = kernel.execute("print(x); None")
        assert (result.stdout, result.exit_code) == ("20\n", None)
        assert finished(kernel.execute("'json' in sys.modules, open('in.txt').read()")) == (
            "(True, 'in')\n"
        )

    def test_execute_when_c_code_and_children_print_then_it_is_the_cells(
        self, kernel: Kernel
    ) -> None:
        """Output is taken at the level of descriptors."""
        code = (
            "import ctypes, os\n"
            "_ = ctypes.CDLL(None).puts(b'from C')\n"
            "_ = os.system('echo from a child; echo warned >&2')"
        )
        result = kernel.execute(code)
        assert sorted(result.stdout.splitlines()) == ["from C", "from a child"]
        assert result.stderr == "warned\n"
        assert kernel.execute("pass").stdout == ""

    def test_execute_when_an_exception_ends_a_cell_then_the_kernel_lives(
        self, kernel: Kernel
    ) -> None:
        """Exceptions are told with the source of their cells."""
        kernel.execute("def f():\n    return 1 / 0")
        result = kernel.execute("f()")
        assert result.error is not None
        assert result.error.type == "ZeroDivisionError"
        assert [(f.function, f.text) for f in result.error.frames] == [
            ("<module>", "f()"),
            ("f", "return 1 / 0"),
        ]
        assert "return 1 / 0" in result.stderr
        assert not result.kernel_lost
        assert result.exit_code is None
        assert not result.ok

    @pytest.mark.parametrize("code", ["x = (", "raise SystemExit(3)", "import no_such_module"])
    def test_execute_when_a_cell_cannot_go_on_then_the_next_one_can(
        self, kernel: Kernel, code: str
    ) -> None:
        """Syntax errors, exits and missing modules leave the kernel alive."""
        result = kernel.execute(code)
        assert result.error is not None
        assert not result.kernel_lost
        assert finished(kernel.execute("1")) == "1\n"

    def test_execute_when_a_cell_awaits_then_it_is_waited_for(self, kernel: Kernel) -> None:
        """A top-level `await` works as in a notebook."""
        assert finished(kernel.execute("import asyncio\nawait asyncio.sleep(0, 'slept')")) == (
            "'slept'\n"
        )

    def test_execute_when_a_cell_takes_too_long_then_it_is_interrupted(
        self, kernel: Kernel
    ) -> None:
        """Variables survive a timeout, and so do children's ways to wait."""
        kernel.execute("y = 1\nimport os, time")
        for wait in ("time.sleep(3600)", "_ = os.system('sleep 3600')"):
            code = f"print('begun', flush=True)\n{wait}"
            result = given_time(lambda seconds: kernel.execute(code, seconds=seconds))  # noqa: B023
            assert result.timed_out
            assert result.stdout == "begun\n"
            assert not result.kernel_lost
        assert finished(kernel.execute("y")) == "1\n"

    def test_execute_when_a_cell_forks_then_its_child_ends_with_the_cell(
        self, kernel: Kernel
    ) -> None:
        """A child that comes to the end of a cell takes no further ones."""
        finished(kernel.execute("import os\npid = os.fork()\nif not pid: mine = 1"))
        assert finished(kernel.execute("pid > 0 and os.waitpid(pid, 0)[1]")) == "0\n"

    def test_execute_when_a_cell_forges_reports_then_later_cells_are_their_own(
        self, kernel: Kernel
    ) -> None:
        """A report of another cell is none."""
        code = (
            "import os\n"
            "body = b'999999\\0'\n"
            "for fd in range(50, 60):\n"
            "    try: _ = os.write(fd, len(body).to_bytes(4, 'big') + body)\n"
            "    except OSError: pass\n"
            "print('forged')"
        )
        assert finished(kernel.execute(code)) == "forged\n"
        assert finished(kernel.execute("'own'")) == "'own'\n"

    def test_run_when_a_command_runs_beside_then_only_what_it_leaves_is_killed(
        self, kernel: Kernel
    ) -> None:
        """Children of cells go on; daemons of a command do not."""
        kernel.execute("import subprocess\nchild = subprocess.Popen(['sleep', '3600'])")
        kernel.put({"leave.py": writing_daemon("alive").encode()})
        result = kernel.run(Command("sleep 0 & python3 leave.py; echo done"), collect=["in.*"])
        assert (result.stdout, result.exit_code) == ("done\n", 0)
        assert result.files == {"in.txt": b"in"}
        finished(
            kernel.execute(
                "import time, os\nsize = lambda: os.path.getsize('alive') if os.path.exists('alive') else 0\nn = size()\ntime.sleep(0.3)"
            )
        )
        assert finished(kernel.execute("size() == n, child.poll()")) == "(True, None)\n"
        finished(kernel.execute("child.kill(); _ = child.wait()"))

    def test_run_when_a_cell_keeps_starting_daemons_then_a_command_ends_all_the_same(
        self, sandbox: SupervisedSandbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What cells start while a command is cleared away is not taken for what it left."""
        code = (
            "import os, time\n"
            "if not os.fork():\n"
            "    os.setsid()\n"
            "    while True:\n"
            "        if not os.fork():\n"
            "            if not os.fork(): time.sleep(0.1)\n"
            "            os._exit(0)\n"
            "        os.wait()\n"
            "        time.sleep(0.005)"
        )
        with sandbox.kernel() as kernel:
            kernel.execute(code)
            assert kernel.run(Command("sleep 60 & echo done")).stdout == "done\n"
            assert finished(kernel.execute("1")) == "1\n"
        assert "stuck" not in caplog.text

    def test_put_when_a_link_is_in_the_way_then_it_is_not_followed(self, kernel: Kernel) -> None:
        """A link under a file's name is replaced; one in place of a folder is refused."""
        kernel.execute(
            "import os\nos.mkdir('safe'); os.symlink('safe/file', 'one'); os.symlink('safe', 'two')"
        )
        kernel.put({"one": b"new"})
        assert kernel.collect(["one", "safe/**"]) == ({"one": b"new"}, {})
        with pytest.raises(InputError, match="two/file"):
            kernel.put({"two/file": b""})
        assert kernel.collect(["safe/**"]) == ({}, {})

    @pytest.mark.parametrize(
        ("code", "exit_code", "name"),
        [
            ("import os; os._exit(3)", 3, None),
            ("import os; os.kill(os.getpid(), 11)", 139, "SIGSEGV"),
        ],
    )
    def test_execute_when_a_cell_ends_its_kernel_then_the_next_one_starts_anew(
        self, sandbox: SupervisedSandbox, code: str, exit_code: int, name: str | None
    ) -> None:
        """Files stay, variables and background processes go."""
        with sandbox.kernel() as kernel:
            kernel.execute("x = 1\nopen('kept', 'w').write('kept')")
            result = kernel.execute(f"print('last words')\n{code}")
            assert (result.exit_code, result.signal) == (exit_code, name)
            assert result.kernel_lost
            assert result.stdout == "last words\n"
            assert finished(kernel.execute("'x' in globals(), open('kept').read()")) == (
                "(False, 'kept')\n"
            )

    def test_execute_when_a_cell_ignores_its_interrupt_then_its_kernel_is_killed(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Nothing keeps a cell running past its grace."""
        with sandbox.kernel() as kernel:
            code = (
                "import time\n"
                "while True:\n"
                "    try: time.sleep(60)\n"
                "    except KeyboardInterrupt: pass"
            )
            result = kernel.execute(code, seconds=0.5)
            assert (result.timed_out, result.kernel_lost) == (True, True)
            assert finished(kernel.execute("1")) == "1\n"

    def test_execute_when_a_cell_closes_everything_then_only_its_kernel_is_lost(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """What a cell does to descriptors it inherited breaks no protocol."""
        with sandbox.kernel() as kernel:
            result = kernel.execute("import os; os.closerange(0, 256)")
            assert result.kernel_lost
            assert finished(kernel.execute("1")) == "1\n"

    def test_execute_when_the_kernel_is_closed_then_it_says_so(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """A closed kernel is no fresh one."""
        kernel = sandbox.kernel()
        kernel.close()
        kernel.close()
        with pytest.raises(SandboxFailureError, match="closed"):
            kernel.execute("1")


class AsyncCases:
    """The same, awaited."""

    async def test_arun_when_many_run_at_once_then_each_has_its_own_result(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Runs side by side do not mix."""
        jobs = [python(f"print({number})") for number in range(8)]
        results = await asyncio.gather(*(sandbox.arun(job) for job in jobs))
        assert [finished(result) for result in results] == [f"{n}\n" for n in range(8)]

    async def test_arun_when_cancelled_then_the_program_is_killed_and_others_go_on(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """Cancelling waits until nothing runs any more."""
        before = set(sandbox._places)
        task = asyncio.create_task(sandbox.arun(python("import time\ntime.sleep(60)")))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sandbox._places == before
        assert finished(await sandbox.arun(python("print(1)"))) == "1\n"

    async def test_akernel_when_a_cell_is_cancelled_then_it_is_interrupted(
        self, sandbox: SupervisedSandbox
    ) -> None:
        """The kernel of a cancelled cell keeps its variables."""
        kernel = await sandbox.akernel()
        await kernel.aput({"a": b"a"})
        await kernel.aexecute("x = 5")
        task = asyncio.create_task(kernel.aexecute("import time\ntime.sleep(60)"))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert finished(await kernel.aexecute("x")) == "5\n"
        assert (await kernel.arun(Command("cat a"))).stdout == "a"
        assert await kernel.acollect(["a"]) == ({"a": b"a"}, {})
        await kernel.aclose()


class SandboxCases(ProgramCases, FileCases, KernelCases, AsyncCases):
    """All of it."""

    def test_sandbox_then_it_is_one_by_protocol(self, sandbox: SupervisedSandbox) -> None:
        """Sandbox and kernel are what the protocols say."""
        assert isinstance(sandbox, Sandbox)
        assert len(sandbox.digest) == 64
        with sandbox.kernel() as kernel:
            assert isinstance(kernel, Kernel)
