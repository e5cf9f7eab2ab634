"""One study on every store: where banks lie shows in no byte of the results."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from langgraft.benchmarks.acceptance.chroma_server import chroma_server
from langgraft.benchmarks.acceptance.command import Ended, langgraft
from langgraft.benchmarks.acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.acceptance.kill import results
from langgraft.benchmarks.acceptance.postgres import HOW_TO_GET_IT, available, running_server

PLAN = "demo"

AT_ONCE = 2
"""Commands under way at the same time; each keeps one core busy."""


def measure(setting: Setting) -> list[Figure]:
    """Run the demo over each store and compare what was committed."""
    limit = ("--limit", 2) if setting.reduced else ()
    how = " ".join(map(str, ("`langgraft run", PLAN, *limit, "--store …`")))
    with ExitStack() as servers:
        stores = {"memory": "memory", "Chroma, embedded": "chroma"}
        stores["Chroma, a server"] = servers.enter_context(chroma_server())
        if available():
            stores["PostgreSQL"] = servers.enter_context(running_server())
        setting.say(f"the plan {PLAN} over {len(stores)} stores")
        folders = {name: setting.work / f"store-{n}" for n, name in enumerate(stores)}
        ended = _run_all(stores, folders, limit)
    figures = [
        _compared(name, ended[name], folders["memory"], folders[name], how)
        for name in stores
        if name != "memory"
    ]
    if "PostgreSQL" not in stores:
        figures.append(Figure(_promise("PostgreSQL"), how, HOW_TO_GET_IT, "", None))
    return figures


def _run_all(
    stores: Mapping[str, str], folders: Mapping[str, Path], limit: tuple[object, ...]
) -> dict[str, Ended]:
    def run(name: str) -> Ended:
        command = ("run", PLAN, *limit, "--out", folders[name], "--store", stores[name])
        return langgraft(*command)

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
