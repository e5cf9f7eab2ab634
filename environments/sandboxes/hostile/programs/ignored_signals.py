"""Ignore every signal there is, with children that do the same, and stay."""

import os
import signal
import time

for number in signal.valid_signals():
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
for _ in range(4):
    os.fork()
with open("late.txt", "w") as stream:
    stream.write("written before the end")
print("still here", flush=True)
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
