"""Print 100 MB that are no text: no UTF-8, zeros, control sequences, no line ends."""

import os
import sys

block = os.urandom(1 << 16) + b"\x00\x1b[2J\x1b]0;owned\x07\xff\xfe\xc3(\xed\xa0\x80\r" * 8
left = 100_000_000
while left:
    left -= sys.stdout.buffer.write(block[:left])
sys.stdout.buffer.flush()
