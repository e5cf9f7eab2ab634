"""What a tree search refuses: settings, inputs, sandboxes and policies that cannot be."""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from counting_sandbox import CountingSandbox
from langgraph.store.memory import InMemoryStore
from tree_cases import (
    good,
    programs,
    reply,
    sandbox,
    searched,
    toy,
    writing,
)

from langgraft._core.errors import CompetitionError, InputError, SettingsError
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.graphs import build_tree_agent
from langgraft.memory.providers import make_provider
from langgraft.nodes.search import (
    Expansion,
    JournalNode,
)

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"steps": 2.5}, "`steps` of build_tree_agent must be a whole number, got 2.5"),
        ({"width": 0}, "width must be"),
        ({"candidates": True}, "`candidates` of build_tree_agent must be a whole number, got True"),
        ({"folds": 1}, "folds must be a whole number of at least 2, got 1"),
        ({"seconds": 0}, "seconds must be a number above 0, got 0"),
        ({"seconds": float("inf")}, "seconds must be"),
        (
            {"packages": "numpy"},
            "`packages` of build_tree_agent must be a list or None, got 'numpy'",
        ),
    ],
)
def test_agent_when_a_setting_is_out_of_range_is_not_built(
    settings: dict[str, Any], said: str, competition: Competition
) -> None:
    """One error names setting and value."""
    with pytest.raises(SettingsError, match=said):
        build_tree_agent(
            writing(), competition=competition, sandbox=sandbox(competition), **settings
        )


def test_agent_when_the_competition_is_not_prepared_is_not_built(
    competition: Competition,
) -> None:
    """The error says how to prepare it."""
    competition.sample_submission.unlink()
    with pytest.raises(CompetitionError, match="prepare"):
        build_tree_agent(writing(), competition=competition, sandbox=CountingSandbox())


def test_agent_when_memory_wants_a_draft_is_not_built(competition: Competition) -> None:
    """A tree search has no tentative answer; the error says what to turn off."""
    memory = make_provider("agent_kb", InMemoryStore(), settings={"gate": True})
    with pytest.raises(SettingsError, match="gate=False"):
        build_tree_agent(
            writing(), competition=competition, sandbox=CountingSandbox(), memory=memory
        )


def _asked_nothing(competition: Competition, place: Sandbox, given: Any, said: str) -> None:
    code = writing()
    with place:
        agent = build_tree_agent(code, competition=competition, sandbox=place, seconds=60)
        with pytest.raises(InputError, match=said):
            agent.invoke(given)
    assert code.asked == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"episode_id": ""}, "`episode_id` is a text"),
        ({"episode_id": 7}, "`episode_id` is a text"),
        ({"episode_id": "\ud800"}, "`episode_id` is a text"),
        ({"seed": "1"}, "`seed` is a whole number"),
        ({"seed": 2**80}, "64 bits"),
    ],
)
def test_search_when_its_input_is_not_possible_is_refused_before_a_model_is_paid(
    given: Any, said: str, competition: Competition
) -> None:
    """One error names what was given."""
    _asked_nothing(competition, sandbox(competition), given, said)


def test_search_when_the_sandbox_has_no_data_is_refused_before_a_model_is_paid(
    competition: Competition, tmp_path: Path
) -> None:
    """Neither none nor another competition's: the error says how to make the sandbox."""
    how = r"inputs=\{'input': competition.input_dir\}"
    _asked_nothing(competition, SubprocessSandbox(), {}, how)
    other = tmp_path / "other"
    other.mkdir()
    (other / "sample_submission.csv").write_text("id,price\n")
    _asked_nothing(competition, SubprocessSandbox(inputs={"input": other}), {}, how)


@pytest.mark.parametrize(
    "expansion",
    [Expansion("debug", "042"), Expansion("improve"), Expansion("draft", "000")],
)
def test_search_when_the_policy_wants_the_impossible_is_stopped(
    expansion: Expansion, competition: Competition
) -> None:
    """A policy may be anybody's: the error says what it chose."""

    class Odd:
        def choose(self, nodes: Sequence[JournalNode], **_: Any) -> Expansion:
            return expansion

    with sandbox(competition) as place:
        agent = build_tree_agent(
            writing(), competition=competition, sandbox=place, policy=Odd(), seconds=60
        )
        with pytest.raises(InputError, match="the policy chose"):
            agent.invoke({})


def test_search_when_the_data_has_a_bomb_is_refused_before_a_model_is_asked(
    tmp_path: Path,
) -> None:
    """The line names the archive and the bound; no program runs either."""
    toyed = toy(tmp_path)
    with zipfile.ZipFile(toyed.public_dir / "train.zip", "w") as archive:
        archive.writestr("zeros", b"0")
        archive.infolist()[0].file_size = 50 << 30  # as its list of contents will say
    code = programs(reply(good()))
    with pytest.raises(CompetitionError, match=r"train\.zip.*is a bomb, or like one.*200 times"):
        searched(toyed, code)
    assert code.asked == []


def test_search_when_data_is_zipped_shows_and_gives_what_is_in_it(tmp_path: Path) -> None:
    """And refuses a sandbox that was made with the archives alone."""
    toyed = toy(tmp_path)
    with zipfile.ZipFile(toyed.public_dir / "extra.csv.zip", "w") as archive:
        archive.writestr("extra.csv", "id,more\n1,7\n")
    code = programs(reply("open('input/extra.csv')\n" + good()))
    with pytest.raises(InputError, match=r"extra\.csv is not there .*competition\.input_dir"):
        searched(toyed, code, sandbox=SubprocessSandbox(inputs={"input": toyed.public_dir}))
    assert code.asked == []
    _, search = searched(toyed, code)  # by `competition.input_dir` now
    assert not any(node.is_buggy for node in search.nodes)
    assert "extra.csv: 1 row, 2 columns" in code.asked[0][1]
