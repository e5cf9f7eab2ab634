"""The page of a tree search in a browser: clicked, walked with keys, without scripts, large."""

import html
import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from chromium import FLAGS

from langgraft.benchmarks.mle.tree_page import write_tree_page
from langgraft.nodes.search.journal import Journal, JournalNode

LONG = "an_extraordinarily_long_word_" * 8
HOSTILE = "</pre></article><script>document.title = 'hacked'</script>\u202e\x00"

PROBE = """<!doctype html><meta charset="utf-8">
<iframe name="desk" src="tree.html" style="border:0;width:1200px;height:800px"></iframe>
<iframe name="phone" src="tree.html" style="border:0;width:400px;height:800px"></iframe>
<iframe name="plain" src="tree.html#n2" sandbox="allow-same-origin" style="border:0;width:1200px;height:800px"></iframe>
<iframe name="large" src="large.html" style="border:0;width:1200px;height:800px"></iframe>
<script>
addEventListener("load", async () => {
  const seen = {}, moment = () => new Promise(done => setTimeout(done, 60));
  const shown = page => [...page.querySelectorAll("article")]
    .filter(each => page.defaultView.getComputedStyle(each).display !== "none").map(each => each.id);
  const press = async (page, key) => {
    page.querySelector("[aria-current]").dispatchEvent(
      new page.defaultView.KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    await moment();
    return shown(page)[0];
  };
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument, root = page.documentElement;
    const result = seen[frame.name] = {
      title: page.title,
      width: frame.clientWidth,
      needed: Math.max(root.scrollWidth, page.body.scrollWidth),
      marks: [...page.querySelectorAll(".tree a")].filter(a => a.getBoundingClientRect().width > 5).length,
      fetched: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
      first: shown(page),
      zoom: frame.contentWindow.getComputedStyle(page.querySelector(".zoom")).display,
    };
    if (frame.name === "plain") continue;
    page.querySelector("#m1").dispatchEvent(
      new frame.contentWindow.MouseEvent("click", { bubbles: true, cancelable: true }));
    await moment();
    result.clicked = shown(page);
    result.focused = page.activeElement.id;
    result.current = [...page.querySelectorAll("[aria-current]")].map(a => a.id);
    result.stops = page.querySelectorAll(".tree a[tabindex='0']").length;
    result.walked = [];
    for (const key of ["ArrowLeft", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowRight", "End", "Home", "ArrowUp"])
      result.walked.push(await press(page, key));
    const picture = page.querySelector(".tree svg"), before = picture.getBoundingClientRect().width;
    page.querySelector("[data-zoom=in]").click();
    result.zoomed = picture.getBoundingClientRect().width / before;
    page.querySelector("[data-zoom=fit]").click();
    result.fits = page.querySelector(".tree").scrollWidth <= page.querySelector(".tree").clientWidth;
    result.scrolled = frame.contentWindow.scrollY;
  }
  const told = document.createElement("pre");
  told.id = "seen";
  told.textContent = JSON.stringify(seen);
  document.body.append(told);
});
</script>
"""
"""Shows the page in four frames, one of them without scripts, and uses it as a reader would."""


def search(steps: int) -> Journal:
    """Make a search: three drafts, the first repaired by step 3, then improvements in turn."""
    nodes = []
    for step in range(steps):
        parent = None if step < 3 else 0 if step == 3 else (step // 3) * 2 - 1
        failed = step == 0 or step % 5 == 4
        nodes.append(
            JournalNode(
                step=step,
                id=f"{step:03d}",
                parent_id=None if parent is None else f"{parent:03d}",
                plan=f"{LONG} {HOSTILE}",
                code=f"{LONG}\n{HOSTILE}",
                output=LONG,
                metric=None if failed else step / 7,
                is_buggy=failed,
                reasons=(LONG,) if failed else (),
            )
        )
    return Journal("run", "leaf", tuple(nodes))


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the pages, as frames of one origin may be looked into."""
    folder = tmp_path_factory.mktemp("tree")
    write_tree_page(search(12), folder / "tree.html", lower_is_better=True, title=LONG)
    write_tree_page(search(500), folder / "large.html", lower_is_better=False, chosen="400")
    (folder / "probe.html").write_text(PROBE, encoding="utf-8")
    handler = partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def opened(
    browser: str, address: str, tmp_path_factory: pytest.TempPathFactory
) -> subprocess.CompletedProcess[str]:
    """Open the probe."""
    profile = tmp_path_factory.mktemp("profile")
    command = [browser, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", f"{address}/probe.html"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)


@pytest.fixture(scope="module")
def seen(opened: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    """Return what the probe saw."""
    found = re.search(r'<pre id="seen">(.*?)</pre>', opened.stdout)
    assert found is not None, opened.stdout[-2000:]
    told: dict[str, dict[str, Any]] = json.loads(html.unescape(found[1]))
    return told


def test_tree_when_shown_draws_every_program_and_fits_the_page(
    seen: dict[str, dict[str, Any]],
) -> None:
    """On a desk, on a phone, with 500 programs: each can be hit, and nothing scrolls sideways."""
    assert {name: each["marks"] for name, each in seen.items()} == {
        "desk": 12, "phone": 12, "plain": 12, "large": 500,
    }  # fmt: skip
    assert all(each["needed"] <= each["width"] for each in seen.values())
    assert all(each["fetched"] == [] for each in seen.values())


def test_tree_when_opened_shows_the_chosen_program_or_else_the_best(
    seen: dict[str, dict[str, Any]],
) -> None:
    """So that the panel is never empty."""
    assert seen["desk"]["first"] == ["n1"]
    assert seen["large"]["first"] == ["n400"]


def test_tree_when_there_are_no_scripts_shows_what_the_address_names(
    seen: dict[str, dict[str, Any]],
) -> None:
    """Links do without; buttons that would do nothing are not there."""
    assert seen["plain"]["first"] == ["n2"]
    assert seen["plain"]["zoom"] == "none"
    assert seen["desk"]["zoom"] == "flex"


@pytest.mark.parametrize("frame", ["desk", "phone", "large"])
def test_tree_when_clicked_and_walked_shows_one_program_at_a_time(
    seen: dict[str, dict[str, Any]], frame: str
) -> None:
    """Keys go to neighbors, parents and children, and stay where there is no way on."""
    result = seen[frame]
    assert result["clicked"] == ["n1"]
    assert (result["focused"], result["current"], result["stops"]) == ("m1", ["m1"], 1)
    last = "n11" if frame != "large" else "n499"
    assert result["walked"] == ["n0", "n3", "n0", "n1", "n2", last, "n0", "n0"]
    assert result["scrolled"] == 0 or frame == "phone"


@pytest.mark.parametrize("frame", ["desk", "large"])
def test_tree_when_zoomed_grows_and_fits_again(seen: dict[str, dict[str, Any]], frame: str) -> None:
    """By a quarter a press."""
    assert seen[frame]["zoomed"] == pytest.approx(1.25, abs=0.01)
    assert seen[frame]["fits"]


def test_tree_when_texts_are_hostile_runs_none_of_them(
    seen: dict[str, dict[str, Any]], opened: subprocess.CompletedProcess[str]
) -> None:
    """Titles stay, and the browser has nothing to complain of but the frame without scripts."""
    assert "hacked" not in {each["title"] for each in seen.values()}
    said = [line for line in opened.stderr.splitlines() if "CONSOLE" in line]
    assert [line for line in said if "sandboxed" not in line and "favicon" not in line] == []
