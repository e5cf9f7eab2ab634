"""Pretrained weights that programs find without a network: a folder, mounted read-only.

    <folder>/huggingface/hub/models--<owner>--<name>/    as `HF_HOME` holds what was downloaded
    <folder>/torch/hub/checkpoints/<file>                as `TORCH_HOME` does

Programs find it as `./weights`, with both variables set and the libraries told to stay offline. It is a
condition of what is studied: the names are told to agents, and names and a digest of all files are
noted.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from langgraft._core.errors import InputError

WEIGHTS: Final = "weights"
"""The folder's name in the workspace."""

_HUB: Final = "huggingface/hub"
_CHECKPOINTS: Final = "torch/hub/checkpoints"
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)


def weights_in(folder: Path) -> tuple[str, ...]:
    """Return the names of the weights that a folder holds, in order.

    A repository of Hugging Face is called as programs ask for it (`timm/resnet50.a1_in1k`), a
    checkpoint of torch by its file.

    Raises:
        InputError: The folder is not there, or holds no weights where programs would look.
    """
    if not folder.is_dir():
        msg = f"weights: {folder} is no folder"
        raise InputError(msg)
    found = tuple(sorted(each for each in _names(folder) if _NAME.fullmatch(each)))
    if not found:
        msg = (
            f"weights: {folder} holds none where programs look for them: fill {_HUB} (HF_HOME="
            f"{folder}/huggingface) or {_CHECKPOINTS} (TORCH_HOME={folder}/torch) by loading them once"
        )
        raise InputError(msg)
    return found


def weights_environment(place: str) -> Mapping[str, str]:
    """Return the variables by which libraries find weights.

    Args:
        place: Path of the folder as programs see it, absolute.
    """
    return {
        "HF_HOME": f"{place}/huggingface",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        # What these are for is written, and the folder cannot be written to.
        "HF_MODULES_CACHE": "/tmp/huggingface/modules",  # noqa: S108 - inside the sandbox
        "HF_DATASETS_CACHE": "/tmp/huggingface/datasets",  # noqa: S108
        "TORCH_HOME": f"{place}/torch",
    }


def _names(folder: Path) -> Iterator[str]:
    for each in (folder / _HUB).glob("models--*"):
        if any((each / "snapshots").glob("*/*")):
            yield each.name.removeprefix("models--").replace("--", "/", 1)
    for each in (folder / _CHECKPOINTS).glob("*"):
        if each.is_file():
            yield each.name
