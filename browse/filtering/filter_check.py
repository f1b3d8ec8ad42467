"""Validation of filters while the user types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from dissector.errors import FilterError

if TYPE_CHECKING:
    from dissector.filter import Filter

State = Literal["empty", "valid", "unfinished", "invalid"]


class Check(NamedTuple):
    """
    A verdict about a text.

    Attributes:
        state: `valid`, `invalid`, or `unfinished` for an error in the last word.
        filter: The filter; None unless it is valid.
        message: The error; empty without one.
        position: Index of the error in the text.
    """

    state: State
    filter: Filter | None = None
    message: str = ""
    position: int = 0


def check(text: str, *, records: bool = False) -> Check:
    """Validate the text of a filter; with `records` it may name columns of records."""
    if not text.strip():
        return Check("empty")
    from dissector.filter import parse, parse_with_values

    try:
        return Check("valid", parse(text, records=True) if records else parse_with_values(text))
    except FilterError as error:
        last_word = len(text.rstrip()) - len(text.split()[-1])
        state: State = "unfinished" if error.position >= last_word else "invalid"
        return Check(state, None, error.what, error.position)
    except RecursionError:
        return Check("invalid", None, "nested too deeply")
