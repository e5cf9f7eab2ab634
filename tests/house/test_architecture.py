"""What docs/architecture.md says of files."""

import re
from pathlib import Path

import pytest
from architecture.imports import HOME, sizes
from architecture.ways import way_of_an_episode

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_page_when_it_names_a_file_then_there_is_one() -> None:
    """Whoever follows the page arrives."""
    named = re.findall(r"`([\w/]+/(?:[\w.]+\.\w+)?)`", PAGE)
    assert len(named) > 50
    assert [each for each in named if not ((HOME / each).exists() or (ROOT / each).exists())] == []


def test_page_when_a_room_is_of_some_size_then_is_named() -> None:
    """No room is left out, but those that hold data or parts of an agent or world."""
    rooms = ["/".join(folder) for folder, (count, _) in sizes().items() if folder and count > 3]
    assert [each for each in rooms if f"{each.split('/')[-1]}/" not in PAGE] == []


def _listed(way: str) -> list[str]:
    block = PAGE.split(f"<!-- files: {way} -->")[1].split("<!-- end")[0]
    return re.findall(r"^1\. `(.*?)`", block, re.MULTILINE)


@pytest.mark.parametrize(("way", "most"), [("take_in", 8), ("provide", 11)])
def test_page_when_a_call_enters_files_then_lists_them_and_they_are_few(
    way: str, most: int
) -> None:
    """The lists are those of today's code; `make architecture` writes them."""
    listed = _listed(way)
    assert sorted(listed) == sorted(way_of_an_episode()[way])
    assert len(listed) <= most


def test_page_when_a_plan_comes_to_items_then_it_enters_few_files() -> None:
    """From its name to `items.jsonl`, as `make architecture` found."""
    entered = {*_listed("plan → runs"), *_listed("runs → items.jsonl")}
    assert 10 < len(entered) <= 25
