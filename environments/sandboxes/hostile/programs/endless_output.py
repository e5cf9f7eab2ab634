"""Print without end."""

import sys

while True:
    sys.stdout.write("x" * 100_000 + "\n")
