"""The report as a browser shows it: everything drawn, nothing fetched, nothing cut off."""

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import pytest
from ablation_cases import Clerk, tried
from chromium import FLAGS
from synthetic_log import SyntheticLog, World

from langgraft.benchmarks.continual.report import write_report
from langgraft.benchmarks.harness.study import Plan

PHONE, DESK = 400, 1280
WORLD = World(
    conditions=("raw", "agg", "ind", "step", "a-memory-with-a-rather-long-name"),
    effects={("agg", "", ""): 0.35, ("raw", "", ""): -0.35},
    steps=2,
)
TITLE = "Continual learning on BabyAI with " + "an_extraordinarily_long_word_" * 4

PROBE = r"""<!doctype html><meta charset="utf-8"><title>probe</title>
%(frames)s
<script>
addEventListener("load", () => {
  const drawn = box => box.width > 100 && box.height > 50;
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    const words = page.body.innerText.trim().split(/\s+/).length;
    page.querySelectorAll("details").forEach(e => e.open = true);
    const boxes = name => [...page.querySelectorAll(name)].map(e => e.getBoundingClientRect());
    return {
      page: frame.name,
      width: frame.clientWidth,
      words,
      needed: Math.max(root.scrollWidth, page.body.scrollWidth),
      tables: boxes("table").length,
      cut: [...page.querySelectorAll(".scroll")].filter(e => e.scrollWidth > e.clientWidth + 1)
        .map(e => `${e.scrollWidth} > ${e.clientWidth}: ${e.innerText.slice(0, 60)}`),
      figures: boxes("figure svg").filter(drawn).length,
      fetched: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
    };
  });
  const result = document.createElement("pre");
  result.id = "seen";
  result.textContent = JSON.stringify(seen);
  document.body.append(result);
});
</script>
"""
"""Shows pages at given widths, as they are and without a script in them, and measures them."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the report of a complete study, of one half done, and of one just begun."""
    names = [run.name for run in SyntheticLog(WORLD).runs]
    done = {
        "complete": {},
        "half": dict.fromkeys(names[::2], 3),
        "begun": dict.fromkeys(names, 0),
    }
    plan = Plan(study="continual", title=TITLE)
    folder = tmp_path_factory.mktemp("reports")
    found = tried(
        folder / "ablation",
        memory={"trajectory": "trajectory", "a-memory-with-a-long-name": "simple_rag"},
        conditions=("random", "placebo", "instructions", "write_only", "full_history", "rerun"),
        replicates=3,
        model=lambda seed: Clerk(seed=seed, unsteady=0.3),
    )
    return {
        **{
            name: write_report(plan, SyntheticLog(WORLD, done=counts), folder / name).page
            for name, counts in done.items()
        },
        "ablation": found.page,
    }


def show(browser: str, page: Path, tmp_path: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Open a page in a fresh profile."""
    command = [browser, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *flags, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)


@pytest.fixture(scope="module")
def seen(
    browser: str, pages: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, int], dict[str, Any]]:
    """Measure every page at every width, all in one go."""
    folder = tmp_path_factory.mktemp("probe")
    frames = [
        f'<iframe name="{name}" style="border:0;width:{width}px;height:900px" '
        f'srcdoc="{html.escape(page.read_text(encoding="utf-8"))}"></iframe>'
        for name, page in pages.items()
        for width in (PHONE, DESK)
    ]
    probe = folder / "probe.html"
    probe.write_text(PROBE % {"frames": "\n".join(frames)}, encoding="utf-8")
    dumped = show(browser, probe, folder, "--dump-dom").stdout
    found = re.search(r'<pre id="seen">(.*?)</pre>', dumped)
    assert found is not None, dumped[-2000:]
    results = json.loads(html.unescape(found[1]))
    return {(result["page"], result["width"]): result for result in results}


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("page", ["complete", "half", "begun"])
def test_page_when_shown_at_a_width_then_fits_into_it(
    seen: dict[tuple[str, int], dict[str, Any]], page: str, width: int
) -> None:
    """Neither on a phone nor on a desk does the page scroll sideways."""
    assert seen[page, width]["needed"] <= width


@pytest.mark.parametrize("page", ["complete", "half", "begun", "ablation"])
def test_tables_when_shown_on_a_desk_then_none_is_cut_off(
    seen: dict[tuple[str, int], dict[str, Any]], page: str
) -> None:
    """Of all tables, folded ones too, every column is in sight at 1,280 pixels."""
    assert seen[page, DESK]["cut"] == []


def test_page_when_nothing_is_unfolded_then_shows_at_most_six_hundred_words(
    seen: dict[tuple[str, int], dict[str, Any]],
) -> None:
    """What a browser shows before anyone unfolds anything is read in a few minutes."""
    assert 200 < seen["complete", DESK]["words"] <= 600
    assert all(each["words"] <= 600 for (page, _), each in seen.items() if page != "ablation")


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_page_when_the_study_is_complete_then_shows_tables_and_figures(
    seen: dict[tuple[str, int], dict[str, Any]], width: int
) -> None:
    """All eleven figures take up room on the page, and so do the tables."""
    assert seen["complete", width]["figures"] == 11
    assert seen["complete", width]["tables"] >= 8
    assert seen["begun", width]["figures"] == 0


def test_page_when_loaded_then_fetches_nothing(
    seen: dict[tuple[str, int], dict[str, Any]],
) -> None:
    """The browser asks nobody for anything."""
    assert [result["fetched"] for result in seen.values()] == [[]] * 8


def test_page_when_opened_by_itself_then_the_browser_has_nothing_to_complain_of(
    browser: str, pages: dict[str, Path], tmp_path: Path
) -> None:
    """The page obeys its own content policy, loads nothing, and links to nothing but its cases."""
    shown = show(browser, pages["complete"], tmp_path, "--dump-dom")
    assert "CONSOLE" not in shown.stderr
    assert "default-src 'none'" in shown.stdout
    assert not re.search(r"""src=|href=["'](?!#|cases/case-\d+\.html["'])""", shown.stdout)
    assert "The model is simulated." in shown.stdout


def test_page_when_photographed_then_is_not_blank(
    browser: str, pages: dict[str, Path], tmp_path: Path
) -> None:
    """A picture of the page has ink on it, in more than shades of gray."""
    picture = tmp_path / "page.png"
    size = f"--window-size={DESK},3000"
    show(browser, pages["complete"], tmp_path, f"--screenshot={picture}", size)
    pixels = matplotlib.image.imread(picture)[:, :, :3]
    assert pixels.shape[1] == DESK
    inked = np.any(pixels < 0.9, axis=2).mean()
    colored = (np.ptp(pixels, axis=2) > 0.2).mean()
    assert 0.01 < inked < 0.5
    assert colored > 0.001
