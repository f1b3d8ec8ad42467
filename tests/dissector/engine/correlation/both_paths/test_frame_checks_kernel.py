"""The rules of the kernel equal those of `recognise` and `entry`, or are stricter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.correlation.both_paths.correlator_rows import Counts
from dissector.engine.correlation.both_paths.frame_checks import (
    is_plausible_request,
    is_plausible_version,
)
from dissector.engine.correlation.both_paths.frame_checks_kernel import (
    API_NOT_LOADED,
    DUE,
    FAST_PATH,
    MAX_KEYS,
    NOT_DUE,
    NOT_LOADED,
    UNDECIDED,
    UNKNOWN,
    check_first_request,
    check_request_header,
    is_response_due,
    load_api,
    new_api_limits,
    response_due,
)
from dissector.engine.correlation.objects.connection_correlator import ConnectionCorrelator
from dissector.kernel.named_rows import RowArray, dtype_of, row_of
from dissector.protocol.apis import NAMES
from dissector.protocol.expected_response import expects_response
from tests.default_frames import request
from tests.example_counts import examples

PRODUCE, METADATA = 0, 3

RULES = new_api_limits()
for _key in NAMES:
    load_api(RULES, _key)

TABLE: RowArray = np.zeros((), dtype_of(Counts))
COUNTS = row_of(TABLE, Counts)
COUNTS.max_frame_bytes = 10_000


def opens(data: bytes) -> int:
    return check_first_request(data, 0, len(data), COUNTS, RULES)


@pytest.mark.parametrize("key", NAMES)
def test_known_versions(key: int) -> None:
    for version in range(40):
        assert (version <= RULES.newest[key]) == is_plausible_version(key, version)


def test_unknown_keys() -> None:
    assert all(RULES.newest[key] == UNKNOWN for key in range(MAX_KEYS) if key not in NAMES)


def test_an_api_without_a_program_is_requested() -> None:
    rules = new_api_limits()
    frame = request(METADATA, 9, 1)
    assert check_first_request(frame, 0, len(frame), COUNTS, rules) == API_NOT_LOADED
    assert COUNTS.missing_api == METADATA
    load_api(rules, METADATA)
    assert check_first_request(frame, 0, len(frame), COUNTS, rules) == FAST_PATH
    assert rules.newest[METADATA + 1] == NOT_LOADED


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
    said = response_due(frame, 0, len(frame), RULES)
    # A length of two bytes is left to the objects.
    assert said == UNDECIDED if version >= 9 and text and len(text) > 126 else said == (acks != 0)


@given(st.integers(0, 14), st.data())
def test_damaged_requests_are_judged_correctly_or_left_undecided(
    version: int, data: st.DataObject
) -> None:
    values = {"acks": 0, "timeout_ms": 1} if version < 14 else {}
    frame = bytearray(request(PRODUCE, min(version, 13), 1, "client", **values))
    frame[7] = version
    for at in data.draw(st.lists(st.integers(12, len(frame) - 1), max_size=3)):
        frame[at] = data.draw(st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFF)))
    frame = frame[: data.draw(st.integers(4, len(frame)))]
    assert is_response_due(bytes(frame[4:])) == expects_response(bytes(frame[4:]))
    if (
        len(frame) >= 14
        and check_request_header(frame, 0, len(frame) - 4, COUNTS, RULES) == FAST_PATH
    ):
        said = response_due(frame, 0, len(frame), RULES)
        if said != UNDECIDED:
            assert said == (DUE if expects_response(bytes(frame[4:])) else NOT_DUE)


HEADERS = st.tuples(
    st.one_of(st.integers(0, 60), st.integers(-(2**31), 2**31 - 1)),
    st.integers(-2, 130),
    st.integers(-2, 20),
    st.integers(-2, 30),
    st.binary(max_size=40),
)


@given(HEADERS, st.booleans())
@settings(max_examples=examples(500))
def test_frames_valid_for_the_kernel_are_valid_for_objects(
    header: tuple[int, int, int, int, bytes], is_followed: bool
) -> None:
    size, key, version, client_id, text = header
    frame = (
        size.to_bytes(4, "big", signed=True)
        + key.to_bytes(2, "big", signed=True)
        + version.to_bytes(2, "big", signed=True)
        + bytes(4)
        + client_id.to_bytes(2, "big", signed=True)
        + text
    )
    if check_request_header(frame, 0, size, COUNTS, RULES) == FAST_PATH:
        assert is_plausible_request(frame, 0)
        assert is_plausible_version(key, version)
    data = frame + frame * is_followed
    if opens(data) == FAST_PATH:
        connection = ConnectionCorrelator(0, True, lambda row: None, 10_000)
        connection.add_data(0, data, 0, 0)
        assert (connection.speaks, connection.client, connection.streams[0].entered) == (
            "kafka",
            0,
            0,
        )


def test_the_first_frame_of_a_stream() -> None:
    frame = request(METADATA, 9, 1, "client")
    assert opens(frame) == opens(frame * 2) == opens(frame + frame[:20]) == FAST_PATH
    for odd in (
        frame[:-1],
        frame + b"\0",
        frame + bytes(20),
        request(METADATA, 9, 1, None),
        request(METADATA, 9, 1, "1"),
        request(METADATA, 9, 1, "a\tb"),
        request(METADATA, 9, 1, "ø" * 9),
        b"\x16\x03\x01\0\x20" + bytes(0x20),
    ):
        assert opens(odd) not in (FAST_PATH, API_NOT_LOADED)
