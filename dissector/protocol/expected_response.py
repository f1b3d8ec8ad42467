"""Expectation of a response to a request."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from dissector.errors import DecodeError
from dissector.protocol.apis import api
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import PRODUCE
from dissector.protocol.messages import Message, read_header
from dissector.protocol.schema import construct_of, split_tagged

if TYPE_CHECKING:
    from dissector.protocol.codecs.structs import Fields


def expects_response(frame: bytes) -> bool:
    """
    Return whether a request has a response: every request has, except Produce with acks = 0.

    If the bytes do not show it (a truncated frame, an unknown version), a response is expected.

    Source: Kafka, ProduceRequest.json ("acks").
    """
    if frame[:2] != PRODUCE.to_bytes(2, "big"):
        return True
    message = Message("request", frame, len(frame), PRODUCE, int.from_bytes(frame[2:4], "big"))
    if len(frame) < 10 or message.schema is None or not read_header(message):
        return True
    reader = _acks_reader(message.api_version or 0)
    if reader is None:
        return True
    stream = io.BytesIO(frame)
    stream.seek(message.body_start)
    try:
        return bool(reader.parse_stream(stream).acks != 0)
    except DecodeError:
        return True


@per_schemas
def _acks_reader(version: int) -> Fields | None:
    """
    Return a Construct of a Produce request's fields up to `acks`, without a tag section.

    None if the definition in use has no `acks`.
    """
    from dissector.protocol.codecs.structs import Fields, Member

    found = api(PRODUCE)
    assert found is not None
    plain, _ = split_tagged(found.request.fields, version)
    names = [field.name for field in plain]
    if "acks" not in names:
        return None
    flexible = version in found.request.flexible
    return Fields(
        [
            Member(field.name, construct_of(field, version, flexible))
            for field in plain[: names.index("acks") + 1]
        ]
    )
