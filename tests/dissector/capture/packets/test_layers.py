from __future__ import annotations

import io
import ipaddress
import struct
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from shutil import which

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.addresses import address_text
from dissector.capture.columns import Segments
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.packets import layers as layers_module
from dissector.capture.packets.ip_fragments import MAX_INCOMPLETE
from dissector.capture.packets.layers import Layers
from dissector.capture.packets.link_layers import LINK_LAYERS
from dissector.errors import UsageError
from tests.corpus import each_part, shared_captures
from tests.dissector.capture import handmade_links
from tests.dissector.capture.handmade_links import in_udp
from tests.dissector.capture.handmade_packets import A, B, ethernet, ipv4, ipv6, pcap, tcp, udp
from tests.kernel_modes import MODES, running

PAYLOAD = b"hello, broker"
SEGMENT = tcp(PAYLOAD, seq=7, ack=9, flags=24)
V4, V6 = ipv4(SEGMENT), ipv6(SEGMENT)
FRAME = ethernet(V4)


def read(
    data: bytes, window_bytes: int = 1 << 20, *, decode_as: Iterable[str] = ()
) -> tuple[Layers, list[Segments]]:
    layers = Layers(decode_as=decode_as)
    windows = read_packets(["-"], stdin=io.BytesIO(data), window_bytes=window_bytes)
    found = [layers.segments(packets) for packets in windows]
    layers.finish()
    return layers, found


def payloads(found: list[Segments]) -> list[bytes]:
    out = []
    for segments in found:
        for start, captured in zip(segments.start, segments.captured, strict=True):
            out.append(segments.data[start : start + captured].tobytes())
            assert len(out[-1]) == captured
    return out


def one(packet: bytes, link: int = 1, snap: int | None = None) -> tuple[Layers, Segments]:
    """Read one packet among others without segments; return its only segment."""
    layers, found = read(pcap([(1, b"x"), (2, packet), (3, b"y")], link=link, snap=snap))
    (segments,) = found
    assert len(segments) == 1, layers.passed_over
    assert segments.packet[0] == 1
    return layers, segments


def sll(payload: bytes, kind: int) -> bytes:
    return bytes(14) + struct.pack(">H", kind) + payload


def sll2(payload: bytes, kind: int) -> bytes:
    return struct.pack(">H", kind) + bytes(18) + payload


