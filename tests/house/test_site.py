"""What the documentation site has to hold: every public name, documented; every page, in its place."""

import re
from pathlib import Path

import pytest
from documentation.figures import FIGURES
from documentation.names import exported, modules, undocumented
from mkdocs.config import load_config

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
API = "".join(page.read_text("utf-8") for page in (DOCS / "reference").glob("*.md"))
SHOWN = set(re.findall(r"^::: (\S+)\n(?! +options)", API, re.MULTILINE))
"""Modules that the API pages show whole."""
SINGLY = {
    f"{module}.{name}"
    for module, names in re.findall(
        r"^::: (\S+)\n +options:\n +members: \[(.*)\]", API, re.MULTILINE
    )
    for name in names.split(", ")
}
"""Names that they show alone."""


@pytest.mark.matrix
def test_public_names_when_read_are_all_documented() -> None:
    """Each name, and each public attribute and method of a class, says what it means."""
    missing = {
        name
        for module in modules()
        for _, thing in exported(module)
        for name in undocumented(thing)
    }
    assert sorted(missing) == []


@pytest.mark.matrix
def test_public_names_when_looked_for_are_in_the_reference() -> None:
    """Each package with public names is on a page, and what the face gives is there."""
    shown, public = set(), set()
    for module in modules():
        for path, thing in exported(module):
            public.add(thing.path)
            if {module.path, thing.module.path} & SHOWN or path in SINGLY:
                shown.add(thing.path)
    assert sorted(public - shown) == []


def test_pages_when_added_are_in_the_navigation() -> None:
    """A page that nobody can reach is none, and one that is not there cannot be reached."""
    listed = set(
        re.findall(r"[\w/-]+\.md", str(load_config(str(REPOSITORY / "mkdocs.yml"))["nav"]))
    )
    there = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert listed - {"changelog.md", "contributing.md"} == there


@pytest.mark.parametrize("name", FIGURES)
def test_figure_when_drawn_anew_is_the_one_in_the_docs(name: str) -> None:
    """`make figures` has been run, and gives the same bytes everywhere."""
    assert (DOCS / "assets" / f"{name}.svg").read_text("utf-8") == FIGURES[name]()


def test_pictures_when_shown_say_what_makes_them() -> None:
    """Below each picture of a page, or above it, stands the command that makes it."""
    for page in (REPOSITORY / "README.md", *DOCS.rglob("*.md")):
        paragraphs = page.read_text("utf-8").split("\n\n")
        for number, paragraph in enumerate(paragraphs):
            if paragraph.startswith("!["):
                assert re.search(r"`make [\w -]+`", paragraphs[number + 1]), f"{page}: {paragraph}"
