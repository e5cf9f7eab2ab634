"""Sets of prompts: each prompt says what it is filled in with, and nothing else gets in."""

import string
from dataclasses import fields

import pytest

from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.nodes.chain.deps import ChainPrompts
from langgraft.nodes.mlab.deps import MLABPrompts
from langgraft.nodes.prompts import PromptSet
from langgraft.nodes.search.deps import CurrentTreePrompts, TreePrompts

SETS = [TreePrompts, CurrentTreePrompts, ChainPrompts, MLABPrompts]


@pytest.mark.parametrize("kind", SETS)
def test_prompts_when_they_ship_have_the_placeholders_that_are_declared(
    kind: type[PromptSet],
) -> None:
    """No value is made for nothing, and none is missing."""
    for each in fields(kind):
        prompt: Prompt = getattr(kind(), each.name)
        declared = set(each.metadata["placeholders"].split())
        assert set(string.Template(prompt.text).get_identifiers()) == declared, prompt.name


@pytest.mark.parametrize("kind", SETS)
def test_prompts_when_one_has_another_placeholder_are_refused(kind: type[PromptSet]) -> None:
    """It is found before a model is paid, and the message names the prompt."""
    for each in fields(kind):
        with pytest.raises(SettingsError, match=r"mine.*tsk"):
            kind(**{each.name: Prompt("mine", "$tsk")})
