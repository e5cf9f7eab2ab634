"""Teams of the competition `denoising`. Models predict a pixel from those around it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy import ndimage
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from boards.contests import Blend, Contest, Data, Floats, Team, both, read_pictures, read_table

SIDE: Final = 32
BLACK: Final = 0
WHITE: Final = 255


def load(folder: Path) -> Data:
    """Read pictures; labels and truth are pixels, picture by picture, row by row."""
    answers = read_table(folder / "private" / "answers.csv")
    public = folder / "public"
    numbers = sorted(int(file.stem) for file in (public / "train").iterdir())
    shown = answers["id"].str.split("_").str[0].astype(int)
    return Data(
        read_pictures(public / "train", numbers),
        read_pictures(public / "test", shown.drop_duplicates().tolist()),
        read_pictures(public / "train_clean", numbers).ravel(),
        answers["value"].to_numpy(dtype=np.float64),
    )


def by_picture(losses: Floats) -> Floats:
    """Return the mean loss of each picture: pixels of one go together."""
    return np.asarray(losses.reshape(-1, SIDE * SIDE).mean(axis=1))


class Filter(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Nothing to learn: what a filter makes of pictures.

    Args:
        column: Which column of the view is the prediction.
    """

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, _shown: Floats, _labels: Floats) -> "Filter":
        """Learn nothing."""
        return self

    def predict(self, shown: Floats) -> Floats:
        """Return the column."""
        return shown[:, self.column]


