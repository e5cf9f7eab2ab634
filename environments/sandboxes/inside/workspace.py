"""The workspace, as the host fills it and takes files out of it."""

from __future__ import annotations

import os
from typing import Any

from langgraft.environments.sandboxes.inside.collecting import MAX_LEFT_OUT, Collecting
from langgraft.environments.sandboxes.inside.frames import (
    CHUNK,
    DATA,
    DONE,
    FILE,
    FILE_END,
    LEFT_OUT,
    PUT,
    FrameError,
    pack,
    pack_json,
    unpack_json,
)
from langgraft.environments.sandboxes.inside.putting import MAX_NAME, Puts
from langgraft.environments.sandboxes.inside.watching import BEAT_SECONDS, Watch


class Workspace:
    """Files in, files out.

    Args:
        path: The folder.
        watch: What waits for the host.
        limits: Of what is taken out: `collected` bytes in `collected_files` files.
    """

    def __init__(self, path: str, watch: Watch, limits: dict[str, int]) -> None:
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._watch = watch
        self._host = watch.host
        self._limits = limits
        self._left_out = 0

    def put(self, first: dict[str, Any]) -> None:
        """Write files, of which the first was named."""
        puts = Puts(self._folder)
        puts.begin(first["path"])
        while True:
            kind, payload = self._watch.next()
            if kind == DATA:
                puts.write(payload)
            elif kind == FILE:
                puts.begin(unpack_json(payload)["path"])
            elif kind == PUT:
                break
            else:
                raise FrameError(f"a frame of kind {kind} between files")
        puts.finish()
        self._host.send(pack_json(DONE, {"refused": puts.refused}))

    def collect(self, ask: dict[str, Any]) -> None:
        """Hand over the files that match patterns."""
        if ask["patterns"]:
            self._left_out = 0
            collecting = Collecting(
                ask["patterns"],
                files=self._limits["collected_files"],
                size=self._limits["collected"],
                leave_out=self._leave_out,
                tick=self._watch.tick,
            )
            for path, descriptor, size in collecting.walk(self._folder):
                self._send_file(path, descriptor, size)
        self._host.send(pack_json(DONE, {"refused": ""}))

    def _leave_out(self, path: str, reason: str) -> None:
        self._left_out += 1
        if self._left_out > MAX_LEFT_OUT:
            return
        if self._left_out == MAX_LEFT_OUT:
            path, reason = ".", "more was left out than is told"
        # Cut: a thousand of the longest paths there can be are a hundred million characters.
        plain = path[:MAX_NAME].encode("utf-8", "backslashreplace").decode("utf-8")
        self._host.send(pack_json(LEFT_OUT, {"path": plain, "reason": reason}))

    def _send_file(self, path: str, descriptor: int, size: int) -> None:
        self._host.send(pack_json(FILE, {"path": path, "size": size}))
        left, failure = size, ""
        while left > 0:
            try:
                data = os.read(descriptor, min(left, CHUNK))
            except OSError as error:
                failure = f"unreadable: {os.strerror(error.errno or 0)}"
                break
            if not data:
                failure = "it became shorter while it was read"
                break
            left -= len(data)
            self._host.send(pack(DATA, data))
            while self._host.unsent:
                self._watch.wait((), BEAT_SECONDS)
        self._host.send(pack_json(FILE_END, {"failure": failure}))
