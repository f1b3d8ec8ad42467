"""A header of a record as text, as tables show it and filters compare it."""

from __future__ import annotations


def header_text(key: str, value: bytes | str | None) -> str:
    """
    Return a header as `key=value`.

    A value that is not UTF-8 is `{"hex": "..."}`, a null value `null`.
    """
    if isinstance(value, str):
        return f"{key}={value}"
    if value is None:
        return f"{key}=null"
    try:
        return f"{key}={value.decode('utf-8')}"
    except UnicodeDecodeError:
        return f'{key}={{"hex": "{value.hex()}"}}'
