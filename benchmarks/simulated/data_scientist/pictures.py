"""Parts for pictures with labels."""

from collections.abc import Iterator
from typing import Final

from langgraft.benchmarks.simulated.data_scientist.data_parts import data_part
from langgraft.benchmarks.simulated.data_scientist.parts import Part
from langgraft.benchmarks.simulated.data_scientist.tasks import Task

_DATA: Final = """
ID, TARGET = "{id}", "{target}"
train = pd.read_csv("input/{train}")
sample = pd.read_csv("input/{sample}")
SIZE = ({side}, {side})


def read(folder, names):
    opened = (Image.open(f"input/{{folder}}/{{name}}{ending}").convert("L") for name in names)
    shown = [np.asarray(each.resize(SIZE, Image.LANCZOS), dtype=float) for each in opened]
    return np.stack(shown) / 255


pictures, new_pictures = read("{pictures}", train[ID]), read("{new}", sample[ID])
{answers}
print("pictures:", len(pictures), "pixels of each:", np.prod(pictures.shape[1:]))
"""
_PIXELS: Final = """
def describe(shown):
    return ndimage.gaussian_filter(shown, (0, $blur, $blur)).reshape(len(shown), -1)
"""
_DIRECTIONS: Final = """
def flat(shown):
    return ndimage.gaussian_filter(shown, (0, $blur, $blur)).reshape(len(shown), -1)


reducer = PCA(n_components=$count, random_state=0).fit(flat(pictures))


def describe(shown):
    return reducer.transform(flat(shown))
"""
_EDGES: Final = """
def edges_of(shown, cell=4, bins=8):
    down, right = np.gradient(ndimage.gaussian_filter(shown, (0, $blur, $blur)), axis=(1, 2))
    strength, angle = np.hypot(down, right), np.arctan2(down, right)
    bin_of = np.floor((angle / (2 * np.pi) + 0.5) * bins).astype(int) % bins
    height, width = shown.shape[1] // cell * cell, shown.shape[2] // cell * cell
    made = []
    for number in range(bins):
        part = np.where(bin_of == number, strength, 0)[:, :height, :width]
        cells = part.reshape(len(shown), height // cell, cell, width // cell, cell)
        made.append(cells.sum(axis=(2, 4)).reshape(len(shown), -1))
    found = np.sqrt(np.hstack(made))
    return found / (np.linalg.norm(found, axis=1, keepdims=True) + 1e-9)
"""
_ONLY_EDGES: Final = """

def describe(shown):
    return edges_of(shown)
"""
_REDUCED_EDGES: Final = """

reducer = PCA(n_components=$count, random_state=0).fit(edges_of(pictures))


def describe(shown):
    return reducer.transform(edges_of(shown))
"""
_EDGES_AND_PIXELS: Final = """

def describe(shown):
    pixels = ndimage.gaussian_filter(shown, (0, 1, 1)).reshape(len(shown), -1)
    return np.hstack([edges_of(shown), pixels])
"""
_POWER: Final = """
def power_of(shown):
    centered = shown - shown.mean(axis=(1, 2), keepdims=True)
    power = np.abs(np.fft.fft2(centered)) ** 2
    rows, columns = (np.fft.fftfreq(side) * side for side in shown.shape[1:])
    ring = np.hypot(rows[:, None], columns[None, :]).round().astype(int)
    return np.log1p(np.stack([power[:, ring == r].mean(axis=1) for r in range(1, ring.max())], axis=1))
"""
_ONLY_POWER: Final = """

def describe(shown):
    return power_of(shown)
"""
_SHADES: Final = """
def shades_of(shown):
    columns = []
    for blur in (0.6, 1.2, 2.0):
        soft = ndimage.gaussian_filter(shown, (0, blur, blur))
        flat = soft.reshape(len(shown), -1)
        flat = flat - flat.mean(axis=1, keepdims=True)
        spread = flat.std(axis=1, keepdims=True) + 1e-9
        down, right = np.gradient(soft, axis=(1, 2))
        slope = np.hypot(down, right).reshape(len(shown), -1)
        bent = np.hypot((right**2 - down**2).mean(axis=(1, 2)), 2 * (down * right).mean(axis=(1, 2)))
        columns += [spread[:, 0], ((flat / spread) ** 3).mean(axis=1), ((flat / spread) ** 4).mean(axis=1)]
        columns += [bent / ((slope**2).mean(axis=1) + 1e-9)]
        columns += list(np.quantile(flat / spread, (0.02, 0.1, 0.9, 0.98), axis=1))
        columns += list(np.quantile(slope, (0.25, 0.5, 0.75, 0.95), axis=1))
    return np.stack(columns, axis=1)
"""
_ONLY_SHADES: Final = """

def describe(shown):
    return shades_of(shown)
"""
_POWER_AND_SHADES: Final = """

def describe(shown):
    return np.hstack([power_of(shown), shades_of(shown)])
"""
_AS_THEY_ARE: Final = """

X, X_test = describe(pictures), describe(new_pictures)


def fit_on(rows):
    return fit_model(X[rows], y[rows])
"""
_TURNED: Final = """

X, X_test = describe(pictures), describe(new_pictures)
turned = [
    describe(ndimage.rotate(pictures, angle, axes=(1, 2), reshape=False, order=1, mode="nearest"))
    for angle in (-12, 12)
]


def fit_on(rows):
    features = np.concatenate([X[rows], *(each[rows] for each in turned)])
    return fit_model(features, np.concatenate([y[rows]] * 3))
"""


def parts_of_pictures(task: Task) -> Iterator[Part]:
    """Yield the ways to read pictures and to make features of them."""
    ending = f".{task.ending}" if task.ending else ""
    yield data_part("pictures with labels", _DATA, task, ending=ending)
    blur = {"blur": ("0.6", "0.9")}
    few = blur | {"count": ("25", "40")}
    yield Part("Features", "smoothed pixels", _PIXELS + _AS_THEY_ARE, 2, options=blur)
    yield Part(
        "Features", "principal directions of pixels", _DIRECTIONS + _AS_THEY_ARE, 2, options=few
    )
    yield Part(
        "Features",
        "edges by direction in cells",
        _EDGES + _ONLY_EDGES + _AS_THEY_ARE,
        2,
        options=blur,
    )
    yield Part(
        "Features",
        "principal directions of edges",
        _EDGES + _REDUCED_EDGES + _AS_THEY_ARE,
        1,
        options=few,
    )
    yield Part(
        "Features", "edges and pixels", _EDGES + _EDGES_AND_PIXELS + _AS_THEY_ARE, 1, options=blur
    )
    yield Part(
        "Features",
        "principal directions of pixels, with turned copies",
        _DIRECTIONS + _TURNED,
        0.8,
        options=few,
    )
    yield Part(
        "Features",
        "principal directions of edges, with turned copies",
        _EDGES + _REDUCED_EDGES + _TURNED,
        0.8,
        options=few,
    )
    yield Part("Features", "power by frequency", _POWER + _ONLY_POWER + _AS_THEY_ARE, 1)
    yield Part("Features", "statistics of shades", _SHADES + _ONLY_SHADES + _AS_THEY_ARE, 1)
    yield Part(
        "Features",
        "power and statistics of shades",
        f"{_POWER}\n{_SHADES}{_POWER_AND_SHADES}{_AS_THEY_ARE}",
        1.8,
    )
