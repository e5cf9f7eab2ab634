"""Open files without end."""

import os

kept = []
while True:
    kept.append(os.open("/dev/null", os.O_RDONLY))
