"""Make files without end, each empty."""

import os

made = 0
folders = 0
try:
    while made < 5_000_000:
        if made % 1000 == 0:
            folder = ("/tmp", "/dev/shm", ".")[folders % 3] + f"/many-{folders}"
            os.mkdir(folder)
            folders += 1
        os.close(os.open(f"{folder}/{made}", os.O_CREAT | os.O_WRONLY))
        made += 1
except OSError as error:
    print(f"{made} files: {error.strerror}")
else:
    print(f"GOT {made} files")
