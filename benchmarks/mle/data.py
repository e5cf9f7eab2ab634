"""The competitions of a plan: what their data is known by, and making it ready."""

from collections.abc import Iterator
from pathlib import Path

from langgraft._core.canonical import JSON, digest, text_digest
from langgraft._core.errors import CompetitionError
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.environments.competitions.checksums import folder_checksum, read_checksums
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.functions import OwnFunction
from langgraft.environments.competitions.preparing import (
    not_prepared,
    prepare_competition,
    verify_competition,
)
from langgraft.environments.competitions.registry import Registry


def competitions_of(plan: MlePlan) -> tuple[Competition, ...]:
    """Return the competitions of a plan.

    Raises:
        CompetitionError: There is none of an id, or its files are not as they should be.
    """
    found = plan.registry()
    return tuple(found.get_competition(each) for each in plan.competitions)


def unprepared_lines(plan: MlePlan) -> Iterator[str]:
    """Say of competitions whose data is not there how it is made."""
    found = plan.registry()
    missing = [each for each in competitions_of(plan) if not each.prepared]
    shipped = [each.id for each in missing if found.get_source(each.id) == "shipped"]
    if shipped:
        yield f"data not prepared yet: {', '.join(shipped)}; `run` prepares it"
    for each in missing:
        if each.id not in shipped:
            yield _how_to_prepare(each)


def fingerprint(competition: Competition) -> dict[str, JSON]:
    """Return digests of what decides a competition's results, wherever it lies.

    Its data counts by its checksums, or where it has none by its content; `None` as long as that
    is not prepared.
    """
    return {
        "description": text_digest(competition.description),
        "board": digest([repr(competition.board.thresholds), competition.board.thresholds.teams]),
        "grader": _grader(competition),
        "data": _data(competition),
    }


def make_ready(found: Registry, competitions: tuple[Competition, ...]) -> None:
    """Prepare the competitions that ship, and hold all against their checksums.

    Raises:
        CompetitionError: Another one is not prepared, or data is not what its checksums say.
        MissingExtraError: A package that data is made from is not installed.
    """
    shipped = [each for each in competitions if found.get_source(each.id) == "shipped"]
    others = [each for each in competitions if each not in shipped]
    for each in others:  # refused before the first one is prepared
        if not each.prepared:
            raise CompetitionError(_how_to_prepare(each))
        if wrong := verify_competition(each):
            msg = f"the data of {each.id} is not what its checksums say: {'; '.join(wrong[:3])}"
            raise CompetitionError(msg, path=each.public_dir.parent)
    for each in shipped:
        prepare_competition(each)


def _how_to_prepare(competition: Competition) -> str:
    """Say how data is made, with the options of the competition's own place."""
    said = not_prepared(competition)
    where = competition.public_dir.parent.parent.parent
    if isinstance(competition.grader.grade, OwnFunction) and competition.prepare_fn is not None:
        folder = competition.grader.grade.file.parent.parent
        return f"{said} --data-dir {where} --folder {folder}"
    return said


def _grader(competition: Competition) -> JSON:
    grade = competition.grader.grade
    source = _source(grade.file) if isinstance(grade, OwnFunction) else None
    return [competition.grader.name, source]


def _source(file: Path) -> str:
    return text_digest(file.read_text(encoding="utf-8"))


def _data(competition: Competition) -> JSON:
    expected = competition.checksums
    if expected is not None:
        known = read_checksums(expected) if isinstance(expected, Path) else expected
        return digest(known.model_dump(mode="json"))
    if not competition.prepared:
        return None
    return digest(
        [folder_checksum(competition.public_dir), folder_checksum(competition.private_dir)]
    )
