"""
What the kernels know of APIs, and whether the bytes of a candidate are one of their messages.

Versions and programs are loaded as captures need them. The programs of messages are those of the
tape: a candidate in the middle of a stream is a message if its program reads it to the last byte.

Hostile bytes can make many overlapping candidates. The reading of candidates is therefore limited
to so many tries for each byte on average (`may_try`).
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from dissector.capture.integers import signed16, u16
from dissector.engine.correlation.correlator_arrays import ApiLimits, CorrelatorState
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    Counts,
    Entry,
    FirstSteps,
    Outcome,
    SideRow,
    Verdict,
)
from dissector.engine.tape.tape_arrays import ProgramArrays, program_arrays
from dissector.engine.tape.tape_interpreter import BROKEN, FITS, read_message
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import dtype_of, rows_of
from dissector.protocol.apis import api, api_keys
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import API_VERSIONS, PRODUCE, request_header_version
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import ProgramTable
from dissector.protocol.schema import split_tagged

UNKNOWN, NOT_LOADED = -1, -2
"""Instead of the newest version of an API, or of a program: none exists, or is loaded yet."""

NEWER_VERSIONS = 4
"""Number of versions beyond the newest known one that are still plausible."""

VERSIONS = 64
"""Versions of an API that have programs; more than any has."""

TEXT, SHORT_TEXT, BYTES, FIXED = range(1, 5)
"""
Fields before the acks of a Produce request, with 4 bits each: with a length of 2 bytes, a compact
one, one of 4 bytes; from here on fixed ones of 1, 2, 4, 8 and 16 bytes.
"""

TAGS, ACKS_UNKNOWN = 15, -1
"""Tags at the end of the header; a declaration with other fields before the acks."""

_FIXED_SIZES = {"bool": 0, "int8": 0, "int16": 1, "uint16": 1, "int32": 2, "uint32": 2}
_FIXED_SIZES |= {"int64": 3, "float64": 3, "uuid": 4}
_MIN_KEYS = 1024

_programs_lock = Lock()
"""Captures are read in parallel, and share the programs."""


@per_schemas
def _programs() -> ProgramTable:
    """Return the programs of candidates; other passes have field numbers of their own."""
    return ProgramTable()


def new_api_limits() -> ApiLimits:
    """Return the limits of APIs before they are loaded."""
    size = max(_MIN_KEYS, *(key + 1 for key in api_keys().values()))
    newest, before_acks = np.full(size, UNKNOWN, np.int64), np.zeros(VERSIONS, np.int64)
    newest[list(api_keys().values())] = NOT_LOADED
    steps = np.full(size * VERSIONS, NOT_LOADED, dtype_of(FirstSteps))
    return ApiLimits._make((newest, before_acks, steps))


def load_api(api_limits: ApiLimits, key: int) -> None:
    """Load the limits of an API."""
    found = api(key)
    api_limits.newest[key] = found.request.versions.high + NEWER_VERSIONS if found else UNKNOWN
    if key == PRODUCE:
        for version in range(VERSIONS):
            api_limits.before_acks[version] = _before_acks(version)


def _before_acks(version: int) -> int:
    """Return the fields of a Produce request between the client id and the acks."""
    found = api(PRODUCE)
    if found is None or version not in found.request.versions:
        return ACKS_UNKNOWN
    untagged, _ = split_tagged(found.request.fields, version)
    names, flexible = [field.name for field in untagged], version in found.request.flexible
    if "acks" not in names:
        return ACKS_UNKNOWN
    forms = [TAGS] if request_header_version(PRODUCE, version) == 2 else []
    for field in untagged[: names.index("acks")]:
        is_compact = flexible and not field.classic
        if field.type in _FIXED_SIZES:
            forms.append(FIXED + _FIXED_SIZES[field.type])
        elif field.type in ("string", "bytes", "records"):
            long_form = TEXT if field.type == "string" else BYTES
            forms.append(SHORT_TEXT if is_compact else long_form)
        else:
            return ACKS_UNKNOWN
    packed = sum(form << 4 * at for at, form in enumerate(forms))
    return packed if len(forms) < 15 else ACKS_UNKNOWN


def load_programs(api_limits: ApiLimits, counts: Counts) -> None:
    """Load the programs of the API and version that a kernel lacks."""
    key, version = counts.missing_api, counts.missing_version
    steps = rows_of(api_limits.steps, FirstSteps)[key * VERSIONS + version]  # type: ignore[arg-type]
    with _programs_lock:
        steps.request = _programs().start(key, version, "request")
        steps.response = _programs().start(key, version, "response")


def programs() -> ProgramArrays:
    """Return the programs that are loaded, none of them with rows on the tape."""
    with _programs_lock:
        table = _programs()
        return program_arrays(table, np.zeros(len(table.field_refs), np.uint8))


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
    if key < 0 or key >= len(limits.newest) or version < 0 or version >= VERSIONS:
        return UNKNOWN
    steps = limits.steps[key * VERSIONS + version]
    step = steps.request if is_request else steps.response
    if step == NOT_LOADED:
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
    if step == NOT_LOADED:
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
    if step == NOT_LOADED:
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
    if step == NOT_LOADED:
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
    if key == API_VERSIONS and first_step(state, key, 0, False) == NOT_LOADED:
        return True
    return first_step(state, key, request.api_version, False) == NOT_LOADED


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
