"""The sockets of the API: bound before anything else is started, so that a port in use is told at once."""

import errno
import socket
from collections.abc import Sequence

from tenure.db.errors import TenureError

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what to call a server that listens everywhere


class CannotListen(TenureError):
    """The address cannot be had."""

    code = "CANNOT_LISTEN"


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets for each address of the host, all with one port; they do not listen yet. Raises CannotListen."""
    sockets: list[socket.socket] = []
    refused: OSError | None = None
    for family, address in _addresses(host, port):
        known_port = sockets[0].getsockname()[1] if sockets else address[1]
        try:
            sockets.append(_bound(family, (address[0], known_port, *address[2:])))
        except OSError as error:
            refused = error
            # A host may have an address of a family that this machine does not speak; a port in use is another matter.
            if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                break
    if refused is not None and (not sockets or refused.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)):
        for one in sockets:
            one.close()
        raise cannot_listen(host, port, refused) from refused
    return sockets


def cannot_listen(host: str, port: int, error: OSError) -> CannotListen:
    """What to tell of the operating system's refusal."""
    if error.errno == errno.EADDRINUSE:
        return CannotListen(f"Port {port} of {host} is in use. Choose another with --port, or 0 for a free one.")
    return CannotListen(f"Cannot listen on {host} port {port}: {error.strerror or error}.")


def address_of(sockets: Sequence[socket.socket]) -> str:
    """The URL by which this machine reaches the server."""
    host, port = sockets[0].getsockname()[:2]
    host = WILDCARDS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _addresses(host: str, port: int) -> list[tuple[int, tuple[str, int, *tuple[int, ...]]]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise cannot_listen(host, port, error) from error
    by_address = {address: family for family, _, _, _, address in found}
    # IPv4 first: it is what `localhost` means to most who look at the printed address.
    return sorted(((f, a) for a, f in by_address.items()), key=lambda pair: pair[0] != socket.AF_INET)  # type: ignore[misc]


def _bound(family: int, address: tuple[str, int, *tuple[int, ...]]) -> socket.socket:
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.bind(address)
    except BaseException:
        one.close()
        raise
    return one
