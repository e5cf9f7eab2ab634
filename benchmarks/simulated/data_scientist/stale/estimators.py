"""scikit-learn's models other than trees."""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Repair, habit
from langgraft.benchmarks.simulated.data_scientist.stale.keywords import keyword

ESTIMATORS: Final = (
    habit(
        "LogisticRegression(multi_class)",
        right="max_iter=400)",
        wrong='max_iter=400, multi_class="multinomial")',
        error=keyword("LogisticRegression", "multi_class"),
        about=("LogisticRegression", "multi_class"),
        plan="Removed the argument `multi_class` from `LogisticRegression`."
        " It is multinomial by itself.",
        words=("multi_class", "removed"),
        others=(
            Repair(
                'max_iter=400, multiclass="multinomial")',
                "Replaced the argument `multi_class` of `LogisticRegression` by `multiclass`."
                " The name of the argument has changed.",
                ("multiclass",),
            ),
        ),
        rate=0.32,
    ),
    habit(
        "SGDClassifier(loss='log')",
        right='SGDClassifier(loss="log_loss"',
        wrong='SGDClassifier(loss="log"',
        error=r"'loss' parameter of SGDClassifier",
        about=("SGDClassifier", "loss"),
        plan='Replaced `SGDClassifier(loss="log")` by `SGDClassifier(loss="log_loss")`.'
        " The loss was renamed in scikit-learn.",
        words=("log_loss",),
        others=(
            Repair(
                'SGDClassifier(loss="logistic"',
                'Replaced `SGDClassifier(loss="log")` by `SGDClassifier(loss="logistic")`.'
                " That is the name of the loss.",
                ("logistic",),
            ),
        ),
        rate=0.32,
    ),
    habit(
        "MLPRegressor((sizes))",
        right="MLPRegressor(hidden_layer_sizes=(@,)",
        wrong="MLPRegressor((@,)",
        error=r"'loss' parameter of MLPRegressor",
        about=("MLPRegressor", "loss"),
        plan="Replaced `MLPRegressor((…,))` by `MLPRegressor(hidden_layer_sizes=(…,))`."
        " The first argument is the loss now.",
        words=("hidden_layer_sizes",),
        others=(
            Repair(
                'MLPRegressor("mse", (@,)',
                'Replaced `MLPRegressor((…,))` by `MLPRegressor("mse", (…,))`.'
                " The first argument is the loss now.",
                ("mse",),
            ),
        ),
        rate=0.32,
    ),
    *(
        habit(
            f"{name}(base_estimator)",
            right=f"{name}(estimator=",
            wrong=f"{name}(base_estimator=",
            error=keyword(name, "base_estimator"),
            about=(name, "base_estimator"),
            plan=f"Replaced `{name}(base_estimator=…)` by `{name}(estimator=…)`."
            " The argument was renamed in scikit-learn.",
            words=("estimator=",),
            others=(
                Repair(
                    f"{name}(model=",
                    f"Replaced `{name}(base_estimator=…)` by `{name}(model=…)`."
                    " The name of the argument has changed.",
                    ("model=",),
                ),
            ),
            rate=0.32,
        )
        for name in ("CalibratedClassifierCV", "BaggingClassifier", "BaggingRegressor")
    ),
    *(
        habit(
            f"{name}(positional weights)",
            right=f'{name}(@, weights="distance")',
            wrong=f'{name}(@, "distance")',
            error=rf"{name}.*positional arguments?",
            about=(name, "positional"),
            plan=f'Replaced `{name}(…, "distance")` by `{name}(…, weights="distance")`.'
            " All arguments but the first are given by name.",
            words=("weights=",),
            others=(
                Repair(
                    f'{name}(@, weight="distance")',
                    f'Replaced `{name}(…, "distance")` by `{name}(…, weight="distance")`.'
                    " All arguments but the first are given by name.",
                    ("weight=",),
                ),
            ),
            rate=0.26,
        )
        for name in ("KNeighborsClassifier", "KNeighborsRegressor")
    ),
    habit(
        "Ridge(normalize)",
        right="Ridge(alpha=@)",
        wrong="Ridge(alpha=@, normalize=True)",
        error=keyword("Ridge", "normalize"),
        about=("Ridge", "normalize"),
        plan="Removed the argument `normalize` from `Ridge`. A `StandardScaler` before it scales.",
        words=("normalize", "removed"),
        others=(
            Repair(
                "Ridge(alpha=@, standardize=True)",
                "Replaced the argument `normalize` of `Ridge` by `standardize`."
                " The name of the argument has changed.",
                ("standardize",),
            ),
        ),
        rate=0.26,
    ),
)
