"""Parts for tables: a target, and columns of numbers and of words."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.data_parts import data_part
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_DATA: Final = """
ID, TARGET = "{id}", "{target}"
train = pd.read_csv("input/{train}")
test = pd.read_csv("input/{test}")
sample = pd.read_csv("input/{sample}")
columns = [name for name in test.columns if name != ID]
words = [name for name in columns if not pd.api.types.is_numeric_dtype(train[name])]
numbers = [name for name in columns if name not in words]
{answers}
print("rows:", len(train), "words:", len(words), "numbers:", len(numbers))
"""
_ONE_HOT: Final = """
encoder = ColumnTransformer([
    ("words", OneHotEncoder(handle_unknown="ignore", sparse_output=False, min_frequency=5), words),
    ("numbers", SimpleImputer(strategy="median"), numbers),
])
X = encoder.fit_transform(train[columns])
X_test = encoder.transform(test[columns])
print("features:", len(encoder.get_feature_names_out()))
"""
_ORDINAL: Final = """
filled, filled_test = train[columns].copy(), test[columns].copy()
middle = train[numbers].median()
filled[numbers], filled_test[numbers] = train[numbers].fillna(middle), test[numbers].fillna(middle)
encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
if words:
    filled[words] = encoder.fit_transform(train[words].astype(str)).astype(object)
    filled_test[words] = encoder.transform(test[words].astype(str)).astype(object)
X, X_test = filled.to_numpy(dtype=float), filled_test.to_numpy(dtype=float)
"""
_DUMMIES: Final = """
together = pd.concat([train[columns], test[columns]], ignore_index=True)
together[numbers] = together[numbers].ffill().fillna(0)
table = pd.get_dummies(together, columns=words, dtype=float)
X = table.to_numpy(dtype=float)[: len(train)]
X_test = table.to_numpy(dtype=float)[len(train) :]
"""
_PRODUCTS: Final = """
together = pd.concat([train[columns], test[columns]], ignore_index=True)
together[numbers] = together[numbers].fillna(together[numbers].median())
plain = pd.get_dummies(together, columns=words, dtype=float).to_numpy(dtype=float)
plain = (plain - plain.mean(axis=0)) / (plain.std(axis=0) + 1e-9)
products = PolynomialFeatures(2, include_bias=False)
both = products.fit_transform(plain[:, :20])
print("products:", len(products.get_feature_names_out()))
X, X_test = both[: len(train)], both[len(train) :]
"""
_CURVES: Final = """
together = pd.concat([train[columns], test[columns]], ignore_index=True)
together[numbers] = together[numbers].ffill().fillna(0)
curves = SplineTransformer(n_knots=5, degree=2, extrapolation="linear")
bent = curves.fit_transform(together[numbers]) if numbers else np.zeros((len(together), 0))
flags = pd.get_dummies(together[words], dtype=float).to_numpy() if words else bent[:, :0]
round_numbers = [name for name in numbers if 3 < together[name].nunique() <= 31]
turns = [2 * np.pi * together[name] / together[name].nunique() for name in round_numbers]
waves = [*map(np.sin, turns), *map(np.cos, turns)]
both = np.column_stack([bent, flags, *waves])
X, X_test = both[: len(train)], both[len(train) :]
"""


def parts_of_tables(task: Task) -> Iterator[Part]:
    """Yield the ways to read a table and to make features of it."""
    yield data_part("a table", _DATA, task)
    yield Part("Features", "one-hot columns", _ONE_HOT, 3)
    yield Part("Features", "ordinal codes", _ORDINAL, 2)
    yield Part("Features", "dummy columns", _DUMMIES, 2)
    yield Part("Features", "products of columns", _PRODUCTS, 1)
    yield Part("Features", "splines and waves", _CURVES, 1)
