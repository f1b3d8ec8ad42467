"""The input arrays of `body_kernel`, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import NamedRow, Rows
from dissector.view.json.json_constants import HeaderField
from dissector.view.json.json_program import Step


class BodyMessage(NamedRow):
    """
    A request or a response.

    Attributes:
        start: Its address.
        end: Address behind it.
        step: The first step of its program; negative without a body.
    """

    start: int
    end: int
    step: int


class BodyField(NamedRow):
    """
    A `records` field that is not empty.

    Attributes:
        start: Its address.
        first_batch: Number of its first batch.
    """

    start: int
    first_batch: int


class BodyBatch(NamedRow):
    """
    A batch of records.

    Attributes:
        start: Address of its payload.
        end: Address behind it.
        base_offset: Its base offset.
    """

    start: int
    end: int
    base_offset: int


class OpenArray(NamedRow):
    """
    An array that is being written.

    Attributes:
        step: The step of its items.
        left: Its remaining items.
    """

    step: int
    left: int


class TagSlot(NamedRow):
    """
    The value of a known tag; the slot behind those of a section has the end of this.

    Attributes:
        at: Offset of the value; -1 if it is absent.
        size: Its bytes.
    """

    at: int
    size: int


class TextPlace(NamedRow):
    """
    The text of a message.

    Attributes:
        start: Its offset in the output.
        length: Its bytes; NO_BODY, or SLOW_PATH_BODY.
    """

    start: int
    length: int


class BodyArrays(NamedTuple):
    """
    The messages of a window, and the state of their `records` fields.

    Attributes:
        messages: The request and the response of each exchange.
        first_field: Number of each exchange's first `records` field that is not empty.
        fields: These fields, and one more for the end of the batches.
        state: State of each field.
        batches: The batches of the fields.
        header_fields: `HEADER_FIELDS`.
        signs: `Logins.signs`.
    """

    messages: Rows[BodyMessage]
    first_field: I64
    fields: Rows[BodyField]
    state: U8
    batches: Rows[BodyBatch]
    header_fields: Rows[HeaderField]
    signs: U8


class JsonProgramArrays(NamedTuple):
    """
    The programs of bodies; see `json_program`.

    Attributes:
        code: The steps.
        tags: The known tags.
        arrays: Space for the open arrays.
        tag_slots: Space for the values of open tag sections.
    """

    code: Rows[Step]
    tags: I64
    arrays: Rows[OpenArray]
    tag_slots: Rows[TagSlot]
