"""Texts to rank: real ones when the data are there."""

import json
import os
from pathlib import Path

import pytest

_REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def math_problems() -> list[str]:
    """300 problem statements of the MATH training set, in file order."""
    data = Path(os.environ.get("LANGGRAFT_DATA", _REPOSITORY.parent / "shared" / "data"))
    path = data / "math" / "train.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is absent; LANGGRAFT_DATA names the folder with math/train.jsonl")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["problem"] for line, _ in zip(lines, range(300), strict=False)]
