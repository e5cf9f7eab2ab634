"""Send the first process every signal there is, without end, from all sides."""

import os
import signal

for _ in range(3):
    os.fork()
while True:
    for number in signal.valid_signals():
        try:
            os.kill(1, number)
        except OSError:
            pass
