"""Kill everything that can be seen, oneself included."""

import os
import signal

os.kill(-1, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
