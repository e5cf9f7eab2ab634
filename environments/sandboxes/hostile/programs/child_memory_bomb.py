"""Let a child take memory without end, and end well oneself."""

import subprocess
import sys

bomb = "taken = []\nwhile True: taken.append(bytearray(1 << 20))"
print(subprocess.run([sys.executable, "-c", bomb]).returncode)
