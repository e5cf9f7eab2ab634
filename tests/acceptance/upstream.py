"""LangGraph's own store tests, pointed at our stores.

The tests are LangGraph's: they are in none of our files. They come from a checkout of LangGraph
that the variable `LANGGRAPH_SOURCE` names, or from the source distributions, on the package
index, of the very versions that are installed.
"""

import os
import re
import shutil
import sys
import tarfile
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

import postgres_server

from acceptance.command import run, worker_environment
from acceptance.figure import Figure, Setting, share
from acceptance.upstream_table import UPSTREAM, Upstream
from langgraft._core.errors import InputError

SOURCE: Final = "LANGGRAPH_SOURCE"
"""Variable that names a checkout of LangGraph."""

_SHIM: Final = "acceptance.upstream_shim"

_INI: Final = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""


def measure(setting: Setting) -> list[Figure]:
    """Run LangGraph's tests on each store; at reduced size, those that take seconds."""
    chosen = [each for each in UPSTREAM if each.store == "ranked" or not setting.reduced]
    return [_figure(each, setting) for each in chosen]


def _figure(tests: Upstream, setting: Setting) -> Figure:
    """Hold the tests that failed against those that should."""
    promise = f"LangGraph's store tests fail on {tests.title} only where a reason is documented"
    setting.say(f"the tests of {tests.package} on {tests.title}")
    work = setting.work / f"upstream-{tests.store}-{tests.package}"
    work.mkdir()
    try:
        source, found = fetch(tests, work)
    except InputError as error:
        return Figure(promise, tests.package, str(error), "the table's", passed=None)
    with _server(tests, source):
        passed, failed = _outcomes(tests, source, work)
    wrong = [f"{name} fails" for name in failed if name not in tests.failures]
    wrong += [f"{name} passes" for name in tests.failures if name not in failed]
    known = sum(failed.values())
    functions = f"{known} cases of {len(failed)} tests fail as documented"
    told = f"{share(passed, passed + known)} cases pass; {'; '.join(wrong) or functions}"
    return Figure(promise, found, told, "the table's", passed=not wrong and passed > 0)


def fetch(tests: Upstream, work: Path) -> tuple[Path, str]:
    """Return a folder with a package's tests, to be changed at will, and where they are from.

    Raises:
        InputError: There is no such checkout, or the package index gives no tests.
    """
    target = work / "source"
    if given := os.environ.get(SOURCE):
        folder = Path(given) / "libs" / tests.folder
        if not (folder / "tests").is_dir():
            msg = f"{SOURCE}={given} is no checkout of LangGraph: it has no {folder}/tests"
            raise InputError(msg)
        shutil.copytree(folder / "tests", target / "tests")
        return target, f"{tests.package}, from {SOURCE}"
    name = f"{tests.package}=={version(tests.package)}"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(work)]
    done = run([*command, "--no-binary", ":all:", "--no-build-isolation", name])
    archives = list(work.glob("*.tar.gz"))
    if not archives:
        said = done.stderr.strip().splitlines()
        msg = f"{name} cannot be downloaded; set {SOURCE} to a checkout of LangGraph: {said[-1:]}"
        raise InputError(msg)
    with tarfile.open(archives[0]) as archive:
        archive.extractall(target, filter="data")
    (unpacked,) = target.iterdir()
    if not (unpacked / "tests").is_dir():
        msg = f"{archives[0].name} holds no tests; set {SOURCE} to a checkout of LangGraph"
        raise InputError(msg)
    return unpacked, name


@contextmanager
def _server(tests: Upstream, source: Path) -> Iterator[None]:
    """Have the tests of PostgreSQL find a server, for as long as the block lasts."""
    if tests.store != "postgres":
        yield
        return
    with postgres_server.running_server() as uri:
        # The tests put other databases' names into this URI, and cut it at its slashes.
        named = urlsplit(uri)
        socket = parse_qs(named.query).get("host")
        place = f"{named.username}@{quote(socket[0], safe='')}" if socket else named.netloc
        plain = f"postgresql://{place}{named.path}?sslmode=disable"
        configuration = source / "tests" / "conftest.py"
        text = re.sub(r"DEFAULT_URI = .*", f'DEFAULT_URI = "{plain}"', configuration.read_text())
        configuration.write_text(text)
        yield


def _outcomes(tests: Upstream, source: Path, work: Path) -> tuple[int, Counter[str]]:
    """Run the tests; return how many cases pass, and the failed cases by test function."""
    (work / "pytest.ini").write_text(_INI)
    report = work / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", _SHIM]
    command += ["-c", str(work / "pytest.ini"), "--rootdir", str(source), f"--junitxml={report}"]
    command += ["-k", f"not ({tests.without})"] if tests.without else []
    environment = {**worker_environment(), "LANGGRAFT_UPSTREAM": tests.store}
    done = run([*command, *tests.files], folder=source, environment=environment)
    if not report.exists():
        msg = f"LangGraph's tests did not run: {done.stdout[-500:]}{done.stderr[-500:]}"
        raise InputError(msg)
    cases = list(ET.parse(report).iter("testcase"))
    broken = [case for case in cases if {"failure", "error"} & {part.tag for part in case}]
    failed = Counter(case.get("name", "").partition("[")[0] for case in broken)
    return len(cases) - len(broken), failed
