"""The plaintext of a connection that was encrypted, as packets of plain TCP."""

from __future__ import annotations

from dissector.capture.columns import ACK, FIN, RST
from dissector.capture.writing.plain_connections import PlainConnection, PlainMessage

CLIENT, BROKER = (0, 0xFFFF << 32 | 0x0A000001, 50000), (0, 0xFFFF << 32 | 0x0A000002, 9092)
FLAGS_AT, SEQUENCE_AT = 14 + 20 + 13, 14 + 20 + 4


def flags_and_sequence(packet: bytes) -> tuple[int, int]:
    sequence = int.from_bytes(packet[SEQUENCE_AT : SEQUENCE_AT + 4], "big")
    return packet[FLAGS_AT], sequence


def test_a_side_that_closes_and_then_resets_does_both_once() -> None:
    connection = PlainConnection(CLIENT, BROKER)
    opened = list(connection.open())
    assert list(connection.open()) == []
    data = b"a message"
    sent = list(connection.message(PlainMessage(0, 0, len(data), len(data)), data))
    ends = [packet for flags in (FIN, FIN, RST, RST) for packet in connection.end(0, flags | ACK)]
    assert list(connection.end(1, ACK)) == []
    first = flags_and_sequence(sent[0])[1]
    assert flags_and_sequence(opened[0])[1] == first - 1
    assert [flags_and_sequence(each) for each in ends] == [
        (FIN | ACK, first + len(data)),
        (RST | ACK, first + len(data) + 1),
    ]
