"""One API: its key, its name, and the declarations of its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dissector.protocol.schema import Schema

Kind = Literal["request", "response"]


@dataclass(frozen=True, slots=True)
class Api:
    """
    One API: its key, its name, and what goes over the wire.

    Attributes:
        key: Its key.
        name: Its name.
        request: The declaration of the request.
        response: Of the response.
        sources: By kind and version, the JAR or folder of a definition that is not built in.
    """

    key: int
    name: str
    request: Schema
    response: Schema
    sources: Mapping[tuple[Kind, int], str] = field(default_factory=dict, hash=False)

    def schema(self, kind: Kind) -> Schema:
        """Return the declaration of the request or the response."""
        return self.request if kind == "request" else self.response
