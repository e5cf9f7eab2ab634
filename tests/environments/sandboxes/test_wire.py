"""Frames: whole or noticed, and no answer is believed unseen."""

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.conversation import Conversation
from langgraft.environments.sandboxes.inside import frames
from langgraft.environments.sandboxes.inside.frames import (
    ANSWERED,
    DATA,
    DONE,
    ENDED,
    FILE,
    FILE_END,
    LEFT_OUT,
    READY,
    STDOUT,
    pack,
    pack_json,
    take_frame,
)
from langgraft.environments.sandboxes.places import (
    ChannelClosedError,
    PlaceSettings,
    ProtocolError,
    greet,
    receive_frame,
)
from langgraft.environments.sandboxes.requests import RunRequest
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Limits
from langgraft.environments.sandboxes.subprocess import SocketChannel

FRAMES = st.lists(st.tuples(st.sampled_from(sorted(ANSWERED)), st.binary(max_size=50)), max_size=6)
TROUBLE = (ProtocolError, ChannelClosedError, TimeoutError)
ENDED_WELL: dict[str, object] = {
    "exit_code": 0,
    "signal": None,
    "stopped": None,
    "oom": False,
    "duration": 0.5,
    "stdout_printed": 0,
    "stderr_printed": 0,
    "error": None,
    "kernel_lost": False,
    "cleared": True,
}


@contextlib.contextmanager
def answering(data: bytes) -> Iterator[SocketChannel]:
    """Return a channel on which just these bytes come, and then its end."""
    ours, theirs = socket.socketpair()
    channel = SocketChannel(ours)
    try:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        yield channel
    finally:
        channel.close()
        theirs.close()


@given(FRAMES)
def test_receive_frame_when_frames_follow_each_other_then_all_come_as_sent(
    sent: list[tuple[int, bytes]],
) -> None:
    """What is packed is received, and then the end is noticed."""
    with answering(b"".join(pack(kind, payload) for kind, payload in sent)) as channel:
        assert [receive_frame(channel, timeout=60) for _ in sent] == sent
        with pytest.raises(ChannelClosedError):
            receive_frame(channel, timeout=60)


@given(FRAMES.filter(bool), st.data())
def test_receive_frame_when_the_stream_is_cut_then_it_is_noticed(
    sent: list[tuple[int, bytes]], data: st.DataObject
) -> None:
    """No cut makes a frame shorter: the frames before it come, then an error."""
    stream = b"".join(pack(kind, payload) for kind, payload in sent)
    cut = data.draw(st.integers(0, len(stream) - 1))
    with answering(stream[:cut]) as channel:
        received = []
        with pytest.raises(ChannelClosedError):  # noqa: PT012
            while True:
                received.append(receive_frame(channel, timeout=60))
        assert received == sent[: len(received)]
        assert len(received) < len(sent)


@given(FRAMES, st.integers(1, 7))
def test_take_frame_when_bytes_drip_in_then_the_same_frames_are_taken(
    sent: list[tuple[int, bytes]], step: int
) -> None:
    """The supervisor's side takes frames however they are cut up on their way."""
    stream = b"".join(pack(kind, payload) for kind, payload in sent)
    buffer, taken = bytearray(), []
    for start in range(0, len(stream), step):
        buffer += stream[start : start + step]
        while (frame := take_frame(buffer, ANSWERED)) is not None:
            taken.append(frame)
    assert taken == sent
    assert not buffer


@given(st.binary(max_size=200))
def test_conversation_when_garbage_comes_then_it_ends_in_an_error(garbage: bytes) -> None:
    """Bytes that nobody of ours sends end a run as a failure of the sandbox, and never hang."""
    with answering(garbage) as channel, pytest.raises(TROUBLE):
        run(channel)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(ENDED_WELL)), JSON)
def test_conversation_when_a_result_is_odd_then_it_is_refused_or_proper(
    field: str, value: object
) -> None:
    """A result has the fields it must have, in the ranges they can have, or it is none."""
    with answering(pack_json(ENDED, {**ENDED_WELL, field: value}) + done()) as channel:
        try:
            result = run(channel)
        except ProtocolError as error:
            assert "the supervisor sent" in str(error)  # noqa: PT017
        else:
            assert result.duration >= 0
            assert result.exit_code is None or 0 <= result.exit_code <= 255


