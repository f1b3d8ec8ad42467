"""Sizes of canonical forms, against the codecs: every API, side and version, with odd bytes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from conform.screens import layout_table
from conform.screens.canonical_sizes import canonical_sizes
from conform.screens.layout_table import NO_LAYOUT, LayoutTable
from conform.screens.message_layout import canonical_limits
from dissector.engine.facts.fact_kernel import VERSIONS
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape import tape
from dissector.protocol.api import Api, Kind
from dissector.protocol.apis import api
from dissector.protocol.messages import decode_request, decode_response
from dissector.protocol.program import programs
from tests.default_frames import request, response
from tests.value_sources import Source, Version, every_api, go_through, versions

API_VERSIONS, FETCH = 18, 1


@pytest.fixture(autouse=True)
def laid_out_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_table, "MIN_MESSAGES", 1)


def _is_shortest(key: int, version: int, kind: Kind, frame: bytes) -> bool | None:
    """Return whether columns say that a frame is canonical but for values; None: they can't."""
    table = LayoutTable(kind, (canonical_limits,), None)
    layouts = table.numbers(np.array([key * VERSIONS + version]))
    if layouts[0] == NO_LAYOUT:
        return None
    columns, data = table.columns(), np.frombuffer(frame, np.uint8)
    read = tape.read(
        data,
        data[:0],
        np.zeros(1, np.int64),
        np.array([len(frame)]),
        columns.step[layouts],
        programs(),
        np.ones(len(programs().field_refs), np.uint8),
    )
    exchanges = cast(Exchanges, _Bytes(data))
    at = columns.rows_of(read, layouts)
    sizes = canonical_sizes(exchanges, read, at, columns, layouts)
    return bool(read.state[0] == tape.FITS and sizes[0] == len(frame))


class _Bytes:
    """The bytes of a window."""

    def __init__(self, data: Any) -> None:
        self.data, self.carry_over = data, data[:0]


def _is_built_again(key: int, version: int, kind: Kind, frame: bytes) -> bool:
    """Return whether the codec builds the same bytes from the decoded body."""
    message = decode_request(frame) if kind == "request" else decode_response(frame, key, version)
    found = api(key)
    assert found is not None
    if message.body is None:
        return False
    built = found.schema(kind).codec(version).build(message.body)
    return built == frame[message.body_start :]


def _frame(key: int, version: int, kind: Kind, values: dict[str, Any]) -> bytes:
    return (request if kind == "request" else response)(key, version, 1, **values)[4:]


@pytest.mark.thinned(3)
@every_api
def test_each_version(found: Api) -> None:
    def check(one: Version, source: Source) -> None:
        key, kind, version, schema = one
        frame = _frame(key, version, kind, source.value(schema, version, False))
        assert _is_shortest(key, version, kind, frame) in (True, None)
        odd = source.damaged(frame, keep=8 if kind == "request" else 4)
        if _is_shortest(key, version, kind, odd):
            assert _is_built_again(key, version, kind, odd)

    go_through(versions(found), check, times=2)


FEATURES = _frame(
    API_VERSIONS,
    3,
    "response",
    {
        "supported_features": [
            {"name": "metadata.version", "min_version": 1, "max_version": number}
            for number in range(8)
        ],
        "finalized_features_epoch": 7,
        "zk_migration_ready": True,
    },
)
READY = b"\x03\x01\x01"

REPLICA = _frame(
    FETCH, 17, "request", {"replica_state": {"replica_id": 1, "replica_epoch": -1}, "rack_id": "r"}
)
STATE = b"\x01\x01\x0d\x00\x00\x00\x01" + b"\xff" * 8 + b"\x00"


OF_FEATURES: tuple[int, int, Kind] = API_VERSIONS, 3, "response"
OF_REPLICA: tuple[int, int, Kind] = FETCH, 17, "request"


@pytest.mark.parametrize(("of", "frame"), [(OF_FEATURES, FEATURES), (OF_REPLICA, REPLICA)])
def test_tagged_fields_are_canonical(of: tuple[int, int, Kind], frame: bytes) -> None:
    assert _is_built_again(*of, frame)
    assert _is_shortest(*of, frame)


@pytest.mark.parametrize(
    ("frame", "old", "new"),
    [
        (FEATURES, READY, b"\x03\x01\x00"),
        (FEATURES, READY, b"\x03\x81\x00\x01"),
        (FEATURES, READY, b"\x83\x00\x01\x01"),
        (FEATURES, b"\x01\x08" + bytes(7) + b"\x07", b"\x01\x08" + b"\xff" * 8),
        (REPLICA, STATE, b"\x01\x01\x0d" + b"\xff" * 12 + b"\x00"),
        (REPLICA, STATE, STATE[:-1] + b"\x01\x63\x00"),
        (REPLICA, STATE, b"\x01\x01\x8d\x00" + STATE[3:]),
    ],
    ids=["default", "size", "tag", "number", "struct", "unknown", "struct size"],
)
def test_odd_tags(frame: bytes, old: bytes, new: bytes) -> None:
    assert frame.count(old) == 1
    of = OF_FEATURES if frame is FEATURES else OF_REPLICA
    assert not _is_shortest(*of, frame.replace(old, new))
