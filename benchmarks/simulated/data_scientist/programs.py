"""Programs as sections of text: put together, taken apart, and given the imports they need."""

import ast
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from langgraft._core.syntax import parse_program
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS

_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    "sklearn.calibration": ("CalibratedClassifierCV",),
    "sklearn.compose": ("ColumnTransformer",),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.discriminant_analysis": (
        "LinearDiscriminantAnalysis",
        "QuadraticDiscriminantAnalysis",
    ),
    "sklearn.ensemble": (
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "BaggingClassifier",
        "BaggingRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "GradientBoostingClassifier",
        "GradientBoostingRegressor",
        "HistGradientBoostingClassifier",
        "HistGradientBoostingRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
    ),
    "sklearn.feature_extraction.text": ("CountVectorizer", "TfidfVectorizer"),
    "sklearn.feature_selection": ("SelectKBest", "f_classif", "f_regression"),
    "sklearn.impute": ("SimpleImputer",),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.linear_model": ("LogisticRegression", "Ridge", "SGDClassifier"),
    "sklearn.metrics": (
        "accuracy_score",
        "cohen_kappa_score",
        "f1_score",
        "log_loss",
        "mean_absolute_error",
        "mean_squared_error",
        "r2_score",
        "roc_auc_score",
        "root_mean_squared_error",
    ),
    "sklearn.model_selection": ("KFold", "StratifiedKFold", "train_test_split"),
    "sklearn.naive_bayes": ("GaussianNB", "MultinomialNB"),
    "sklearn.neighbors": ("KNeighborsClassifier", "KNeighborsRegressor"),
    "sklearn.neural_network": ("MLPClassifier", "MLPRegressor"),
    "sklearn.pipeline": ("FeatureUnion", "make_pipeline"),
    "sklearn.preprocessing": (
        "OneHotEncoder",
        "OrdinalEncoder",
        "PolynomialFeatures",
        "SplineTransformer",
        "StandardScaler",
    ),
    "sklearn.svm": ("LinearSVC", "SVC", "SVR"),
    "sklearn.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
    "scipy": ("ndimage",),
    "pathlib": ("Path",),
    "PIL": ("Image",),
    # Names that are no longer there, which a program may still ask for.
    "scipy.misc": ("imread",),
    "scipy.signal": ("gaussian",),
    "sklearn.externals": ("joblib",),
}
_MODULES: Final[Mapping[str, str]] = {
    "np": "numpy",
    "pd": "pandas",
    "lgb": "lightgbm",
    "xgb": "xgboost",
    "cv2": "cv2",
    "os": "os",
}
IMPORTS: Final[Mapping[str, str]] = MappingProxyType(
    {name: f"import {module} as {name}" for name, module in _MODULES.items() if name != module}
    | {name: f"import {module}" for name, module in _MODULES.items() if name == module}
    | {name: f"from {module} import {name}" for module, listed in _FROM.items() for name in listed}
)
"""The line that brings each name."""

START: Final = 'SEED = int(os.environ.get("SPLIT_SEED", "0"))'
_HEADING: Final = re.compile(rf"^# (?:{'|'.join(SLOTS)}): [^\n]+$", re.MULTILINE)
_IMPORT: Final = re.compile(r"^(?:from \S+ )?import [^\n]+\n", re.MULTILINE)


def assembled(sections: Iterable[str], imports: str = "") -> str:
    """Put a program together.

    Args:
        sections: Each with its heading.
        imports: Lines of an earlier program, which are kept as far as their names are used.
    """
    body = "\n\n\n".join((START, *sections))
    return f"{_imports(body, imports)}\n\n{body}\n"


def _imports(body: str, earlier: str) -> str:
    used = _names(body)
    lines = {_brought(line): line for line in earlier.splitlines() if line.strip()}
    kept = {name: line for name, line in lines.items() if name in used}
    new = {name: IMPORTS[name] for name in IMPORTS if name in used and name not in kept}
    return "\n".join(sorted({**kept, **new}.values(), key=_order))


def _order(line: str) -> tuple[bool, str]:
    """Modules of Python itself go first."""
    own = line.startswith(("import os", "from pathlib"))
    return not own, line


def _brought(line: str) -> str:
    """Return the name that an import line brings."""
    return line.rsplit(maxsplit=1)[-1]


def _names(body: str) -> set[str]:
    try:
        tree = parse_program(body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set(re.findall(r"\w+", body))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def imports_of(code: str) -> str:
    """Return the import lines of a program."""
    return "".join(_IMPORT.findall(code))


def sections_of(code: str) -> dict[str, str]:
    """Return the sections of a program by slot; nothing where it is not of this form."""
    starts = [match.start() for match in _HEADING.finditer(code)]
    if not starts:
        return {}
    ends = [*starts[1:], len(code)]
    texts = [code[start:end].strip() for start, end in zip(starts, ends, strict=True)]
    return {slot_of(text): text for text in texts}


def slot_of(section: str) -> str:
    """Return what a section is for."""
    return section[2 : section.index(":")]


def title_of(section: str) -> str:
    """Return what a section's first line calls it."""
    return section.partition("\n")[0].partition(": ")[2]


def body_of(section: str) -> str:
    """Return a section without its first line."""
    return section.partition("\n")[2]


def reply(plan: str, code: str) -> str:
    """Write a plan and a program in the form that is asked for."""
    return f"{plan}\n\n```python\n{code.rstrip()}\n```\n"
