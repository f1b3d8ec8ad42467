"""
Decode the bytes fields of messages: the content of each field, by API.

Source: the docstrings in `apis`; KIP-559 (group protocol types), KIP-590 (Envelope), KIP-152
(SASL).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from construct import Container

from dissector.protocol.api import Kind
from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.embedded.principal import DefaultPrincipalData
from dissector.protocol.embedded.reading import Embedded, read_versioned
from dissector.protocol.embedded.sasl_tokens import decode_token
from dissector.protocol.messages import Message, decode_request, decode_response

ENVELOPE = 58


@dataclass(frozen=True, slots=True)
class _BytesField:
    """A bytes field of a message, with the context that decoding it may need."""

    message: Message
    path: str
    data: bytes
    request: Message | None
    mechanism: str | None


EmbeddedReader = Callable[[_BytesField], Embedded | None]


def read_embedded(
    message: Message, request: Message | None = None, mechanism: str | None = None
) -> list[Embedded]:
    """
    Decode everything embedded in a message, in the order of `READERS`.

    Args:
        message: The message.
        request: The request of a response. It determines the content of an Envelope response, and
            the protocol type of a group if the response does not have it.
        mechanism: The SASL mechanism of the connection, if its handshake is known.
    """
    if message.body is None or message.api_key is None:
        return []
    found = []
    for (key, kind, plain_path), reader in READERS.items():
        if (key, kind) == (message.api_key, message.kind):
            for path, data in _bytes_at(message.body, plain_path.split("."), ""):
                found.append(reader(_BytesField(message, path, data, request, mechanism)))
    return [each for each in found if each is not None]


def decode_field(
    message: Message,
    path: str,
    data: bytes,
    request: Message | None = None,
    mechanism: str | None = None,
) -> Embedded | None:
    """
    Decode one bytes field.

    Args:
        message: The message that contains it.
        path: Its path with indices, as in `Span.path`.
        data: Its value.
        request: As for `read_embedded`.
        mechanism: As for `read_embedded`.

    Returns:
        None if this field has no known content.
    """
    plain_path = re.sub(r"\[\d+\]", "", path)
    if message.api_key is None:
        return None
    reader = READERS.get((message.api_key, message.kind, plain_path))
    return reader(_BytesField(message, path, data, request, mechanism)) if reader else None


def _bytes_at(value: Any, names: list[str], path: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path with indices, bytes) of all fields at a path of names without indices."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _bytes_at(item, names, f"{path}[{index}]")
    elif isinstance(value, Container) and names:
        below = f"{path}.{names[0]}" if path else names[0]
        yield from _bytes_at(value.get(names[0]), names[1:], below)
    elif isinstance(value, bytes):
        yield path, value


def _read_member(part: MemberField, field: _BytesField) -> Embedded | None:
    return read_member(field.path, field.data, part, _protocol_type(field))


def _protocol_type(field: _BytesField) -> str | None:
    """Return the protocol type of the group, from the message or from its request."""
    body = field.message.body
    described = re.match(r"groups\[(\d+)\]", field.path)
    if body is not None and described and int(described[1]) < len(body.get("groups") or ()):
        body = body.groups[int(described[1])]
    bodies = (body, field.request.body if field.request else None)
    types = (each.get("protocol_type") for each in bodies if each is not None)
    return next((each for each in types if each), None)


def _read_principal(field: _BytesField) -> Embedded | None:
    return read_versioned(field.path, "DefaultPrincipalData", DefaultPrincipalData, field.data)


def _read_address(field: _BytesField) -> Embedded | None:
    """Decode an IP address of four or sixteen bytes."""
    if len(field.data) not in (4, 16):
        return None
    address = Container(address=str(ipaddress.ip_address(field.data)))
    return Embedded(field.path, "IP address", field.data, value=address, end=len(field.data))


def _read_inner_request(field: _BytesField) -> Embedded | None:
    return _embed_message(field, decode_request(field.data))


def _read_inner_response(field: _BytesField) -> Embedded | None:
    """Decode the response in an Envelope, by API and version of the request in its Envelope."""
    request = enveloped_request(field.request)
    key, version = (request.api_key, request.shown_version) if request else (None, None)
    return _embed_message(field, decode_response(field.data, key, version))


def enveloped_request(envelope: Message | None) -> Message | None:
    """Return the request inside an Envelope request; None without one."""
    if envelope is None or envelope.api_key != ENVELOPE or envelope.kind != "request":
        return None
    data = envelope.body.get("request_data") if envelope.body is not None else None
    return decode_request(data) if isinstance(data, bytes) else None


def _embed_message(field: _BytesField, inner: Message) -> Embedded:
    found = Embedded(
        field.path,
        f"{inner.api or 'unknown'} {inner.kind}",
        field.data,
        schema=inner.schema,
        version=inner.api_version,
        written_version=inner.shown_version,
        start=inner.body_start,
        end=inner.body_end,
        value=inner.body,
        message=inner,
    )
    for problem in inner.problems:
        found.add(problem)
    if inner.api_key == ENVELOPE:
        # Kafka forwards no envelopes; decoding them would allow unlimited nesting.
        found.problem("an Envelope inside an Envelope is not decoded", 0)
    else:
        found.inner = read_embedded(inner)
    return found


def _read_token(field: _BytesField) -> Embedded | None:
    from_client = field.message.kind == "request"
    token = decode_token(field.data, field.mechanism, from_client)
    shown = Container(mechanism=token.mechanism, user=token.user, step=token.step, text=token.text)
    return Embedded(field.path, "SASL token", field.data, value=shown, end=len(field.data))


READERS: dict[tuple[int, Kind, str], EmbeddedReader] = {
    (11, "request", "protocols.metadata"): partial(_read_member, "metadata"),
    (11, "response", "members.metadata"): partial(_read_member, "metadata"),
    (14, "request", "assignments.assignment"): partial(_read_member, "assignment"),
    (14, "response", "assignment"): partial(_read_member, "assignment"),
    (15, "response", "groups.members.member_metadata"): partial(_read_member, "metadata"),
    (15, "response", "groups.members.member_assignment"): partial(_read_member, "assignment"),
    (36, "request", "auth_bytes"): _read_token,
    (36, "response", "auth_bytes"): _read_token,
    (58, "request", "request_data"): _read_inner_request,
    (58, "request", "request_principal"): _read_principal,
    (58, "request", "client_host_address"): _read_address,
    (58, "response", "response_data"): _read_inner_response,
}
"""(API key, request or response, path without indices) -> reader of the field."""
