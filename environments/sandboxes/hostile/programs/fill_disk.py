"""Write until nothing more fits, everywhere."""

import os

from attempts import attempt, done

BLOCK = bytes(1 << 20)


def fill(folder):
    written = 0
    try:
        for number in range(64):
            with open(f"{folder}/filler-{number}", "wb", buffering=0) as stream:
                for _ in range(16):
                    written += stream.write(BLOCK)
    except OSError as error:
        print(f"{folder} holds {written >> 20} MiB: {error.strerror}", flush=True)
        return
    print(f"GOT {written >> 20} MiB in {folder}", flush=True)


for folder in (".", "/tmp", "/dev/shm"):
    fill(folder)

for folder in (
    "/",
    "/bin",
    "/dev",
    "/etc",
    "/home",
    "/opt",
    "/root",
    "/run",
    "/usr",
    "/var",
    "/var/tmp",
):
    attempt(
        f"write to {folder}",
        lambda: os.close(os.open(f"{folder}/hostile", os.O_CREAT | os.O_WRONLY)),
    )
done()
