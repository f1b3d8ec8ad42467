"""
Where a capture holds secrets: fields that every output masks, and that hold more than a blank.

`record` blanks secrets with asterisks; other programs with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dissector.engine.fields.field_reader import FieldReader
from dissector.engine.reading.capture import Capture
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.embedded.sasl_tokens import MASK, token_secrets

_TOKENS = {("SaslAuthenticate", "auth_bytes"), ("SaslToken", "token")}
"""API and field of SASL tokens: names are no secrets, and are not blanked."""

_KEY = ("message", "path", "item", "offset")


class SecretPlace(NamedTuple):
    """
    A field with a secret.

    Attributes:
        packet: The packet that completed its message, from 1.
        api: Name of the API.
        kind: `request` or `response`.
        field: Path of the field.
        size: Bytes of the field.
    """

    packet: int
    api: str
    kind: str
    field: str
    size: int


class SecretPlaces:
    """Finds the secrets of a capture, window by window."""

    def __init__(self, capture: Capture) -> None:
        """Begin a pass over a capture."""
        self._masked = FieldReader(capture, show_secrets=False)
        self._shown = FieldReader(capture, show_secrets=True)

    def places(self, table: Exchanges) -> Iterator[SecretPlace]:
        """Yield the secrets in the exchanges of a window, in their order."""
        import polars as pl

        masked = pl.col("text") == MASK
        found = [each.filter(masked) for each in self._masked.frames(table)]
        if not any(map(len, found)):
            return
        numbers = pl.concat([each.select("message") for each in found])
        shown = pl.concat(
            each.join(numbers, on="message", how="semi").select(*_KEY, "type", content="text")
            for each in self._shown.frames(table)
        )
        rows = pl.concat(found).drop("type").join(shown, on=_KEY, how="left", maintain_order="left")
        for row in rows.iter_rows(named=True):
            place = SecretPlace(row["packet"], row["api"], row["kind"], row["path"], row["length"])
            if place.size and not _is_blank(place, row["type"] or "", row["content"]):
                yield place


def _is_blank(place: SecretPlace, type_name: str, content: str | None) -> bool:
    """Return whether a masked field holds no secret; one that was not read may hold any."""
    if content is None:
        return False
    data = content.encode()
    if type_name.removeprefix("[]") == "bytes":
        data = bytes.fromhex(content)
    if (place.api, place.field) in _TOKENS:
        secrets = token_secrets(data, from_client=place.kind == "request")
        if secrets or place.kind == "response":
            return not any(map(_holds_something, secrets))
    return not _holds_something(data)


def _holds_something(data: bytes) -> bool:
    return bool(data.strip(b"*") and data.strip(b"\0"))
