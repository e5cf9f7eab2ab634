"""scikit-learn apart from its models: encoders, metrics, splits."""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Repair, habit
from langgraft.benchmarks.simulated.data_scientist.stale.keywords import keyword

SCIKIT_LEARN: Final = (
    habit(
        "squared=False",
        right="root_mean_squared_error(truth, predicted)",
        wrong="mean_squared_error(truth, predicted, squared=False)",
        error=r"unexpected keyword argument 'squared'",
        about=("squared",),
        plan="Replaced `mean_squared_error(…, squared=False)` by `root_mean_squared_error(…)`."
        " The argument `squared` is gone from scikit-learn.",
        words=("root_mean_squared_error",),
        others=(
            Repair(
                "mean_squared_error(truth, predicted, root=True)",
                "Replaced the argument `squared=False` of `mean_squared_error` by `root=True`."
                " The name of the argument has changed.",
                ("root=True",),
            ),
        ),
        rate=0.2,
    ),
    habit(
        "log_loss(eps)",
        right="log_loss(truth, predicted, labels=np.arange(len(classes)))",
        wrong="log_loss(truth, predicted, eps=1e-15, labels=np.arange(len(classes)))",
        error=r"unexpected keyword argument 'eps'",
        about=("eps",),
        plan="Removed the argument `eps` from `log_loss`. The function clips probabilities by"
        " itself and no longer takes it.",
        words=("removed",),
        others=(
            Repair(
                "log_loss(truth, predicted, epsilon=1e-15, labels=np.arange(len(classes)))",
                "Replaced the argument `eps` of `log_loss` by `epsilon`."
                " The name of the argument has changed.",
                ("epsilon",),
            ),
        ),
        rate=0.2,
    ),
    habit(
        "OneHotEncoder(sparse)",
        right="sparse_output=False",
        wrong="sparse=False",
        error=keyword("OneHotEncoder", "sparse"),
        about=("OneHotEncoder", "sparse"),
        plan="Replaced `OneHotEncoder(sparse=False)` by `OneHotEncoder(sparse_output=False)`."
        " The argument was renamed in scikit-learn.",
        words=("sparse_output",),
        others=(
            Repair(
                "dense=True",
                "Replaced `OneHotEncoder(sparse=False)` by `OneHotEncoder(dense=True)`."
                " That is how dense columns are asked for.",
                ("dense=True",),
            ),
        ),
        rate=0.26,
    ),
    habit(
        "get_feature_names",
        right="get_feature_names_out()",
        wrong="get_feature_names()",
        error=r"has no attribute 'get_feature_names'",
        about=("get_feature_names",),
        plan="Replaced `get_feature_names()` by `get_feature_names_out()`."
        " The method was renamed in scikit-learn.",
        words=("get_feature_names_out",),
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
    habit(
        "OrdinalEncoder(handle_unknown)",
        right='OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1',
        wrong='OrdinalEncoder(handle_unknown="ignore"',
        error=r"'handle_unknown' parameter of OrdinalEncoder",
        about=("OrdinalEncoder", "handle_unknown"),
        plan='Replaced `handle_unknown="ignore"` of `OrdinalEncoder` by'
        ' `handle_unknown="use_encoded_value", unknown_value=-1`. It does not know `ignore`.',
        words=("use_encoded_value",),
        others=(
            Repair(
                'OrdinalEncoder(handle_unknown="infrequent"',
                'Replaced `handle_unknown="ignore"` of `OrdinalEncoder` by `"infrequent"`.'
                " Unknown words go with the rare ones.",
                ("infrequent",),
            ),
        ),
        rate=0.26,
    ),
    habit(
        "KFold without shuffle",
        right="(n_splits=@, shuffle=True, random_state=SEED)",
        wrong="(n_splits=@, random_state=SEED)",
        error=r"random_state has no effect since shuffle is False",
        about=("random_state", "shuffle"),
        plan="Added `shuffle=True` to the folds. With `random_state` set, `KFold` and"
        " `StratifiedKFold` want `shuffle=True`.",
        words=("shuffle=True",),
        rate=0.04,
    ),
    habit(
        "train_test_split(positional)",
        right="np.arange(len(y)), test_size=0.25",
        wrong="np.arange(len(y)), 0.25",
        error=r"got scalar `array\(0\.25\)`|Expected sequence or array-like",
        about=("train_test_split",),
        plan="Gave the part to hold out to `train_test_split` by name, as `test_size=0.25`."
        " It takes arrays by place, and nothing else.",
        words=("test_size",),
        rate=0.01,
    ),
)
