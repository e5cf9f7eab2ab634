"""Graphics processors: what a container asks of its engine."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from langgraft._core.errors import InputError

if TYPE_CHECKING:
    from docker.types import DeviceRequest

Gpus = Literal["all"] | int | Sequence[str]
"""All of them, how many, or which (indices or UUIDs)."""


def check_gpus(gpus: Gpus | None) -> "Literal['all'] | int | tuple[str, ...] | None":
    """Return `gpus` in one form.

    Raises:
        InputError: They are none of the ways to name GPUs.
    """
    if gpus is None or gpus == "all":
        return gpus
    if isinstance(gpus, int) and not isinstance(gpus, bool) and gpus > 0:
        return gpus
    # A text would fall apart into letters.
    names = () if isinstance(gpus, int | str) else tuple(gpus)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"gpus is {gpus!r}: give 'all', how many, or a list of their ids")
    return names


def device_requests(gpus: Literal["all"] | int | tuple[str, ...]) -> "list[DeviceRequest]":
    """Return the request for the GPUs."""
    from docker.types import DeviceRequest  # noqa: PLC0415  (slow)

    kind = [["gpu"]]
    if isinstance(gpus, tuple):
        return [DeviceRequest(device_ids=list(gpus), capabilities=kind)]
    return [DeviceRequest(count=-1 if gpus == "all" else gpus, capabilities=kind)]
