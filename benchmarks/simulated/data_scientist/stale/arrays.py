"""pandas and numpy."""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Repair, habit

PANDAS: Final = (
    habit(
        "DataFrame.append",
        right="pd.concat([train[columns], test[columns]], ignore_index=True)",
        wrong="train[columns].append(test[columns], ignore_index=True)",
        error=r"'DataFrame' object has no attribute 'append'",
        about=("DataFrame", "append"),
        plan="Replaced `DataFrame.append` by `pd.concat([…, …])`. `append` is gone from pandas.",
        words=("concat",),
        others=(
            Repair(
                "train[columns].extend(test[columns], ignore_index=True)",
                "Replaced `DataFrame.append` by `DataFrame.extend`. It does the same for rows.",
                ("extend",),
            ),
        ),
        rate=0.22,
    ),
    habit(
        "fillna(method)",
        right=".ffill()",
        wrong='.fillna(method="ffill")',
        error=r"unexpected keyword argument 'method'",
        about=("fillna", "method"),
        plan='Replaced `fillna(method="ffill")` by `ffill()`.'
        " The argument `method` is gone from pandas.",
        words=("ffill()",),
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
    habit(
        "to_csv(positional)",
        right='to_csv("submission.csv", index=False)',
        wrong='to_csv("submission.csv", False)',
        error=r"to_csv\(\) takes .* positional arguments?",
        about=("to_csv", "positional"),
        plan='Replaced `to_csv("submission.csv", False)` by `to_csv("submission.csv",'
        " index=False)`. All arguments but the path are given by name.",
        words=("index=False",),
        rate=0.01,
    ),
    habit(
        "dtype == object",
        right="if not pd.api.types.is_numeric_dtype(train[name])",
        wrong="if train[name].dtype == object",
        error=r"could not convert string to float|Cannot perform reduction '\w+' with string dtype"
        r"|Cannot use median strategy with non-numeric data|pandas dtypes must be int"
        r"|with dtype str does not support|does not support operation 'median'",
        about=("string", "dtype"),
        plan="Replaced the test `dtype == object` by `not pd.api.types.is_numeric_dtype(…)`."
        " Columns of words have the dtype `str` in pandas, so that none was encoded.",
        words=("is_numeric_dtype",),
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
    habit(
        "np.float",
        right="dtype=float",
        wrong="dtype=np.float",
        error=r"has no attribute 'float'",
        about=("np.float",),
        plan="Replaced `np.float` by the builtin `float`. The alias is gone from numpy.",
        words=("builtin",),
        others=(
            Repair(
                "dtype=np.float_",
                "Replaced `np.float` by `np.float_`. The alias is gone from numpy.",
                ("np.float_",),
            ),
        ),
        rate=0.04,
    ),
    habit(
        "np.int",
        right="astype(int)",
        wrong="astype(np.int)",
        error=r"has no attribute 'int'",
        about=("np.int",),
        plan="Replaced `np.int` by the builtin `int`. The alias is gone from numpy.",
        words=("builtin",),
        others=(
            Repair(
                "astype(np.int_t)",
                "Replaced `np.int` by `np.int_t`. The alias is gone from numpy.",
                ("np.int_t",),
            ),
        ),
        rate=0.09,
    ),
    habit(
        "np.product",
        right="np.prod(",
        wrong="np.product(",
        error=r"has no attribute 'product'",
        about=("product",),
        plan="Replaced `np.product` by `np.prod`. The long name is gone from numpy.",
        words=("np.prod",),
        others=(
            Repair(
                "np.multiply_all(",
                "Replaced `np.product` by `np.multiply_all`. It was renamed in numpy.",
                ("multiply_all",),
            ),
        ),
        rate=0.2,
    ),
)