def extension(following: int, payload: bytes, body: bytes = bytes(6)) -> bytes:
    return bytes([following, (len(body) + 2) // 8 - 1]) + body + payload


def part(offset: int, more: bool, following: int, payload: bytes) -> bytes:
    return struct.pack(">BBHI", following, 0, offset | more, 99) + payload


LINKS = [
    (FRAME, 1),
    (sll(V4, 0x0800), 113),
    (sll(V6, 0x86DD), 113),
    (sll2(V4, 0x0800), 276),
    (struct.pack("<I", 2) + V4, 0),
    (struct.pack(">I", 2) + V4, 0),
    (struct.pack("<I", 30) + V6, 0),
    (struct.pack(">I", 24) + V6, 108),
    (struct.pack(">I", 10) + V6, 0),
    (V4, 101),
    (V6, 101),
    (V4, 12),
    (V6, 14),
    (V4, 228),
    (V6, 229),
    *((wrap(ip), link) for link, wrap in handmade_links.LINKS.values() for ip in (V4, V6)),
]


@pytest.mark.parametrize(("packet", "link"), LINKS)
def test_link_layers(packet: bytes, link: int) -> None:
    layers, segments = one(packet, link)
    assert payloads([segments]) == [PAYLOAD]
    assert segments.source_port.tolist() == [50000]
    assert segments.target_port.tolist() == [9092]
    assert (segments.seq[0], segments.ack[0], segments.flags[0]) == (7, 9, 24)
    is_v4 = V4 in packet
    assert address_text(*segments.source[0].tolist()) == (A if is_v4 else "fd00::1")
    assert address_text(*segments.target[0].tolist()) == (B if is_v4 else "fd00::2")
    assert layers.networks == [""]
    assert segments.time_ns.tolist() == [2]


def geneve(payload: bytes, vni: int, kind: int = 0x6558, options: bytes = b"") -> bytes:
    return struct.pack(">BBHI", len(options) // 4, 0, kind, vni << 8) + options + payload


def vxlan(payload: bytes, vni: int) -> bytes:
    return struct.pack(">II", 0x08000000, vni << 8) + payload


def gre(payload: bytes, kind: int = 0x0800, flags: int = 0, options: bytes = b"") -> bytes:
    return struct.pack(">HH", flags, kind) + options + payload


def mpls(payload: bytes, labels: int = 1) -> bytes:
    return (
        b"".join(struct.pack(">I", 5 << 12 | (i == labels - 1) << 8) for i in range(labels))
        + payload
    )


def in_gre(payload: bytes) -> bytes:
    return ethernet(ipv4(payload, protocol=47, source="1.1.1.1", target="2.2.2.2"))


WRAPPED = [
    (ethernet(V4, tags=[(0x8100, 5)]), "vlan 5"),
    (ethernet(V4, tags=[(0x8100, 0x6005)]), "vlan 5"),
    (ethernet(V4, tags=[(0x8100, 0)]), ""),
    (ethernet(V6, 0x86DD, tags=[(0x88A8, 5), (0x8100, 7)]), "vlan 5.7"),
    (ethernet(V4, tags=[(0x9100, 5), (0x9200, 7), (0x8100, 8)]), "vlan 5.7.8"),
    (in_udp(vxlan(FRAME, 100), 4789), "vni 100"),
    (in_udp(vxlan(FRAME, 0xFFFFFF), 8472), "vni 16777215"),
    (ethernet(ipv6(udp(vxlan(FRAME, 1), (9, 4789)), following=17), 0x86DD), "vni 1"),
    (
        ethernet(ipv4(udp(vxlan(FRAME, 100), (9, 4789)), protocol=17), tags=[(0x8100, 5)]),
        "vlan 5 vni 100",
    ),
    (in_udp(vxlan(ethernet(V4, tags=[(0x8100, 7)]), 3), 4789), "vni 3 vlan 7"),
    (in_udp(geneve(FRAME, 11), 6081), "vni 11"),
    (in_udp(geneve(V6, 11, 0x86DD, bytes(12)), 6081), "vni 11"),
    (in_gre(gre(V4)), ""),
    (in_gre(gre(V6, 0x86DD, 0xB000, bytes(12))), ""),
    (in_gre(gre(FRAME, 0x6558, 0x2000, struct.pack(">I", 77 << 8))), ""),
    (in_gre(gre(FRAME, 0x88BE)), ""),
    (in_gre(gre(bytes(8) + FRAME, 0x88BE, 0x1000, bytes(4))), ""),
    (in_gre(gre(bytes(12) + FRAME, 0x22EB, 0x1000, bytes(4))), ""),
    (in_gre(gre(bytes(11) + b"\x01" + bytes(8) + FRAME, 0x22EB, 0x1000, bytes(4))), ""),
    (in_gre(gre(bytes(10) + b"\x08\x00" + V4, 0x22EB, 0x1000, bytes(4))), ""),
    (ethernet(mpls(V4), 0x8847), ""),
    (ethernet(mpls(V6, 3), 0x8848), ""),
    (ethernet(mpls(bytes(4) + FRAME), 0x8847), ""),
    (ethernet(mpls(V4), 0x8847, tags=[(0x8100, 5)]), "vlan 5"),
    (ethernet(struct.pack(">HHHH", 0x1100, 1, len(V4) + 2, 0x21) + V4, 0x8864), ""),
    (ethernet(struct.pack(">HHHH", 0x1100, 1, len(V6) + 2, 0x57) + V6, 0x8864), ""),
    (ethernet(b"\xaa\xaa\x03\0\0\0\x08\x00" + V4, 8 + len(V4)), ""),
    (ethernet(ipv4(V4, protocol=4)), ""),
    (ethernet(ipv4(V6, protocol=41)), ""),
    (ethernet(ipv6(V4, following=4), 0x86DD), ""),
    (ethernet(ipv4(b"\x30\0" + FRAME, protocol=97)), ""),
    (ethernet(ipv4(mpls(V4), protocol=137)), ""),
    (ethernet(ipv4(b"\x06\x04" + bytes(22) + SEGMENT, protocol=51)), ""),
    (in_gre(gre(ipv4(V4, protocol=4))), ""),
    (in_gre(gre(ipv6(extension(6, SEGMENT), following=0), 0x86DD)), ""),
    *((wrap(ip), network) for wrap, network in handmade_links.TUNNELS.values() for ip in (V4, V6)),
]


@pytest.mark.parametrize(("packet", "network"), WRAPPED)
def test_networks_and_tunnels(packet: bytes, network: str) -> None:
    layers, segments = one(packet)
    assert payloads([segments]) == [PAYLOAD]
    assert layers.networks[segments.network[0]] == network
    inner = address_text(*segments.source[0].tolist())
    assert inner in (A, "fd00::1")
    # The padding of a short frame, or a trailer, is no payload.
    assert payloads([one(packet + b"trailer")[1]]) == [PAYLOAD]


@pytest.mark.thinned(3)
@pytest.mark.parametrize(("packet", "link"), [*((packet, 1) for packet, _ in WRAPPED), *LINKS])
def test_truncated_packets_give_a_part_or_nothing(packet: bytes, link: int) -> None:
    whole = pcap([(1, packet)] * len(packet), link=link)
    data = whole[:24] + b"".join(
        struct.pack("<IIII", 0, 1, snap, len(packet)) + packet[:snap] for snap in range(len(packet))
    )
    _, found = read(data)
    got = payloads(found)
    assert got == sorted(got, key=len)
    assert got[-1] == PAYLOAD[:-1]
    assert all(PAYLOAD.startswith(each) for each in got)
    assert {int(each) for segments in found for each in segments.length} == {len(PAYLOAD)}


JUMBO = ipv6(
    b"\x06\x00\xc2\x04" + struct.pack(">I", 8 + len(SEGMENT)) + SEGMENT, following=0, length=0
)


@pytest.mark.parametrize(
    "payload",
    [
        ipv6(extension(6, SEGMENT), following=0),
        ipv6(extension(43, extension(60, extension(6, SEGMENT, bytes(14)))), following=0),
        ipv6(part(0, False, 6, SEGMENT), following=44),
        ipv6(extension(44, part(0, False, 60, extension(6, SEGMENT))), following=0),
        ipv6(b"\x06\x04" + bytes(22) + SEGMENT, following=51),
        ipv6(SEGMENT, length=0),
        JUMBO,
    ],
)
def test_ipv6_extension_headers(payload: bytes) -> None:
    assert payloads([one(ethernet(payload, 0x86DD))[1]]) == [PAYLOAD]
    assert payloads([one(in_gre(gre(payload, 0x86DD)))[1]]) == [PAYLOAD]


def test_ipv4_and_tcp_options_are_skipped() -> None:
    segment = tcp(PAYLOAD, options=bytes(12))
    assert payloads([one(ethernet(ipv4(segment, options=bytes(8))))[1]]) == [PAYLOAD]


def test_a_length_of_0_extends_to_the_end_of_the_frame() -> None:
    assert payloads([one(ethernet(ipv4(SEGMENT, length=0)))[1]]) == [PAYLOAD]
    _, segments = one(ethernet(ipv4(SEGMENT, length=0)), snap=60)
    assert (segments.captured[0], segments.length[0]) == (60 - 54, len(PAYLOAD))


def test_bytes_beyond_the_original_length_are_padding() -> None:
    for packet, original in ((FRAME, 5), (ethernet(ipv4(SEGMENT, length=0)), len(FRAME))):
        padded = packet + bytes(30)
        data = pcap([]) + struct.pack("<IIII", 1, 1, len(padded), original) + padded
        assert payloads(read(data)[1]) == [PAYLOAD]


def test_truncated_segments_keep_the_original_length() -> None:
    for snap in range(54 - 6, len(FRAME)):
        _, segments = one(FRAME, snap=snap)
        assert segments.length[0] == len(PAYLOAD)
        assert payloads([segments]) == [PAYLOAD[: max(snap - 54, 0)]]


def test_an_inner_packet_ends_with_its_outer_one() -> None:
    inner = ipv4(SEGMENT, length=len(V4) + 4) + b"pads"
    packet = ethernet(struct.pack(">HHHH", 0x1100, 1, len(V4) + 2, 0x21) + inner, 0x8864)
    assert payloads([one(packet)[1]]) == [PAYLOAD]
    without_length = udp(vxlan(ethernet(ipv4(SEGMENT, length=0)), 1), (9, 4789))
    packet = ethernet(ipv4(without_length + b"pads", protocol=17))
    assert payloads([one(packet)[1]]) == [PAYLOAD]
    assert payloads([one(in_gre(gre(JUMBO + b"pads", 0x86DD)))[1]]) == [PAYLOAD]


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (FRAME[:13], "malformed"),
        (FRAME[:33], "malformed"),
        (FRAME[:40], "malformed"),
        (ethernet(V4, 0x86DD), "malformed"),
        (ethernet(b"\x43" + V4[1:]), "malformed"),
        (ethernet(b"\x4f" + ipv4(b"")[1:]), "malformed"),
        (ethernet(ipv4(SEGMENT, length=19)), "malformed"),
        (ethernet(ipv4(SEGMENT[:12] + b"\x40" + SEGMENT[13:])), "malformed"),
        (ethernet(ipv4(SEGMENT[:12] + b"\xf0" + SEGMENT[13:])), "malformed"),
        (ethernet(ipv6(b"\x06\xff" + bytes(6), following=0), 0x86DD), "malformed"),
        (ethernet(ipv6(extension(0, b"") * 40, following=0), 0x86DD), "malformed"),
        (ethernet(V4, tags=[(0x8100, 1)] * 5), "malformed"),
        (ethernet(b"", 0x8847), "malformed"),
        (ethernet(struct.pack(">I", 5) * 9, 0x8847), "malformed"),
        (in_udp(vxlan(FRAME[:20], 1), 4789), "malformed"),
        (ethernet(b"", 0x0806), "not IP"),
        (ethernet(ipv4(bytes(8), protocol=17)), "not TCP"),
        (in_udp(bytes(8) + FRAME, 4789), "not TCP"),
        (in_gre(gre(FRAME, 0x880B, 0x2001)), "not TCP"),
        (ethernet(b"\x42\x42\x03" + bytes(30), 33), "not TCP"),
        (
            ethernet(
                ipv6(
                    b"\x06\x00\xc2\x04" + struct.pack(">I", 1 << 30) + SEGMENT,
                    following=0,
                    length=0,
                ),
                0x86DD,
            ),
            "malformed",
        ),
    ],
)
def test_packets_without_a_segment_are_counted(packet: bytes, reason: str) -> None:
    layers, found = read(pcap([(1, packet), (2, FRAME)]))
    assert payloads(found) == [PAYLOAD]
    assert layers.passed_over == {reason: 1}


def test_endlessly_nested_packets_are_malformed() -> None:
    packet = V4
    for _ in range(40):
        packet = ipv4(packet, protocol=4)
    layers, _ = read(pcap([(1, ethernet(packet))]))
    assert layers.passed_over == {"malformed": 1}


def fragments_v4(size: int = 8, number: int = 1) -> list[bytes]:
    parts = []
    for at in range(0, len(SEGMENT), size):
        more = 0x2000 if at + size < len(SEGMENT) else 0
        piece = SEGMENT[at : at + size]
        parts.append(ethernet(ipv4(piece, number=number, fragment=more | at // 8)))
    return parts


def fragments_v6() -> list[bytes]:
    cut = [SEGMENT[at : at + 16] for at in range(0, len(SEGMENT), 16)]
    return [
        ethernet(ipv6(part(16 * i, i < len(cut) - 1, 6, each), following=44), 0x86DD)
        for i, each in enumerate(cut)
    ]


@pytest.mark.parametrize("parts", [fragments_v4(), fragments_v4(16), fragments_v6()])
@pytest.mark.parametrize("window_bytes", [1, 1 << 20])
def test_fragments_in_any_order_in_any_window(parts: list[bytes], window_bytes: int) -> None:
    orders = (parts, parts[::-1], parts[1:] + parts[:1], parts[:2] + parts)
    for order in orders:
        packets = [*order[:-1], FRAME, order[-1], FRAME]
        layers, found = read(pcap(enumerate(packets)), window_bytes)
        assert payloads(found) == [PAYLOAD] * 3
        assert [int(each) for segments in found for each in segments.packet] == [
            len(order) - 1,
            len(order),
            len(order) + 1,
        ]
        assert layers.passed_over == {}


def test_fragments_of_tunnels() -> None:
    outer = udp(vxlan(FRAME, 100), (9, 4789))
    packets = [
        ethernet(ipv4(outer[:64], protocol=17, fragment=0x2000)),
        ethernet(ipv4(outer[64:], protocol=17, fragment=8)),
    ]
    layers, found = read(pcap(enumerate(packets)))
    assert payloads(found) == [PAYLOAD]
    assert layers.networks == ["", "vni 100"]


def test_packets_of_incomplete_fragments_are_known() -> None:
    layers, _ = read(pcap(enumerate([FRAME, *fragments_v4()[:-1], FRAME])), 1)
    assert layers.incomplete_packets == list(range(1, len(fragments_v4())))
    assert [layers.network_number(name) for name in ("", "vlan 7", "vlan 8", "vlan 7")] == [
        0,
        1,
        2,
        1,
    ]
    assert layers.networks == ["", "vlan 7", "vlan 8"]


def test_incomplete_fragments_are_counted() -> None:
    layers, found = read(pcap(enumerate(fragments_v4()[:-1] + fragments_v4(number=2)[1:])))
    assert payloads(found) == []
    assert layers.passed_over == {"IP datagrams of which fragments are missing": 2}
    assert layers.evicted == 0


def test_incomplete_datagrams_make_room_for_new_ones() -> None:
    firsts = (fragments_v4(number=each)[0] for each in range(MAX_INCOMPLETE + 3))
    layers, _ = read(pcap(enumerate(firsts)))
    assert layers.evicted == 3


def test_unknown_link_types_are_skipped() -> None:
    layers, _ = read(pcap([(1, FRAME)], link=147))
    assert layers.passed_over == {"link type 147 (USER0) is not read": 1}
    assert layers.unread_links == {147: 1}


PDUS = [handmade_links.exported_pdu(ip) for ip in (V4, V6)]


def test_exported_pdus_are_numbered() -> None:
    def pdu(
        payload: bytes, *, reply: bool = False, port: int = 50000, name: bytes = b"data"
    ) -> bytes:
        ends = {"source": B, "target": A} if reply else {}
        ports = (9092, port) if reply else (port, 9092)
        return handmade_links.exported_pdu(ipv4(tcp(payload, ports=ports), **ends), name)  # type: ignore[arg-type]

    packets = [
        pdu(b"one"),
        pdu(b"other", port=50001),
        pdu(b"answer", reply=True),
        pdu(b"two2"),
        pdu(b"", reply=True),
        pdu(b"x", reply=True),
    ]
    for window_bytes in (1, 1 << 20):
        _, found = read(pcap(enumerate(packets), link=252), window_bytes)
        assert payloads(found) == [b"one", b"other", b"answer", b"two2", b"", b"x"]
        numbers = [
            (int(seq), int(ack), int(flags) & 255)
            for segments in found
            for seq, ack, flags in zip(segments.seq, segments.ack, segments.flags, strict=True)
        ]
        assert numbers == [(1, 1, 16), (1, 1, 16), (1, 4, 16), (4, 7, 16), (7, 8, 16), (7, 8, 16)]
    assert address_text(*found[-1].source[2].tolist()) == B
    assert (found[-1].source_port[2], found[-1].target_port[2]) == (9092, 50000)


@pytest.mark.parametrize("packet", PDUS)
def test_truncated_exported_pdus(packet: bytes) -> None:
    for snap in range(len(packet)):
        layers, found = read(pcap([(1, packet)], link=252, snap=snap))
        got = payloads(found)
        assert got == [PAYLOAD[: len(PAYLOAD) - len(packet) + snap]] or layers.passed_over == {
            "malformed": 1
        }


def test_exported_pdus_of_other_transports_are_passed_over() -> None:
    is_udp = PDUS[0].replace(struct.pack(">HHI", 24, 4, 2), struct.pack(">HHI", 24, 4, 3))
    has_no_address = PDUS[0].replace(struct.pack(">HH", 20, 4), struct.pack(">HH", 200, 4))
    layers, found = read(pcap(enumerate([is_udp, has_no_address]), link=252))
    assert payloads(found) == []
    assert layers.passed_over == {"not TCP": 2}


WIRELESS_WITHOUT_IP = {
    "encrypted IEEE 802.11 frame": handmade_links.wireless(V4, flags=0x41),
    "aggregate of IEEE 802.11 frames": handmade_links.wireless(V4, 0x88, 1, b"\x80\0"),
    "not IP": handmade_links.wireless(V4, 0x80),
    "malformed": handmade_links.wireless(V4)[:20],
}


@pytest.mark.parametrize("reason", WIRELESS_WITHOUT_IP)
def test_wireless_frames_without_a_segment(reason: str) -> None:
    layers, found = read(pcap([(1, WIRELESS_WITHOUT_IP[reason])], link=105))
    assert payloads(found) == []
    assert layers.passed_over == {reason: 1}
    parts = [handmade_links.wireless(V4, 0x48, 1), handmade_links.wireless(V4, part=1)]
    assert read(pcap(enumerate(parts), link=105))[0].passed_over == {"not IP": 2}


@pytest.mark.parametrize(
    ("packet", "link", "unread"),
    [
        (FRAME, 149, {149: 1}),
        (handmade_links.pktap(FRAME, 147), 149, {147: 1}),
        (handmade_links.pktap(FRAME, 1 << 30), 258, {65535: 1}),
        (handmade_links.ppi(FRAME, 1000), 192, {1000: 1}),
        (FRAME, 10000, {10000: 1}),
    ],
)
def test_unread_links_inside_others(packet: bytes, link: int, unread: dict[int, int]) -> None:
    assert read(pcap([(1, packet)], link=link))[0].unread_links == unread


def test_links_in_each_other_without_end_are_malformed() -> None:
    for wrap, link in ((handmade_links.pktap, 258), (handmade_links.ppi, 192)):
        packet = FRAME
        for _ in range(40):
            packet = wrap(packet, link)
        assert read(pcap([(1, packet)], link=link))[0].passed_over == {"malformed": 1}


def test_tunnels_on_chosen_ports() -> None:
    cases = {
        "vxlan": vxlan(FRAME, 5),
        "geneve": geneve(FRAME, 5),
        "vxlan-gpe": handmade_links.vxlan_gpe(FRAME, 3, 5),
        "vxlan_gpe": handmade_links.vxlan_gpe(FRAME, 3, 5),
        "gtp": handmade_links.gtp(V4),
        "mpls": mpls(V4),
    }
    for name, payload in cases.items():
        data = pcap([(1, in_udp(payload, 10800)), (2, in_udp(payload, 10801))])
        assert payloads(read(data)[1]) == []
        one_port = read(data, decode_as=[f"udp.port==10800,{name}"])[1]
        assert payloads(one_port) == [PAYLOAD], name
        assert len(payloads(read(data, decode_as=[f"udp.port == 10800-10801, {name}"])[1])) == 2
    usual = pcap([(1, in_udp(vxlan(FRAME, 5), 4789))])
    assert payloads(read(usual, decode_as=["udp.port==4789,gtp"])[1]) == []


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("vxlan", "takes udp.port==PORT,PROTOCOL"),
        ("udp.port==x,vxlan", "takes udp.port==PORT,PROTOCOL"),
        ("tcp.port==9092,kafka", "Kafka on a TCP port: --port N"),
        ("sctp.port==1,vxlan", "not sctp.port"),
        ("udp.port==1,vxlann", "not 'vxlann'"),
        ("udp.port==0,vxlan", "ports from 1 to 65535"),
        ("udp.port==65536,vxlan", "ports from 1 to 65535"),
        ("udp.port==9-8,vxlan", "ports from 1 to 65535"),
    ],
)
def test_invalid_rules_of_tunnels(rule: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Layers(decode_as=[rule])


def test_a_network_has_one_number_in_any_order() -> None:
    inside = in_gre(gre(ethernet(V4, tags=[(0x8100, 7)]), 0x6558))
    plain = ethernet(V4, tags=[(0x8100, 7)])
    for window_bytes in (1, 1 << 20):
        for packets in ([inside, plain, inside], [plain, inside, plain]):
            layers, found = read(pcap(enumerate(packets)), window_bytes)
            assert layers.networks == ["", "vlan 7"]
            assert [int(each) for segments in found for each in segments.network] == [1, 1, 1]


@pytest.mark.parametrize("way", MODES)
def test_many_networks(way: str) -> None:
    tags = [(0, 9), (4094, 1), *((outer, 1 + outer % 7) for outer in range(1, 500))]
    tagged = [ethernet(V4, tags=[(0x88A8, outer), (0x8100, vlan)]) for outer, vlan in tags]
    with running(way, layers_module):
        layers, (segments,) = read(pcap(enumerate(tagged + tagged[::-1])))
    names = [f"vlan {outer}.{vlan}" if outer else f"vlan {vlan}" for outer, vlan in tags]
    assert [layers.networks[each] for each in segments.network] == names + names[::-1]
    assert len(layers.networks) == 1 + len(tags)


@pytest.mark.parametrize("way", MODES)
def test_gaps_left_by_packets_without_segments_are_closed(way: str) -> None:
    packets = []
    for number in range(40):
        packets.append(ethernet(ipv4(tcp(b"%d" % number), source=f"10.0.1.{number}")))
        packets.append(in_udp(bytes(8) + FRAME, 4789) if number % 3 else WRAPPED[5][0])
        packets += fragments_v6()[: number % 4]
    with running(way, layers_module):
        layers, (segments,) = read(pcap(enumerate(packets)))
    one_by_one, found = read(pcap(enumerate(packets)), 1)
    want = [row for each in found for row in columns_of(one_by_one, each)]
    assert columns_of(layers, segments) == want
    assert len(want) > 50


def columns_of(layers: Layers, segments: Segments) -> list[tuple[object, ...]]:
    """Return the rows, with the names of networks and the bytes of payloads."""
    names = "packet time_ns source target source_port target_port seq ack flags length"
    columns = [getattr(segments, name).tolist() for name in names.split()]
    networks = [layers.networks[each] for each in segments.network]
    return list(zip(*columns, networks, payloads([segments]), strict=True))


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """Return a capture with some damaged packets."""
    seeds = [packet for packet, _ in WRAPPED + LINKS] + PDUS + fragments_v4() + fragments_v6()
    packets = []
    for _ in range(draw(st.integers(1, 5))):
        packet = bytearray(draw(st.sampled_from(seeds)))
        for _ in range(draw(st.integers(0, 4))):
            packet[draw(st.integers(0, len(packet) - 1))] = draw(st.integers(0, 255))
        packets.append(bytes(packet[: draw(st.integers(0, len(packet)))]))
    link = draw(st.sampled_from([*LINK_LAYERS, 147, 1 << 25]))
    return pcap(enumerate(packets), link=link)


@given(hostile())
def test_damaged_packets_are_skipped(whole: bytes) -> None:
    layers, found = read(whole)
    one_by_one, each = read(whole, 1)
    assert [columns_of(layers, segments) for segments in found] == [
        [row for segments in each for row in columns_of(one_by_one, segments)]
    ]
    assert layers.passed_over == one_by_one.passed_over
    for segments in found:
        assert (segments.captured >= 0).all()
        assert (segments.captured <= segments.length).all()
        assert (segments.start + segments.captured <= len(segments.data)).all()


@given(hostile())
def test_python_and_compiled_kernels_agree(whole: bytes) -> None:
    reads = []
    for way in MODES:
        with running(way, layers_module):
            layers, (segments,) = read(whole)
        reads.append((layers.networks, layers.passed_over, columns_of(layers, segments)))
    assert reads[0] == reads[1]


TSHARK = which("tshark")

# Packets with another payload size in tshark, and why ours is right.
DIFFERS = {
    # The IP length is longer than the frame: bytes are missing, as the next sequence number shows.
    "zeek__reassembly.pcap": {6, 25, 34, 38, 84},
    # BIG TCP: tshark 4.0 doesn't know an IPv6 payload length of 0.
    "tcpdump__bigtcp-ipv6.pcap": {0},
}


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed")
@each_part
def test_segments_of_shared_captures_equal_those_of_tshark(shared: Path, part: int) -> None:
    fields = ["frame.number", "tcp.srcport", "tcp.dstport", "tcp.seq_raw", "tcp.len"]
    for file in shared_captures(shared, part):
        shown = subprocess.run(
            [str(TSHARK), "-r", str(file), "-Y", "tcp", "-T", "fields"]
            + [word for field in fields for word in ("-e", field)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        theirs = Counter(
            tuple(int(each) for each in line.split("\t")) for line in shown.splitlines()
        )
        layers = Layers()
        ours: Counter[tuple[int, ...]] = Counter()
        for packets in read_packets([file]):
            segments = layers.segments(packets)
            columns = (
                segments.packet + 1,
                segments.source_port,
                segments.target_port,
                segments.seq,
                segments.length,
            )
            ours.update(zip(*(column.tolist() for column in columns), strict=True))
        different = {key[0] - 1 for key in (ours - theirs) + (theirs - ours)}
        assert different == DIFFERS.get(file.name, set()), file.name


def test_addresses_of_both_families_side_by_side() -> None:
    _, (segments,) = read(pcap([(1, ethernet(V6, 0x86DD)), (2, FRAME), (3, ethernet(V6, 0x86DD))]))
    assert [address_text(*each.tolist()) for each in segments.source] == ["fd00::1", A, "fd00::1"]
    number = int(ipaddress.ip_address("fd00::2"))
    assert segments.target[0].tolist() == [number >> 64, number & (1 << 64) - 1]
