"""Habits of guessing: names of columns, files and limits that the task says, and nobody read."""

from collections.abc import Iterator

from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair, habit
from langgraft.benchmarks.simulated.data_scientist.tasks import Task


def schema_habits(task: Task) -> Iterator[Habit]:
    """Yield what may be guessed wrong of a task."""
    yield from _names(task)
    yield from _submissions(task)
    yield from _limits()


def _names(task: Task) -> Iterator[Habit]:
    guessed = "label" if task.classes else "y"
    if task.target not in (guessed, "target"):
        yield _target(task, guessed)
    yield habit(
        "path of the data",
        right='"input/',
        wrong='"../input/',
        error=r"No such file or directory: '(?:\.\./input|data)/|FileNotFoundError",
        about=("FileNotFoundError",),
        plan="Replaced the path `../input/` by `input/`. The data lies in `./input`.",
        words=("`./input`",),
        others=(
            Repair(
                '"data/',
                "Replaced the path `../input/` by `data/`. The data lies there.",
                ("data/",),
            ),
        ),
        rate=0.03,
    )


def _target(task: Task, guessed: str) -> Habit:
    return habit(
        "target column",
        right=f'ID, TARGET = "{task.id}", "{task.target}"',
        wrong=f'ID, TARGET = "{task.id}", "{guessed}"',
        error=rf"KeyError: ['\"](?:{guessed}|target)['\"]|not in index|KeyError: 'Column not found",
        about=("KeyError",),
        plan=f"Replaced the target column `{guessed}` by `{task.target}`."
        " That is what the training table calls it.",
        words=(f"by `{task.target}`",),
        others=(
            Repair(
                f'ID, TARGET = "{task.id}", "target"',
                f"Replaced the target column `{guessed}` by `target`."
                " That is what it is usually called.",
                ("by `target`",),
            ),
        ),
        rate=0.02,
    )


def _submissions(task: Task) -> Iterator[Habit]:
    yield habit(
        "index in the submission",
        right='submission[list(sample.columns)].to_csv("submission.csv", index=False)',
        wrong='submission[list(sample.columns)].to_csv("submission.csv")',
        error=r"Submission: present, but not valid",
        about=("submission", "index"),
        plan="Added `index=False` to `to_csv` for the submission. The index had become a column"
        " that the sample submission does not have.",
        words=("index=False",),
        rate=0.02,
    )
    if task.probabilities:
        yield habit(
            "prefix of the classes",
            right="columns=[str(name) for name in classes]",
            wrong='columns=[f"{TARGET}_{name}" for name in classes]',
            error=r"not in index|None of \[Index",
            about=("KeyError", "columns"),
            plan="Named the columns of the submission by the classes alone, as `str(name)`, in place"
            " of a prefix. That is what the sample submission calls them.",
            words=("prefix",),
            rate=0.03,
        )
    if task.metric == "accuracy":
        yield habit(
            "probabilities for labels",
            right="accuracy_score(truth, predicted.argmax(axis=1))",
            wrong="accuracy_score(truth, predicted)",
            error=r"can't handle a mix of \S+ and continuous",
            about=("mix", "continuous*"),
            plan="Replaced the probabilities in `accuracy_score` by classes, with `argmax(axis=1)`."
            " Accuracy compares labels.",
            words=("argmax",),
            others=(
                Repair(
                    "accuracy_score(truth, predicted.round())",
                    "Replaced the probabilities in `accuracy_score` by `predicted.round()`."
                    " Accuracy compares whole numbers.",
                    ("round()",),
                ),
            ),
            rate=0.25,
        )


def _limits() -> Iterator[Habit]:
    for library, name in (("lightgbm", "LightGBM"), ("xgboost", "XGBoost")):
        last = "num_leaves" if library == "lightgbm" else "max_depth"
        yield Habit(
            f"{library} without end",
            right=f"n_estimators=@, learning_rate=@, {last}",
            wrong=f"n_estimators=200000, learning_rate=0.06, {last}",
            error=r"TIMEOUT|TimeoutError|OUT OF MEMORY",
            about=(library, "timeout*"),
            repair=Repair(
                f"n_estimators=80, learning_rate=0.08, {last}",
                f"Replaced the 200000 rounds of {name} by `n_estimators=80`, at a higher learning"
                f" rate. It had run into the time limit.",
                ("n_estimators",),
            ),
            others=(
                Repair(
                    f"n_estimators=100000, learning_rate=0.0001, {last}",
                    f"Halved the rounds of {name}. It had run into the time limit.",
                    ("halved",),
                ),
            ),
            rate=0.06,
        )
    for name in ("MLPRegressor", "MLPClassifier"):
        sizes = f"{name}(hidden_layer_sizes=(@,), alpha=@"
        yield Habit(
            f"{name} without end",
            right=f"{sizes}, max_iter=@, random_state=0)",
            wrong=f"{sizes}, max_iter=100000, tol=0.0, n_iter_no_change=100000, random_state=0)",
            error=r"TIMEOUT|TimeoutError|OUT OF MEMORY",
            about=(name, "timeout*"),
            repair=Repair(
                f"{sizes}, max_iter=25, random_state=0)",
                f"Replaced `max_iter=100000` of `{name}` by `max_iter=25`."
                " It had run into the time limit.",
                ("max_iter",),
            ),
            others=(),
            rate=0.05,
        )