class Correction(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learns what a filter misses.

    Args:
        model: Learns the difference from features.
        every: It learns from every so-manieth pixel.
    """

    def __init__(self, model: Any, every: int = 1) -> None:
        self.model = model
        self.every = every

    def fit(self, shown: Floats, labels: Floats) -> "Correction":
        """Learn; the first column is the filter's result."""
        rows = slice(None, None, self.every)
        self.model.fit(shown[rows] - shown[rows, :1], labels[rows] - shown[rows, 0])
        return self

    def predict(self, shown: Floats) -> Floats:
        """Correct the filter."""
        return np.asarray(shown[:, 0] + self.model.predict(shown - shown[:, :1]))


def _each(change: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda shown: change(shown).reshape(-1, 1)


def _blurred(deviation: float) -> Callable[[Floats], Floats]:
    return lambda shown: np.asarray(ndimage.gaussian_filter(shown, (0, deviation, deviation)))


def _middle(side: int) -> Callable[[Floats], Floats]:
    return lambda shown: np.asarray(ndimage.median_filter(shown, (1, side, side)))


def _then(first: Callable[[Floats], Floats], second: Callable[[Floats], Floats]) -> Any:
    return lambda shown: second(first(shown))


def _wiener(shown: Floats) -> Floats:
    """Shrink towards the local mean, by how much more it varies than noise does."""
    mean = ndimage.uniform_filter(shown, (0, 5, 5))
    spread = np.maximum(ndimage.uniform_filter(shown**2, (0, 5, 5)) - mean**2, 1e-9)
    keep = np.maximum(spread - 22.0**2, 0) / spread
    return np.asarray(mean + keep * (shown - mean))


def _mended(shown: Floats) -> Floats:
    """Put the local median where pixels are black or white."""
    broken = (shown == BLACK) | (shown == WHITE)
    return np.where(broken, _middle(3)(shown), shown)


def _around(shown: Floats, reach: int) -> Floats:
    """Return the square of pixels around each pixel, itself first."""
    wide = np.pad(shown, ((0, 0), (reach, reach), (reach, reach)), mode="reflect")
    side = 2 * reach + 1
    squares = np.lib.stride_tricks.sliding_window_view(wide, (side, side), axis=(1, 2))
    return squares.reshape(-1, side * side)


def _raw(reach: int) -> Callable[[Floats], Floats]:
    def features(shown: Floats) -> Floats:
        return np.column_stack([shown.ravel(), _around(shown, reach)])

    return features


def _clean(reach: int) -> Callable[[Floats], Floats]:
    def features(shown: Floats) -> Floats:
        mended = _mended(shown)
        first = _blurred(0.8)(mended)
        return np.column_stack([first.ravel(), _around(mended, reach)])

    return features


def _rich(shown: Floats, reach: int = 1) -> Floats:
    mended = _mended(shown)
    filters = [_blurred(0.8), _blurred(1.3), _blurred(2.0), _middle(3), _middle(5), _wiener]
    columns = [change(mended).ravel() for change in filters]
    return np.column_stack([*columns, _middle(3)(shown).ravel(), _around(mended, reach)])


def _pair(make: Callable[[Floats], Floats]) -> Any:
    return lambda data: (make(data.train), make(data.test))


def _filters(**filters: Callable[[Floats], Floats]) -> dict[str, Any]:
    return {name: _pair(_each(change)) for name, change in filters.items()}


def _histograms(**settings: Any) -> Any:
    return HistGradientBoostingRegressor(random_state=0, **settings)


def _network(size: int, rounds: int, every: int) -> Any:
    model = MLPRegressor(
        hidden_layer_sizes=(size,),
        max_iter=rounds,
        batch_size=500,
        learning_rate_init=0.003,
        tol=0.0,
        n_iter_no_change=10_000,
        random_state=0,
    )
    return Correction(make_pipeline(StandardScaler(), _Scaled(model)), every)


class _Scaled(RegressorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Learns targets of a tenth of their size, for networks' sake."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, shown: Floats, labels: Floats) -> "_Scaled":
        self.fitted_ = self.model.fit(shown, labels / 10)
        return self

    def predict(self, shown: Floats) -> Floats:
        return np.asarray(self.fitted_.predict(shown) * 10)


CONTEST: Final = Contest(
    id="denoising",
    metric="rmse",
    load=load,
    units=by_picture,
    views={
        **_filters(
            as_it_is=lambda shown: shown,
            blur_a=_blurred(0.7),
            blur_b=_blurred(1.0),
            blur_c=_blurred(1.5),
            blur_d=_blurred(2.5),
            middle_3=_middle(3),
            middle_5=_middle(5),
            middle_7=_middle(7),
            middle_blur=_then(_middle(3), _blurred(0.7)),
            middle_wide=_then(_middle(3), _blurred(1.2)),
            middle_twice=_then(_middle(3), _middle(3)),
            wiener=_wiener,
            mended=_mended,
            mended_blur=_then(_mended, _blurred(0.8)),
            mended_wide=_then(_mended, _blurred(1.2)),
            mended_wiener=_then(_mended, _wiener),
        ),
        "raw_1": _pair(_raw(1)),
        "raw_2": _pair(_raw(2)),
        "raw_3": _pair(_raw(3)),
        "clean_1": _pair(_clean(1)),
        "clean_2": _pair(_clean(2)),
        "clean_3": _pair(_clean(3)),
        "rich": _pair(_rich),
        "richer": _pair(lambda shown: _rich(shown, 2)),
    },
    teams=(
        *(
            Team(name.replace("_", " "), name, Filter)
            for name in (
                "as_it_is",
                "blur_a",
                "blur_b",
                "blur_c",
                "blur_d",
                "middle_3",
                "middle_5",
                "middle_7",
                "middle_blur",
                "middle_wide",
                "middle_twice",
                "wiener",
                "mended",
                "mended_blur",
                "mended_wide",
                "mended_wiener",
            )
        ),
        *both("raw, 3 by 3, ridge", "raw_1", Ridge),
        *both("raw, 5 by 5, ridge", "raw_2", Ridge),
        Team("raw, 7 by 7, ridge", "raw_3", Ridge),
        Team("raw, 5 by 5, boosting", "raw_2", lambda: Correction(_histograms(max_iter=40), 4)),
        Team("clean, 3 by 3, ridge", "clean_1", lambda: Correction(Ridge())),
        *both("clean, 5 by 5, ridge", "clean_2", lambda: Correction(Ridge())),
        Team("clean, 3 by 3, boosting", "clean_1", lambda: Correction(_histograms(max_iter=40), 3)),
        Team(
            "clean, 5 by 5, boosting",
            "clean_2",
            lambda: Correction(_histograms(max_iter=60, learning_rate=0.15), 2),
        ),
        *both("rich, ridge", "rich", lambda: Correction(Ridge())),
        *both(
            "rich, boosting",
            "rich",
            lambda: Correction(_histograms(max_iter=60, learning_rate=0.15), 2),
        ),
        Team(
            "rich, extra trees",
            "rich",
            lambda: Correction(
                ExtraTreesRegressor(20, min_samples_leaf=8, max_features=0.4, random_state=0), 8
            ),
        ),
        Team("rich, network", "rich", lambda: _network(40, 8, 2)),
        Team("clean, 5 by 5, network", "clean_2", lambda: _network(50, 8, 2)),
        Team("clean, 7 by 7, network", "clean_3", lambda: _network(50, 8, 2)),
    ),
    blends=(
        Blend("boosting and network", ("rich, boosting", "rich, network")),
        Blend("networks", ("rich, network", "clean, 5 by 5, network", "clean, 7 by 7, network")),
        Blend(
            "four together",
            ("rich, boosting", "rich, network", "clean, 5 by 5, network", "clean, 7 by 7, network"),
        ),
    ),
    held_out=Team("richer, ridge", "richer", lambda: Correction(Ridge())),
)
