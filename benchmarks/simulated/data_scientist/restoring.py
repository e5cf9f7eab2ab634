"""Parts for pictures that are to become others: every pixel is a number to be predicted."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.data_parts import data_part
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_DATA: Final = """
ID, TARGET = "{id}", "{target}"
sample = pd.read_csv("input/{sample}")
names = sorted(path.stem for path in Path("input/{pictures}").glob("*.{ending}"))
new_names = sorted(path.stem for path in Path("input/{new}").glob("*.{ending}"))


def read(folder, names):
    opened = (Image.open(f"input/{{folder}}/{{name}}.{ending}").convert("L") for name in names)
    return np.stack([np.asarray(each, dtype=float) for each in opened])


noisy, clean, new = read("{pictures}", names), read("{clean}", names), read("{new}", new_names)
y = clean.reshape(len(clean), -1)
print("pictures:", len(noisy), "pixels of each:", np.prod(noisy.shape[1:]))
"""
_MENDED: Final = """
def mended_of(shown):
    middle = ndimage.median_filter(shown, size=(1, 3, 3))
    return np.where((shown < 4) | (shown > 251), middle, shown)
"""
_WINDOWS: Final = """
def windows_of(shown, reach=$reach):
    padded = np.pad(shown, ((0, 0), (reach, reach), (reach, reach)), mode="reflect")
    height, width = shown.shape[1:]
    steps = range(2 * reach + 1)
    return [padded[:, row : row + height, column : column + width] for row in steps for column in steps]
"""
_RAW: Final = """

def describe(shown):
    columns = [shown, *windows_of(shown)]
    return np.stack(columns, axis=-1).reshape(len(shown), -1, len(columns))
"""
_CLEANED: Final = """

def describe(shown):
    mended = mended_of(shown)
    columns = [mended, *windows_of(mended)]
    return np.stack(columns, axis=-1).reshape(len(shown), -1, len(columns))
"""
_FILTERS: Final = """
def filters_of(shown):
    mended = mended_of(shown)
    soft = [ndimage.gaussian_filter(mended, (0, blur, blur)) for blur in (0.6, 0.9, 1.4, 2.2)]
    middle = [ndimage.median_filter(mended, size=(1, side, side)) for side in (3, 5)]
    slopes = [ndimage.sobel(soft[1], axis=axis) for axis in (1, 2)]
    return [*soft, *middle, *slopes, shown]
"""
_ONLY_FILTERS: Final = """

def describe(shown):
    columns = [mended_of(shown), *filters_of(shown)]
    return np.stack(columns, axis=-1).reshape(len(shown), -1, len(columns))
"""
_RICH: Final = """

def describe(shown):
    mended = mended_of(shown)
    columns = [mended, *filters_of(shown), *windows_of(mended)]
    return np.stack(columns, axis=-1).reshape(len(shown), -1, len(columns))
"""
_FIT: Final = """

X, X_test = describe(noisy), describe(new)


def fit_on(pictures, most=$most):
    features, answers = X[pictures].reshape(-1, X.shape[2]), y[pictures].reshape(-1)
    rows = np.random.default_rng(0).permutation(len(answers))[:most]
    features, base = features[rows] - features[rows, :1], features[rows, 0]
    return fit_model(features, answers[rows] - base)


def restored(model, shown):
    features = shown.reshape(-1, shown.shape[2])
    changes = predict(model, features - features[:, :1])
    return (features[:, 0] + changes).reshape(shown.shape[:2]).clip(0, 255)
"""


def parts_of_restoring(task: Task) -> Iterator[Part]:
    """Yield the ways to read pairs of pictures and to make features of pixels."""
    target, ending = task.outputs[0], task.ending or "png"
    yield data_part("pairs of pictures", _DATA, task, target=target, ending=ending)
    most = {"most": ("6000", "9000")}
    reach = most | {"reach": ("1", "2")}
    yield Part("Features", "windows of pixels", _WINDOWS + _RAW + _FIT, 2, options=reach)
    yield Part(
        "Features",
        "windows of mended pixels",
        f"{_MENDED}\n{_WINDOWS}{_CLEANED}{_FIT}",
        2,
        options=reach,
    )
    yield Part(
        "Features",
        "filters of several widths",
        f"{_MENDED}\n{_FILTERS}{_ONLY_FILTERS}{_FIT}",
        2,
        options=most,
    )
    yield Part(
        "Features",
        "filters and windows",
        f"{_MENDED}\n{_WINDOWS}\n{_FILTERS}{_RICH}{_FIT}",
        1,
        options=reach,
    )
