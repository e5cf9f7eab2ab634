"""One sandbox for each competition, shared by the searches of a process."""

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.file_digests import FileDigests
from langgraft.benchmarks.mle.agents.settings import AgentSettings
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.environments.competitions.attempts import INPUT, WEIGHTS
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.image.packages import (
    PACKAGES_LABEL,
    installed_packages,
    read_label,
    shipped_packages,
)
from langgraft.environments.sandboxes.sandbox import (
    Closing,
    ExecutionResult,
    Job,
    Kernel,
    Limits,
    Sandbox,
)

EXECUTIONS = "executions.sqlite"
"""File of the plan's shared folder that keeps what came of programs."""


@dataclass(slots=True)
class _Shared:
    sandbox: CachedSandbox
    users: int = 0


class Sandboxes:
    """Opens a sandbox when it is first wanted, and closes it when nobody uses it any more.

    All sandboxes of a folder keep results in one file there: a program that another search ran on
    the same data, in the same image, under the same limits, is not run again.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, ...], _Shared] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> "tuple[type[Sandboxes], tuple[()]]":
        """In another process they are opened there; results are kept in the same files."""
        return Sandboxes, ()

    def borrow(
        self, plan: MlePlan, agent: AgentSettings, competition: Competition, folder: Path
    ) -> "Borrowed":
        """Return the sandbox for a competition's programs; give it back with `release`.

        Args:
            plan: Names the kind of sandbox and its limits.
            agent: Whose programs they are; may have limits of its own.
            competition: Its public data is what programs find in `./input`.
            folder: Where results are kept; made where it is not there.

        Raises:
            InputError: The data is not there, or cannot be read by programs.
        """
        limits = plan.limits_of(agent)
        below = (plan.sandbox, plan.image, str(limits), str(plan.gpus), str(plan.weights))
        key = (*below, str(competition.input_dir), str(folder))
        with self._lock:
            shared = self._open.get(key)
            if shared is None:
                made = make_sandbox(plan, limits, competition)
                shared = self._open[key] = _Shared(CachedSandbox(made, folder / EXECUTIONS))
            shared.users += 1
        return Borrowed(self, key, shared.sandbox)

    def give_back(self, key: tuple[str, ...]) -> None:
        """Count one user less, and close the sandbox after the last one."""
        with self._lock:
            shared = self._open[key]
            shared.users -= 1
            if shared.users:
                return
            del self._open[key]
        shared.sandbox.close()

    def __len__(self) -> int:
        """Return how many are open."""
        return len(self._open)


class Borrowed:
    """A sandbox that others may be using, too."""

    def __init__(self, owner: Sandboxes, key: tuple[str, ...], sandbox: Sandbox) -> None:
        self._owner = owner
        self._key: tuple[str, ...] | None = key
        self.sandbox = sandbox

    def release(self) -> None:
        """Give it back; only the first call counts."""
        key, self._key = self._key, None
        if key is not None:
            self._owner.give_back(key)


class Lent(Closing):
    """A sandbox as one run has it: when the run ends, however it does, its kernels are closed.

    A run that fails leaves a live workspace behind, and the sandbox may be others' for hours.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._kernels: list[Kernel] = []
        self.limits = sandbox.limits

    @property
    def digest(self) -> str:
        """What else decides a result: that of the sandbox itself."""
        return self._sandbox.digest

    def run(self, job: Job) -> ExecutionResult:
        """Run a program in the sandbox."""
        return self._sandbox.run(job)

    async def arun(self, job: Job) -> ExecutionResult:
        """Do what `run` does."""
        return await self._sandbox.arun(job)

    def kernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Open a kernel in the sandbox."""
        kernel = self._sandbox.kernel(preload=preload, files=files)
        self._kernels.append(kernel)
        return kernel

    async def akernel(
        self, *, preload: Sequence[str] = (), files: Mapping[str, bytes | Path] | None = None
    ) -> Kernel:
        """Do what `kernel` does."""
        kernel = await self._sandbox.akernel(preload=preload, files=files)
        self._kernels.append(kernel)
        return kernel

    def close(self) -> None:
        """Close the kernels, and leave the sandbox to its owner."""
        while self._kernels:
            self._kernels.pop().close()

    async def aclose(self) -> None:
        """Do what `close` does."""
        await asyncio.to_thread(self.close)


def make_sandbox(plan: MlePlan, limits: Limits, competition: Competition | None) -> Sandbox:
    """Make a sandbox with a competition's public data in `./input`, and weights where there are any.

    Raises:
        InputError: The data is not there, or cannot be read by programs.
    """
    from langgraft.environments.sandboxes.docker import DockerSandbox  # noqa: PLC0415
    from langgraft.environments.sandboxes.docker.controls import WORKSPACE  # noqa: PLC0415
    from langgraft.environments.sandboxes.subprocess import SubprocessSandbox  # noqa: PLC0415

    inputs = {} if competition is None else {INPUT: competition.input_dir}
    environment: Mapping[str, str] = {}
    if plan.weights is not None:
        inputs[WEIGHTS] = plan.weights.absolute()
        place = f"{WORKSPACE}/{WEIGHTS}" if plan.sandbox == "docker" else str(inputs[WEIGHTS])
        environment = weights_environment(place)
    if plan.sandbox == "subprocess":
        return SubprocessSandbox(limits, inputs=inputs, environment=environment)
    return DockerSandbox(
        plan.image, limits=limits, inputs=inputs, environment=environment, gpus=plan.gpus
    )


_HUB: Final = "huggingface/hub"
_CHECKPOINTS: Final = "torch/hub/checkpoints"
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)


def weights_in(folder: Path) -> tuple[str, ...]:
    """Return the names of the weights that a folder holds, in order.

        <folder>/huggingface/hub/models--<owner>--<name>/    as `HF_HOME` holds what was downloaded
        <folder>/torch/hub/checkpoints/<file>                as `TORCH_HOME` does

    A repository of Hugging Face is called as programs ask for it (`timm/resnet50.a1_in1k`), a
    checkpoint of torch by its file.

    Raises:
        InputError: The folder is not there, or holds no weights where programs would look.
    """
    if not folder.is_dir():
        msg = f"weights: {folder} is no folder"
        raise InputError(msg)
    found = tuple(sorted(each for each in _names(folder) if _NAME.fullmatch(each)))
    if not found:
        msg = (
            f"weights: {folder} holds none where programs look for them: fill {_HUB} (HF_HOME="
            f"{folder}/huggingface) or {_CHECKPOINTS} (TORCH_HOME={folder}/torch) by loading them once"
        )
        raise InputError(msg)
    return found


def weights_environment(place: str) -> Mapping[str, str]:
    """Return the variables by which libraries find weights.

    Args:
        place: Path of the folder as programs see it, absolute.
    """
    return {
        "HF_HOME": f"{place}/huggingface",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        # What these are for is written, and the folder cannot be written to.
        "HF_MODULES_CACHE": "/tmp/huggingface/modules",  # noqa: S108 - inside the sandbox
        "HF_DATASETS_CACHE": "/tmp/huggingface/datasets",  # noqa: S108
        "TORCH_HOME": f"{place}/torch",
    }


def _names(folder: Path) -> Iterator[str]:
    for each in (folder / _HUB).glob("models--*"):
        if any((each / "snapshots").glob("*/*")):
            yield each.name.removeprefix("models--").replace("--", "/", 1)
    for each in (folder / _CHECKPOINTS).glob("*"):
        if each.is_file():
            yield each.name


def weights_of(plan: MlePlan) -> tuple[str, ...]:
    """Return the names of the weights that programs of a plan find.

    Raises:
        InputError: The folder is not there, or holds none.
    """
    return () if plan.weights is None else weights_in(plan.weights)


def weights_fingerprint(plan: MlePlan) -> JSON:
    """Return the names of a plan's weights, and a digest of all that lies in their folder.

    Raises:
        InputError: The folder is not there, or holds none.
    """
    from langgraft.environments.sandboxes.docker.controls import inputs_digest  # noqa: PLC0415

    names: list[JSON] = [*weights_of(plan)]
    assert plan.weights is not None
    with FileDigests() as digests:
        return {"names": names, "digest": inputs_digest({WEIGHTS: plan.weights}, digests)}


def labelled_packages(plan: MlePlan) -> tuple[str, ...] | None:
    """Return the packages that agents are told of, as far as that is known without running anything.

    Returns:
        Those of the plan, or else those of its image's label; `None` where it has none.

    Raises:
        SandboxUnavailableError: There is no engine or image to look at.
    """
    from langgraft.environments.sandboxes.docker import engine  # noqa: PLC0415  (slow)

    if plan.packages is not None:
        return plan.packages
    if plan.sandbox != "docker":
        return shipped_packages()
    client = engine.connect()
    try:
        return read_label(engine.image_label(client.api, plan.image, PACKAGES_LABEL))
    finally:
        client.close()


def packages_of(plan: MlePlan, sandbox: Sandbox) -> tuple[str, ...]:
    """Return the packages that agents are told of; an image without a label is asked.

    Args:
        plan: May name them.
        sandbox: Of the plan; where it keeps results, it asks an image once.

    Raises:
        InputError: The image does not say what it has.
        SandboxUnavailableError: There is no engine or image.
        SandboxFailureError: The engine or container died.
    """
    known = labelled_packages(plan)
    return installed_packages(sandbox) if known is None else known


def check_engine_and_image(image: str) -> str:
    """Return the digest of an image, of the engine that would run it.

    Raises:
        SandboxUnavailableError: There is no engine or image, or it cannot hold the limits.
    """
    from langgraft.environments.sandboxes.docker import engine  # noqa: PLC0415  (slow)

    client = engine.connect()
    try:
        engine.check_engine(client.api)
        return engine.image_id(client.api, image)
    finally:
        client.close()
