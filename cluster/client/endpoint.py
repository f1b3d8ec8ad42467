"""Host names to addresses, and TCP connections to them."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import socket
import ssl
from typing import Any, NamedTuple

from cluster.client.transport import format_address
from dissector.errors import ReplayError, UsageError

DEFAULT_PORT = 9092


class Place(NamedTuple):
    """A socket address: its family, and the value that `socket.connect` takes."""

    family: int
    socket_address: tuple[Any, ...]

    @property
    def address(self) -> str:
        """The IP address, the same text for each way to write it; with the zone of a local one."""
        text = str(self.socket_address[0]).partition("%")[0]
        ip = ipaddress.ip_address(text)
        if not isinstance(ip, ipaddress.IPv6Address):
            return str(ip)
        zone = self.socket_address[3]
        return str(ip.ipv4_mapped or ip) + (f"%{zone}" if zone else "")


class Endpoint(NamedTuple):
    """
    A server with its addresses, from one look-up: what was checked is what gets connected.

    Attributes:
        host: The name, which a TLS certificate must have.
        port: The TCP port.
        places: The addresses, in the order in which they are tried.
    """

    host: str
    port: int
    places: tuple[Place, ...]

    def __str__(self) -> str:
        return format_address(self.host, self.port)


async def resolve(host: str, port: int, timeout_s: float) -> Endpoint:
    """
    Look up the addresses of a host.

    Raises:
        ReplayError: The name is unknown, or the port no TCP port.
    """
    if not 0 < port < 1 << 16:
        raise ReplayError(format_address(host, port), "is no address: the port is out of range")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, ValueError):  # a name
        look_up = asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(timeout_s):
                found = await look_up
        except TimeoutError:
            raise ReplayError(
                format_address(host, port), f"has no address after {timeout_s:g} s"
            ) from None
        except (OSError, ValueError) as error:  # a name with a NUL, or too long, is a ValueError
            raise ReplayError(
                format_address(host, port), *_connect_failure(error, timeout_s)
            ) from None
    places = dict.fromkeys(Place(family, address) for family, _, _, _, address in found)
    return Endpoint(host, port, tuple(places))


async def connect(
    protocol: asyncio.Protocol, endpoint: Endpoint, tls: ssl.SSLContext | None, timeout_s: float
) -> None:
    """
    Connect to a server.

    Raises:
        ReplayError: The address can't be reached, does not speak TLS as required, or is not
            trusted.
    """
    try:
        async with asyncio.timeout(timeout_s):
            connection = await _connected_socket(endpoint)
            await asyncio.get_running_loop().create_connection(
                lambda: protocol,
                sock=connection,
                ssl=tls,
                server_hostname=endpoint.host if tls else None,
            )
    except (OSError, TimeoutError) as error:
        raise ReplayError(str(endpoint), *_connect_failure(error, timeout_s)) from None


async def _connected_socket(endpoint: Endpoint) -> socket.socket:
    """Return a socket connected to the first address that accepts; raises the last OSError."""
    failure = OSError("it has no address")
    for family, address in endpoint.places:
        try:
            # asyncio disables Nagle's algorithm only for sockets that name their protocol.
            connection = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        except OSError as error:
            failure = error
            continue
        try:
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, address)
        except OSError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise failure


def _connect_failure(error: Exception, timeout_s: float) -> tuple[str, str]:
    """Return the reason of a failed connection, and advice."""
    match error:
        case TimeoutError():
            return f"did not accept the connection in {timeout_s:g} s", "allow more time"
        case ConnectionRefusedError():
            return "refused the connection", "is the address right, and is the broker up?"
        case ssl.SSLCertVerificationError():
            reason = f"its certificate is not trusted: {error.verify_message}"
            return reason, "name the file with its authority's certificate"
        case ssl.SSLError() | ConnectionResetError() | ConnectionAbortedError():
            cause = getattr(error, "reason", None) or str(error) or "the peer hung up"
            return f"no TLS connection: {cause}", "perhaps it does not speak TLS"
        case OSError(errno=int(number)) if number > 0:
            return f"cannot be reached: {os.strerror(number)}", "is the address right?"
    return f"cannot be reached: {error}", "is the address right?"


def parse_address(text: str) -> tuple[str, int]:
    """
    Parse `host:port`, `[host]:port` or `host`.

    Raises:
        UsageError: The text is not an address.
    """
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise UsageError(f"{text!r} is not an address: expected host:port")
    return host, int(port)
