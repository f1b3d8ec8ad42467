"""A request to a broker, with its response."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from construct import Container

from conform.probe.request_bodies import encode_body
from dissector.protocol.apis import KEYS, NAMES, api, api_name
from dissector.protocol.headers import RequestHeader, request_header_version
from dissector.protocol.messages import Message, decode_response

CLIENT_ID = "kafkashark-conform"

_NO_RESPONSE = "did not answer"

_PATH_PART = re.compile(r"(\w+)|\[(\d+)\]")


@dataclass(slots=True)
class RawExchange:
    """
    A request, and its response once received.

    Attributes:
        api_key: API key of the request.
        version: Version of the request.
        correlation_id: Correlation id of the request.
        request: Its frame, without the size.
        response: The response; None before its receipt, and without one.
        failure: The reason of a missing response; empty with a response.
    """

    api_key: int
    version: int
    correlation_id: int
    request: bytes
    response: Message | None = None
    failure: str = ""

    def __str__(self) -> str:
        return f"{self.api} v{self.version}"

    @property
    def api(self) -> str:
        """The name of the API."""
        return api_name(self.api_key)

    @property
    def body(self) -> Container | None:
        """The body of the response; None without a decodable one."""
        return None if self.response is None else self.response.body

    @property
    def is_timeout(self) -> bool:
        """Whether no response was received on an open connection."""
        return self.failure.startswith(_NO_RESPONSE)

    def record_timeout(self, waited_s: float) -> None:
        """Record that no response was received in time."""
        self.failure = f"{_NO_RESPONSE} in {waited_s:g} s"

    def set_response(self, frame: bytes) -> None:
        """Decode a frame as the response."""
        self.response = decode_response(frame, self.api_key, self.version)

    def field(self, path: str, default: Any = None) -> Any:
        """Return the value at a path of the response, such as `topics[0].error_code`."""
        value: Any = self.body
        for name, index in _PATH_PART.findall(path):
            if name:
                value = value.get(name, default) if isinstance(value, Mapping) else default
            else:
                position = int(index)
                value = (
                    value[position]
                    if isinstance(value, list) and position < len(value)
                    else default
                )
        return value


def describe_request(frame: bytes) -> str:
    """Return API and version of a request frame."""
    if len(frame) < 4:
        return "these bytes"
    key, version = struct.unpack_from(">hh", frame)
    return f"{api_name(key)} v{version}" if key in NAMES else "these bytes"


def encode_request(
    name: str,
    version: int,
    fields: Mapping[str, Any],
    correlation_id: int,
    *,
    client_id: str | None = CLIENT_ID,
    header: Mapping[str, Any] | None = None,
    body: bytes | None = None,
) -> RawExchange:
    """
    Encode a request.

    Args:
        name: Name of the API.
        version: A declared version, unless the body is given.
        fields: Fields of any version; missing fields are zero.
        correlation_id: The correlation id.
        client_id: The client id of the header.
        header: Further fields of the header.
        body: Bytes of the body, used instead of the fields.
    """
    key = KEYS[name]
    declaration = api(key)
    assert declaration is not None
    header_fields = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
        **(header or {}),
    }
    encoded_header = RequestHeader.codec(request_header_version(key, version)).build(header_fields)
    encoded_body = encode_body(declaration.request, version, fields) if body is None else body
    return RawExchange(key, version, correlation_id, encoded_header + encoded_body)
