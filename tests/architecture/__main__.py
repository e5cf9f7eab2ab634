"""Draw the floors, and list the ways in docs/architecture.md: `make architecture`."""

import sys
from pathlib import Path

from architecture.imports import modules, sizes
from architecture.page import with_ways
from architecture.picture import draw
from architecture.ways import way_of_a_plan, way_of_an_episode

docs = Path("docs")
draw(docs / "architecture.svg")
ways = {**way_of_an_episode(), **way_of_a_plan()}
page = docs / "architecture.md"
page.write_text(with_ways(page.read_text("utf-8"), ways), "utf-8")
sys.stdout.write(
    f"{len(modules())} modules, {sum(lines for _, lines in sizes().values()):,} lines; files entered: "
    + ", ".join(f"{way} {len(files)}" for way, files in ways.items())
    + "\n"
)
