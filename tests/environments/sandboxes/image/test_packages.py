"""What an agent is told of the packages of an image."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes import SubprocessSandbox
from langgraft.environments.sandboxes.image import packages
from langgraft.environments.sandboxes.image.packages import (
    installed_packages,
    read_label,
    read_probe,
    write_label,
)


def test_packages_when_asked_of_a_sandbox_are_those_of_its_python() -> None:
    """Libraries for programs are named though others need them, installers are not."""
    with SubprocessSandbox() as sandbox:
        told = installed_packages(sandbox)
    assert {"numpy", "pandas", "scikit-learn"} <= set(told)
    assert not {"pip", "setuptools", "threadpoolctl"} & set(told)
    assert list(told) == sorted(told)


def test_packages_when_the_program_fails_are_to_be_named_by_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Python that cannot list them ends in a message that says what to do."""
    monkeypatch.setattr(packages, "PROBE", "raise SystemExit(3)")
    with (
        SubprocessSandbox() as sandbox,
        pytest.raises(InputError, match=r"ended with 3.*`packages`"),
    ):
        installed_packages(sandbox)


def test_packages_when_there_are_hundreds_leave_out_those_that_nobody_knows() -> None:
    """A prompt names a hundred, the libraries of the field among them."""
    named = [f"a-{number}" for number in range(300)] + ["Torch", "xgboost-cpu", "scikit_learn"]
    told = read_probe(json.dumps({"named": named, "needed": ["torch>=2"]}))
    assert told is not None
    assert len(told) == 100
    assert {"torch", "xgboost", "scikit-learn"} <= set(told)


@given(st.lists(st.text(max_size=80)), st.lists(st.text(max_size=80)))
def test_packages_when_an_image_says_anything_are_names_and_nothing_else(
    named: list[str], needed: list[str]
) -> None:
    """No line break, no instruction gets into a prompt by an image's label."""
    told = read_probe(json.dumps({"named": named, "needed": needed}))
    assert told is not None
    label = read_label(json.dumps(named))
    assert label is not None
    allowed = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
    assert all(set(name) <= allowed for name in (*told, *label))
    assert read_label(write_label(told)) == told


@pytest.mark.parametrize("label", ["", "torch", "{}", "[" * 100_000])
def test_label_when_it_is_none_says_nothing(label: str) -> None:
    """An image without our label, or with another one of the name, is asked."""
    assert read_label(label) is None
