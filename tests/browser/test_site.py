"""The documentation site as it is built, and as a browser shows it: whole, reachable, readable by all."""

import json
import os
import posixpath
import subprocess
import threading
import zlib
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import axe_core_python
import pytest
from chromium import FLAGS
from documentation.names import exported, modules
from warm_python import started_code

pytestmark = pytest.mark.browser
REPOSITORY: Final = Path(__file__).resolve().parents[2]
SHOWN: Final = (
    "index.html",
    "howto/coming-from.html",
    "reference/testing.html",
    "reference/commands.html",
)
"""A page of each kind, with tables, code, pictures, lists and what is written of names: axe takes a while."""
BUILDING: Final = """import gc
from mkdocs.__main__ import cli
gc.set_threshold(100_000, 50, 50)  # little of what is made goes away before the end
cli()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make docs` does; it must say nothing."""
    out = tmp_path_factory.mktemp("site")
    words = ("build", "--quiet", "--strict", "--config-file", REPOSITORY / "mkdocs.yml")
    told = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    with started_code(BUILDING, *words, "--site-dir", out, environment=told) as process:
        done = process.ended()
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return out


class _Handler(SimpleHTTPRequestHandler):
    """Serves the site, what looks at it, and takes what that found."""

    server: "_Server"

    def do_GET(self) -> None:
        """Send a file, of the site or of ours."""
        ours = self.server.ours.get(urlsplit(self.path).path)
        if ours is None:
            super().do_GET()
            return
        kind, body = ours
        self.send_response(200)
        self.send_header("content-type", kind)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Take what was found."""
        self.server.told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    def __init__(self, site: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(site)))
        pages = sorted(page.relative_to(site).as_posix() for page in site.rglob("*.html"))
        plan = {"pages": [page for page in pages if page != "404.html"], "shown": SHOWN}
        self.done = threading.Event()
        self.told: dict[str, Any] = {}
        self.ours = {
            "/looks": (
                "text/html",
                b'<!doctype html><body><script src="/checks.js"></script></body>',
            ),
            "/plan.json": ("application/json", json.dumps(plan).encode()),
            "/checks.js": (
                "text/javascript",
                Path(__file__).with_name("site_checks.js").read_bytes(),
            ),
            "/axe.js": (
                "text/javascript",
                Path(axe_core_python.__file__).with_name("axe.min.js").read_bytes(),
            ),
        }


@pytest.fixture(scope="module")
def told(browser: str, site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Have a browser look at every page, once."""
    server = _Server(site)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    flags = [flag for flag in FLAGS if not flag.startswith("--virtual-time")]
    url = f"http://127.0.0.1:{server.server_port}/looks"
    profile = tmp_path_factory.mktemp("profile")
    command = [browser, *flags, f"--user-data-dir={profile}", "--remote-debugging-port=0", url]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as looking:
        ended = server.done.wait(800)
        looking.terminate()
    server.shutdown()
    thread.join()
    server.server_close()
    assert ended, "the browser told nothing"
    assert "error" not in server.told, server.told["error"]
    return server.told


def test_site_when_built_has_every_public_name(site: Path) -> None:
    """The inventory that other sites link by has each name as it is imported."""
    packed = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    names = {line.split(" ", 1)[0] for line in zlib.decompress(packed).decode().splitlines()}
    assert sorted({path for module in modules() for path, _ in exported(module)} - names) == []


def test_pages_when_read_lead_only_where_something_is(told: dict[str, Any], site: Path) -> None:
    """Links and their anchors, and pictures, are there."""
    broken = []
    for page, facts in told["pages"].items():
        for link in (*facts["links"], *facts["images"]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            beside = posixpath.join(posixpath.dirname(page), unquote(parts.path))
            target = posixpath.normpath(beside) if parts.path else page
            there = told["pages"].get(target, {"ids": [], "names": []})
            known = not parts.fragment or unquote(parts.fragment) in {
                *there["ids"],
                *there["names"],
            }
            if not (known and (site / target).is_file()):
                broken.append(f"{page}: {link}")
    assert broken == []


def test_pages_when_read_have_what_readers_need(told: dict[str, Any]) -> None:
    """A title of its own, a language, one first heading, no level skipped, words for pictures and links."""
    bad = []
    for page, facts in told["pages"].items():
        levels = facts["levels"]
        bad += [f"{page}: {what}" for what, holds in (
            ("title", facts["title"] and facts["lang"] == "en"),
            ("one h1", levels.count(1) == 1 and levels[0] == 1),
            ("levels", all(after <= before + 1 for before, after in pairwise(levels))),
            (f"alt {facts['noAlt']}", not facts["noAlt"]),
            (f"link without words {facts['noText']}", not facts["noText"]),
            ("ids", len(facts["ids"]) == len(set(facts["ids"]))),
        ) if not holds]  # fmt: skip
    titles = [facts["title"] for facts in told["pages"].values()]
    assert bad == []
    assert len(titles) == len(set(titles))


def test_pages_when_loaded_fetch_nothing_from_elsewhere(told: dict[str, Any]) -> None:
    """No fonts, scripts or pictures of others: the site works where there is no network."""
    asked = [
        found
        for facts in (*told["pages"].values(), *told["shown"].values())
        for found in facts["outside"]
    ]
    assert asked == []


def test_pages_when_shown_pass_what_axe_asks(told: dict[str, Any]) -> None:
    """Contrast in both palettes, landmarks, names, tables: nothing that axe knows of keeps a reader out."""
    violations = {
        page: facts["violations"] for page, facts in told["shown"].items() if facts["violations"]
    }
    assert violations == {}
    assert all(facts["wide"] <= 1200 for facts in told["shown"].values())
