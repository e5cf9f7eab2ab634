"""Features of small gray pictures."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Floats = NDArray[np.float64]
"""Pictures: picture, row, column, from 0 to 255; or features: picture, feature."""


def flat(pictures: Floats) -> Floats:
    """Return pixels, from 0 to 1."""
    return pictures.reshape(len(pictures), -1) / 255


def pooled(pictures: Floats, side: int = 2) -> Floats:
    """Return means of squares of pixels."""
    count, height, width = pictures.shape
    cells = pictures.reshape(count, height // side, side, width // side, side)
    return flat(cells.mean(axis=(2, 4)))


def smooth(pictures: Floats, deviation: float = 1.0) -> Floats:
    """Return pictures blurred."""
    return np.asarray(ndimage.gaussian_filter(pictures, (0, deviation, deviation)))


def moved(pictures: Floats, down: int, right: int) -> Floats:
    """Return pictures moved by whole pixels; edges go on."""
    return np.asarray(ndimage.shift(pictures, (0, down, right), order=0, mode="nearest"))


def turned(pictures: Floats, degrees: float) -> Floats:
    """Return pictures turned; edges go on."""
    return np.asarray(
        ndimage.rotate(pictures, degrees, axes=(1, 2), reshape=False, order=1, mode="nearest")
    )


def gradients(pictures: Floats, cell: int = 4, directions: int = 8) -> Floats:
    """Return how strong edges are by direction and cell, each picture scaled to length 1."""
    down, right = np.gradient(smooth(pictures, 0.8), axis=(1, 2))
    strength = np.hypot(down, right)
    bins = ((np.arctan2(down, right) / (2 * np.pi) + 0.5) * directions).astype(int) % directions
    count, height, width = pictures.shape
    maps = (bins[..., None] == np.arange(directions)) * strength[..., None]
    cells = maps.reshape(count, height // cell, cell, width // cell, cell, directions)
    found = np.sqrt(cells.sum(axis=(2, 4)).reshape(count, -1))
    scaled: Floats = found / np.linalg.norm(found, axis=1, keepdims=True)
    return scaled


def spectrum(pictures: Floats, highest: int = 9) -> Floats:
    """Return the logarithm of the power at low frequencies of either direction."""
    power = _power(pictures)
    low = [*range(-highest, highest + 1)]
    return np.log1p(power[:, low, :highest]).reshape(len(pictures), -1)


def rings(pictures: Floats) -> Floats:
    """Return the logarithm of the mean power by frequency, whatever the direction."""
    power = _power(pictures)
    height, width = power.shape[1:]
    rows, columns = np.fft.fftfreq(height) * height, np.fft.fftfreq(width) * width
    radius = np.rint(np.hypot(rows[:, None], columns[None, :])).astype(int)
    means = [power[:, radius == ring].mean(axis=1) for ring in range(1, height // 2 + 3)]
    return np.asarray(np.log1p(np.column_stack(means)))


def moments(pictures: Floats) -> Floats:
    """Return spread, skewness, kurtosis and quantiles of shades, smoothed by several degrees."""
    columns = []
    for deviation in (0.7, 1.2, 2.0):
        shades = smooth(pictures, deviation).reshape(len(pictures), -1)
        centered = shades - shades.mean(axis=1, keepdims=True)
        spread = centered.std(axis=1)
        scaled = centered / spread[:, None]
        columns += [spread, (scaled**3).mean(axis=1), (scaled**4).mean(axis=1)]
        columns += list(np.quantile(scaled, (0.02, 0.1, 0.9, 0.98), axis=1))
    return np.column_stack(columns)


def edges(pictures: Floats) -> Floats:
    """Return quantiles of the strength of edges, and how much they agree in direction."""
    columns = []
    for deviation in (1.0, 1.8):
        down, right = np.gradient(smooth(pictures, deviation), axis=(1, 2))
        strength = np.hypot(down, right).reshape(len(pictures), -1)
        columns += list(np.quantile(strength, (0.25, 0.5, 0.75, 0.95), axis=1))
        across = (right**2 - down**2).mean(axis=(1, 2))
        slanted = 2 * (down * right).mean(axis=(1, 2))
        columns.append(np.hypot(across, slanted) / (strength**2).mean(axis=1))
    return np.column_stack(columns)


def _power(pictures: Floats) -> Floats:
    centered = pictures - pictures.mean(axis=(1, 2), keepdims=True)
    return np.asarray(np.abs(np.fft.fft2(centered)) ** 2)
