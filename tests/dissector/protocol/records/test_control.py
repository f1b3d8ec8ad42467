from __future__ import annotations

import pytest

from dissector.protocol.records import control_type


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (b"\x00\x00\x00\x00", "ABORT"),
        (b"\x00\x00\x00\x01", "COMMIT"),
        (b"\x00\x00\x00\x02", "LEADER_CHANGE"),
        (b"\x00\x00\x00\x03", "SNAPSHOT_HEADER"),
        (b"\x00\x00\x00\x04", "SNAPSHOT_FOOTER"),
        (b"\x00\x00\x00\x05", "KRAFT_VERSION"),
        (b"\x00\x00\x00\x06", "KRAFT_VOTERS"),
        (b"\x00\x07\x00\x01and more in a later version", "COMMIT"),
        (b"\x00\x00\x00\x09", "control type 9"),
        (b"\x00\x00\xff\xff", "control type -1"),
        (b"\x00\x00\x00", None),
        (b"", None),
        (None, None),
    ],
)
def test_names(key: bytes | None, name: str | None) -> None:
    assert control_type(key) == name
