"""Default values in definitions, converted to those of our notation."""

from __future__ import annotations

import base64
from typing import Any
from uuid import UUID

from dissector.errors import DefinitionError

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": 16, "uint32": 32}
_WORDS = {"true": True, "false": False, True: True, False: False}


def default_of(value: Any, word: str, place: str) -> Any:
    """
    Return the default of a field; ellipsis if it has only its type's own default.

    Args:
        value: As in the definition: `"-1"`, `-1`, `"null"`, `"0x7fffffff"`; None if absent.
        word: The type of the field.
        place: The field, for error messages.

    Raises:
        DefinitionError: The default does not fit the type.
    """
    if value is None or value == "":
        return ...
    if value == "null":
        return None
    try:
        return _value(value, word)
    except (ValueError, KeyError, TypeError):
        raise DefinitionError(f"default {value!r} does not fit {word}", place) from None


def _value(value: Any, word: str) -> Any:
    if word == "string":
        return str(value)
    if word == "bool":
        return _WORDS[value]
    if word == "float64":
        return float(value)
    if word == "uuid":
        return str(UUID(bytes=base64.urlsafe_b64decode(f"{value}==")))
    bits = _BITS[word]
    number = int(value, 0) if isinstance(value, str) else int(value)
    low = 0 if word.startswith("u") else -(1 << bits - 1)
    if not low <= number < low + (1 << bits):
        raise ValueError(value)
    return number
