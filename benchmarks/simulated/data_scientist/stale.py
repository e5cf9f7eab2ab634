"""Habits from libraries as they used to be: what the sandbox's versions no longer take.

Each one was run in the sandbox (scikit-learn 1.9, pandas 3.1, numpy 2.4, lightgbm 4.7, xgboost
3.2, pillow 13) and fails there as its `error` says.
"""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Habit, Repair


def _keyword(call: str, keyword: str) -> str:
    return rf"{call}.*unexpected keyword argument '{keyword}'"


SCIKIT_LEARN: Final = (
    Habit(
        "squared=False",
        right="root_mean_squared_error(truth, predicted)",
        wrong="mean_squared_error(truth, predicted, squared=False)",
        error=r"unexpected keyword argument 'squared'",
        about=("squared",),
        repair=Repair(
            "root_mean_squared_error(truth, predicted)",
            "Replaced `mean_squared_error(…, squared=False)` by `root_mean_squared_error(…)`."
            " The argument `squared` is gone from scikit-learn.",
            ("root_mean_squared_error",),
        ),
        others=(
            Repair(
                "mean_squared_error(truth, predicted, root=True)",
                "Replaced the argument `squared=False` of `mean_squared_error` by `root=True`."
                " The name of the argument has changed.",
                ("root=True",),
            ),
        ),
        rate=0.22,
    ),
    Habit(
        "log_loss(eps)",
        right="log_loss(truth, predicted, labels=np.arange(len(classes)))",
        wrong="log_loss(truth, predicted, eps=1e-15, labels=np.arange(len(classes)))",
        error=r"unexpected keyword argument 'eps'",
        about=("eps",),
        repair=Repair(
            "log_loss(truth, predicted, labels=np.arange(len(classes)))",
            "Removed the argument `eps` from `log_loss`. The function clips probabilities by"
            " itself and no longer takes it.",
            ("removed",),
        ),
        others=(
            Repair(
                "log_loss(truth, predicted, epsilon=1e-15, labels=np.arange(len(classes)))",
                "Replaced the argument `eps` of `log_loss` by `epsilon`."
                " The name of the argument has changed.",
                ("epsilon",),
            ),
        ),
        rate=0.22,
    ),
    Habit(
        "OneHotEncoder(sparse)",
        right="sparse_output=False",
        wrong="sparse=False",
        error=_keyword("OneHotEncoder", "sparse"),
        about=("OneHotEncoder", "sparse"),
        repair=Repair(
            "sparse_output=False",
            "Replaced `OneHotEncoder(sparse=False)` by `OneHotEncoder(sparse_output=False)`."
            " The argument was renamed in scikit-learn.",
            ("sparse_output",),
        ),
        others=(
            Repair(
                "dense=True",
                "Replaced `OneHotEncoder(sparse=False)` by `OneHotEncoder(dense=True)`."
                " That is how dense columns are asked for.",
                ("dense=True",),
            ),
        ),
        rate=0.29,
    ),
    Habit(
        "get_feature_names",
        right="get_feature_names_out()",
        wrong="get_feature_names()",
        error=r"has no attribute 'get_feature_names'",
        about=("get_feature_names",),
        repair=Repair(
            "get_feature_names_out()",
            "Replaced `get_feature_names()` by `get_feature_names_out()`."
            " The method was renamed in scikit-learn.",
            ("get_feature_names_out",),
        ),
        others=(
            Repair(
                "feature_names_in_()",
                "Replaced `get_feature_names()` by `feature_names_in_()`."
                " The names are kept there.",
                ("feature_names_in_",),
            ),
        ),
        rate=0.06,
    ),
    Habit(
        "OrdinalEncoder(handle_unknown)",
        right='OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1',
        wrong='OrdinalEncoder(handle_unknown="ignore"',
        error=r"'handle_unknown' parameter of OrdinalEncoder",
        about=("OrdinalEncoder", "handle_unknown"),
        repair=Repair(
            'OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1',
            'Replaced `handle_unknown="ignore"` of `OrdinalEncoder` by'
            ' `handle_unknown="use_encoded_value", unknown_value=-1`. It does not know `ignore`.',
            ("use_encoded_value",),
        ),
        others=(
            Repair(
                'OrdinalEncoder(handle_unknown="infrequent"',
                'Replaced `handle_unknown="ignore"` of `OrdinalEncoder` by `"infrequent"`.'
                " Unknown words go with the rare ones.",
                ("infrequent",),
            ),
        ),
        rate=0.29,
    ),
    Habit(
        "LogisticRegression(multi_class)",
        right="max_iter=400)",
        wrong='max_iter=400, multi_class="multinomial")',
        error=_keyword("LogisticRegression", "multi_class"),
        about=("LogisticRegression", "multi_class"),
        repair=Repair(
            "max_iter=400)",
            "Removed the argument `multi_class` from `LogisticRegression`."
            " It is multinomial by itself.",
            ("multi_class", "removed"),
        ),
        others=(
            Repair(
                'max_iter=400, multiclass="multinomial")',
                "Replaced the argument `multi_class` of `LogisticRegression` by `multiclass`."
                " The name of the argument has changed.",
                ("multiclass",),
            ),
        ),
        rate=0.36,
    ),
    Habit(
        "SGDClassifier(loss='log')",
        right='SGDClassifier(loss="log_loss"',
        wrong='SGDClassifier(loss="log"',
        error=r"'loss' parameter of SGDClassifier",
        about=("SGDClassifier", "loss"),
        repair=Repair(
            'SGDClassifier(loss="log_loss"',
            'Replaced `SGDClassifier(loss="log")` by `SGDClassifier(loss="log_loss")`.'
            " The loss was renamed in scikit-learn.",
            ("log_loss",),
        ),
        others=(
            Repair(
                'SGDClassifier(loss="logistic"',
                'Replaced `SGDClassifier(loss="log")` by `SGDClassifier(loss="logistic")`.'
                " That is the name of the loss.",
                ("logistic",),
            ),
        ),
        rate=0.36,
    ),
    Habit(
        "criterion='mse'",
        right='criterion="squared_error"',
        wrong='criterion="mse"',
        error=r"'criterion' parameter of \w+",
        about=("criterion",),
        repair=Repair(
            'criterion="squared_error"',
            'Replaced `criterion="mse"` by `criterion="squared_error"`.'
            " The criterion of trees was renamed in scikit-learn.",
            ("squared_error",),
        ),
        others=(
            Repair(
                'criterion="l2"',
                'Replaced `criterion="mse"` by `criterion="l2"`. Trees call it so.',
                ("l2",),
            ),
        ),
        rate=0.29,
    ),
    Habit(
        "max_features='auto'",
        right='max_features="sqrt"',
        wrong='max_features="auto"',
        error=r"'max_features' parameter of \w+",
        about=("max_features",),
        repair=Repair(
            'max_features="sqrt"',
            'Replaced `max_features="auto"` by `max_features="sqrt"`.'
            " `auto` is gone from scikit-learn's forests.",
            ("sqrt",),
        ),
        others=(
            Repair(
                'max_features="all"',
                'Replaced `max_features="auto"` by `max_features="all"`. Forests take all then.',
                ("all",),
            ),
        ),
        rate=0.29,
    ),
    Habit(
        "GradientBoosting(loss='ls')",
        right='GradientBoostingRegressor(loss="squared_error"',
        wrong='GradientBoostingRegressor(loss="ls"',
        error=r"'loss' parameter of GradientBoostingRegressor",
        about=("GradientBoostingRegressor", "loss"),
        repair=Repair(
            'GradientBoostingRegressor(loss="squared_error"',
            'Replaced `GradientBoostingRegressor(loss="ls")` by `loss="squared_error"`.'
            " The loss was renamed in scikit-learn.",
            ("squared_error",),
        ),
        others=(
            Repair(
                'GradientBoostingRegressor(loss="mse"',
                'Replaced `GradientBoostingRegressor(loss="ls")` by `loss="mse"`.'
                " That is the name of the loss.",
                ("mse",),
            ),
        ),
        rate=0.29,
    ),
    Habit(
        "GradientBoosting(loss='deviance')",
        right='GradientBoostingClassifier(loss="log_loss"',
        wrong='GradientBoostingClassifier(loss="deviance"',
        error=r"'loss' parameter of GradientBoostingClassifier",
        about=("GradientBoostingClassifier", "loss"),
        repair=Repair(
            'GradientBoostingClassifier(loss="log_loss"',
            'Replaced `GradientBoostingClassifier(loss="deviance")` by `loss="log_loss"`.'
            " The loss was renamed in scikit-learn.",
            ("log_loss",),
        ),
        others=(
            Repair(
                'GradientBoostingClassifier(loss="multinomial"',
                'Replaced `GradientBoostingClassifier(loss="deviance")` by `loss="multinomial"`.'
                " There are several classes.",
                ("multinomial",),
            ),
        ),
        rate=0.29,
    ),
    *(
        Habit(
            f"{name}(n_jobs)",
            right=f"{name}(max_iter=@,",
            wrong=f"{name}(n_jobs=1, max_iter=@,",
            error=_keyword(name, "n_jobs"),
            about=(name, "n_jobs"),
            repair=Repair(
                f"{name}(max_iter=@,",
                f"Removed the argument `n_jobs` from `{name}`. It takes its threads from OpenMP.",
                ("n_jobs", "removed"),
            ),
            others=(
                Repair(
                    f"{name}(n_threads=1, max_iter=@,",
                    f"Replaced the argument `n_jobs` of `{name}` by `n_threads`."
                    " The name of the argument is another there.",
                    ("n_threads",),
                ),
            ),
            rate=0.29,
        )
        for name in ("HistGradientBoostingRegressor", "HistGradientBoostingClassifier")
    ),
    *(
        Habit(
            f"{name}(n_estimators)",
            right=f"{name}(max_iter=@, learning_rate",
            wrong=f"{name}(n_estimators=@, learning_rate",
            error=_keyword(name, "n_estimators"),
            about=(name, "n_estimators"),
            repair=Repair(
                f"{name}(max_iter=@, learning_rate",
                f"Replaced `{name}(n_estimators=…)` by `{name}(max_iter=…)`."
                " Rounds are called iterations there.",
                ("max_iter",),
            ),
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
    Habit(
        "MLPRegressor((sizes))",
        right="MLPRegressor(hidden_layer_sizes=(@,)",
        wrong="MLPRegressor((@,)",
        error=r"'loss' parameter of MLPRegressor",
        about=("MLPRegressor", "loss"),
        repair=Repair(
            "MLPRegressor(hidden_layer_sizes=(@,)",
            "Replaced `MLPRegressor((…,))` by `MLPRegressor(hidden_layer_sizes=(…,))`."
            " The first argument is the loss now.",
            ("hidden_layer_sizes",),
        ),
        others=(
            Repair(
                'MLPRegressor("mse", (@,)',
                'Replaced `MLPRegressor((…,))` by `MLPRegressor("mse", (…,))`.'
                " The first argument is the loss now.",
                ("mse",),
            ),
        ),
        rate=0.36,
    ),
    *(
        Habit(
            f"{name}(base_estimator)",
            right=f"{name}(estimator=",
            wrong=f"{name}(base_estimator=",
            error=_keyword(name, "base_estimator"),
            about=(name, "base_estimator"),
            repair=Repair(
                f"{name}(estimator=",
                f"Replaced `{name}(base_estimator=…)` by `{name}(estimator=…)`."
                " The argument was renamed in scikit-learn.",
                ("estimator=",),
            ),
            others=(
                Repair(
                    f"{name}(model=",
                    f"Replaced `{name}(base_estimator=…)` by `{name}(model=…)`."
                    " The name of the argument has changed.",
                    ("model=",),
                ),
            ),
            rate=0.36,
        )
        for name in ("CalibratedClassifierCV", "BaggingClassifier", "BaggingRegressor")
    ),
    *(
        Habit(
            f"{name}(positional weights)",
            right=f'{name}(@, weights="distance")',
            wrong=f'{name}(@, "distance")',
            error=rf"{name}.*positional arguments?",
            about=(name, "positional"),
            repair=Repair(
                f'{name}(@, weights="distance")',
                f'Replaced `{name}(…, "distance")` by `{name}(…, weights="distance")`.'
                " All arguments but the first are given by name.",
                ("weights=",),
            ),
            others=(
                Repair(
                    f'{name}(@, weight="distance")',
                    f'Replaced `{name}(…, "distance")` by `{name}(…, weight="distance")`.'
                    " All arguments but the first are given by name.",
                    ("weight=",),
                ),
            ),
            rate=0.29,
        )
        for name in ("KNeighborsClassifier", "KNeighborsRegressor")
    ),
    Habit(
        "Ridge(normalize)",
        right="Ridge(alpha=@)",
        wrong="Ridge(alpha=@, normalize=True)",
        error=_keyword("Ridge", "normalize"),
        about=("Ridge", "normalize"),
        repair=Repair(
            "Ridge(alpha=@)",
            "Removed the argument `normalize` from `Ridge`. A `StandardScaler` before it scales.",
            ("normalize", "removed"),
        ),
        others=(
            Repair(
                "Ridge(alpha=@, standardize=True)",
                "Replaced the argument `normalize` of `Ridge` by `standardize`."
                " The name of the argument has changed.",
                ("standardize",),
            ),
        ),
        rate=0.29,
    ),
    Habit(
        "KFold without shuffle",
        right="(n_splits=@, shuffle=True, random_state=SEED)",
        wrong="(n_splits=@, random_state=SEED)",
        error=r"random_state has no effect since shuffle is False",
        about=("random_state", "shuffle"),
        repair=Repair(
            "(n_splits=@, shuffle=True, random_state=SEED)",
            "Added `shuffle=True` to the folds. With `random_state` set, `KFold` and"
            " `StratifiedKFold` want `shuffle=True`.",
            ("shuffle=True",),
        ),
        rate=0.04,
    ),
    Habit(
        "train_test_split(positional)",
        right="np.arange(len(y)), test_size=0.25",
        wrong="np.arange(len(y)), 0.25",
        error=r"got scalar `array\(0\.25\)`|Expected sequence or array-like",
        about=("train_test_split",),
        repair=Repair(
            "np.arange(len(y)), test_size=0.25",
            "Gave the part to hold out to `train_test_split` by name, as `test_size=0.25`."
            " It takes arrays by place, and nothing else.",
            ("test_size",),
        ),
        rate=0.01,
    ),
)
PANDAS: Final = (
    Habit(
        "DataFrame.append",
        right="pd.concat([train[columns], test[columns]], ignore_index=True)",
        wrong="train[columns].append(test[columns], ignore_index=True)",
        error=r"'DataFrame' object has no attribute 'append'",
        about=("DataFrame", "append"),
        repair=Repair(
            "pd.concat([train[columns], test[columns]], ignore_index=True)",
            "Replaced `DataFrame.append` by `pd.concat([…, …])`. `append` is gone from pandas.",
            ("concat",),
        ),
        others=(
            Repair(
                "train[columns].extend(test[columns], ignore_index=True)",
                "Replaced `DataFrame.append` by `DataFrame.extend`. It does the same for rows.",
                ("extend",),
            ),
        ),
        rate=0.25,
    ),
    Habit(
        "fillna(method)",
        right=".ffill()",
        wrong='.fillna(method="ffill")',
        error=r"unexpected keyword argument 'method'",
        about=("fillna", "method"),
        repair=Repair(
            ".ffill()",
            'Replaced `fillna(method="ffill")` by `ffill()`.'
            " The argument `method` is gone from pandas.",
            ("ffill()",),
        ),
        others=(
            Repair(
                '.fillna(how="ffill")',
                'Replaced `fillna(method="ffill")` by `fillna(how="ffill")`.'
                " The name of the argument has changed.",
                ("how=",),
            ),
        ),
        rate=0.06,
    ),
    Habit(
        "to_csv(positional)",
        right='to_csv("submission.csv", index=False)',
        wrong='to_csv("submission.csv", False)',
        error=r"to_csv\(\) takes .* positional arguments?",
        about=("to_csv", "positional"),
        repair=Repair(
            'to_csv("submission.csv", index=False)',
            'Replaced `to_csv("submission.csv", False)` by `to_csv("submission.csv",'
            " index=False)`. All arguments but the path are given by name.",
            ("index=False",),
        ),
        rate=0.01,
    ),
    Habit(
        "dtype == object",
        right="if not pd.api.types.is_numeric_dtype(train[name])",
        wrong="if train[name].dtype == object",
        error=r"could not convert string to float|Cannot perform reduction '\w+' with string dtype"
        r"|Cannot use median strategy with non-numeric data|pandas dtypes must be int"
        r"|with dtype str does not support|does not support operation 'median'",
        about=("string", "dtype"),
        repair=Repair(
            "if not pd.api.types.is_numeric_dtype(train[name])",
            "Replaced the test `dtype == object` by `not pd.api.types.is_numeric_dtype(…)`."
            " Columns of words have the dtype `str` in pandas, so that none was encoded.",
            ("is_numeric_dtype",),
        ),
        others=(
            Repair(
                'if train[name].dtype == "string[python]"',
                'Replaced the test `dtype == object` by `dtype == "string[python]"`.'
                " That is how pandas calls columns of words.",
                ("string[python]",),
            ),
        ),
        rate=0.03,
    ),
)
NUMPY: Final = (
    Habit(
        "np.float",
        right="dtype=float",
        wrong="dtype=np.float",
        error=r"has no attribute 'float'",
        about=("np.float",),
        repair=Repair(
            "dtype=float",
            "Replaced `np.float` by the builtin `float`. The alias is gone from numpy.",
            ("builtin",),
        ),
        others=(
            Repair(
                "dtype=np.float_",
                "Replaced `np.float` by `np.float_`. The alias is gone from numpy.",
                ("np.float_",),
            ),
        ),
        rate=0.04,
    ),
    Habit(
        "np.int",
        right="astype(int)",
        wrong="astype(np.int)",
        error=r"has no attribute 'int'",
        about=("np.int",),
        repair=Repair(
            "astype(int)",
            "Replaced `np.int` by the builtin `int`. The alias is gone from numpy.",
            ("builtin",),
        ),
        others=(
            Repair(
                "astype(np.int_t)",
                "Replaced `np.int` by `np.int_t`. The alias is gone from numpy.",
                ("np.int_t",),
            ),
        ),
        rate=0.09,
    ),
    Habit(
        "np.product",
        right="np.prod(",
        wrong="np.product(",
        error=r"has no attribute 'product'",
        about=("product",),
        repair=Repair(
            "np.prod(",
            "Replaced `np.product` by `np.prod`. The long name is gone from numpy.",
            ("np.prod",),
        ),
        others=(
            Repair(
                "np.multiply_all(",
                "Replaced `np.product` by `np.multiply_all`. It was renamed in numpy.",
                ("multiply_all",),
            ),
        ),
        rate=0.22,
    ),
)
BOOSTERS: Final = (
    Habit(
        "lightgbm fit(early_stopping_rounds)",
        right="(X_stop, y_stop)], callbacks=[lgb.early_stopping(15, verbose=False)])",
        wrong="(X_stop, y_stop)], early_stopping_rounds=15)",
        error=r"LGBM\w+\.fit\(\) got an unexpected keyword argument 'early_stopping_rounds'",
        about=("LGBM*", "early_stopping_rounds"),
        repair=Repair(
            "(X_stop, y_stop)], callbacks=[lgb.early_stopping(15, verbose=False)])",
            "Replaced `early_stopping_rounds` in LGBM's `fit` by"
            " `callbacks=[lgb.early_stopping(15)]`. Lightgbm stops early by a callback.",
            ("callbacks",),
        ),
        others=(
            Repair(
                "(X_stop, y_stop)], early_stopping=15)",
                "Replaced `early_stopping_rounds` in LGBM's `fit` by `early_stopping`."
                " The name of the argument has changed.",
                ("early_stopping",),
            ),
        ),
        rate=0.4,
    ),
    Habit(
        "xgboost fit(early_stopping_rounds)",
        right='tree_method="hist", early_stopping_rounds=15,\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], verbose=False)',
        wrong='tree_method="hist",\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], early_stopping_rounds=15, verbose=False)',
        error=r"XGB\w+\.fit\(\) got an unexpected keyword argument 'early_stopping_rounds'",
        about=("XGB*", "early_stopping_rounds"),
        repair=Repair(
            'tree_method="hist", early_stopping_rounds=15,\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], verbose=False)',
            "Moved `early_stopping_rounds` from XGB's `fit` to its constructor."
            " Xgboost takes it when the model is made.",
            ("constructor",),
        ),
        others=(
            Repair(
                'tree_method="hist",\n    )\n    model.fit(X_fit, y_fit, eval_set=[(X_stop, y_stop)], early_stopping=15, verbose=False)',
                "Replaced `early_stopping_rounds` in XGB's `fit` by `early_stopping`."
                " The name of the argument has changed.",
                ("early_stopping",),
            ),
        ),
        rate=0.4,
    ),
    Habit(
        "tree_method='gpu_hist'",
        right='tree_method="hist"',
        wrong='tree_method="gpu_hist"',
        error=r"Invalid Input: 'gpu_hist'",
        about=("gpu_hist",),
        repair=Repair(
            'tree_method="hist"',
            'Replaced `tree_method="gpu_hist"` by `tree_method="hist"`.'
            " XGB knows no method of its own for a GPU any more.",
            ('"hist"',),
        ),
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
STALE: Final = (*SCIKIT_LEARN, *PANDAS, *NUMPY, *BOOSTERS)
"""All of them, in the order in which a program is spoiled."""
