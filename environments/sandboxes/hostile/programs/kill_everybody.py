"""Kill everything that can be seen, oneself included."""

import os
import signal
import time

if os.fork() == 0:
    time.sleep(600)
os.kill(-1, signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
