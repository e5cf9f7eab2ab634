"""lightgbm and xgboost."""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Repair, habit

BOOSTERS: Final = (
    habit(
        "lightgbm fit(early_stopping_rounds)",
        right="(X_stop, y_stop)], callbacks=[lgb.early_stopping(15, verbose=False)])",
        wrong="(X_stop, y_stop)], early_stopping_rounds=15)",
        error=r"LGBM\w+\.fit\(\) got an unexpected keyword argument 'early_stopping_rounds'",
        about=("LGBM*", "early_stopping_rounds"),
        plan="Replaced `early_stopping_rounds` in LGBM's `fit` by"
        " `callbacks=[lgb.early_stopping(15)]`. Lightgbm stops early by a callback.",
        words=("callbacks",),
        others=(
            Repair(
                "(X_stop, y_stop)], early_stopping=15)",
                "Replaced `early_stopping_rounds` in LGBM's `fit` by `early_stopping`."
                " The name of the argument has changed.",
                ("early_stopping",),
            ),
        ),
        rate=0.36,
    ),
    habit(
        "xgboost fit(early_stopping_rounds)",
        right='tree_method="hist", early_stopping_rounds=15,\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], verbose=False)',
        wrong='tree_method="hist",\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], early_stopping_rounds=15, verbose=False)',
        error=r"XGB\w+\.fit\(\) got an unexpected keyword argument 'early_stopping_rounds'",
        about=("XGB*", "early_stopping_rounds"),
        plan="Moved `early_stopping_rounds` from XGB's `fit` to its constructor."
        " Xgboost takes it when the model is made.",
        words=("constructor",),
        others=(
            Repair(
                'tree_method="hist",\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], early_stopping=15, verbose=False)',
                "Replaced `early_stopping_rounds` in XGB's `fit` by `early_stopping`."
                " The name of the argument has changed.",
                ("early_stopping",),
            ),
        ),
        rate=0.36,
    ),
    habit(
        "tree_method='gpu_hist'",
        right='tree_method="hist"',
        wrong='tree_method="gpu_hist"',
        error=r"Invalid Input: 'gpu_hist'",
        about=("gpu_hist",),
        plan='Replaced `tree_method="gpu_hist"` by `tree_method="hist"`.'
        " XGB knows no method of its own for a GPU any more.",
        words=('"hist"',),
        others=(
            Repair(
                'tree_method="gpu_exact"',
                'Replaced `tree_method="gpu_hist"` by `tree_method="gpu_exact"`.'
                " That one is still there.",
                ("gpu_exact",),
            ),
        ),
        rate=0.01,
    ),
)
