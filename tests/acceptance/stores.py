"""One study on every store: where banks lie shows in no byte of the results."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from chroma_server import chroma_server
from postgres_server import HOW_TO_GET_IT, available, running_server

from acceptance.command import Ended, langgraft
from acceptance.figure import Figure, Setting, share
from acceptance.kill import results

TESTS = "tests/benchmarks/continual/test_study_stores.py"
AT_ONCE = 2
"""Commands under way at the same time; each keeps one core busy."""


def measure(setting: Setting) -> list[Figure]:
    """Run the demo over each store and compare what was committed."""
    plan, how = "demo", "`langgraft run demo --store …`"
    if setting.reduced:
        # A small plan over each store is a test.
        return [Figure(_promise("Chroma and PostgreSQL"), TESTS, "run with the tests", "", None)]
    with ExitStack() as servers:
        stores = {"memory": "memory", "Chroma, embedded": "chroma"}
        stores["Chroma, a server"] = servers.enter_context(chroma_server())
        if available():
            stores["PostgreSQL"] = servers.enter_context(running_server())
        setting.say(f"one plan over {len(stores)} stores")
        folders = {name: setting.work / f"store-{n}" for n, name in enumerate(stores)}
        ended = _run_all(plan, stores, folders)
    figures = [
        _compared(name, ended[name], folders["memory"], folders[name], how)
        for name in stores
        if name != "memory"
    ]
    if "PostgreSQL" not in stores:
        figures.append(Figure(_promise("PostgreSQL"), how, HOW_TO_GET_IT, "", None))
    return figures


def _run_all(plan: str, stores: Mapping[str, str], folders: Mapping[str, Path]) -> dict[str, Ended]:
    def run(name: str) -> Ended:
        return langgraft("run", plan, "--out", folders[name], "--store", stores[name])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(stores, pool.map(run, stores), strict=True))


def _promise(name: str) -> str:
    return f"{name}: logs and tables are those of the store in memory"


def _compared(name: str, ended: Ended, expected: Path, found: Path, how: str) -> Figure:
    before, after = results(expected), results(found)
    names = sorted({*before, *after})
    wrong = [path for path in names if before.get(path) != after.get(path)]
    figure = share(len(names) - len(wrong), len(names), wrong) + f" files; {ended.seconds:.0f} s"
    if ended.code != 0:
        figure = f"exit code {ended.code}: {ended.stderr.strip()[-200:]}"
    passed = ended.code == 0 and bool(names) and not wrong
    return Figure(_promise(name), how, figure, "all files, byte for byte", passed)
