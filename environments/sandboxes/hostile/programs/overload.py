"""Take more than is given, flood whoever listens, or end as no program should: one of these is called."""

import ctypes
import os
import signal
import subprocess
import sys
import time


def fork_bomb():
    """Double forever."""
    while True:
        try:
            os.fork()
        except OSError:
            pass


def memory_bomb():
    """Take memory without end."""
    taken = []
    while True:
        taken.append(bytearray(1 << 20))


def child_memory_bomb():
    """Let a child take memory without end, and end well oneself."""
    bomb = "taken = []\nwhile True: taken.append(bytearray(1 << 20))"
    print(subprocess.run([sys.executable, "-c", bomb]).returncode)


def many_files():
    """Make files without end, each empty."""
    made = 0
    folders = 0
    try:
        while made < 5_000_000:
            if made % 1000 == 0:
                folder = ("/tmp", "/dev/shm", ".")[folders % 3] + f"/many-{folders}"
                os.mkdir(folder)
                folders += 1
            os.close(os.open(f"{folder}/{made}", os.O_CREAT | os.O_WRONLY))
            made += 1
    except OSError as error:
        print(f"{made} files: {error.strerror}")
    else:
        print(f"GOT {made} files")


def fill_workspace(*, keep=None):
    """Write to the workspace without end: a few megabytes, and a moment's rest."""
    for number in range(100_000):
        name = f"filler-{number}"
        with open(name, "wb", buffering=0) as stream:
            stream.write(bytes(4 << 20))
            if keep is not None:
                keep(name, stream)
        time.sleep(0.01)
    print("GOT all written")


def deleted_files():
    """Hold files that are in no folder any more."""
    held = []

    def keep(name, stream):
        os.unlink(name)
        held.append(os.dup(stream.fileno()))

    fill_workspace(keep=keep)


def closed_folder():
    """Write into a folder that nobody may look into."""
    os.mkdir("closed")
    inside = os.open("closed", os.O_RDONLY | os.O_DIRECTORY)
    os.chmod("closed", 0o300)

    def keep(name, stream):
        os.rename(name, f"closed/{name}")

    fill_workspace(keep=keep)
    os.close(inside)


def nested_folders():
    """Make folders in folders, and write at the bottom of them."""
    for _ in range(1000):
        os.mkdir("deeper")
        os.chdir("deeper")
    fill_workspace()


def empty_files():
    """Make files without end in the workspace, each empty."""
    for number in range(5_000_000):
        os.close(os.open(f"{number}", os.O_CREAT | os.O_WRONLY))
    print("GOT all made")


def large_file():
    """Write one file beyond what a file may have."""
    with open("large", "wb", buffering=0) as stream:
        while True:
            stream.write(bytes(1 << 20))


def open_files():
    """Open files without end."""
    kept = []
    while True:
        kept.append(os.open("/dev/null", os.O_RDONLY))


def endless_output():
    """Print without end."""
    while True:
        sys.stdout.write("x" * 100_000 + "\n")


def binary_output():
    """Print 100 MB that are no text: no UTF-8, zeros, control sequences, no line ends."""
    block = os.urandom(1 << 16) + b"\x00\x1b[2J\x1b]0;owned\x07\xff\xfe\xc3(\xed\xa0\x80\r" * 8
    left = 100_000_000
    while left:
        left -= sys.stdout.buffer.write(block[:left])
    sys.stdout.buffer.flush()


def processor_hog():
    """Compute for ever."""
    for _ in range(8):
        os.fork()
        break
    while True:
        pass


def ignored_signals():
    """Ignore every signal there is, with children that do the same, and stay."""
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


def crash():
    """Crash the interpreter."""
    ctypes.string_at(0)


def kill_everybody():
    """Kill everything that can be seen, oneself included."""
    if os.fork() == 0:
        time.sleep(600)
    os.kill(-1, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


class Forged(Exception):
    def __str__(self):
        return self.args[0]()


def huge_error():
    """End with an exception whose message is larger than anybody wants, from far down."""

    def descend(depth):
        if depth == 0:
            raise Forged(lambda: "\x1b[2J" + "e" * 60_000_000)
        descend(depth - 1)

    descend(900)


def endless_error():
    """End with an exception that never says what it is."""

    def say():
        while True:
            pass

    raise Forged(say)


def signal_flood():
    """Send the first process every signal there is, without end, from all sides."""
    for _ in range(3):
        os.fork()
    while True:
        for number in signal.valid_signals():
            try:
                os.kill(1, number)
            except OSError:
                pass


def descriptor_flood():
    """Write without end to all that was inherited besides the three streams."""
    inherited = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
    block = b"\0forged" * 20_000
    while True:
        for descriptor in inherited:
            try:
                os.write(descriptor, block)
            except OSError:
                pass
