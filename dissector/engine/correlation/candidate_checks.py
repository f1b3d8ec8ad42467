"""
Whether the bytes of a candidate fit the declaration of their message, by its program.

Hostile bytes can make many overlapping candidates. The reading of candidates is therefore limited
to so many tries for each byte on average (`may_try`).
"""

from __future__ import annotations

from dissector.capture.integers import u16
from dissector.engine.correlation import api_limits as apis
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    Entry,
    Outcome,
    SideRow,
    Verdict,
)
from dissector.engine.correlation.frame_checks import signed16
from dissector.engine.tape.tape_interpreter import BROKEN, FITS, read_message
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION

MAX_TRIES_PER_BYTE = 16
"""Average number of tries of a byte as part of a candidate."""

ALWAYS_TRIED_BYTES = 8 << 20
"""Number of bytes that may be tried in any case."""

MAX_PADDED_BYTES = 1 << 20
"""The maximum size of an incomplete request that is padded with zeros for a trial."""

_MAX_VARINT_BYTES = 5
"""The longest encoding of a length: an unsigned varint."""


@device_function
def may_try(stream: SideRow, size: int) -> bool:
    """Return whether a candidate of this size may be tried against its declaration."""
    stream.tried_bytes += size
    limit = ALWAYS_TRIED_BYTES + MAX_TRIES_PER_BYTE * (stream.base + stream.buffered_bytes)
    return bool(stream.tried_bytes <= limit)


@device_function
def first_step(state: CorrelatorState, key: int, version: int, is_request: bool) -> int:
    """Return the first instruction of a message, UNKNOWN without one, NOT_LOADED if it is not."""
    limits = state.api_limits
    if key < 0 or key >= len(limits.newest) or version < 0 or version >= apis.VERSIONS:
        return apis.UNKNOWN
    steps = limits.steps[key * apis.VERSIONS + version]
    step = steps.request if is_request else steps.response
    if step == apis.NOT_LOADED:
        state.counts.missing_api = key
        state.counts.missing_version = version
    return step


@device_function
def is_zero(data: U8, at: int, end: int) -> bool:
    """Return whether all bytes are zero: these fit many declarations."""
    while at < end:
        if data[at] != 0:
            return False
        at += 1
    return True


@device_function
def read(state: CorrelatorState, data: U8, at: int, end: int, step: int) -> tuple[int, int]:
    """Run a message through its program; return its state, and where that stopped."""
    found, stopped, _ = read_message(data, at, end, 0, step, state.program, state.rows, 0)
    return found, stopped


@device_function
def check_request_body(state: CorrelatorState, data: U8, at: int, size: int) -> int:
    """Return whether a request fits its declaration to the last byte; or NEEDS_PROGRAM."""
    step = first_step(state, signed16(data, at), signed16(data, at + 2), True)
    if step == apis.NOT_LOADED:
        return Outcome.NEEDS_PROGRAM
    if step < 0 or is_zero(data, at, at + size):
        return Verdict.NO
    found, _ = read(state, data, at, at + size, step)
    return Verdict.YES if found == FITS else Verdict.NO


@device_function
def check_whole_request(state: CorrelatorState, stream: SideRow, at: int, size: int) -> int:
    """Return whether a held candidate fits its declaration to the last byte; or NEEDS_PROGRAM."""
    data = state.carry_over
    step = first_step(state, signed16(data, at), signed16(data, at + 2), True)
    if step == apis.NOT_LOADED:
        return Outcome.NEEDS_PROGRAM
    return check_request_body(state, data, at, size) if may_try(stream, size) else Verdict.NO


@device_function
def check_begun_request(
    state: CorrelatorState, stream: SideRow, at: int, size: int, available: int
) -> int:
    """
    Return whether an incomplete request, padded with zeros, fits its declaration.

    Args:
        state: Of the correlator.
        stream: The stream, which holds it.
        at: Offset of the frame in the carry-over buffer, behind the size.
        size: Its size.
        available: Number of its available bytes.
    """
    data = state.carry_over
    if size > MAX_PADDED_BYTES:
        return Verdict.YES
    step = first_step(state, signed16(data, at), signed16(data, at + 2), True)
    if step == apis.NOT_LOADED:
        return Outcome.NEEDS_PROGRAM
    if not may_try(stream, size) or is_zero(data, at, at + available):
        return Verdict.NO
    if step < 0:
        return Verdict.YES
    padded = state.padded
    copy_bytes(padded, 0, data, at, available)
    copy_bytes(padded, available, padded, MAX_PADDED_BYTES, size - available)
    found, stopped = read(state, padded, 0, size, step)
    # The last bytes may be a truncated length, which may be anything.
    is_fit = found == FITS or stopped > available - _MAX_VARINT_BYTES
    return Verdict.YES if is_fit else Verdict.NO


@device_function
def check_whole_response(
    state: CorrelatorState, stream: SideRow, at: int, size: int, request: Entry
) -> int:
    """Return whether a held response fits its declaration to the last byte; or NEEDS_PROGRAM."""
    if lacks_response_program(state, request):
        return Outcome.NEEDS_PROGRAM
    # Zeros are a valid response to request 0 in many declarations, and occur in many records.
    data = state.carry_over
    if not may_try(stream, size) or is_zero(data, at, at + size):
        return Verdict.NO
    step = response_step(state, data, at, size, request)
    if step < 0:
        return Verdict.NO
    found, _ = read(state, data, at, at + size, step)
    return Verdict.YES if found == FITS else Verdict.NO


@device_function
def lacks_response_program(state: CorrelatorState, request: Entry) -> bool:
    """Return whether the programs of the response to a request have to be loaded."""
    key = request.api_key
    if key == API_VERSIONS and first_step(state, key, 0, False) == apis.NOT_LOADED:
        return True
    return first_step(state, key, request.api_version, False) == apis.NOT_LOADED


@device_function
def response_step(state: CorrelatorState, data: U8, at: int, size: int, request: Entry) -> int:
    """
    Return the first instruction of the program of a response; negative without one.

    The response to an ApiVersions request that is too new has version 0, but for some brokers.
    Source: KIP-511.
    """
    key = request.api_key
    if key == API_VERSIONS and size >= 6 and u16(data, at + 4) == UNSUPPORTED_VERSION:
        refusal = first_step(state, key, 0, False)
        found, _ = read(state, data, at, at + size, refusal) if refusal >= 0 else (BROKEN, 0)
        if found != BROKEN:
            return refusal
    return first_step(state, key, request.api_version, False)


@device_function
def check_answer(state: CorrelatorState, response: Entry, request: Entry) -> int:
    """Return whether a frame can be the response to a request, as far as it was captured."""
    if response.length != response.size:
        return Verdict.YES
    if lacks_response_program(state, request):
        return Outcome.NEEDS_PROGRAM
    data, at = state.data, response.start
    if at >= CARRY_OVER_BASE:
        data = state.carry_over
        at -= CARRY_OVER_BASE
    step = response_step(state, data, at, response.size, request)
    if step < 0:
        return Verdict.YES
    found, _ = read(state, data, at, at + response.size, step)
    return Verdict.YES if found == FITS else Verdict.NO
