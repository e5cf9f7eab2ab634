"""Programs as six sections of text: the parts they are made of, put together and taken apart again.

The parts are in `parts.md`; nothing here or there knows a competition.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib import resources
from string import Template
from typing import Final

from langgraft._core.untrusted import parse_program
from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.tasks import Form, Metric, Task

PACKAGE: Final = "langgraft.benchmarks.simulated.data_scientist"
SLOTS: Final = ("Data", "Features", "Model", "Metric", "Validation", "Submission")
"""Sections of a program, in their order; a comment `# <slot>: <title>` begins each."""
MEAN_OF: Final = "the mean of"
"""How the title of two models begins."""

_FROM: Final[Mapping[str, str]] = {
    "sklearn.calibration": "CalibratedClassifierCV",
    "sklearn.compose": "ColumnTransformer",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.discriminant_analysis": "LinearDiscriminantAnalysis",
    "sklearn.ensemble": "BaggingClassifier BaggingRegressor ExtraTreesClassifier ExtraTreesRegressor"
    " GradientBoostingClassifier GradientBoostingRegressor HistGradientBoostingClassifier"
    " HistGradientBoostingRegressor RandomForestClassifier RandomForestRegressor",
    "sklearn.feature_extraction.text": "TfidfVectorizer",
    "sklearn.impute": "SimpleImputer",
    "sklearn.linear_model": "LogisticRegression Ridge SGDClassifier",
    "sklearn.metrics": "accuracy_score cohen_kappa_score f1_score log_loss mean_absolute_error"
    " mean_squared_error r2_score roc_auc_score root_mean_squared_error",
    "sklearn.model_selection": "KFold StratifiedKFold train_test_split",
    "sklearn.naive_bayes": "MultinomialNB",
    "sklearn.neighbors": "KNeighborsClassifier KNeighborsRegressor",
    "sklearn.neural_network": "MLPClassifier MLPRegressor",
    "sklearn.pipeline": "FeatureUnion make_pipeline",
    "sklearn.preprocessing": "OneHotEncoder OrdinalEncoder PolynomialFeatures SplineTransformer"
    " StandardScaler",
    "sklearn.svm": "LinearSVC SVC",
    "sklearn.tree": "DecisionTreeClassifier DecisionTreeRegressor",
    "scipy": "ndimage",
    "pathlib": "Path",
    "PIL": "Image",
}
_IMPORTS: Final[dict[str, str]] = {
    "np": "import numpy as np",
    "pd": "import pandas as pd",
    "lgb": "import lightgbm as lgb",
    "xgb": "import xgboost as xgb",
    "os": "import os",
} | {
    name: f"from {place} import {name}" for place, names in _FROM.items() for name in names.split()
}
"""The line that brings each name."""

_START: Final = 'SEED = int(os.environ.get("SPLIT_SEED", "0"))'
_HEADING: Final = re.compile(rf"^# (?:{'|'.join(SLOTS)}): [^\n]+$", re.MULTILINE)
_IMPORT: Final = re.compile(r"^(?:from \S+ )?import [^\n]+\n", re.MULTILINE)
_CHOICE: Final = re.compile(r"<([^\s<>]+(?:\|[^\s<>]+)+)>")

_ENTRY: Final = re.compile(
    r"^# (?P<group>\w+)\n|^## (?P<slot>\w+): (?P<title>[^\n(]+?)(?: \((?P<marks>[^)]*)\))?\n\n"
    r"```python\n(?P<text>.*?)^```|^- (?P<model>[^\n(]+?) \((?P<of>[^)]*)\): `(?P<call>[^`]*)`$",
    re.MULTILINE | re.DOTALL,
)
_MODEL: Final = """
def fit_model(features, answers):
    model = {call}
    return model.fit(features, answers)


def predict(model, features):
    return model.$method(features)
"""
_MEAN: Final = """def fit_model(features, answers):
    return fit_first(features, answers), fit_second(features, answers)


