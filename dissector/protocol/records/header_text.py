"""A header of a record as text, as tables show it and filters compare it."""

from __future__ import annotations


def header_text(key: str, value: bytes | str | None) -> str:
    """
    Return a header as `key=value`.

    A value that is not UTF-8 is `{"hex": "..."}`, a null value `null`.
    """
    if value is None:
        return f"{key}=null"
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError:
            value = f'{{"hex": "{value.hex()}"}}'
    return f"{key}={value}"
