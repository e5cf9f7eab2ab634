"""GPUs are named in one of three ways."""

from typing import Any

import pytest

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.docker.gpus import check_gpus, device_requests


@pytest.mark.parametrize(
    ("gpus", "count", "ids"),
    [("all", -1, []), (2, 2, []), (["0", "GPU-3faa8c219"], 0, ["0", "GPU-3faa8c219"])],
)
def test_gpus_when_named_then_the_engine_is_asked_for_them(
    gpus: Any, count: int, ids: list[str]
) -> None:
    """All, a number, or some: each becomes the request that Docker's own command makes."""
    checked = check_gpus(gpus)
    assert checked is not None
    (request,) = device_requests(checked)
    assert (request["Count"] or 0, request["DeviceIDs"] or []) == (count, ids)
    assert request["Capabilities"] == [["gpu"]]


@pytest.mark.parametrize("gpus", [0, -1, True, "0", "", [], [""], [0]])
def test_gpus_when_named_otherwise_then_they_are_refused(gpus: Any) -> None:
    """A slip is told before a container is asked for."""
    with pytest.raises(InputError, match="gpus is"):
        check_gpus(gpus)
