"""Messages from the tree of fields to the application."""

from __future__ import annotations

from typing import Literal

from textual.message import Message

How = Literal["replace", "and", "or", "not"]
"""How the filter of a field joins the present one; `not` is "and not"."""


class FieldChosen(Message):
    """
    A field became a filter.

    Attributes:
        text: The filter that the field passes.
        how: How it joins the present filter.
    """

    def __init__(self, text: str, how: How) -> None:
        super().__init__()
        self.text = text
        self.how = how


class FieldColumn(Message):
    """
    A field is to be a column of the list.

    Attributes:
        path: Its name in filters: `request.acks`.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
