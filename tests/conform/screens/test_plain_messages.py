"""Message sets of old Produce and Fetch: verdicts on them in columns are those on objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from conform.judge import Judge
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.records import UnreadBatch, build_records, new_message_set, parse_records
from tests import tcp_captures
from tests.conform.produce_scenes import RECORDS, batch, fetch, produce
from tests.conform.scene import Scene, capture_rules
from tests.conform.screens.test_window_screens import _assert_same, _opened
from tests.conform.screens.test_window_screens import screened_always as screened_always

_MESSAGES = [
    build_records(new_message_set(RECORDS, magic=magic, codec=codec))
    for magic in (0, 1)
    for codec in ("none", "gzip", "snappy", "lz4")
]
_LAST_WITH_MESSAGES_ONLY = {produce: 2, fetch: 3}
_LAST_FETCH_OF_MAGIC_0 = 1


def _changed_message(magic: int = 1, codec: str = "none", **fields: Any) -> bytes:
    """Return a message set whose first message has other fields, and a matching CRC."""
    first, *others = new_message_set(RECORDS, magic=magic, codec=codec)
    return replace(first, **fields).to_bytes(fix_crc=True) + build_records(others)


@pytest.mark.parametrize(
    "data",
    [
        *_MESSAGES,
        *(_changed_message(magic, attributes=8) for magic in (0, 1)),  # LogAppendTime
        *(_changed_message(magic, attributes=16) for magic in (0, 1)),
        *(_changed_message(magic, "gzip", attributes=-127) for magic in (0, 1)),
        *(_changed_message(magic, "zstd") for magic in (0, 1)),
        _changed_message(attributes=3, payload=b"\xff" * 8),  # a codec, but no value
        _changed_message(attributes=7, payload=b"\xff" * 8),  # likewise, of no codec
        *(_changed_message(offset=each) for each in (-(2**63), -1, 1, 200, 2**63 - 1)),
        *(_changed_message(codec="gzip", offset=each) for each in (-(2**63), 0, 200, 2**63 - 1)),
        _changed_message(offset=2**63 - 1) + _changed_message(offset=-(2**63)),
        _changed_message(timestamp=-(2**63)),
        _changed_message(crc=1).replace(RECORDS[0].value or b"", b"ONE"),
        _MESSAGES[4] + _MESSAGES[0],
        _MESSAGES[0] + _MESSAGES[4][:-5],
        _MESSAGES[5] + _MESSAGES[4][:8],
        _MESSAGES[4][:-40],
        batch().to_bytes() + _MESSAGES[4][:-5],
        batch().to_bytes() + batch(base_offset=2).to_bytes()[:-5],
        _MESSAGES[0] + batch().to_bytes(),
        batch().to_bytes(),
        b"",
    ],
)
def test_verdicts_of_message_sets(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    connection = scene.connect()
    for version in range(5):
        produce(connection, 2 * version, data, data, version=version)
        for number, offset in enumerate((0, 1, 50)):
            fetch(connection, 10 + 3 * version + number, data, version=version, offset=offset)
    file = tcp_captures.pcap_file(scene.wire.packets)
    _assert_same(partial(_opened, file), monkeypatch)


@pytest.mark.parametrize(
    ("exchange", "data"),
    [
        *((produce, each) for each in _MESSAGES),
        *((fetch, each + cut) for each in _MESSAGES for cut in (b"", each[:-1])),
    ],
)
def test_message_sets_need_no_decoded_message(
    exchange: Callable[..., None], data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only in later versions, or if Fetch returns a newer magic than it may."""
    scene = Scene()
    connection = scene.connect()
    versions = range(_LAST_WITH_MESSAGES_ONLY[exchange] + 2)
    for version in versions:
        exchange(connection, version, data, version=version)
    decoded: set[int | None] = set()
    for name in ("_decoded_request", "_decoded_response"):
        decode = getattr(Exchange, name)
        monkeypatch.setattr(
            Exchange,
            name,
            lambda each, decode=decode: (decoded.add(each.api_version), decode(each))[1],
        )
    rules = [each for each in capture_rules() if each.on == "batch" or each.id in ("L02", "L04")]
    verdict = Judge(rules).judge_capture(_opened(tcp_captures.pcap_file(scene.wire.packets)))
    is_new = exchange is fetch and data[16] == 1
    assert decoded == {versions[-1], *(range(_LAST_FETCH_OF_MAGIC_0 + 1) if is_new else ())}
    count = sum(not isinstance(each, UnreadBatch) for each in parse_records(data, may_be_cut=True))
    assert verdict.tallies["B02"].judged == len(versions) * count
