"""What is installed of ALFWorld, and what is said where it will not do."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from alfworld_cases import needs_alfworld

from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft.environments.alfworld import installed as module
from langgraft.environments.alfworld.installed import alfworld_version, import_part, installed


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return the versions that are found; change it to have others installed."""
    versions = {"alfworld": "0.4.2", "textworld": "1.7.0"}

    def version(name: str) -> str:
        if name not in versions:
            raise PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(module, "version", version)
    return versions


def test_alfworld_when_missing_is_named_with_what_installs_it(found: dict[str, str]) -> None:
    """The line for pip, and that a compiler is needed."""
    del found["alfworld"]
    with pytest.raises(MissingExtraError, match=r"`alfworld`.*'langgraft\[alfworld\]'.*g\+\+"):
        alfworld_version()


def test_part_when_missing_is_named_with_what_installs_it() -> None:
    """A part that no package brings is said to be missing, not an import error of its own."""
    with pytest.raises(MissingExtraError, match=r"`no_such_part`.*'langgraft\[alfworld\]'.*g\+\+"):
        import_part("no_such_part.at_all")


@pytest.mark.parametrize("version", ["0.3.5", "0.5.0", "1.0"])
def test_alfworld_when_of_another_series_is_refused(found: dict[str, str], version: str) -> None:
    """Older ones have other rules; of newer ones nothing is known."""
    found["alfworld"] = version
    with pytest.raises(SettingsError, match=rf"alfworld {version} is installed"):
        alfworld_version()


@needs_alfworld
def test_textworld_when_pinned_and_unchanged_is_beyond_doubt() -> None:
    """The fast engine takes the place of this code and no other."""
    assert (installed().textworld, installed().doubt) == ("1.7.0", "")


@needs_alfworld
def test_textworld_when_another_version_or_changed_is_doubted(
    found: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its version, and by its code."""
    found["textworld"] = "1.8.0"
    fresh = installed.__wrapped__
    assert fresh().doubt == "textworld 1.8.0 is installed, not 1.7.0"
    found["textworld"] = "1.7.0"
    monkeypatch.setitem(module._CODE, "textworld.logic", "0" * 16)
    assert fresh().doubt == "`textworld.logic` is not the code that belongs to textworld 1.7.0"


@needs_alfworld
@pytest.mark.parametrize("writable", [True, False])
def test_packages_when_imported_leave_no_trace(tmp_path: Path, writable: bool) -> None:
    """`alfworld` makes a folder in the home and sets a variable; neither stays, nor has to work."""
    home = tmp_path if writable else Path(os.devnull) / "home"
    program = (
        "import os; from langgraft.environments.alfworld.installed import installed; installed();"
        "print(os.environ.get('ALFWORLD_DATA'))"
    )
    environment = {**os.environ, "HOME": str(home)}
    environment.pop("ALFWORLD_DATA", None)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "None"
    assert list(tmp_path.iterdir()) == []
