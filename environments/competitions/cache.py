"""Where data goes that nobody gave a place."""

import os
import sys
from pathlib import Path


def user_cache_dir() -> Path:
    """Return the user's folder of caches, where MLE-bench keeps its data too (as `appdirs` has it)."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