def predict(models, features):
    return (predict_first(models[0], features) + predict_second(models[1], features)) / 2"""

_METRICS: Final[Mapping[Metric, tuple[str, str]]] = {
    "rmsle": (
        "root mean squared logarithmic error",
        "root_mean_squared_error(truth, predicted)",
    ),
    "rmse": ("root mean squared error", "root_mean_squared_error(truth, predicted)"),
    "mae": ("mean absolute error", "mean_absolute_error(truth, predicted)"),
    "r2": ("R2", "r2_score(truth, predicted)"),
    "log-loss": ("logarithmic loss", "log_loss(truth, predicted, labels=np.arange(len(classes)))"),
    "accuracy": ("accuracy", "accuracy_score(truth, predicted.argmax(axis=1))"),
    "kappa": (
        "quadratic weighted kappa",
        'cohen_kappa_score(truth, predicted.argmax(axis=1), weights="quadratic")',
    ),
    "f1": ("mean F1", 'f1_score(truth, predicted.argmax(axis=1), average="macro")'),
    "auc": (
        "area under the curve",
        'roc_auc_score(truth, predicted[:, -1] if len(classes) == 2 else predicted, multi_class="ovr")',
    ),
}
"""Titles, and what computes them; answers to RMSLE are logarithms already."""


@dataclass(frozen=True, slots=True)
class Part:
    """A way to fill a section."""

    slot: str
    title: str
    """What a plan and the section's first line call it."""
    text: str
    """Python, with `<a|b>` where one of several is drawn."""
    weight: float = 1.0
    """How readily it is chosen."""
    marks: frozenset[str] = frozenset()

    @property
    def package(self) -> str:
        """What a note on limits may warn of."""
        return (
            "lightgbm" if "lgb." in self.text else "xgboost" if "xgb." in self.text else "sklearn"
        )

    @property
    def heavy(self) -> bool:
        """Whether a note on limits, of whatever, makes it less liked."""
        return "heavy" in self.marks

    @property
    def sparse(self) -> bool:
        """Whether it makes, or takes, features that only some models take."""
        return "sparse" in self.marks

    def written(self, dice: Dice, question: str) -> str:
        """Write the section, with options drawn."""

        def draw(choice: re.Match[str]) -> str:
            options: dict[str, float] = dict.fromkeys(choice[1].split("|"), 1.0)
            return dice.pick(f"{question}/{self.title}/{choice.start()}", options)

        return f"# {self.slot}: {self.title}\n{_CHOICE.sub(draw, self.text.strip())}"


def parts_for(task: Task) -> dict[str, list[Part]]:
    """Return all parts that a program for a task may have, by slot."""
    groups = (task.form, "classes" if task.classes else "numbers", "any")
    entries = [each for name in groups for each in _library()[name] if task.form not in each.marks]
    facts = _facts(task)
    for each in entries:
        if each.slot == "Shared":
            facts[each.title] = Template(each.text.strip()).safe_substitute(facts)
    if task.form == "restoring":
        facts["submission"] = facts["shades"]
    else:
        facts["submission"] = facts["probabilities" if task.probabilities else "answer"]
    found: dict[str, list[Part]] = {slot: [] for slot in SLOTS}
    for each in entries:
        if each.slot in found:
            title, text = (
                Template(text).safe_substitute(facts) for text in (each.title, each.text)
            )
            found[each.slot].append(replace(each, title=title, text=text))
    return found


def carried_on(task: Task, code: str) -> Task:
    """Return a task with the form and the metric of a program that is there already.

    A prompt that shows a program may show no data, and its description may tell less.
    """
    titles = {slot: title_of(section) for slot, section in sections_of(code).items()}
    forms: dict[str, Form] = {
        "a table": "table",
        "texts": "text",
        "pictures with labels": "pictures",
        "pairs of pictures": "restoring",
    }
    metrics = {title: metric for metric, (title, _) in _METRICS.items()}
    return replace(
        task,
        form=forms.get(titles.get("Data", ""), task.form),
        metric=metrics.get(titles.get("Metric", ""), task.metric),
    )


@lru_cache(maxsize=1)
def _library() -> Mapping[str, list[Part]]:
    text = resources.files(PACKAGE).joinpath("parts.md").read_text(encoding="utf-8")
    groups: dict[str, list[Part]] = {}
    entries: list[Part] = []
    for found in _ENTRY.finditer(text):
        if found["group"]:
            entries = groups.setdefault(found["group"], [])
        elif found["call"]:
            call = _MODEL.replace("{call}", found["call"])
            entries.append(Part("Model", found["model"], call, *_marked(found["of"])))
        else:
            marked = _marked(found["marks"] or "")
            entries.append(Part(found["slot"], found["title"], found["text"], *marked))
    return groups


def _marked(text: str) -> tuple[float, frozenset[str]]:
    """Read what stands in parentheses: a weight, and marks."""
    words = [each.removeprefix("not ") for each in filter(None, text.split(", "))]
    weights = [float(each) for each in words if each[0].isdecimal()]
    return (*weights, 1.0)[0], frozenset(each for each in words if not each[0].isdecimal())


