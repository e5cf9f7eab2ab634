"""Functions of a competition's own files: `grade.py`, `prepare.py`.

They are the code of whoever wrote the competition. It is imported when it is first called, not
when competitions are listed, and as part of a package whose name nobody else uses, so that
`from .classes import CLASSES` works and ten competitions can each have a `grade.py`.
"""

import ast
import hashlib
import importlib
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraft._core.errors import CompetitionError, MissingExtraError
from langgraft.environments.competitions.layout import read_text


class OwnFunction:
    """A function of a file, imported when it is first needed.

    Args:
        file: The Python file in the competition's folder.
        name: The function in it.

    Raises:
        CompetitionError: The file is not Python, or does not define the name.
    """

    def __init__(self, file: Path, name: str) -> None:
        self.file = file
        self.name = name
        if name not in _names(file):
            raise CompetitionError(f"defines no `{name}`", path=file)

    def __repr__(self) -> str:
        return f"OwnFunction({self.file}, {self.name})"

    def load(self) -> Callable[..., Any]:
        """Import the file and return the function.

        Raises:
            CompetitionError: The file cannot be imported, or the name is no function.
        """
        importlib.invalidate_caches()  # the folder may be newer than what Python knows of it
        try:
            module = importlib.import_module(f"{_package(self.file.parent)}.{self.file.stem}")
        except (CompetitionError, MissingExtraError):
            raise
        except ModuleNotFoundError as error:
            msg = f"needs `{error.name}`, which is not installed"
            raise CompetitionError(msg, path=self.file) from error
        except (Exception, SystemExit) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise CompetitionError(f"cannot be imported: {why}", path=self.file) from error
        function = getattr(module, self.name, None)
        if not callable(function):
            raise CompetitionError(f"`{self.name}` is not a function", path=self.file)
        loaded: Callable[..., Any] = function
        return loaded

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.load()(*args, **kwargs)


def _package(folder: Path) -> str:
    """Make a folder a package of a private name; return the name."""
    place = folder.resolve()
    name = f"_langgraft_competition_{hashlib.sha256(str(place).encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(place)]
        module: ModuleType = module_from_spec(spec)
        sys.modules[name] = module
    return name


def _names(file: Path) -> set[str]:
    """Return the names that a file's top level binds, without running it."""
    try:
        tree = ast.parse(read_text(file), filename=str(file))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CompetitionError(f"is not Python: {error}", path=file) from error
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update((each.asname or each.name).split(".")[0] for each in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names.update(each.id for each in targets if isinstance(each, ast.Name))
    return names
