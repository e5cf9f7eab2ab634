"""What MkDocs is told of this repository: pages from outside docs/, links to its files, fences of tests.

Pages link to the repository's files as GitHub shows them (`../environments/text.py`). On the site such a file
is a page of its own under `source/`, so that every link leads somewhere without a network.
"""

import os.path
import re
from pathlib import Path
from typing import Any

import griffe
import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

import langgraft
from langgraft.cli.app import app

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "README.md": "index.md",
}
"""Documents outside docs/ → the page of the site that has them, or stands for them."""
LANGUAGES = {".py": "python", ".sh": "bash", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml"}
NEEDS = {
    "docker": "needs Docker",
    "alfworld": "needs ALFWorld",
    "statebench": "needs a copy of STATE-Bench",
    "postgres": "needs PostgreSQL, told in DATABASE_URL",
    "chroma": "needs a Chroma server, told in CHROMA_URL",
}
SEARCH = 'data-md-component="search" role="dialog"'
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
FENCE = re.compile(rf"^```python ({'|'.join(NEEDS)})$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents that lie outside docs/, and the files that pages link to."""
    for name in ("CHANGELOG.md", "CONTRIBUTING.md"):
        files.append(
            File.generated(config, PAGES[name], content=(REPOSITORY / name).read_text("utf-8"))
        )
    for path in sorted({found for page in DOCS.rglob("*.md") for found in _sources(page)}):
        shown = path.relative_to(REPOSITORY)
        language = LANGUAGES.get(path.suffix, "text")
        text = f"# {shown}\n\n~~~~~~{language}\n{path.read_text('utf-8')}\n~~~~~~\n"
        file = File.generated(config, f"source/{shown}.md", content=text)
        file.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(file)
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links to where files are on the site, and say in words what a block needs."""
    source = PAGES_BACK.get(page.file.src_uri)
    lies = REPOSITORY / source if source else DOCS / page.file.src_uri
    here = Path(page.file.src_uri).parent

    def placed(link: re.Match[str]) -> str:
        path = Path(os.path.normpath(lies.parent / link[1]))
        if path.is_relative_to(DOCS):
            target = path.relative_to(DOCS).as_posix()
        elif (outside := path.relative_to(REPOSITORY).as_posix()) in PAGES:
            target = PAGES[outside]
        else:
            target = f"source/{outside}.md"
        return f"]({os.path.relpath(target, here)}{link[2] or ''})"

    if not page.file.src_uri.startswith("source/"):
        markdown = LINK.sub(placed, markdown)
    for marker, written in MADE.items():
        if marker in markdown:
            markdown = markdown.replace(marker, written())
    return FENCE.sub(lambda fence: f'```python title="{NEEDS[fence[1]]}"', markdown)


def on_post_page(output: str, **_: Any) -> str:
    """Name the search, which the theme leaves without a name for screen readers."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def face() -> str:
    """Return links to what `langgraft` exports."""
    return (
        ", ".join(
            f"[`{name}`][langgraft.{name}]" for name in sorted(langgraft.__all__, key=str.lower)
        )
        + "."
    )


def commands() -> str:
    """Return the help of every command, as typer has it."""
    return "\n".join(_command(typer.main.get_command(app), "langgraft"))


def _command(command: Any, name: str) -> list[str]:
    within = command.make_context(name, [], resilient_parsing=True)
    lines = (
        [] if name == "langgraft" else [f"## {name}" if name.count(" ") == 1 else f"### {name}", ""]
    )
    lines += [(command.help or "").replace("\n\n", "\n"), ""]
    options = [record for each in command.params if (record := each.get_help_record(within))]
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    lines += (
        [f"`{command.get_usage(within).removeprefix('Usage: ')}`", ""]
        if options or arguments
        else []
    )
    lines += ["| | |", "|---|---|"] if options else []
    lines += [
        f"| `{left}` | {right} |".replace("\n", " ")
        for left, right in (
            (left.replace("|", "\\|"), right.replace("|", "\\|")) for left, right in options
        )
    ]
    lines.append("")
    for under, each in getattr(command, "commands", {}).items():
        lines += _command(each, f"{name} {under}")
    return lines


MADE = {"<!-- commands -->": commands, "<!-- face -->": face}
"""What stands in a page → what is written there when the site is built."""


def _sources(page: Path) -> set[Path]:
    paths = {
        Path(os.path.normpath(page.parent / link[1]))
        for link in LINK.finditer(page.read_text("utf-8"))
    }
    return {
        path
        for path in paths
        if not path.is_relative_to(DOCS) and path.is_file() and path.name not in PAGES
    }


PAGES_BACK = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}


class Aligned(griffe.Extension):
    """Shows what docstrings align with blanks, lists of modules and tables, as it stands in the source."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Indent such lines: Markdown then leaves them alone."""
        if obj.docstring is not None:
            blocks = obj.docstring.value.split("\n\n")
            obj.docstring.value = "\n\n".join(map(_aligned, blocks))


def _aligned(block: str) -> str:
    lines = block.splitlines()
    table = lines and re.fullmatch(r"=+(?: +=+)+", lines[0])
    if table or (len(lines) > 1 and all(re.match(r"(?:\S.*?)? {2,}\S", line) for line in lines)):
        return "\n".join(f"    {line}" for line in lines)
    return block
