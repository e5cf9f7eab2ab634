"""Write docs/prompts.md anew: `make prompts`."""

import sys
from pathlib import Path

from langgraft.environments import Registry
from langgraft.environments.competitions.preparing import prepare_competition
from prompts_page.page import COMPETITIONS, written

registry = Registry()
competitions = [registry.get_competition(each) for each in COMPETITIONS]
for competition in competitions:
    prepare_competition(competition)
page = written(competitions)
Path("docs/prompts.md").write_text(page, "utf-8")
sys.stdout.write(f"docs/prompts.md: {len(page.splitlines()):,} lines\n")
