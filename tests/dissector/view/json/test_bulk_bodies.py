"""Bodies written in bulk equal those written by Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector import open_capture
from dissector.engine.records import batch_scanner, checksum, decompressor, record_decoder
from dissector.engine.tape import tape
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis, api
from dissector.protocol.records import Record, build_records, new_batch
from dissector.view.json import body_kernel, bulk_bodies
from dissector.view.json.json_program import BodyPrograms, JsonOp
from tests.corpus import each_capture
from tests.default_frames import request, response
from tests.dissector.protocol.records.record_values import FIELDS
from tests.dissector.view.bulk import (
    FETCH,
    check,
    exchange,
    fetched,
    in_bulk,
    one_by_one,
    produce,
    split,
)
from tests.example_counts import examples
from tests.kernel_modes import both
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.value_sources import Source, every_api, seeded, sources

mode = both(batch_scanner, body_kernel, checksum, decompressor, record_decoder, tape)

MESSAGES = [
    (found.key, version)
    for found in all_apis()
    for version in found.request.versions
    if version in found.response.versions
]
API_VERSIONS = 18


def frames(
    source: Source, key: int, version: int, number: int, unknown: bool = False
) -> tuple[bytes, bytes]:
    request_values = source.value(api(key).request, version, unknown)
    response_values = source.value(api(key).response, version, unknown)
    return (
        request(key, version, number, "test", **request_values)[4:],
        response(key, version, number, **response_values)[4:],
    )


@pytest.mark.thinned(2)
@given(
    chosen=st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=30),
    source=sources(),
    show_secrets=st.booleans(),
)
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
def test_messages_of_all_kinds(
    chosen: list[tuple[int, int]], source: Source, show_secrets: bool
) -> None:
    """Valid, truncated, changed, with bytes left over, with uncaptured bytes."""
    rows = []
    for number, (key, version) in enumerate(chosen):
        unknown = source.chance.randrange(5) == 0
        request_frame, response_frame = (
            source.damaged(f, keep=8) for f in frames(source, key, version, number, unknown)
        )
        row = exchange(request_frame, response_frame, source.chance.choice([0, 0, 0, 3]))
        rows.append(row._replace(request=None) if number % 7 == 6 else row)
    check(rows, show_secrets)


@pytest.mark.thinned(6)
@every_api
def test_every_version(found: Api) -> None:
    rows = [
        exchange(*frames(seeded(key, version, number), key, version, 1))
        for key, version in MESSAGES
        if key == found.key
        for number in range(2)
    ]
    check(rows, show_secrets=True)


@st.composite
def contents(draw: st.DrawFn) -> bytes | None:
    data = bytearray(build_records(draw(FIELDS)))
    if draw(st.integers(0, 3)) == 0 and data:
        data[draw(st.integers(0, len(data) - 1))] ^= draw(st.integers(1, 255))
    if draw(st.integers(0, 3)) == 0:
        data = data[: draw(st.integers(0, len(data)))]
    return draw(st.sampled_from([bytes(data)] * 5 + [None]))


@pytest.mark.thinned(2)
@given(
    st.lists(
        st.builds(
            lambda make, fields: make(*fields),
            st.sampled_from([produce, fetched]),
            st.lists(contents(), max_size=3),
        ),
        max_size=4,
    )
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_records_of_all_kinds(rows: list[ExchangeRow]) -> None:
    check(rows)


HEADERS = (("k", b"v"), ("\udcff\n\u2028", None), ("", b""))
RECORDS = [
    Record(key=b"k", value=b"v" * 200),
    Record(headers=HEADERS, offset_delta=3, timestamp_delta=-70_000, attributes=-1),
    Record(key=b"", value=None, timestamp_delta=1 << 50),
]


def batch(**more: Any) -> bytes:
    return new_batch(RECORDS, **more).to_bytes()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.usefixtures("no_python")
def test_records_are_written_by_the_loop(codec: str) -> None:
    content = batch(codec=codec)
    cut = [content + content[:size] for size in (1, 9, 13, 17, 40)]
    table = split(to_exchange_table([produce(content, None, b""), fetched(content * 2, *cut)]))
    texts = in_bulk(table)
    assert texts == one_by_one(table)
    assert (texts[0][0] or "").count('"value": "' + "76" * 200) == 1


@pytest.mark.parametrize("wrong", ["crc", "own", "far", "twice"])
def test_values_left_to_python(wrong: str) -> None:
    content, topic = bytearray(batch()), "orders"
    match wrong:
        case "crc":
            content[20] ^= 1
        case "own":
            topic = "__cluster_metadata"
        case "far":
            content = bytearray(batch(base_offset=(1 << 63) - 1))
        case _:
            content += b"\0" * 11 + b"\1" * 40
    check([produce(bytes(content), batch(), topic=topic), produce(batch())])


@pytest.mark.usefixtures("no_python")
def test_capacity_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [produce(batch()), fetched(batch(codec="gzip"), batch()[:30]), fetched(None)] * 2
    table = split(to_exchange_table(rows))
    expected = one_by_one(table)
    for room in (1, 700, 3000, 5000):
        monkeypatch.setattr(bulk_bodies, "OUT_BYTES", room)
        assert in_bulk(table) == expected


def test_interleaved_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_bodies, "PORTION_RECORDS", 2)
    rows = [fetched(batch(codec=codec)) for codec in ("lz4", "gzip", "none", "zstd")]
    check([rows[0], fetched(None), *rows, exchange(None), *rows, fetched(None)])


@pytest.mark.parametrize("error", [0, 35])
def test_responses_in_unknown_versions(error: int) -> None:
    for version in (0, 3, 99):
        response_frame = response(API_VERSIONS, min(version, 4), 1, error_code=error)[4:]
        request_frame = request(API_VERSIONS, 3, 1)[4:]
        request_frame = request_frame[:2] + version.to_bytes(2, "big") + request_frame[4:]
        check(
            [exchange(request_frame, response_frame), exchange(request_frame, response_frame[:5])]
        )


def test_unknown_apis() -> None:
    frame = b"\x7f\xff\0\0\0\0\0\1\xff\xff"
    newer = request(FETCH, 11, 1)[4:]
    newer = newer[:2] + b"\0\x63" + newer[4:]
    rows = [exchange(frame, b"\0\0\0\1"), exchange(newer, b"\0\0\0\1\0"), exchange(b"\0", b"\0")]
    assert check(rows) == [(None, None)] * 3


def test_no_exchanges() -> None:
    assert check([]) == []


@pytest.mark.thinned(4)
@each_capture("body texts")
def test_bodies_of_captures(path: Path) -> None:
    for window in open_capture(path).windows():
        table = window.exchanges
        assert in_bulk(table) == one_by_one(table)


def test_declarations_fit_the_stack_of_the_kernel() -> None:
    programs = BodyPrograms(show_secrets=True)
    for key, version in MESSAGES:
        for kind in ("request", "response"):
            start = programs.start(key, version, kind)
            steps = programs.code[start:]
            known = sum(
                each.tag_count + 1 for each in steps if each.op == JsonOp.TAGS and each.tag_count
            )
            assert known < body_kernel.MAX_TAG_SLOTS
            assert steps[-1].op in (JsonOp.END, JsonOp.FALL_BACK)
