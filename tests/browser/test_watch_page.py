"""The page of a plan under way as a browser shows it: within its width, safe, and loaded anew by itself."""

import json
import re
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan, run_chain
from chromium import FLAGS

from langgraft.benchmarks.harness.directory import locked
from langgraft.benchmarks.harness.log import checked_line, run_folder
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.harness.watching import PlanWatch
from langgraft.cli.listing import write_watch_page

ATTACK = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
LONG = "a_name_without_any_place_to_break_" * 6


class HostileStudy(ChainStudy):
    """Runs whose names are long, and scripts."""

    def expand(self, plan: ChainPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan."""
        return tuple(
            RunSpec(self.name, f"{number}/{ATTACK}{LONG}", {"condition": ATTACK + LONG}, ("i", "j"))
            for number in range(3)
        )


@pytest.fixture
async def watch(tmp_path: Path) -> AsyncIterator[PlanWatch]:
    """Return a plan under way whose every word is an attack."""
    out = tmp_path / "out"
    await run_chain(out, chain_plan(title=ATTACK), HostileStudy())
    watch = PlanWatch(out)
    usage = {"attempts": 2, "failures": {ATTACK: 1}, "failures_told": {ATTACK: ATTACK + LONG}}
    events = [
        {"event": "opened", "time": 1, "host": ATTACK, "pid": ATTACK},
        {"event": "item", "time": 2, "index": 0, "item_id": ATTACK, "data": {"usage": usage}},
        {"event": "failed", "time": 3, "text": ATTACK + LONG, "reason": ATTACK + LONG},
        {"event": ATTACK, "time": 4, "text": ATTACK},
    ]
    for run in watch.runs[:2]:
        folder = run_folder(out, run.run)
        (folder / "DONE.json").unlink()
        lines = [checked_line(json.dumps(each)) for each in events]
        (folder / "events.jsonl").write_bytes(b"".join(lines))
    with locked(out):  # else nobody runs it
        watch.look()
        assert watch.states["under way"] == 2
        yield watch


class _Server(ThreadingHTTPServer):
    """Serves a page, the last one from the third time on, and notes what it is asked for."""

    def __init__(self, page: bytes, last: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages = [page, page, last]
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Send the page."""
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.end_headers()
        turn = self.server.asked.count(self.path)
        self.wfile.write(self.server.pages[min(turn, 3) - 1])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(watch: PlanWatch, tmp_path: Path) -> Iterator[_Server]:
    """Serve the page of the plan, as it is written every second."""
    page = tmp_path / "watch.html"
    pages = []
    for every in (1.0, None):
        write_watch_page(page, watch, every)
        pages.append(page.read_bytes())
    server = _Server(*pages)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def shown(browser: str, server: _Server, tmp_path: Path, *flags: str) -> str:
    """Return the page as the browser has it after a few seconds of its own time."""
    url = f"http://127.0.0.1:{server.server_port}/watch.html"
    command = [
        browser,
        *FLAGS,
        f"--user-data-dir={tmp_path / 'profile'}",
        *flags,
        "--dump-dom",
        url,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout


def test_page_when_a_plan_is_under_way_loads_itself_anew_and_nothing_else(
    browser: str, served: _Server, tmp_path: Path
) -> None:
    """The browser asks for the page until it is the last one, and runs and fetches nothing in it."""
    text = shown(browser, served, tmp_path)
    assert served.asked.count("/watch.html") == 3
    assert {*served.asked} <= {"/watch.html", "/favicon.ico"}
    assert "<title>taken" not in text
    assert not re.search(r"<(script|img)", text)
    assert "&lt;script&gt;" in text
    assert "These are counts, not results." in text


@pytest.mark.parametrize("width", [400, 1200])
def test_page_when_names_are_long_fits_into_its_width(
    browser: str, watch: PlanWatch, tmp_path: Path, width: int
) -> None:
    """Tables scroll within the page; the page itself does not scroll sideways."""
    page = tmp_path / "watch.html"
    write_watch_page(page, watch, None)
    probe = tmp_path / "probe.html"
    probe.write_text(
        f"""<!doctype html><iframe style="border:0;width:{width}px;height:900px" srcdoc=\"{
            page.read_text().replace("&", "&amp;").replace('"', "&quot;")
        }\"></iframe><script>addEventListener("load", () => {{
          const page = document.querySelector("iframe").contentDocument;
          document.title = Math.max(page.documentElement.scrollWidth, page.body.scrollWidth);
        }})</script>"""
    )
    command = [browser, *FLAGS, f"--user-data-dir={tmp_path / 'p'}", "--dump-dom", probe.as_uri()]
    dumped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    (needed,) = re.findall(r"<title>(\d+)</title>", dumped)
    assert int(needed) <= width
