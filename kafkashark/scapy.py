"""
Kafka's messages as layers of scapy, built and dissected by kafkashark's codecs.

    from kafkashark.scapy import KafkaRequest, KafkaResponse, bind_ports

    bytes(KafkaRequest(api_key=18, api_version=0, correlation_id=1, client_id="me", body={}))

    bind_ports(9092, 9094)
    for packet in sniff(offline="a.pcap", session=TCPSession):
        if KafkaRequest in packet:
            packet[KafkaRequest].show()

Importing this module binds port 9092. With scapy's `TCPSession`, frames are joined across segments,
and responses are decoded by the requests of their connection. Without it the body of a response
stays bytes, unless `api_key` and `api_version` are given. Layers of scapy are slow, and
`TCPSession` breaks at retransmissions: for many packets use `open_capture().feed(packets)`. After
changing a dissected layer, `del layer.size` recomputes the size. Bodies have the original values;
`show()` and `repr()` mask secrets.
"""

from __future__ import annotations

import struct
from typing import Any

try:
    from scapy.config import conf
    from scapy.fields import Field
    from scapy.layers.inet import TCP
    from scapy.packet import Packet, bind_layers
except ImportError as missing:
    from dissector.installation import extra_needed

    raise ImportError(f"{extra_needed('kafkashark.scapy', 'scapy')}: {missing}") from None

from dissector.errors import EncodeError, Problem
from dissector.protocol.api import Kind
from dissector.protocol.apis import api, api_name
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.view.json.body import body_text
from dissector.view.text.escape import quoted

__all__ = ["KafkaRequest", "KafkaResponse", "bind_ports"]

KAFKA_PORT = 9092

_SIZE = struct.Struct(">i")
_REQUESTS = "kafka_requests"
"""Key in scapy's session dictionary; the value maps correlation ids to key and version."""


class _PlainField(Field[Any, Any]):
    """A value encoded by the packet as a whole."""

    def i2h(self, pkt: Any, x: Any) -> Any:
        """Return the value unchanged."""
        return x

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Return the value as text."""
        return quoted(x) if isinstance(x, str) else str(x)


class _ApiField(_PlainField):
    """An API key, shown with its name."""

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Return number and name."""
        return "None" if x is None else f"{x} ({api_name(x)})"


class _BodyField(_PlainField):
    """A body: a mapping of fields, or bytes."""

    def i2repr(self, pkt: Any, x: Any) -> str:
        """Return the body as JSON with masked secrets; for bytes only the size."""
        if isinstance(x, bytes):
            return f"{len(x):,} bytes"
        try:
            return str(body_text(pkt.message))
        except EncodeError as error:
            return f"not encodable: {error}"


class _KafkaMessage(Packet):
    """A frame: size, header and body."""

    kind: Kind

    @property
    def message(self) -> Message:
        """
        The message, as returned by `decode_request` and `decode_response`.

        Raises:
            EncodeError: The fields do not fit the declaration.
        """
        return self._decode(self.self_build()[_SIZE.size :])

    @property
    def problems(self) -> list[Problem]:
        """Problems of the message."""
        return self.message.problems

    def self_build(self) -> bytes:
        """
        Return size, header and body; the original bytes if no field was changed.

        Raises:
            EncodeError: The fields do not fit the declaration.
        """
        original: bytes | None = self.raw_packet_cache
        if original is not None and self._fields_of(original) == self.fields:
            return original
        body = self.body
        data = self._header() + (body if isinstance(body, bytes) else self._encode_body(body))
        return _SIZE.pack(len(data) if self.size is None else self.size) + data

    def do_dissect(self, s: bytes) -> bytes:
        """Read one frame; return the bytes after it."""
        end = _SIZE.size + max(_SIZE.unpack_from(s)[0], 0) if len(s) >= _SIZE.size else len(s)
        original, rest = s[:end], s[end:]
        self._begin(original)
        self.fields = self._fields_of(original)
        self.raw_packet_cache = original
        self.explicit = 1
        return rest

    def extract_padding(self, s: bytes) -> tuple[bytes, bytes | None]:
        """Return further frames as payload; an incomplete one is padding."""
        return (s, None) if _has_frame(s) else (b"", s)

    def guess_payload_class(self, payload: bytes) -> type[Packet]:
        """Return the class of the next frame."""
        return type(self)

    def hashret(self) -> bytes:
        """Return values common to request and response."""
        return struct.pack(">q", self.correlation_id or 0)

    def _begin(self, original: bytes) -> None:
        """Prepare to read a frame."""

    def _decode(self, frame: bytes) -> Message:
        raise NotImplementedError

    def _header(self) -> bytes:
        raise NotImplementedError

    def _fields_of(self, original: bytes) -> dict[str, Any]:
        """Return the fields of a frame, including its size."""
        message = self._decode(original[_SIZE.size :])
        body = message.frame[message.body_start :] if message.body is None else message.body
        size = _SIZE.unpack_from(original)[0] if len(original) >= _SIZE.size else None
        return {
            "size": size,
            "api_key": message.api_key,
            "api_version": message.shown_version,
            "correlation_id": message.correlation_id,
            **({"client_id": message.client_id} if self.kind == "request" else {}),
            "body": body,
        }

    def _encode_body(self, body: Any) -> bytes:
        found = None if self.api_key is None else api(self.api_key)
        schema = found.schema(self.kind) if found else None
        if schema is None or self.api_version not in schema.versions:
            raise EncodeError(f"API {self.api_key} version {self.api_version} is not known")
        data: bytes = schema.codec(self.api_version).build(body)
        return data

    @classmethod
    def tcp_reassemble(
        cls, data: bytes, metadata: dict[str, Any], session: dict[str, Any]
    ) -> Packet | None:
        """
        Return the frames of a stream once one is complete; called by scapy's `TCPSession`.

        Args:
            data: Pending bytes of one direction.
            metadata: Receives the number of required bytes.
            session: Shared by both directions of the connection.
        """
        if len(data) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(data)
        if not 0 <= size <= MAX_FRAME_BYTES:
            return conf.raw_layer(data)
        if len(data) < _SIZE.size + size:
            metadata["tcp_min_len"] = _SIZE.size + size
            return None
        return cls._of_stream(data, session.setdefault(_REQUESTS, {}))

    @classmethod
    def _of_stream(cls, data: bytes, requests: dict[int, tuple[int, int]]) -> Packet:
        raise NotImplementedError