def _facts(task: Task) -> dict[str, str]:
    """Return what stands for the names in parts.

    Where there are many features or rows, boosting gets fewer rounds: programs are to take a second
    or two.
    """
    table, pairs = task.form == "table", task.form == "restoring"
    flat = table or task.form == "text"
    predict = "restored" if pairs else "predict"
    scored = "score(y[held_rows], predict(model, X[held_rows]))"
    if pairs:
        scored = "score(y[held_rows].ravel(), restored(model, X[held_rows]).ravel())"
    title, score = _METRICS[task.metric]
    on_all = "fit_model(X, y)" if flat else "fit_on(np.arange(len(y)))"
    rounds = "<60|90>" if table else "<15|25>"
    return {name: str(value) for name, value in asdict(task).items()} | {
        "answers": _answers(task),
        "boosting_rounds": rounds if task.classes else "<120|200>",
        "dot_ending": f".{task.ending}" if task.ending else "",
        "ending": task.ending or "png",
        "fitted": "fit_model(X[fit_rows], y[fit_rows])" if flat else "fit_on(fit_rows)",
        "fold_counts": "<3|5>" if table else "3",
        "folds": "StratifiedKFold" if task.classes else "KFold",
        "ids": "sample" if task.form == "pictures" else "test",
        "kind": "Classifier" if task.classes else "Regressor",
        "method": "predict_proba" if task.classes else "predict",
        "metric_text": score,
        "metric_title": title,
        "output": task.outputs[0],
        "predicted": f"{predict}({on_all}, X_test)",
        "rounds": "<25|40>" if table else "<8|15>",
        "scored": scored,
        "stratified": ", stratify=y" if task.classes else "",
        "value": _value(task),
    }


def _answers(task: Task) -> str:
    if task.classes:
        return "classes, y = np.unique(train[TARGET], return_inverse=True)"
    numbers = "train[TARGET].to_numpy(dtype=float)"
    return f"y = np.log1p({numbers})" if task.metric == "rmsle" else f"y = {numbers}"


def _value(task: Task) -> str:
    if task.metric == "rmsle":
        return "np.expm1(predicted).clip(0)"
    if task.metric in ("auc", "log-loss"):
        return "predicted[:, 1]"
    return "classes[predicted.argmax(axis=1)]" if task.classes else "predicted"


def blended(first: str, second: str) -> str:
    """Join the bodies of two Model sections into one whose prediction is the mean of theirs."""
    return "\n\n\n".join((_renamed(first, "first"), _renamed(second, "second"), _MEAN))


def _renamed(text: str, name: str) -> str:
    text = re.sub(r"\bdef fit_model\(", f"def fit_{name}(", text)
    return re.sub(r"\bdef predict\(", f"def predict_{name}(", text)


def assembled(sections: Iterable[str], imports: str = "") -> str:
    """Put a program together.

    Args:
        sections: Each with its heading.
        imports: Lines of an earlier program, which are kept as far as their names are used.
    """
    body = "\n\n\n".join((_START, *sections))
    used = _names(body)
    earlier = {line.split()[-1]: line for line in imports.splitlines() if line.strip()}
    lines = {name: line for name, line in (_IMPORTS | earlier).items() if name in used}
    return "\n".join([*sorted(set(lines.values()), key=_order), "", "", body, ""])


def _order(line: str) -> tuple[bool, str]:
    """Modules of Python itself go first."""
    return not line.startswith(("import os", "from pathlib")), line


def _names(body: str) -> set[str]:
    try:
        tree = parse_program(body)
    except SyntaxError:
        return set(re.findall(r"\w+", body))
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def reassembled(code: str, sections: Mapping[str, str] | None = None) -> str:
    """Bring a program's imports up to what it uses now, with other sections if there are any.

    A text that is no program of six sections comes back as it is.
    """
    sections = sections or sections_of(code)
    if set(sections) != set(SLOTS):
        return code
    return assembled((sections[slot] for slot in SLOTS), imports_of(code))


def imports_of(*codes: str) -> str:
    """Return the lines of programs that bring names; of several for one name the first counts."""
    lines = [line for code in reversed(codes) for line in _IMPORT.findall(code)]
    return "".join(lines)


def sections_of(code: str) -> dict[str, str]:
    """Return the sections of a program by slot; nothing where it is not of this form."""
    starts = [match.start() for match in _HEADING.finditer(code)]
    texts = (
        code[start:end].strip() for start, end in zip(starts, (*starts[1:], None), strict=False)
    )
    return {text[2 : text.index(":")]: text for text in texts}


def title_of(section: str) -> str:
    """Return what a section's first line calls it."""
    return section.partition("\n")[0].partition(": ")[2]


def body_of(section: str) -> str:
    """Return a section without its first line."""
    return section.partition("\n")[2]


def titles_in(codes: Iterable[str]) -> Iterator[str]:
    """Yield the titles of all sections of some programs."""
    for code in codes:
        yield from map(title_of, sections_of(code).values())
