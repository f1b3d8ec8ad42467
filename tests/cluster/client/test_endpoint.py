from __future__ import annotations

import asyncio
import socket

import pytest

from cluster.client.endpoint import Endpoint, Place, connect, resolve
from cluster.client.transport import FrameProtocol
from dissector.errors import ReplayError


def test_an_unknown_host_is_an_error() -> None:
    with pytest.raises(ReplayError, match=r"^no\.such\.host\.invalid:9092: cannot be reached"):
        asyncio.run(resolve("no.such.host.invalid", 9092, 20))


@pytest.mark.parametrize("port", [-1, 0, 65536, 2**31 - 1])
def test_a_port_that_is_none_is_an_error(port: int) -> None:
    with pytest.raises(ReplayError, match="the port is out of range"):
        asyncio.run(resolve("127.0.0.1", port, 5))


@pytest.mark.parametrize("host", ["a\0b", "x" * 300, "a..b", ""])
def test_a_host_that_is_no_name_is_an_error(host: str) -> None:
    try:
        found = asyncio.run(resolve(host, 9092, 20))
    except ReplayError:
        return
    assert all(each.address for each in found.places)


def test_each_way_to_write_an_address_is_the_same() -> None:
    def of(family: int, *address: object) -> str:
        return Place(family, address).address

    assert of(socket.AF_INET, "127.0.0.1", 1) == "127.0.0.1"
    assert of(socket.AF_INET6, "::ffff:127.0.0.1", 1, 0, 0) == "127.0.0.1"
    assert of(socket.AF_INET6, "0:0:0:0:0:0:0:1", 1, 0, 0) == "::1"
    assert of(socket.AF_INET6, "fe80::1%eth0", 1, 0, 2) == "fe80::1%2"


def test_the_first_address_that_accepts_is_connected() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(asyncio.Protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with socket.create_server(("127.0.0.1", 0)) as closed:
            nobody = closed.getsockname()[1]
        places = tuple(Place(socket.AF_INET, ("127.0.0.1", each)) for each in (nobody, port))
        protocol = FrameProtocol(lambda _: None, lambda what, advice: None)
        await connect(protocol, Endpoint("name", port, places), None, 5)
        protocol.abort()
        with pytest.raises(ReplayError, match=r"^name:1: refused the connection"):
            await connect(protocol, Endpoint("name", 1, places[:1]), None, 5)
        server.close()

    asyncio.run(main())
