"""Recognition of Kafka frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.protocol.apis import all_apis
from tests.default_frames import request
from tests.reference.correlation import plausible_frames
from tests.reference.correlation.plausible_frames import (
    is_plausible_request,
    plausible_request_size,
    request_candidates,
    unknown_request_size,
)

ALL = [(a.key, v) for a in all_apis() for v in a.request.versions]


@pytest.mark.thinned(4)
@pytest.mark.parametrize(("key", "version"), ALL)
def test_every_request_is_recognised_and_found(key: int, version: int) -> None:
    data = request(key, version, 77, "client")
    size = len(data) - 4
    assert plausible_request_size(data, 0) == size
    assert 0 in request_candidates(data, 0)
    assert is_plausible_request(data, 0)
    assert plausible_frames.decodes_exactly(data[4:])
    assert plausible_frames.is_request(data[4:])


def header(
    size: int = 30, key: int = 3, version: int = 5, client: bytes = b"\0\x04test", rest: bytes = b""
) -> bytes:
    front = size.to_bytes(4, "big", signed=True) + key.to_bytes(2, "big", signed=True)
    return front + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x07" + client + rest


@pytest.mark.parametrize(
    ("data", "believed", "sane", "unknown"),
    [
        (header(), True, True, True),
        (header(client=b"\xff\xff"), True, True, False),
        (header(client=b"\0\0"), True, True, False),
        (header(size=7), False, False, False),
        (header(size=-1), False, False, False),
        (header(size=13), False, False, False),
        (header(client=b"\xff\xfe"), False, False, False),
        (header(client=b"\0\x04te\x01t"), False, True, False),
        (header(client=b"\0\x04te\xfft"), False, True, False),
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
    assert (plausible_request_size(data, 0) is not None) == believed
    assert is_plausible_request(data, 0) == sane
    assert (unknown_request_size(data, 0, 1000) is not None) == unknown


def test_limits() -> None:
    assert plausible_request_size(header(size=1001), 0, 1000) is None
    assert unknown_request_size(header(size=1001), 0, 1000) is None
    long = b"\0\xfa" + b"c" * 250
    assert plausible_request_size(header(size=900, client=long), 0) is None


def test_client_ids_are_strong_evidence() -> None:
    assert plausible_frames.has_client_id(header(), 0)
    for weak in (b"\xff\xff", b"\0\0", b"\0\x01a"):
        assert not plausible_frames.has_client_id(header(client=weak), 0)


@given(st.binary(max_size=60), st.sampled_from(ALL), st.binary(max_size=60))
def test_the_prefilter_passes_every_request(
    before: bytes, which: tuple[int, int], after: bytes
) -> None:
    data = before + request(*which, 5, "client") + after
    assert len(before) in request_candidates(data, 0)
    wide = range(len(data) - plausible_frames.HEADER_BYTES + 1)
    believed = {at for at in wide if plausible_request_size(data, at, 1 << 20) is not None}
    assert believed <= set(request_candidates(data, 0))


@pytest.mark.parametrize(
    ("data", "is_tls"),
    [
        (b"\x16\x03\x01\x02\x00\x01", True),
        (b"\x17\x03\x03\x40\x00\x01", True),
        (b"\x16\x03\x05\x02\x00\x01", False),
        (b"\x18\x03\x03\x00\x02\x01", False),
        (b"\x16\x03\x03\x49\x00\x01", False),
        (b"\x16\x03", False),
    ],
)
def test_tls(data: bytes, is_tls: bool) -> None:
    assert plausible_frames.is_tls(data) == is_tls


def test_text_is_readable_without_control_characters() -> None:
    assert plausible_frames.is_readable("grün-1".encode())
    for bad in (b"a\0b", b"a\x7f", b"caf\xe9"):
        assert not plausible_frames.is_readable(bad)
