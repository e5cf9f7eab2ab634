"""The competitions of a plan: what their data is known by, and making it ready."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from langgraft._core.canonical import JSON, digest, text_digest
from langgraft._core.errors import CompetitionError
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.layout import OwnFunction
from langgraft.environments.competitions.preparing import (
    folder_checksum,
    prepare_competition,
    read_checksums,
    verify_competition,
)
from langgraft.environments.competitions.registry import Registry


def competitions_of(plan: MlePlan) -> tuple[Competition, ...]:
    """Return the competitions that a plan is run at.

    Raises:
        CompetitionError: There is none of an id, its files are not as they should be, or only
            what is prepared is wanted and nothing is.
    """
    found = plan.registry()
    named = tuple(found.get_competition(each) for each in plan.competitions)
    if not plan.only_prepared:
        return named
    ready = tuple(each for each in named if _can_be_ready(found, each))
    if not ready:
        lines = _missing_lines(named, hint="")
        msg = f"only_prepared is set, and nothing is: {'; '.join(lines)}"
        raise CompetitionError(msg)
    return ready


def left_out(plan: MlePlan) -> tuple[str, ...]:
    """Return the ids of the competitions that a plan names and is not run at."""
    ready = {each.id for each in competitions_of(plan)}
    return tuple(each for each in plan.competitions if each not in ready)


def unprepared_lines(plan: MlePlan) -> Iterator[str]:
    """Say of competitions whose data is not there how it is made."""
    found = plan.registry()
    if without := left_out(plan):
        yield f"left out, as their data is not prepared ({len(without)}): {', '.join(without)}"
    missing = [each for each in competitions_of(plan) if not each.prepared]
    shipped = [each.id for each in missing if found.get_source(each.id) == "shipped"]
    if shipped:
        yield f"data not prepared yet: {', '.join(shipped)}; `run` prepares it"
    yield from _missing_lines([each for each in missing if each.id not in shipped])


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
    # Refused before the first one is prepared, and all at once.
    if missing := list(_missing_lines([each for each in others if not each.prepared])):
        raise CompetitionError("; ".join(missing))
    for each in others:
        if wrong := verify_competition(each):
            msg = f"the data of {each.id} is not what its checksums say: {'; '.join(wrong[:3])}"
            raise CompetitionError(msg, path=each.public_dir.parent)
    for each in shipped:
        prepare_competition(each)


def _can_be_ready(found: Registry, competition: Competition) -> bool:
    return competition.prepared or found.get_source(competition.id) == "shipped"


_HINT: Final = ", and `only_prepared: true` leaves out what is not there"


def _missing_lines(missing: Sequence[Competition], *, hint: str = _HINT) -> Iterator[str]:
    """Say how data is made, a line for all that is made in the same way."""
    alike: dict[tuple[bool, str], list[str]] = {}
    for each in missing:
        alike.setdefault((each.prepare_fn is None, _place(each)), []).append(each.id)
    for (of_kaggle, place), ids in alike.items():
        told = f"the data of {len(ids)} competitions is not prepared ({', '.join(ids)}): "
        if len(ids) == 1:
            told = f"the data of {ids[0]} is not prepared: "
        if of_kaggle:
            yield (
                f"{told}with MLE-bench and an account on Kaggle `mlebench prepare -c ID {place}`"
                f" makes it, for each ID; `data_dir` of a plan names another place{hint}"
            )
        else:
            yield f"{told}run `langgraft competitions prepare {' '.join(ids)} {place}`"


def _place(competition: Competition) -> str:
    """Return the options that tell where a competition's data and files lie."""
    where = f"--data-dir {shlex.quote(str(competition.public_dir.parent.parent.parent))}"
    if isinstance(competition.grader.grade, OwnFunction) and competition.prepare_fn is not None:
        where += f" --folder {shlex.quote(str(competition.grader.grade.file.parent.parent))}"
    return where


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
