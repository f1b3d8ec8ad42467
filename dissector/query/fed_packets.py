"""Packets of other libraries, as (time, bytes, link type)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

from dissector.errors import UsageError

ETHERNET = 1

_LINK_TYPES: Mapping[str, int] = {
    "Ether": ETHERNET,
    "Loopback": 0,
    "IP": 101,
    "IPv6": 101,
    "CookedLinux": 113,
    "CookedLinuxV2": 276,
}
"""
scapy's class of a packet's outermost layer -> link type.

Source: https://www.tcpdump.org/linktypes.html; scapy, `conf.l2types`.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MAX_PACKET_BYTES = 1 << 26


class FedPacket(NamedTuple):
    """
    A packet that was captured elsewhere.

    Attributes:
        time_ns: Time of capture, ns since the epoch.
        data: Its bytes, from the link layer on.
        link: Its link type.
        size: Its size on the wire; larger than `len(data)` if it was cut.
    """

    time_ns: int
    data: bytes
    link: int
    size: int


def fed_packets(packets: object, link: int | None = None) -> Iterator[FedPacket]:
    """
    Yield packets in a common form.

    Args:
        packets: A packet of scapy, a pair of time and bytes, or an iterable of these, such as
            scapy's PacketList or a reader of dpkt.
        link: The link type; by default the link type of scapy's class or dpkt's reader, else
            Ethernet.

    Raises:
        UsageError: An item is not a packet, or its link type is unknown.
    """
    if _is_scapy(packets):
        yield _of_scapy(packets, link)
    elif _is_pair(packets):
        yield _of_pair(packets, ETHERNET if link is None else link)
    elif isinstance(packets, Iterable) and not isinstance(packets, str | bytes | Mapping):
        if link is None and hasattr(packets, "datalink"):
            link = packets.datalink()
        for each in packets:
            if not (_is_scapy(each) or _is_pair(each)):
                raise _no_packet(each)
            yield from fed_packets(each, link)
    else:
        raise _no_packet(packets)


def _is_scapy(packet: object) -> bool:
    return hasattr(packet, "haslayer") and hasattr(packet, "payload")


def _is_pair(packet: object) -> bool:
    return (
        isinstance(packet, tuple | list)
        and len(packet) == 2
        and isinstance(packet[1], bytes | bytearray | memoryview)
    )


def _of_scapy(packet: Any, link: int | None) -> FedPacket:
    data = bytes(packet)
    if link is None:
        classes = [each.__name__ for each in type(packet).__mro__]
        link = next((_LINK_TYPES[name] for name in classes if name in _LINK_TYPES), None)
    if link is None:
        raise UsageError(
            f"the link type of scapy's {type(packet).__name__} is not known; "
            "import scapy.all before packets are read, or give it: link=1"
        )
    size = max(int(getattr(packet, "wirelen", None) or 0), len(data))
    return FedPacket(_time_ns(packet.time), _limited(data), link, size)


def _of_pair(pair: Any, link: int) -> FedPacket:
    data = _limited(bytes(pair[1]))
    return FedPacket(_time_ns(pair[0]), data, link, len(data))


def _limited(data: bytes) -> bytes:
    if len(data) > _MAX_PACKET_BYTES:
        raise UsageError(f"a packet of {len(data):,} bytes is too large")
    return data


def _time_ns(time: Any) -> int:
    """
    Return a time in ns: seconds since the epoch, or a datetime, as UTC if it has no time zone.

    A float has no more than microseconds; all others are exact.
    """
    if isinstance(time, datetime):
        aware = time if time.tzinfo else time.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1) * 1000
    try:
        if isinstance(time, Real | Decimal):
            number: Any = time
            is_exact = isinstance(time, int | Decimal)
            time_ns = int(number * 10**9) if is_exact else round(float(number) * 1e6) * 1000
            if 0 <= time_ns < 1 << 63:
                return time_ns
    except (ArithmeticError, ValueError):
        pass  # not a number, or infinite
    raise UsageError(f"{time!r} is not a time in seconds since the epoch")


def _no_packet(given: object) -> UsageError:
    return UsageError(
        f"feed takes packets of scapy and pairs (time, bytes), not {type(given).__name__}"
    )
