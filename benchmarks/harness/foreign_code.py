"""Code that a plan names beside langgraft's own: imported where the plan is run, and nowhere else.

A plan may come from anybody. To look at it, and at what came of it, nothing of it is imported.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pydantic import ValidationInfo

from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.providers import PROVIDERS, provider_class, provider_settings

SHIPPED: Final = {"shipped": True}
"""Context in which a plan that ships is validated: tests check its providers, and checking imports them."""

_PATH: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def provider_place(name: str) -> tuple[str, str]:
    """Return the module and class that a provider's name stands for; nothing is imported."""
    module, _, attribute = name.partition(":")
    return PROVIDERS.get(name, (module, attribute))


def is_foreign(name: str) -> bool:
    """Say whether a provider is none of langgraft's own."""
    return provider_place(name) not in PROVIDERS.values()


def provider_modules(names: Iterable[str]) -> set[str]:
    """Return the modules of langgraft that providers' classes and their bases come from.

    Raises:
        SettingsError: One cannot be imported.
    """
    bases = (base for name in names for base in provider_class(name).__mro__)
    return {base.__module__ for base in bases if base.__module__.startswith("langgraft.")}


def is_shipped(info: ValidationInfo) -> bool:
    """Say whether a plan is validated in the context `SHIPPED`."""
    return info.context is SHIPPED


def check_provider(name: str, settings: Mapping[str, JSON]) -> None:
    """Check a provider as far as that goes without importing what is not langgraft's own.

    Raises:
        SettingsError: It is no name or path of a provider, or one of ours and has no such setting.
    """
    if not is_foreign(name):
        provider_settings(name, settings)
    elif not _PATH.fullmatch(name):
        known = ", ".join(PROVIDERS)
        msg = f"unknown provider {name!r:.80}; there are {known}, or 'package.module:Class'"
        raise SettingsError(msg)


def look_here() -> None:
    """Let code that is named lie in the current folder, where a console script does not look."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
