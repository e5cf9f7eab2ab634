"""The stream to a supervisor: taken apart, bounded in time, closed under anybody."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from langgraft.environments.sandboxes.docker.container import AttachChannel
from langgraft.environments.sandboxes.places import ChannelClosedError


@pytest.fixture
def ends() -> Iterator[tuple[AttachChannel, socket.socket]]:
    """Return a channel and the engine's end of its connection."""
    ours, engine = socket.socketpair()
    channel = AttachChannel(ours)
    yield channel, engine
    channel.close()
    engine.close()


def piece(stream: int, data: bytes) -> bytes:
    """Return output as an engine sends it."""
    return struct.pack(">BxxxL", stream, len(data)) + data


def test_receive_when_streams_alternate_then_standard_output_alone_is_returned(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """What a supervisor logs never gets between its frames."""
    channel, engine = ends
    engine.sendall(piece(1, b"ab") + piece(2, b"a word") + piece(1, b"") + piece(1, b"cdef"))
    assert channel.receive(5, timeout=60) == b"abcde"
    assert channel.receive(1, timeout=60) == b"f"
    assert channel.log == "a word"


def test_receive_when_a_piece_comes_byte_by_byte_then_it_is_whole(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """Where a connection cuts its bytes apart makes no difference."""
    channel, engine = ends

    def trickle() -> None:
        for byte in piece(1, b"xyz") + piece(2, b"log") + piece(1, b"end"):
            engine.sendall(bytes([byte]))
            time.sleep(0.001)

    with ThreadPoolExecutor() as threads:
        threads.submit(trickle)
        assert channel.receive(6, timeout=60) == b"xyzend"


def test_receive_when_nothing_comes_then_it_says_so_and_the_channel_lives(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """Silence is not the end."""
    channel, engine = ends
    engine.sendall(piece(1, b"half"))
    with pytest.raises(TimeoutError):
        channel.receive(8, timeout=0.05)
    engine.sendall(piece(1, b" all"))
    assert channel.receive(8, timeout=60) == b"half all"
    assert channel.open_still()


def test_receive_when_the_engine_hangs_up_then_the_channel_counts_as_closed(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """A container that died is told apart from one that is silent."""
    channel, engine = ends
    engine.sendall(piece(1, b"last"))
    engine.close()
    assert channel.receive(4, timeout=60) == b"last"
    assert not channel.open_still()
    with pytest.raises(ChannelClosedError):
        channel.receive(1, timeout=60)
    with pytest.raises(ChannelClosedError):
        channel.send(b"hello")


def test_close_when_another_thread_reads_then_that_thread_is_let_go(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """Nobody waits for what cannot come any more."""
    channel, _ = ends
    with ThreadPoolExecutor() as threads:
        reading = threads.submit(channel.receive, 1, timeout=600)
        time.sleep(0.05)
        channel.close()
        channel.close()
        with pytest.raises(ChannelClosedError):
            reading.result(timeout=60)
    with pytest.raises(ChannelClosedError):
        channel.receive(1, timeout=1)


def test_send_when_the_other_end_is_slow_then_all_arrives(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """A large file goes through a small pipe."""
    channel, engine = ends
    data = bytes(range(256)) * 20_000
    got = bytearray()

    def read() -> None:
        while len(got) < len(data):
            got.extend(engine.recv(65_536))

    reader = threading.Thread(target=read)
    reader.start()
    channel.send(data)
    reader.join()
    assert got == data


def test_log_when_a_supervisor_writes_without_end_then_the_end_of_it_is_kept(
    ends: tuple[AttachChannel, socket.socket],
) -> None:
    """A log cannot fill the host's memory."""
    channel, engine = ends

    def flood() -> None:
        for _ in range(100):
            engine.sendall(piece(2, b"x" * 10_000))
        engine.sendall(piece(2, b"the end") + piece(1, b"."))

    with ThreadPoolExecutor() as threads:
        threads.submit(flood)
        channel.receive(1, timeout=60)
    assert channel.log.endswith("the end")
    assert len(channel.log) < 20_000


def test_channel_when_the_connection_is_encrypted_then_it_works_the_same() -> None:
    """An engine reached over TLS is talked to like one next door."""
    near, far = socket.socketpair()
    server, client = (
        ssl.SSLContext(side) for side in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)
    )
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    for context in (server, client):
        # Without certificates, which would have to be made first.
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    data = b"0123456789" * 100_000
    with ThreadPoolExecutor() as threads:
        accepting = threads.submit(server.wrap_socket, far, server_side=True)
        channel = AttachChannel(client.wrap_socket(near))
        engine = accepting.result()
        sending = threads.submit(engine.sendall, piece(1, data))
        assert channel.receive(len(data), timeout=60) == data
        sending.result()
        assert channel.open_still()
        channel.send(b"ping")
        assert engine.recv(4) == b"ping"
        engine.close()
        assert not channel.open_still()
        channel.close()
