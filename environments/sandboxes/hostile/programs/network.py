"""Reach for whatever there is beyond the sandbox."""

import os
import socket

from attempts import attempt, done

AF_VSOCK = 40
PORT = int(os.environ["HOSTILE_PORT"])


def connect(address):
    with socket.create_connection((address, PORT), timeout=1) as connection:
        connection.sendall(b"hostile")


def send(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"hostile", (address, PORT))
        sender.settimeout(1)
        return sender.recv(10)


def raw(family, kind, protocol):
    socket.socket(family, kind, protocol).close()


for address in os.environ["HOSTILE_ADDRESSES"].split():
    attempt(f"connect to {address}", lambda: connect(address))
    attempt(f"send to {address}", lambda: send(address))
attempt("look up a name", lambda: socket.getaddrinfo("hostile.invalid", 80))
attempt("raw IP", lambda: raw(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
attempt("raw packets", lambda: raw(socket.AF_PACKET, socket.SOCK_RAW, 0))
# No namespace holds these: they lead from a virtual machine to what runs it.
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    attempt(f"socket of kind {kind} to the machine's own host", lambda: raw(AF_VSOCK, kind, 0))
for family in (15, 21, 29, 30, 31, 38, 44):  # keys, RDS, CAN, TIPC, Bluetooth, ciphers, XDP
    attempt(f"socket of family {family}", lambda: raw(family, socket.SOCK_RAW, 0))


def other_interfaces():
    found = [name for _, name in socket.if_nameindex()]
    routes = open("/proc/net/route").read().splitlines()[1:]
    # Tunnels that a kernel puts into every namespace are down and lead nowhere.
    if not routes and not [name for name in found if name.startswith(("eth", "en", "wl"))]:
        raise OSError(f"only {' '.join(found)}, no route")
    return found, routes


attempt("find a way out", other_interfaces)
done()
