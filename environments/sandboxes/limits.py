"""What one program may use."""

from typing import Final

from pydantic import Field

from langgraft._core.settings import Settings

MIB: Final = 1 << 20


class Limits(Settings):
    """The bounds of one program, or of one cell of a kernel. Sizes are bytes."""

    seconds: float = Field(60.0, gt=0, allow_inf_nan=False)
    """Wall clock, from the program's first instruction; then its whole tree is killed."""
    memory: int = Field(2048 * MIB, ge=64 * MIB)
    """Of all processes together; swap is off. What lies in `workspace`, `tmp` and `shm` counts."""
    cpus: float = Field(2.0, gt=0, allow_inf_nan=False)
    """Processors, also as `OMP_NUM_THREADS` and its like (rounded up)."""
    pids: int = Field(256, ge=32)
    """Processes and threads; numeric libraries start a thread for each processor."""
    workspace: int = Field(512 * MIB, ge=MIB)
    """Of the workspace, all files together: beyond it writes fail with `ENOSPC`."""
    tmp: int = Field(256 * MIB, ge=MIB)
    """Of `/tmp`."""
    shm: int = Field(256 * MIB, ge=MIB)
    """Of `/dev/shm`; where it is short, workers die of `SIGBUS`."""
    file: int = Field(512 * MIB, ge=MIB)
    """Of any one file (`RLIMIT_FSIZE`)."""
    open_files: int = Field(4096, ge=64)
    """Open files of one process."""
    output: int = Field(64_000, ge=1000)
    """Kept of each of standard output and standard error: half from the head, half from the tail."""
    flood: int = Field(256 * MIB, ge=1000)
    """Printed in all before the program is stopped."""
    collected: int = Field(64 * MIB, ge=0)
    """Of all files taken out together."""
    collected_files: int = Field(1000, ge=0)
    """How many files are taken out at most."""
