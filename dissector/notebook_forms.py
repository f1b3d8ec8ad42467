"""
HTML forms of values for notebooks: rooms above register how the values of rooms below look.

So `_repr_html_` of a message needs no import of the views, which are above it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_forms: dict[type, Callable[[Any], str]] = {}


def register_form(kind: type[T], form: Callable[[T], str]) -> None:
    """Set the function that writes values of a class, and of its subclasses, as HTML."""
    _forms[kind] = form


def notebook_form(value: object) -> str:
    """Return a value as HTML: its `repr` if no form of its class is registered."""
    form = next((_forms[kind] for kind in type(value).__mro__ if kind in _forms), _plain)
    return form(value)


def _plain(value: object) -> str:
    from html import escape

    return f"<pre>{escape(repr(value))}</pre>"
