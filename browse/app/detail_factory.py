"""The panes beside the list, from the room that has them."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from textual.widget import Widget


def new_details(show_secrets: bool) -> Widget | None:
    """Return the panes for the fields and bytes of an exchange; None where they are not built."""
    if find_spec("browse.detail") is None:
        return None
    found: Widget = import_module("browse.detail").DetailPanes(show_secrets=show_secrets)
    return found
