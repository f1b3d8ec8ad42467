"""The checks of the kernels equal those of the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dissector.engine.correlation.correlator_rows import Outcome, Verdict
from dissector.engine.correlation.frame_checks import (
    check_header,
    check_in_sync,
    check_version,
    is_kerberos,
    is_like_header,
    is_readable,
    is_response_due,
    is_tls,
    is_unknown_request,
)
from dissector.engine.correlation.known_apis import NOT_LOADED, UNKNOWN, load_api
from dissector.engine.correlation.state_tables import StateTables
from dissector.kernel.call import _to_python
from dissector.protocol.apis import NAMES, all_apis
from dissector.protocol.expected_response import expects_response
from tests.default_frames import request
from tests.example_counts import examples
from tests.reference.correlation import login_phase, plausible_frames

PRODUCE, METADATA = 0, 3
LIMIT = 10_000


def loaded(*keys: int) -> Any:
    """Return the state of a correlator that has loaded APIs."""
    tables = StateTables()
    for key in keys:
        load_api(tables.api_limits, key)
    return _to_python(tables.state())


STATE = loaded(*NAMES)


@pytest.mark.parametrize("key", NAMES)
def test_known_versions(key: int) -> None:
    for version in range(-1, 40):
        is_plausible = plausible_frames.is_plausible_version(key, version)
        assert (check_version(STATE, key, version) == Verdict.YES) == is_plausible


@pytest.mark.thinned(4)
@pytest.mark.parametrize(
    ("key", "version"), [(a.key, v) for a in all_apis() for v in a.request.versions]
)
def test_every_request_is_recognised(key: int, version: int) -> None:
    frame = request(key, version, 77, "client")
    assert check_header(STATE, frame, 0, len(frame), LIMIT) == Verdict.YES
    assert check_in_sync(STATE, frame, 0, len(frame)) == Verdict.YES
    assert is_like_header(frame, 0)


def header(size: int = 30, key: int = 3, version: int = 5, client: bytes = b"\0\x04test") -> bytes:
    front = size.to_bytes(4, "big", signed=True) + key.to_bytes(2, "big", signed=True)
    return front + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x07" + client


@pytest.mark.parametrize(
    ("data", "believed", "sane", "unknown"),
    [
        (header(), True, True, True),
        (header(client=b"\xff\xff"), True, True, False),
        (header(client=b"\0\0"), True, True, False),
        (header(size=7), False, False, False),
        (header(size=-1), False, False, False),
        (header(size=13), False, False, False),
        (header(size=LIMIT + 1), False, True, False),
        (header(client=b"\xff\xfe"), False, False, False),
        (header(client=b"\0\x04te\x01t"), False, True, False),
        (header(client=b"\0\x04te\xfft"), False, True, False),
        (header(size=900, client=b"\0\xfa" + b"c" * 250), False, True, False),
        (header(key=999), False, True, True),
        (header(key=1001), False, True, False),
        (header(key=999, client=b"\xff\xff"), False, True, False),
        (header(key=999, client=b"\0\x02\0\0"), False, False, False),
        (header(key=-3), False, True, False),
        (header(version=-1), False, True, False),
        (header(version=17), True, True, True),
        (header(version=18), False, True, True),
        (header(key=7, version=0, client=b"ab"), True, True, False),
        (bytes(30), False, False, False),
        (b"GET / HTTP/1.1\r\nHost", False, False, False),
    ],
)
def test_headers(data: bytes, believed: bool, sane: bool, unknown: bool) -> None:
    data += bytes(20)
    end = len(data)
    assert (check_header(STATE, data, 0, end, LIMIT) == Verdict.YES) == believed
    assert (check_in_sync(STATE, data, 0, end) == Verdict.YES) == sane
    assert is_unknown_request(data, 0, end, LIMIT) == unknown


def test_an_api_that_is_not_loaded_is_requested() -> None:
    state = loaded()
    frame = request(METADATA, 9, 1)
    assert check_header(state, frame, 0, len(frame), LIMIT) == Outcome.NEEDS_API
    assert state.counts.missing_api == METADATA
    assert state.api_limits.newest[METADATA] == NOT_LOADED
    assert state.api_limits.newest[max(NAMES) + 1] == UNKNOWN


@given(
    st.integers(0, 13),
    st.sampled_from((None, "", "client", "ø" * 80)),
    st.sampled_from((None, "", "t", "t" * 126, "t" * 127, "t" * 400)),
    st.integers(-2, 2),
)
def test_requests_with_an_expected_response(
    version: int, client_id: str | None, text: str | None, acks: int
) -> None:
    values = {"transactional_id": text} if version >= 3 else {}
    frame = request(PRODUCE, version, 1, client_id, acks=acks, timeout_ms=1, **values)
    assert is_response_due(STATE, frame, 0, len(frame)) == (acks != 0)


@given(st.integers(0, 14), st.data())
def test_responses_to_damaged_requests_are_expected_as_by_codecs(
    version: int, data: st.DataObject
) -> None:
    values = {"acks": 0, "timeout_ms": 1} if version < 14 else {}
    frame = bytearray(request(PRODUCE, min(version, 13), 1, "client", **values))
    frame[7] = version
    for at in data.draw(st.lists(st.integers(12, len(frame) - 1), max_size=3)):
        frame[at] = data.draw(st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    frame = frame[: data.draw(st.integers(4, len(frame)))]
    is_due = is_response_due(STATE, memoryview(frame), 0, len(frame))
    assert is_due == expects_response(bytes(frame[4:]))


HEADERS = st.tuples(
    st.one_of(st.integers(0, 60), st.integers(-(2**31), 2**31 - 1)),
    st.one_of(st.integers(-2, 130), st.sampled_from((999, 1000, 1023, 1024, 1500))),
    st.one_of(st.integers(-2, 20), st.sampled_from((63, 64, 999, 1000))),
    st.one_of(st.integers(-2, 30), st.sampled_from((249, 250))),
    st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)),
)


@given(HEADERS)
@settings(max_examples=examples(500))
def test_headers_are_judged_as_by_the_reference(header: tuple[int, int, int, int, bytes]) -> None:
    size, key, version, client_id, text = header
    numbers = (size, 4), (key, 2), (version, 2), (1, 4), (client_id, 2)
    data = b"".join(each.to_bytes(count, "big", signed=True) for each, count in numbers) + text
    end = len(data)
    is_plausible = plausible_frames.plausible_request_size(data, 0, LIMIT) is not None
    assert (check_header(STATE, data, 0, end, LIMIT) == Verdict.YES) == is_plausible
    in_sync = plausible_frames.is_plausible_request(data, 0)
    assert (check_in_sync(STATE, data, 0, end) == Verdict.YES) == in_sync
    is_unknown = plausible_frames.unknown_request_size(data, 0, LIMIT) is not None
    assert is_unknown_request(data, 0, end, LIMIT) == is_unknown
    is_candidate = 0 in plausible_frames.request_candidates(data, 0)
    assert is_like_header(data, 0) == is_candidate


@given(st.one_of(st.binary(max_size=12), st.text(max_size=6).map(lambda each: each.encode())))
@example("grün-1".encode())
@example(b"a\x7f")
@example(b"caf\xe9")
@settings(max_examples=examples(500))
def test_readable_text(text: bytes) -> None:
    assert is_readable(text, 0, len(text)) == plausible_frames.is_readable(text)


EDGES = 0, 3, 4, 0x13, 0x14, 0x17, 0x18, 0x48, 0x49


@given(st.lists(st.sampled_from(EDGES), min_size=5, max_size=8).map(bytes))
def test_tls_records(data: bytes) -> None:
    assert is_tls(data, 0) == plausible_frames.is_tls(data)


@given(st.integers(0, 5), st.integers(0, 300), st.integers(-1, 1), st.integers(0, 400))
def test_first_tokens_of_kerberos(more: int, length: int, wrong: int, cut: int) -> None:
    size = (
        bytes((0x80 | more,)) + length.to_bytes(more, "big") if more > 1 else bytes((length & 127,))
    )
    body = b"\x60" + size + b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02" + bytes(length)
    inside = 1 + len(size) + (length if more > 1 else length & 127) + wrong
    data = (inside.to_bytes(4, "big") + body)[:cut]
    assert is_kerberos(data, 0, len(data)) == login_phase.is_kerberos(data)


def test_memory_of_limits_covers_all_apis() -> None:
    tables = StateTables()
    assert len(tables.api_limits.newest) > max(NAMES)
    assert np.count_nonzero(np.asarray(tables.api_limits.newest) == NOT_LOADED) == len(NAMES)
