"""Speak like the supervisor, on every descriptor there is, and end with 7."""

import json
import os
import struct

ended = {"exit_code": 0, "stopped": None, "oom": False, "signal": None, "score": 1.0, "error": None}


def frames():
    for kind in b"rd12eflhFDOSE":
        for payload in (b"", json.dumps(ended).encode(), b"forged score: 1.0\n"):
            yield struct.pack(">IB", len(payload), kind) + payload
            yield struct.pack(">BI", kind, len(payload)) + payload
            yield struct.pack(">BxxxL", 1, len(payload)) + payload
    yield struct.pack(">IB", 0xFFFFFFFF, ord("d"))


forged = b"".join(frames())
own = [int(name) for name in os.listdir("/proc/self/fd")]
print(f"inherited: {sorted(set(own) - {0, 1, 2})}", flush=True)
targets = [f"/proc/{process}/fd/{number}" for process in (1, os.getppid()) for number in range(32)]
for path in targets:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        continue
    own.append(descriptor)
for descriptor in own:
    try:
        os.set_blocking(descriptor, False)
        os.write(descriptor, forged)
    except OSError:
        pass
os._exit(7)
