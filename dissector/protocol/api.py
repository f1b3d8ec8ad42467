"""One API: its key, its name, and the declarations of its messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dissector.protocol.schema import Schema

Kind = Literal["request", "response"]
KINDS: tuple[Kind, Kind] = ("request", "response")


@dataclass(frozen=True, slots=True)
class Api:
    """
    One API: its key, its name and its messages.

    Attributes:
        key: Kafka's API key.
        name: Kafka's name.
        request: Declaration of the request.
        response: Declaration of the response.
        sources: JAR or folder of each definition that is not built in, by kind and version.
    """

    key: int
    name: str
    request: Schema
    response: Schema
    sources: Mapping[tuple[Kind, int], str] = field(default_factory=dict, hash=False)

    def __repr__(self) -> str:
        """Return a summary without the declarations."""
        return f"<Api {self.name}, key {self.key}, versions {self.request.versions_text}>"

    def schema(self, kind: Kind) -> Schema:
        """Return the declaration of the request or the response."""
        return self.request if kind == "request" else self.response
