"""scikit-learn's forests and boosting."""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Repair, habit
from langgraft.benchmarks.simulated.data_scientist.stale.keywords import keyword

TREES: Final = (
    habit(
        "criterion='mse'",
        right='criterion="squared_error"',
        wrong='criterion="mse"',
        error=r"'criterion' parameter of \w+",
        about=("criterion",),
        plan='Replaced `criterion="mse"` by `criterion="squared_error"`.'
        " The criterion of trees was renamed in scikit-learn.",
        words=("squared_error",),
        others=(
            Repair(
                'criterion="l2"',
                'Replaced `criterion="mse"` by `criterion="l2"`. Trees call it so.',
                ("l2",),
            ),
        ),
        rate=0.26,
    ),
    habit(
        "max_features='auto'",
        right='max_features="sqrt"',
        wrong='max_features="auto"',
        error=r"'max_features' parameter of \w+",
        about=("max_features",),
        plan='Replaced `max_features="auto"` by `max_features="sqrt"`.'
        " `auto` is gone from scikit-learn's forests.",
        words=("sqrt",),
        others=(
            Repair(
                'max_features="all"',
                'Replaced `max_features="auto"` by `max_features="all"`. Forests take all then.',
                ("all",),
            ),
        ),
        rate=0.26,
    ),
    habit(
        "GradientBoosting(loss='ls')",
        right='GradientBoostingRegressor(loss="squared_error"',
        wrong='GradientBoostingRegressor(loss="ls"',
        error=r"'loss' parameter of GradientBoostingRegressor",
        about=("GradientBoostingRegressor", "loss"),
        plan='Replaced `GradientBoostingRegressor(loss="ls")` by `loss="squared_error"`.'
        " The loss was renamed in scikit-learn.",
        words=("squared_error",),
        others=(
            Repair(
                'GradientBoostingRegressor(loss="mse"',
                'Replaced `GradientBoostingRegressor(loss="ls")` by `loss="mse"`.'
                " That is the name of the loss.",
                ("mse",),
            ),
        ),
        rate=0.26,
    ),
    habit(
        "GradientBoosting(loss='deviance')",
        right='GradientBoostingClassifier(loss="log_loss"',
        wrong='GradientBoostingClassifier(loss="deviance"',
        error=r"'loss' parameter of GradientBoostingClassifier",
        about=("GradientBoostingClassifier", "loss"),
        plan='Replaced `GradientBoostingClassifier(loss="deviance")` by `loss="log_loss"`.'
        " The loss was renamed in scikit-learn.",
        words=("log_loss",),
        others=(
            Repair(
                'GradientBoostingClassifier(loss="multinomial"',
                'Replaced `GradientBoostingClassifier(loss="deviance")` by `loss="multinomial"`.'
                " There are several classes.",
                ("multinomial",),
            ),
        ),
        rate=0.26,
    ),
    *(
        habit(
            f"{name}(n_jobs)",
            right=f"{name}(max_iter=@,",
            wrong=f"{name}(n_jobs=1, max_iter=@,",
            error=keyword(name, "n_jobs"),
            about=(name, "n_jobs"),
            plan=f"Removed the argument `n_jobs` from `{name}`. It takes its threads from OpenMP.",
            words=("n_jobs", "removed"),
            others=(
                Repair(
                    f"{name}(n_threads=1, max_iter=@,",
                    f"Replaced the argument `n_jobs` of `{name}` by `n_threads`."
                    " The name of the argument is another there.",
                    ("n_threads",),
                ),
            ),
            rate=0.26,
        )
        for name in ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier")
    ),
    *(
        habit(
            f"{name}(n_estimators)",
            right=f"{name}(max_iter=@, learning_rate",
            wrong=f"{name}(n_estimators=@, learning_rate",
            error=keyword(name, "n_estimators"),
            about=(name, "n_estimators"),
            plan=f"Replaced `{name}(n_estimators=…)` by `{name}(max_iter=…)`."
            " Rounds are called iterations there.",
            words=("max_iter",),
            others=(
                Repair(
                    f"{name}(n_rounds=@, learning_rate",
                    f"Replaced `{name}(n_estimators=…)` by `{name}(n_rounds=…)`."
                    " Rounds are called so there.",
                    ("n_rounds",),
                ),
            ),
            rate=0.04,
        )
        for name in ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier")
    ),
)
