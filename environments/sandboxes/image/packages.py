"""Which packages an image has, as an agent is told: by the image's label, or asked inside of it.

`langgraft sandbox build` asks the image that it has built, and writes the answer on it as a label.
Of another image a program inside lists what is installed. What comes back is the image's own word,
so that only what can be the name of a package is taken from it.
"""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.sandbox import Job, PythonProgram, Sandbox

PACKAGES_LABEL: Final = "langgraft.sandbox-image.packages"
"""On images we built: a JSON list of the packages that agents are told of."""

PROBE: Final = """\
import importlib.metadata, json, re
named, needed = set(), set()
for each in importlib.metadata.distributions():
    named.add(str(each.metadata["Name"]))
    for line in each.requires or ():
        if "extra ==" not in line:
            needed.add(re.match(r"[\\w.-]*", line).group())
print(json.dumps({"named": sorted(named), "needed": sorted(needed)}))
"""
"""Lists what is installed, and what of it others need."""
_PROBE_SECONDS: Final = 120.0
"""A large image on a cold disk takes long to list."""

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
_MOST: Final = 100
"""Names told of an image: some hold several hundred packages."""
_INSTALLERS: Final = frozenset({"conda", "mamba", "pip", "pipx", "setuptools", "uv", "wheel"})
_FOR_PROGRAMS: Final = frozenset(
    [
        "accelerate",
        "catboost",
        "datasets",
        "gensim",
        "h5py",
        "jax",
        "keras",
        "librosa",
        "lightgbm",
        "matplotlib",
        "nltk",
        "numba",
        "numpy",
        "opencv-python",
        "opencv-python-headless",
        "pandas",
        "pillow",
        "polars",
        "pyarrow",
        "scikit-image",
        "scikit-learn",
        "scipy",
        "spacy",
        "statsmodels",
        "tensorflow",
        "timm",
        "tokenizers",
        "torch",
        "torchaudio",
        "torchvision",
        "tqdm",
        "transformers",
        "xgboost",
    ]
)
"""Told of although other packages need them: programs import these themselves."""
_OTHER_NAMES: Final[Mapping[str, str]] = {"xgboost-cpu": "xgboost"}
"""Distributions whose package the field calls otherwise."""


def installed_packages(sandbox: Sandbox) -> tuple[str, ...]:
    """Ask in a sandbox which packages programs can import there, as an agent is told.

    Those that nothing else needs, and of the others those that programs import themselves: 100 at
    the most, in the order of their names.

    Raises:
        InputError: The program that asks did not work there.
        SandboxUnavailableError: There is no engine or image.
        SandboxFailureError: The engine or container died.
    """
    result = sandbox.run(Job(PythonProgram(PROBE, name="packages.py"), seconds=_PROBE_SECONDS))
    found = read_probe(result.stdout) if result.ok else None
    if found is None:
        msg = (
            "the sandbox could not be asked which packages it has (a program that lists them ended"
            f" with {result.exit_code}): name them yourself, in `packages`"
        )
        raise InputError(msg)
    return found


def read_probe(printed: str) -> tuple[str, ...] | None:
    """Return the packages to tell of, from what `PROBE` printed; `None` where that is not it."""
    read = _json(printed)
    if not isinstance(read, dict) or not isinstance(read.get("named"), list):
        return None
    needed = set(map(_plain, _names(read.get("needed"))))
    named = {_OTHER_NAMES.get(name, name) for name in map(_plain, _names(read["named"]))}
    told = sorted((named - needed - _INSTALLERS) | (named & _FOR_PROGRAMS))
    return tuple(sorted(sorted(told, key=lambda name: name not in _FOR_PROGRAMS)[:_MOST]))


def read_label(label: str) -> tuple[str, ...] | None:
    """Return the packages that an image's label names; `None` where there is no such label."""
    read = _json(label)
    return tuple(_names(read)[:_MOST]) if isinstance(read, list) else None


def write_label(packages: Iterable[str]) -> str:
    """Write packages as an image's label."""
    return json.dumps(list(packages))


@cache
def shipped_packages() -> tuple[str, ...]:
    """Return what the sandbox's own image is asked to hold, by name (AIDE tells names too).

    These are the distributions of the first group of its `requirements.txt`, not those they need.
    """
    place = resources.files("langgraft.environments.sandboxes.image")
    lines = place.joinpath("requirements.txt").read_text(encoding="utf-8").splitlines()
    asked, *_ = _groups(lines)
    return tuple(_OTHER_NAMES.get(name, name) for name in asked)


def _groups(lines: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for line in lines:
        name = line.partition("#")[0].partition("==")[0].strip()
        if name:
            groups[-1].append(name)
        elif not line.strip() and groups[-1]:
            groups.append([])
    return groups


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _names(listed: Any) -> list[str]:
    given = listed if isinstance(listed, list) else []
    return [name for name in given if isinstance(name, str) and _NAME.fullmatch(name)]


def _plain(name: str) -> str:
    """Return the form in which names of packages are compared."""
    return re.sub(r"[-_.]+", "-", name).lower()