class KafkaRequest(_KafkaMessage):
    """
    A request: `KafkaRequest(api_key=3, api_version=1, correlation_id=7, body={"topics": []})`.

    Attributes:
        size: Size prefix of 4 bytes; None for the actual size of header and body.
        api_key: API key.
        api_version: Version of header and body.
        correlation_id: Correlation id, repeated by the response.
        client_id: Client id; None for null.
        body: Fields, or bytes; missing fields have defaults. After dissection a Container, or bytes
            that do not fit the declaration, see `problems`.
    """

    name = "Kafka request"
    kind: Kind = "request"
    fields_desc = [  # noqa: RUF012  (scapy's way)
        _PlainField("size", None),
        _ApiField("api_key", 18),
        _PlainField("api_version", 0),
        _PlainField("correlation_id", 0),
        _PlainField("client_id", None),
        _BodyField("body", {}),
    ]

    def _decode(self, frame: bytes) -> Message:
        return decode_request(frame)

    def _header(self) -> bytes:
        version = request_header_version(self.api_key, self.api_version)
        fields = {
            "request_api_key": self.api_key,
            "request_api_version": self.api_version,
            "correlation_id": self.correlation_id,
            "client_id": self.client_id,
        }
        data: bytes = RequestHeader.codec(version).build(fields)
        return data

    @classmethod
    def _of_stream(cls, data: bytes, requests: dict[int, tuple[int, int]]) -> Packet:
        first: Packet = cls(data)
        layer: Any = first
        while isinstance(layer, cls):
            requests[layer.correlation_id] = layer.api_key, layer.api_version
            layer = layer.payload
        return first


class KafkaResponse(_KafkaMessage):
    """
    A response: `KafkaResponse(api_key=3, api_version=1, correlation_id=7, body={...})`.

    Attributes:
        size: Size prefix of 4 bytes; None for the actual size of header and body.
        api_key: API key, which is not part of a response; with None the body is bytes.
        api_version: Version of header and body, also not part of a response.
        correlation_id: The correlation id of the request.
        body: Fields, or bytes; missing fields have defaults.
    """

    name = "Kafka response"
    kind: Kind = "response"
    __slots__ = ["known"]
    fields_desc = [  # noqa: RUF012  (scapy's way)
        _PlainField("size", None),
        _ApiField("api_key", None),
        _PlainField("api_version", None),
        _PlainField("correlation_id", 0),
        _BodyField("body", b""),
    ]

    def __init__(
        self,
        _pkt: bytes = b"",
        *args: Any,
        known: dict[int, tuple[int, int]] | None = None,
        **fields: Any,
    ) -> None:
        """Build a response or dissect bytes; `known` maps correlation ids to key and version."""
        key, version = fields.get("api_key"), fields.get("api_version")
        if known is None and _pkt and key is not None and version is not None:
            known = {int.from_bytes(_pkt[4:8], "big", signed=True): (key, version)}
        self.known = known
        super().__init__(_pkt, *args, **fields)

    def answers(self, other: Packet) -> bool:
        """Return whether another packet is the request of this response, by correlation id."""
        return isinstance(other, KafkaRequest) and other.correlation_id == self.correlation_id

    def decoded_by(self, request: KafkaRequest) -> KafkaResponse:
        """Return a copy decoded by the API and version of its request."""
        return KafkaResponse(
            self.self_build(), api_key=request.api_key, api_version=request.api_version
        )

    def _begin(self, original: bytes) -> None:
        if self.known is None and isinstance(self.underlayer, KafkaResponse):
            self.known = self.underlayer.known
        number = int.from_bytes(original[4:8], "big", signed=True)
        key, version = (self.known or {}).get(number, (None, None))
        self.fields = {"api_key": key, "api_version": version}

    def _decode(self, frame: bytes) -> Message:
        return decode_response(frame, self.fields.get("api_key"), self.fields.get("api_version"))

    def _fields_of(self, original: bytes) -> dict[str, Any]:
        # An ApiVersions response in another version (KIP-511) keeps the version of the request.
        given = {name: self.fields.get(name) for name in ("api_key", "api_version")}
        return super()._fields_of(original) | given

    def _header(self) -> bytes:
        key, version = self.api_key, self.api_version
        header = 0 if key is None or version is None else response_header_version(key, version)
        data: bytes = ResponseHeader.codec(header).build({"correlation_id": self.correlation_id})
        return data

    @classmethod
    def _of_stream(cls, data: bytes, requests: dict[int, tuple[int, int]]) -> Packet:
        return cls(data, known=requests)


def _has_frame(data: bytes) -> bool:
    """Return whether the bytes begin with a complete frame."""
    if len(data) < _SIZE.size:
        return False
    size: int = _SIZE.unpack_from(data)[0]
    return 0 <= size <= len(data) - _SIZE.size


def bind_ports(*ports: int) -> None:
    """Dissect TCP payload on these broker ports as Kafka, like `bind_layers`."""
    for port in ports:
        bind_layers(TCP, KafkaRequest, dport=port)
        bind_layers(TCP, KafkaResponse, sport=port)


bind_ports(KAFKA_PORT)
