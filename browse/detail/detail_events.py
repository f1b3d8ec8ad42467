"""Messages from the tree of fields to the application."""

from __future__ import annotations

from typing import Literal

from textual.message import Message

How = Literal["replace", "and", "or", "not"]
"""Ways to join a field's filter with the current one; `not` means "and not"."""


class FieldChosen(Message):
    """
    The user made a filter of a field.

    Attributes:
        text: Filter that passes the field.
        how: Way to join it with the current filter.
    """

    def __init__(self, text: str, how: How) -> None:
        super().__init__()
        self.text = text
        self.how = how


class FieldMarked(Message):
    """
    Another field is at the cursor.

    Attributes:
        text: Its name in filters, and its bytes; empty without a field.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class PacketChosen(Message):
    """
    The user pressed Enter on a line that names a packet.

    Attributes:
        packet: The packet.
    """

    def __init__(self, packet: int) -> None:
        super().__init__()
        self.packet = packet


class FieldMenu(Message):
    """A right click on a field, which is at the cursor now."""


class FieldColumn(Message):
    """
    The user made a column of a field.

    Attributes:
        path: Name of the field in filters, such as `request.acks`.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
