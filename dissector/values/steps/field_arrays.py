"""The arrays of kernels that find one field of many values, or write their texts."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import NamedRow, Rows
from dissector.kernel.shortest_doubles import PowersOf10


class Form:
    """What a kernel found of a field."""

    # Another schema, or another message of it; left to the decoder; no such field, or no value.
    OTHER, REFUSED, ABSENT = 0, 1, 2
    # A null; a boolean; an integer; the bits of a double.
    NULL, BOOLEAN, INTEGER, DOUBLE = 3, 4, 5, 6
    # Bytes, for the reader of their place.
    PLACED = 7
    # The text of the whole value; none, as the output is full.
    WRITTEN, FULL = 8, 9


class ValueRows(NamedTuple):
    """
    Keys or values.

    Attributes:
        start: Address of each; negative for null.
        length: Its bytes.
    """

    start: I64
    length: I64


class FoundFields(NamedTuple):
    """
    The field of each row, or its text.

    Attributes:
        form: Of `Form`.
        number: The number, the address of the bytes, or the begin of the text.
        size: Number of bytes.
        place: Which of the program's places they have.
    """

    form: I64
    number: I64
    size: I64
    place: I64


class Frame(NamedRow):
    """
    What is around a step: a block of items, a type inside itself, or a message.

    Attributes:
        step: Where it goes on.
        left: Items that are left of a block; the type of a message.
        end: Where the message ends.
        keys: Keys that are known around it.
    """

    step: int
    left: int
    end: int
    keys: int


DEPTH = 48
"""Frames at most."""


class KeyText(NamedRow):
    """A key of a map around a step: where its text begins in the output, and its bytes."""

    start: int
    size: int


MAX_KEYS = 64
"""Keys of the maps around a step, at most: each is compared with all of its map."""


class SeenField(NamedRow):
    """
    A field of a Protobuf message that is being written.

    Attributes:
        start: Where its key begins; that of its first item, or the last that counts; -1 if none is.
        end: Where it ends, or its last item.
        place: Its field by the key.
    """

    start: int
    end: int
    place: int


MAX_SEEN = 4096
"""Declared fields of the messages around one, and of itself, at most."""


class TextUse(NamedRow):
    """
    How far texts are written.

    Attributes:
        bytes: Bytes of the output that are used.
        row: The first row that is not done.
    """

    bytes: int
    row: int


class TextOutput(NamedTuple):
    """
    Where texts are written.

    Attributes:
        out: The output; it may be empty where only fields are looked for.
        use: One row.
        keys: `MAX_KEYS` rows.
        unsafe: For each byte, whether JSON may need an escape.
        powers: For texts of doubles.
    """

    out: U8
    use: Rows[TextUse]
    keys: Rows[KeyText]
    unsafe: U8
    powers: PowersOf10


class Work(NamedTuple):
    """
    What programs use and give, besides the values.

    Attributes:
        lead: The bytes before each value; those with others are of another schema.
        frames: `DEPTH` frames.
        seen: `MAX_SEEN` fields.
        found: Receives what is found in each row.
        text: Receives the texts.
    """

    lead: U8
    frames: Rows[Frame]
    seen: Rows[SeenField]
    found: FoundFields
    text: TextOutput
