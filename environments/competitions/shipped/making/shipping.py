"""The split that a competition is: `prepare.py` can make others of the same source."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

SHIPPED: Final = "shipped"
"""Name of the split that ships."""


def of_shipped(
    prepare_split: Callable[[Path, Path, str], None],
) -> Callable[[Path, Path, Path], None]:
    """Return MLE-bench's `prepare(raw, public, private)`, which makes the split that ships.

    Args:
        prepare_split: Writes the files of the split of a name.
    """

    def prepare(raw: Path, public: Path, private: Path) -> None:  # noqa: ARG001
        """Write the public and the private files.

        Args:
            raw: Not used, but part of MLE-bench's form: the source lies in a package.
            public: An empty folder for what agents may see.
            private: An empty folder for the answers.

        Raises:
            MissingExtraError: If the package with the source is not installed.
            CompetitionError: If its data are not those known.
        """
        prepare_split(public, private, SHIPPED)

    return prepare
