"""The lists of files in docs/architecture.md."""

import ast
import re
from collections.abc import Mapping, Sequence

from architecture.imports import HOME


def with_ways(page: str, ways: Mapping[str, Sequence[str]]) -> str:
    """Return the page with a list of files in the place of each that has the name of a way.

    Raises:
        ValueError: It has no place for a way.
    """
    for way, files in ways.items():
        before, after = f"<!-- files: {way} -->\n", "<!-- end -->"
        found = re.search(f"{re.escape(before)}.*?{after}", page, re.DOTALL)
        if found is None:
            msg = f"no place for the way {way!r}"
            raise ValueError(msg)
        lines = [f"**{way}**: {len(files)} files", "", *(_line(each) for each in files)]
        page = page.replace(found[0], before + "\n".join(lines) + f"\n\n{after}")
    return page


def _line(file: str) -> str:
    """Name a file, with what it says that it is."""
    path = HOME / file
    if path.suffix != ".py":
        return f"1. `{file}`"
    said = ast.get_docstring(ast.parse(path.read_bytes())) or ""
    first = " ".join(said.split("\n\n")[0].split()).removesuffix(".")
    return f"1. `{file}`: {first}"