def run(channel: SocketChannel, limits: Limits | None = None) -> ExecutionResult:
    """Run something."""
    conversation = Conversation(channel, limits or Limits())
    return conversation.run(1, RunRequest({"argv": ["true"]}, 1, {}, ["*"]))


def done() -> bytes:
    """Return the frame that ends an answer."""
    return pack_json(DONE, {"refused": ""})


def file(name: object, size: object, content: bytes, failure: str = "") -> bytes:
    """Return a file as it is sent."""
    head = pack_json(FILE, {"path": name, "size": size})
    return head + pack(DATA, content) + pack_json(FILE_END, {"failure": failure})


@pytest.mark.parametrize(
    "answer",
    [
        file("../x", 1, b"x"),
        file("/x", 1, b"x"),
        file("a\0b", 1, b"x"),
        file(5, 1, b"x"),
        file("x", 2, b"x"),
        file("x", 1, b"xx"),
        file("x", -1, b""),
        file("x", "1", b"x"),
        file("x", 1001, bytes(1001)),
        file("x", 1, b"x") + file("x", 1, b"x"),
        file("x", 600, bytes(600)) + file("y", 600, bytes(600)),
        b"".join(file(str(number), 0, b"") for number in range(4)),
        b"".join(pack_json(LEFT_OUT, {"path": str(n), "reason": ""}) for n in range(1100)),
        pack(STDOUT, b"late"),
        pack(DATA, b"x"),
    ],
)
def test_conversation_when_files_are_forged_then_they_are_refused(answer: bytes) -> None:
    """Names, sizes and numbers of files are checked again on this side."""
    with (
        answering(pack_json(ENDED, ENDED_WELL) + answer + done()) as channel,
        pytest.raises(ProtocolError, match="the supervisor sent"),
    ):
        run(channel, Limits(collected=1000, collected_files=3))


@pytest.mark.parametrize(
    ("printed", "sent"), [(5, b"12"), (1, b"12"), (4000, b"1" * 1200), (1200, b"1" * 1200)]
)
def test_conversation_when_output_does_not_add_up_then_it_is_refused(
    printed: int, sent: bytes
) -> None:
    """More output than is kept, or less than was printed, comes from no supervisor of ours."""
    ended = pack_json(ENDED, {**ENDED_WELL, "stdout_printed": printed})
    with (
        answering(pack(STDOUT, sent) + ended + done()) as channel,
        pytest.raises(ProtocolError, match="the supervisor sent"),
    ):
        run(channel, Limits(output=1000))


def test_receive_when_nothing_comes_then_the_wait_ends() -> None:
    """Silence is bounded."""
    ours, theirs = socket.socketpair()
    channel = SocketChannel(ours)
    with pytest.raises(TimeoutError, match="silent"):
        receive_frame(channel, timeout=0.01)
    theirs.close()
    with pytest.raises(ChannelClosedError):
        receive_frame(channel, timeout=60)
    channel.close()
    channel.close()
    for act in (lambda: channel.send(b"x"), lambda: channel.receive(1, timeout=1)):
        _refused(act)


def _refused(act: Callable[[], object]) -> None:
    with pytest.raises(ChannelClosedError):
        act()


@pytest.mark.parametrize(
    ("ready", "error"),
    [
        ({"protocol": frames.PROTOCOL + 1}, ProtocolError),
        ({"protocol": frames.PROTOCOL, "pid": 7}, SandboxUnavailableError),
        (
            {"protocol": frames.PROTOCOL, "pid": 1, "dumpable": True, "sealed": True},
            SandboxUnavailableError,
        ),
        (
            {"protocol": frames.PROTOCOL, "pid": 1, "dumpable": False, "sealed": False},
            SandboxUnavailableError,
        ),
    ],
)
def test_greet_when_a_supervisor_is_not_kept_from_programs_then_it_is_refused(
    ready: dict[str, object], error: type[Exception]
) -> None:
    """An isolated place without all of its protections runs nothing."""
    with answering(pack_json(READY, ready)) as channel, pytest.raises(error):
        greet(channel, PlaceSettings(Limits()))
