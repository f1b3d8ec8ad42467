"""
What the kernels know of APIs; they are loaded as captures need them.

The programs of messages are those of the tape: they show whether a candidate in the middle of a
stream is a message.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from dissector.engine.correlation.correlator_arrays import ApiLimits
from dissector.engine.correlation.correlator_rows import Counts, FirstSteps
from dissector.engine.tape.tape_arrays import ProgramArrays, program_arrays
from dissector.kernel.named_rows import dtype_of, rows_of
from dissector.protocol.apis import api, api_keys
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import PRODUCE, request_header_version
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
