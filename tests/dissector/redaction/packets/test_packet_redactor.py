"""Packets have other addresses, payload and options; the rest is kept, with valid checksums."""

from __future__ import annotations

import struct

import pytest

from dissector.capture.writing.checksums import internet_checksum, tcp_checksum
from dissector.redaction.packets.located_headers import HeaderFinder, Located, in_known_link
from dissector.redaction.packets.packet_redactor import PacketRedactor
from tests.dissector.capture import handmade_links
from tests.dissector.capture.handmade_packets import address, ethernet, ipv4, ipv6, tcp, udp

ETHERNET, SLL, SLL2, RAW, NULL = 1, 113, 276, 101, 0
SECRET = b"acme-payload"
NEW = b"x" * len(SECRET)
INNER = ipv4(tcp(SECRET), source="10.66.77.88", target="10.66.77.99")
INNER6 = ipv6(tcp(SECRET), source="fd66::7788", target="fd66::7799")
OUTER = {"source": "172.20.30.40", "target": "172.20.30.50"}
FRAME = (
    b"\x11\x22\x33\x44\x55\x66" + b"\x10\x22\x33\x44\x55\x66" + struct.pack(">H", 0x0800) + INNER
)

PRIVATE = [
    *(SECRET, b"\x11\x22\x33\x44\x55\x66", b"\x10\x22\x33\x44\x55\x66"),
    *(address(each) for each in ("10.66.77.88", "10.66.77.99", "fd66::7788", "fd66::7799")),
    *(address(each) for each in OUTER.values()),
]

PACKETS = {
    "ethernet": (ETHERNET, FRAME),
    "vlan": (ETHERNET, ethernet(INNER, tags=[(0x8100, 5), (0x8100, 7)])),
    "cooked": (SLL, struct.pack(">HHH8sH", 0, 1, 6, PRIVATE[1] + b"\0\0", 0x0800) + INNER),
    "cooked 2": (SLL2, struct.pack(">HHIHBB8s", 0x0800, 0, 2, 1, 0, 6, PRIVATE[1]) + INNER),
    "raw": (RAW, INNER6),
    "loopback": (NULL, struct.pack("<I", 2) + INNER),
    "vxlan": (
        ETHERNET,
        ethernet(ipv4(udp(b"\x08\0\0\0\0\0\x64\0" + FRAME, (40000, 4789)), protocol=17, **OUTER)),
    ),
    "gre": (ETHERNET, ethernet(ipv4(b"\0\0\x08\0" + INNER, protocol=47, **OUTER))),
    "ip in ip": (ETHERNET, ethernet(ipv4(INNER6, protocol=41, **OUTER))),
    "mpls": (ETHERNET, ethernet(struct.pack(">I", 0x64140) + INNER, 0x8847)),
}


def find(data: bytes, link: int = ETHERNET, original: int = 0) -> Located:
    found = HeaderFinder().find(data, link, original or len(data), 0)
    assert found is not None
    return found


def redacted(data: bytes, link: int = ETHERNET, payload: bytes = NEW, original: int = 0) -> bytes:
    found = find(data, link, original)
    packets = PacketRedactor(
        lambda raw: bytes(0x20 | each & 15 for each in raw), lambda raw: b"\2" * 6
    )
    return packets.redact(found, link, payload)


@pytest.mark.parametrize("name", PACKETS)
def test_private_bytes_are_replaced(name: str) -> None:
    link, data = PACKETS[name]
    new = redacted(data, link)
    assert len(new) == len(data)
    assert not [each for each in PRIVATE if each in new]
    found = find(new, link)
    assert new[found.payload_at : found.end] == NEW
    assert find(data, link).headers == found.headers


@pytest.mark.parametrize("name", PACKETS)
def test_checksums_are_valid(name: str) -> None:
    link, data = PACKETS[name]
    new = redacted(data, link)
    found = find(new, link)
    _, at, _ = next(each for each in reversed(found.headers) if each[0] and each[0].size >= 20)
    is_v6 = new[at] >> 4 == 6
    ends = (
        (new[at + 8 : at + 24], new[at + 24 : at + 40])
        if is_v6
        else (new[at + 12 : at + 16], new[at + 16 : at + 20])
    )
    assert tcp_checksum(*ends, new[found.tcp_at : found.end]) == 0
    if not is_v6:
        assert internet_checksum(new[at : at + 20]) == 0


def test_options_of_ip_are_padding() -> None:
    route = b"\x07\x07\x04" + address("10.66.77.88") + b"\0"
    new = redacted(ethernet(ipv4(tcp(SECRET), options=route)))
    assert new[34:42] == bytes(8)


def test_known_options_of_tcp_are_kept() -> None:
    known = b"\x02\x04\x05\xb4\x01\x03\x03\x07\x04\x02\x08\x0a" + bytes(range(8))
    unknown = b"\xfd\x06acme\0\0"
    found = find(redacted(ethernet(ipv4(tcp(SECRET, options=known + unknown)))))
    options = bytes(found.data[found.tcp_at + 20 : found.payload_at])
    assert options == known + b"\x01" * 8


def test_bytes_behind_the_packet_are_zero() -> None:
    new = redacted(ethernet(ipv4(tcp(SECRET))) + b"trailer of acme")
    assert new.endswith(NEW + bytes(15))


def test_truncated_packets_have_no_valid_checksum() -> None:
    whole = ethernet(ipv4(tcp(SECRET)))
    new = redacted(whole[:-4], payload=NEW[:-4], original=len(whole))
    assert find(new, original=len(whole)).is_cut
    assert new[50:52] == bytes(2)


def test_options_of_ipv6_are_padding() -> None:
    options = b"\x06\x01\x1e\x0cacme-address"[:16]
    new = redacted(ethernet(ipv6(options + tcp(SECRET), following=0), 0x86DD))
    assert b"acme" not in new
    found = find(new)
    assert new[found.payload_at : found.end] == NEW


@pytest.mark.parametrize("link", [ETHERNET, RAW, 147])
def test_other_packets_have_no_headers(link: int) -> None:
    for data in (b"", b"acme", ethernet(ipv4(udp(b"acme", (53, 53)), protocol=17))):
        assert HeaderFinder().find(data, link, len(data), 0) is None


@pytest.mark.parametrize("name", handmade_links.LINKS)
def test_other_link_headers_are_replaced_by_ethernet(name: str) -> None:
    link, wrap = handmade_links.LINKS[name]
    for inner in (INNER, INNER6):
        plain = in_known_link(wrap(inner), link, 0)
        assert plain is not None
        data, new_link, original = plain
        assert (new_link, original) == (ETHERNET, len(data) if link != ETHERNET else 0)
        new = redacted(data, new_link)
        assert not [each for each in PRIVATE if each in new]
        assert b"en0" not in new
        found = find(new, new_link)
        assert new[found.payload_at : found.end] == NEW
