"""The input arrays of `body_kernel`, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8, I64Table


class BodyArrays(NamedTuple):
    """
    The messages of a window, and the state of their `records` fields.

    Attributes:
        messages: [2 * exchanges, 3]: address, end and first step of request and response; the step
            is negative without a body.
        first_field: Number of each exchange's first `records` field that is not empty.
        fields: [2, fields + 1]: address of each field, and its first batch.
        state: State of each field.
        batches: [3, batches]: start and end address of each payload, and its base offset.
        header_fields: `HEADER_FIELDS`.
        signs: `Logins.signs`.
    """

    messages: I64Table
    first_field: I64
    fields: I64Table
    state: U8
    batches: I64Table
    header_fields: I64Table
    signs: U8


class JsonProgramArrays(NamedTuple):
    """
    The programs of bodies; see `json_program`.

    Attributes:
        code: The steps.
        tags: The known tags.
        stack: [DEPTH, 2]: the open arrays.
        tag_slots: [MAX_TAG_SLOTS, 2]: offset and length of tagged values.
    """

    code: I64Table
    tags: I64
    stack: I64Table
    tag_slots: I64Table
