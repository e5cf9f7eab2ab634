"""Put beside the programs that try many things: one line for each, saying whether it succeeded."""

import sys


def attempt(name, action):
    """Try something that must fail; what it returns is shown where it did not."""
    try:
        got = action()
    except BaseException as error:
        print(f"refused {name}: {type(error).__name__} {error}"[:300], flush=True)
        return
    print(f"GOT {name}: {got!r}"[:300], flush=True)


def done():
    """Say that everything was tried."""
    print("all tried", flush=True)
    sys.stdout.flush()


def call(name, *arguments):
    """Call a function of the C library that returns -1 where it fails."""
    import ctypes
    import os

    answer = getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments)
    if answer == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return answer


def system_call(numbers, *arguments):
    """Make a system call by its number on this machine."""
    import platform

    return call("syscall", numbers[platform.machine()], *arguments)
