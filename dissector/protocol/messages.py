"""
Decode a frame into a message: header, body and problems.

A version newer than all known ones is decoded as the newest known one, and marked as assumed.

No bytes make this module raise. A body that does not match its declaration, an unknown API or
version, trailing bytes: each is a `Problem` of the message, which holds the decoded part.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from dissector.errors import DecodeError, Problem
from dissector.notebook_forms import notebook_form
from dissector.protocol.api import Kind
from dissector.protocol.apis import api, api_name, source_of
from dissector.protocol.context import current, per_schemas, using
from dissector.protocol.headers import (
    API_VERSIONS,
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.login_secrets import NOTHING_KNOWN, KnownSecrets
from dissector.protocol.schema import Schema

if TYPE_CHECKING:
    from construct import Container

    from dissector.protocol.codecs.codec import Codec
    from dissector.protocol.definitions.schemas import Schemas

UNSUPPORTED_VERSION = 35


def _no_name(topic_id: UUID) -> None:
    return None


@dataclass(slots=True)
class Message:
    """
    A request or a response.

    Attributes:
        kind: `request` or `response`.
        frame: The captured bytes of the frame, without its 4-byte size.
        size: The size field of the frame; larger than `len(frame)` if bytes were not captured.
        api_key: The API key; for a response the request's, None if the request is unknown.
        api_version: The version of the declaration that decoded the body; 0 for the error response
            to an ApiVersions request that was too new for the broker (KIP-511).
        newer_version: The version of the bytes, if that is newer than all known ones and
            `api_version` was assumed; else None.
        correlation_id: None if the header is incomplete.
        client_id: The client id of a request.
        body_start: Offset of the body in the frame.
        body: The decoded body, or None.
        body_end: Offset of the end of the body; bytes from here on are left over.
        problems: The defects of the message.
        broken_off: How the connection ended before the rest of the frame was sent: `fin`, `rst` or
            `reused`; empty if it did not.
        schemas: The message definitions that decoded it; None: the built-in declarations.
        known_secrets: The secrets that logins on its connection showed.
        topic_name: Returns the name of a topic id, if the capture has it.
    """

    kind: Kind
    frame: bytes
    size: int
    api_key: int | None = None
    api_version: int | None = None
    newer_version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    body_start: int = 0
    body: Container | None = None
    body_end: int = 0
    problems: list[Problem] = field(default_factory=list)
    broken_off: str = ""
    schemas: Schemas | None = field(default_factory=current, repr=False, compare=False)
    known_secrets: KnownSecrets = field(default=NOTHING_KNOWN, repr=False, compare=False)
    topic_name: Callable[[UUID], str | None] = field(default=_no_name, repr=False, compare=False)

    def __repr__(self) -> str:
        """Return a summary without fields, which may be secret."""
        version = "" if self.shown_version is None else f" v{self.shown_version}"
        number = "" if self.correlation_id is None else f", id {self.correlation_id}"
        client = "" if self.client_id is None else f", client {self.client_id!r}"
        faults = len(self.faults)
        problems = f", {faults:,} problem{'s' * (faults != 1)}" * bool(faults)
        name = f"{self.api or 'unknown'}{version} {self.kind}"
        return f"<Message {name}{number}{client}, {self.size:,} bytes{problems}>"

    def _repr_html_(self) -> str:
        return notebook_form(self)

    @property
    def api(self) -> str | None:
        """The name of the API."""
        if self.api_key is None:
            return None
        if self.schemas is current():
            return api_name(self.api_key)
        with using(self.schemas):
            return api_name(self.api_key)

    @property
    def shown_version(self) -> int | None:
        """The version in the bytes, for display, even if another one was used for decoding."""
        return self.api_version if self.newer_version is None else self.newer_version

    @property
    def is_assumed(self) -> bool:
        """Whether the version is unknown and the body was decoded as the newest known one."""
        return self.newer_version is not None

    @property
    def schema(self) -> Schema | None:
        """The declaration of the body; None if API or version is unknown."""
        version = self.api_version
        found = None if self.api_key is None else api.under(self.schemas, self.api_key)
        if found is None or version is None:
            return None
        schema = found.schema(self.kind)
        return schema if schema.versions.low <= version <= schema.versions.high else None

    @property
    def header(self) -> tuple[Schema, int]:
        """The declaration and version of the header."""
        if self.api_key is None or self.api_version is None:
            return ResponseHeader, 0
        version = request_header_version if self.kind == "request" else response_header_version
        schema = RequestHeader if self.kind == "request" else ResponseHeader
        with using(self.schemas):
            return schema, version(self.api_key, self.api_version)

    @property
    def faults(self) -> list[Problem]:
        """The problems except those that only name the source of a message definition."""
        return [each for each in self.problems if not each.is_foreign]

    def assume(self, what: str) -> None:
        """Add the problem of a body decoded by a declaration that may not be its own."""
        self.problems.append(Problem(what, self.kind, self.body_start, "assumed"))

    def problem(self, what: str, path: str = "", position: int | None = None) -> None:
        """Add a problem; the kind of the message is prefixed to its path."""
        full_path = f"{self.kind}.{path}" if path else self.kind
        self.problems.append(Problem(what, full_path, position))


def decode_request(frame: bytes, size: int | None = None, broken_off: str = "") -> Message:
    """
    Decode a request from its frame.

    Args:
        frame: The frame without its 4-byte size.
        size: The frame's size, if some of its bytes are missing.
        broken_off: Kind of connection end before they were sent, as `Message.broken_off`.
    """
    size = len(frame) if size is None else size
    message = Message("request", frame, size, broken_off=broken_off)
    if len(frame) < 8:
        return _with_short_header(message, 8)
    message.api_key = int.from_bytes(frame[0:2], "big", signed=True)
    message.api_version = int.from_bytes(frame[2:4], "big", signed=True)
    message.correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
    if not _read_fast(message) and read_header(message):
        _read_body(message)
    return message


def decode_response(
    frame: bytes,
    key: int | None,
    version: int | None,
    size: int | None = None,
    broken_off: str = "",
) -> Message:
    """
    Decode a response from its frame.

    Args:
        frame: The frame without its 4-byte size.
        key: The API key of the request; None if the request is unknown: then only the correlation
            id is read.
        version: The API version of the request.
        size: The frame's size, if some of its bytes are missing.
        broken_off: Kind of connection end before they were sent, as `Message.broken_off`.
    """
    size = len(frame) if size is None else size
    message = Message("response", frame, size, key, version, broken_off=broken_off)
    if len(frame) < 4:
        return _with_short_header(message, 4)
    message.correlation_id = int.from_bytes(frame[0:4], "big", signed=True)
    message.body_start = message.body_end = 4
    if key is None or version is None:
        return message
    # Its layout may be that of v0.
    is_refusal = key == API_VERSIONS and frame[4:6] == UNSUPPORTED_VERSION.to_bytes(2, "big")
    if is_refusal and read_header(message):
        _read_unsupported_version(message)
    elif not is_refusal and not _read_fast(message) and read_header(message):
        _read_body(message)
    return message


def _read_fast(message: Message) -> bool:
    """Decode a complete, usual message by compiled code; False, and no change, if impossible."""
    frame, key, version = message.frame, message.api_key, message.api_version
    if key is None or version is None or message.size != len(frame):
        return False
    header, codec = _fast_reader(message.kind, key, version)
    read = codec.compiled if codec is not None else None
    if read is None:
        return False
    from dissector.protocol.codecs.compiled import FALLBACK_ERRORS

    at, client_id = 4, None
    if message.kind == "request":
        size = int.from_bytes(frame[8:10], "big", signed=True)
        at = 10 + max(size, 0)
        client_id = frame[10:at] if size >= 0 else None
        if size < -1 or (client_id is not None and not client_id.isascii()):
            return False
    if header == _FLEXIBLE_HEADERS[message.kind]:
        if frame[at : at + 1] != b"\0":
            return False
        at += 1
    try:
        body, end = read(frame, at)
    except FALLBACK_ERRORS:
        return False
    if end != len(frame):
        return False
    message.client_id = None if client_id is None else client_id.decode("ascii")
    message.body_start, message.body, message.body_end = at, body, end
    return True


_FLEXIBLE_HEADERS = {"request": 2, "response": 1}
"""Versions of headers that end with tagged fields."""


@per_schemas
def _fast_reader(kind: Kind, key: int, version: int) -> tuple[int, Codec | None]:
    """Return the header's version and the body's codec; no codec for unusual messages."""
    found = api(key)
    header = Message(kind, b"", 0, key, version).header[1]
    is_usual = header > 0 or kind == "response"
    is_usual = is_usual and source_of(key, kind, version) is None
    if found is None or not is_usual or version not in found.schema(kind).versions:
        return header, None
    return header, found.schema(kind).codec(version)


def _read_unsupported_version(message: Message) -> None:
    """
    Read an ApiVersions response with UNSUPPORTED_VERSION, which is v0 (KIP-511).

    Some brokers use the version of the request; that is tried if v0 does not match.
    """
    request_version, message.api_version = message.api_version, 0
    _read_body(message)
    if message.body is None and message.size == len(message.frame):
        problems_of_v0 = message.problems[:]
        message.problems.clear()
        message.api_version = request_version
        _read_body(message)
        if message.body is None:
            message.api_version, message.problems = 0, problems_of_v0


def read_header(message: Message) -> bool:
    """Read the header; False if it does not match its declaration."""
    schema, version = message.header
    stream = io.BytesIO(message.frame)
    try:
        header = schema.codec(version).parse_stream(stream)
    except DecodeError as error:
        path = f"header.{error.path}" if error.path else "header"
        message.problem(error.what, path, error.position)
        return False
    message.client_id = header.get("client_id")
    message.body_start = message.body_end = stream.tell()
    return True


def _read_body(message: Message) -> None:
    key, version = message.api_key, message.api_version
    found = None if key is None else api(key)
    declared = found.schema(message.kind) if found else None
    if declared is not None and version is not None and version > declared.versions.high:
        _read_newer_version(message, declared, version)
        return
    _read_known_version(message)


def _read_newer_version(message: Message, declared: Schema, version: int) -> None:
    """
    Read a body of a version above all known ones by the newest declaration.

    Trailing bytes are taken for new fields. If the bytes do not match, the only problem is that the
    version is unknown.
    """
    what = f"version {version} of {message.api} is not known (known: {declared.versions_text})"
    message.api_version, message.newer_version = declared.closest_version(version), version
    _read_known_version(message)
    if message.body is None and message.size == len(message.frame):
        message.api_version, message.newer_version = version, None
        message.problems.clear()
        message.problem(what, "", message.body_start)
        return
    message.assume(f"{what}: assumed to be like version {message.api_version}")


def _read_known_version(message: Message) -> None:
    key, version = message.api_key, message.api_version
    schema = message.schema
    if message.size > len(message.frame):
        message.problem(_missing_bytes(message), "", len(message.frame))
    elif schema is None or version is None:
        found = None if key is None else api(key)
        known = f" (known: {found.schema(message.kind).versions_text})" if found else ""
        what = (
            f"version {version} of {message.api} is not known{known}"
            if found
            else f"{message.api} is not known"
        )
        message.problem(what, "", message.body_start)
    else:
        _parse_body(message, schema, version)


def _missing_bytes(message: Message) -> str:
    """Describe the bytes of a message that are not in the capture, and the reason."""
    lost = f"{message.size - len(message.frame)} bytes of the {message.kind}"
    ending = _ENDINGS.get(message.broken_off)
    return f"the connection {ending} before {lost} came" if ending else f"{lost} were not captured"


_ENDINGS = {"fin": "was closed", "rst": "was reset", "reused": "ended"}


def _with_short_header(message: Message, least: int) -> Message:
    count = len(message.frame)
    what = f"a {message.kind} header has at least {least} bytes, but only {count} are there"
    message.problem(_missing_bytes(message) if message.broken_off else what, "header", 0)
    return message


def _parse_body(message: Message, schema: Schema, version: int) -> None:
    stream = io.BytesIO(message.frame)
    stream.seek(message.body_start)
    try:
        message.body = schema.codec(version).parse_stream(stream)
    except DecodeError as error:
        message.problem(
            f"{message.api} v{version}: {error.what}",
            error.path,
            error.position,
        )
        return
    message.body_end = stream.tell()
    foreign = foreign_problem(message.kind, message.api_key or 0, version)
    message.problems += [foreign] if foreign else []
    left_bytes = len(message.frame) - message.body_end
    if left_bytes and not message.is_assumed:
        message.problem(f"{left_bytes} bytes are left over after the body", "", message.body_end)


@per_schemas
def foreign_problem(kind: Kind, key: int, version: int) -> Problem | None:
    """Return the problem that names a foreign definition's source; None for built-in ones."""
    source = source_of(key, kind, version)
    if source is None:
        return None
    return Problem(f"{api_name(key)} v{version} is decoded by {source}", kind, kind="foreign")
