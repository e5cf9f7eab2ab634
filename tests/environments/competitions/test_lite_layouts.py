"""The 22 lite competitions in MLE-bench's form, with made-up content and a thousandth of the rows."""

from pathlib import Path

import pytest
from lite_layouts import LAYOUTS, make_layout

from langgraft.environments.competitions.archives import unpack_archives
from langgraft.environments.competitions.grading import grade_submission
from langgraft.environments.competitions.preview import MOST, data_preview
from langgraft.environments.competitions.registry import Registry, lite_competitions
from langgraft.environments.competitions.submissions import check_submission

pytestmark = pytest.mark.matrix  # every competition of MLE-bench lite

ZIPPED = {
    "aerial-cactus-identification": ["train/", "test/"],
    "text-normalization-challenge-english-language": ["en_train.csv", "en_test_2.csv"],
    "text-normalization-challenge-russian-language": ["ru_train.csv", "ru_test_2.csv"],
    "the-icml-2013-whale-challenge-right-whale-redux": ["train2/", "test2/"],
}
"""What an agent could not see of those whose data is in archives alone."""


def test_layouts_when_listed_are_those_of_the_lite_competitions() -> None:
    """All 22."""
    assert sorted(LAYOUTS) == sorted(lite_competitions())


@pytest.mark.parametrize("name", LAYOUTS)
def test_lite_competition_when_made_up_is_unpacked_previewed_checked_and_graded(
    name: str, tmp_path: Path
) -> None:
    """Its sample submission is valid and earns a score; its tables are those MLE-bench sums up."""
    make_layout(name, tmp_path, share=0.001)
    competition = Registry(tmp_path).get_competition(name)
    expected = lite_competitions()[name].checksums
    for folder, listed in (("public", expected.public), ("private", expected.private)):
        there = {path.name for path in (competition.public_dir.parent / folder).iterdir()}
        assert set(listed) <= there
    made = unpack_archives(competition)
    assert (made.folder != competition.public_dir) is (name in ZIPPED)
    text = data_preview(made.folder, notes=made.notes)
    assert len(text) <= MOST
    for shown in ZIPPED.get(name, ()):
        assert f"\n  {shown} (" in text
        assert f", unpacked: {shown}" in text
    sample = competition.sample_submission
    if sample.suffix == ".zip":
        sample = made.folder / sample.name.removesuffix(".zip")
    assert check_submission(sample, competition).reasons == ()
    assert grade_submission(sample, competition).score is not None
