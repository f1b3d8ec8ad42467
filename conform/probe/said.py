"""A request that was sent to a broker, and what came back."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from construct import Container

from conform.probe.bodies import body_of
from dissector.protocol.apis import KEYS, NAMES, api, api_name
from dissector.protocol.headers import RequestHeader, request_header_version
from dissector.protocol.messages import Message, decode_response

CLIENT_ID = "kafkashark-conform"

_SILENCE = "did not answer"

_PART = re.compile(r"(\w+)|\[(\d+)\]")


@dataclass(slots=True)
class Said:
    """
    A request, and its answer once that has come.

    Attributes:
        api_key: Of the request.
        version: Of the request.
        correlation_id: Of the request.
        request: Its frame, without the size.
        answer: What came back; None until then, and where nothing did.
        nothing: Why nothing came back; empty where something did.
    """

    api_key: int
    version: int
    correlation_id: int
    request: bytes
    answer: Message | None = None
    nothing: str = ""

    def __str__(self) -> str:
        return f"{self.api} v{self.version}"

    @property
    def api(self) -> str:
        """The name of the API."""
        return api_name(self.api_key)

    @property
    def body(self) -> Container | None:
        """The body of the answer; None where there is none that can be read."""
        return None if self.answer is None else self.answer.body

    @property
    def is_silence(self) -> bool:
        """Whether nothing came back, though the connection was there."""
        return self.nothing.startswith(_SILENCE)

    def stay_silent(self, waited_s: float) -> None:
        """Note that no answer came in time."""
        self.nothing = f"{_SILENCE} in {waited_s:g} s"

    def take(self, frame: bytes) -> None:
        """Take a frame for the answer."""
        self.answer = decode_response(frame, self.api_key, self.version)

    def at(self, path: str, default: Any = None) -> Any:
        """Return what the answer has at a path such as `topics[0].error_code`."""
        found: Any = self.body
        for name, index in _PART.findall(path):
            if name:
                found = found.get(name, default) if isinstance(found, Mapping) else default
            else:
                at = int(index)
                found = found[at] if isinstance(found, list) and at < len(found) else default
        return found


def request_text(frame: bytes) -> str:
    """Return which API and version a request frame asks."""
    if len(frame) < 4:
        return "these bytes"
    key, version = struct.unpack_from(">hh", frame)
    return f"{api_name(key)} v{version}" if key in NAMES else "these bytes"


def request_frame(
    name: str,
    version: int,
    fields: Mapping[str, Any],
    correlation_id: int,
    *,
    client_id: str | None = CLIENT_ID,
    header: Mapping[str, Any] | None = None,
    body: bytes | None = None,
) -> Said:
    """
    Write a request.

    Args:
        name: Of the API.
        version: One that is declared, unless the body is given.
        fields: Of any version; what is missing is at its zero.
        correlation_id: To be sent back.
        client_id: In the header.
        header: More of the header.
        body: These bytes instead of the fields.
    """
    key = KEYS[name]
    found = api(key)
    assert found is not None
    head = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
        **(header or {}),
    }
    written = RequestHeader.codec(request_header_version(key, version)).build(head)
    rest = body_of(found.request, version, fields) if body is None else body
    return Said(key, version, correlation_id, written + rest)
