"""Optional dependencies: import them where they are used, or say how to get them."""

import importlib
from types import ModuleType

from langgraft._core.errors import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module`, or name the extra that brings it.

    Args:
        module: Dotted name of the module.
        extra: The extra of langgraft that installs it.
        purpose: What needs it, as the subject of a sentence (`The BabyAI environment`).

    Raises:
        MissingExtraError: The module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        msg = (
            f"{purpose} needs `{error.name}`, which is not installed: "
            f"pip install 'langgraft[{extra}]'"
        )
        raise MissingExtraError(msg) from error
