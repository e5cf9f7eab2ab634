"""`langgraft competitions list` and `show`."""

from collections.abc import Sequence
from pathlib import Path

from langgraft._core.canonical import JSON
from langgraft._core.errors import CompetitionError
from langgraft.benchmarks.cli.printing import say, write_json
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.registry import Registry


def registry(data_dir: Path | None, folders: Sequence[Path] | None) -> Registry:
    """Make the registry that was asked for.

    Raises:
        CompetitionError: A folder of competitions is not there.
    """
    return Registry(data_dir, folders=folders or ())


def show_all(found: Registry, *, as_json: bool) -> None:
    """List competitions; those whose files are not as they should be say why."""
    told: list[dict[str, JSON]] = []
    for name in found.list_competition_ids():
        try:
            told.append(_summary(found.get_competition(name), found))
        except CompetitionError as error:
            told.append({"id": name, "source": found.get_source(name), "unusable": str(error)})
    if as_json:
        write_json(list(told))
        return
    usable = [each for each in told if "unusable" not in each]
    columns = ("id", "source", "prepared", "modality", "teams", "better", "metric")
    say(f"{len(told)} competitions, data in {found.get_data_dir()}")
    show_columns(columns, [[_word(each[column]) for column in columns] for each in usable])
    for each in told:
        if "unusable" in each:
            say(f"{each['id']} cannot be used: {each['unusable']}")


def show_one(found: Registry, name: str, *, as_json: bool) -> None:
    """Show one competition.

    Raises:
        CompetitionError: There is none of this id, or its files are not as they should be.
    """
    competition = found.get_competition(name)
    told: dict[str, JSON] = {
        **_summary(competition, found),
        "description": competition.description,
        "public": str(competition.public_dir),
        "sample_submission": str(competition.sample_submission),
    }
    if as_json:
        write_json(told)
        return
    say(f"{competition.name} ({competition.id})")
    for key, value in told.items():
        if key not in {"id", "name", "description"}:
            say(f"{key}: {_word(value)}")
    for line in ("", *competition.description.splitlines()):
        say(line)


def show_columns(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print columns as wide as what is in them: ids are there to be copied, and never cut."""
    lines = [columns, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[number]) for line in lines) for number in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        say("  ".join(cells).rstrip())


def _summary(competition: Competition, found: Registry) -> dict[str, JSON]:
    thresholds = competition.board.thresholds
    return {
        "id": competition.id,
        "name": competition.name,
        "source": found.get_source(competition.id),
        "modality": competition.modality,
        "metric": competition.grader.name,
        "metric_group": competition.metric_group,
        "better": "lower" if thresholds.lower_is_better else "higher",
        "teams": thresholds.teams,
        "gold": thresholds.gold,
        "silver": thresholds.silver,
        "bronze": thresholds.bronze,
        "median": thresholds.median,
        "prepared": competition.prepared,
    }


def _word(value: JSON) -> JSON:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else value
